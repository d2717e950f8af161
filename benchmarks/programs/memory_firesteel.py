"""Whether the Python workers' memory stays flat during a long keyed count."""

import argparse
import time
from collections.abc import Iterator

from measure import report
from processes import Sampler, peaks

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=20_000_000)
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()
KEYS = options.keys


class CountPerKey(KeyedProcessFunction):
    """Yields (key, how many records of the key so far)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = NumberSequenceSource(0, options.records - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    users = numbers.map(lambda n: f"user-{n * 2654435761 % KEYS}", Types.STRING())
    counts = users.key_by(lambda user: user, Types.STRING()).process(
        CountPerKey(), Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    counts.filter(lambda pair: False).print()
    sampler = Sampler()
    sampler.start()
    started = time.perf_counter()
    env.execute("memory")
    run_seconds = time.perf_counter() - started
    samples = sampler.stop()
    if not any(sample.workers for sample in samples):
        raise RuntimeError("no Python worker of Spark was seen, so nothing was measured")
    report(
        {
            "records": options.records,
            "run_seconds": run_seconds,
            "samples": len(samples),
            "peaks_by_quarter": peaks(samples),
        }
    )


main()
