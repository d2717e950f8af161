"""What checkpoints cost: a count per key with and without them, at an interval of 10 s, turn by turn."""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import measure

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=10_000_000)
parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
parser.add_argument("--turns", type=int, default=3)
options = parser.parse_args()


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def seconds(records: int, folder: str | None) -> float:
    settings = {"state.backend.type": options.backend}
    if folder is not None:
        settings |= {"state.checkpoints.dir": folder, "execution.checkpointing.interval": "10 s"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    users = numbers.map(lambda n: f"user-{n * 2654435761 % 10_000}", Types.STRING())
    counts = users.key_by(lambda user: user, Types.STRING()).process(CountPerKey())
    counts.filter(lambda pair: False).print()
    begun = time.perf_counter()
    env.execute("with checkpoints" if folder else "without checkpoints")
    return time.perf_counter() - begun


def main() -> None:
    seconds(options.records // 5, None)
    times: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(options.turns):
        times["without"].append(seconds(options.records, None))
        with tempfile.TemporaryDirectory(prefix="firesteel-bench-") as folder:
            times["with"].append(seconds(options.records, folder))
        measure.progress(f"without {times['without'][-1]:.1f} s, with {times['with'][-1]:.1f} s")
    without, with_them = statistics.median(times["without"]), statistics.median(times["with"])
    measure.report(
        {
            "records": options.records,
            "seconds_without": without,
            "seconds_with": with_them,
            "throughput_lost": 1 - without / with_them,
        }
    )


main()
