"""What the benchmarks of connectors share: the options, jobs into and out of a system, and how they are measured."""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

SYSTEMS = ["redis", "mariadb", "postgresql", "sqlite", "files", "mqtt", "rabbitmq", "opensearch", "cassandra"]
SYSTEMS += ["polling", "hybrid", "spark"]

parser = argparse.ArgumentParser(description="Records a second into and out of another system.")
parser.add_argument("--records", type=int, default=200_000)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--system", choices=SYSTEMS, required=True)
options = parser.parse_args()

NONE = WatermarkStrategy.no_watermarks()
ROW = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
TEXT = "x" * 80
PORTION = 5000

Work = Callable[[], None]
Works = dict[str, tuple[Work, Work]]
"""By name: a bare loop, and the job that does the same."""


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    env.set_parallelism(1)
    return env


def numbers(env: StreamExecutionEnvironment) -> Any:
    source = env.from_source(NumberSequenceSource(0, options.records - 1), NONE, "numbers")
    return source.map(lambda n: (n, TEXT), output_type=ROW)


def written(sink: Any) -> None:
    env = environment()
    numbers(env).sink_to(sink)
    env.execute("into")


def read(source: Any) -> None:
    env = environment()
    env.from_source(source, NONE, "out").filter(lambda record: False).print()
    env.execute("out of")


def portions() -> Iterator[list[tuple[int, str]]]:
    for start in range(0, options.records, PORTION):
        yield [(n, TEXT) for n in range(start, min(start + PORTION, options.records))]


def written_text(sink: Any) -> None:
    env = environment()
    source = env.from_source(NumberSequenceSource(0, options.records - 1), NONE, "numbers")
    source.map(lambda n: TEXT, output_type=Types.STRING()).sink_to(sink)
    env.execute("into")


def taken(source: Any) -> None:
    """Reads an unbounded source until as many records have come as there are."""
    env = environment()
    with env.from_source(source, NONE, "out").map(lambda record: 0).execute_and_collect("out of") as found:
        for _ in zip(range(options.records), found, strict=False):
            pass


SECONDS: list[tuple[float, float]] = []
"""How long a work has taken that had to prepare something first, and how long it computed."""


def after(prepare: Work, work: Work) -> Work:
    """The work, measured without what has to be done before it."""

    def both() -> None:
        prepare()
        began, computed = time.perf_counter(), time.process_time()
        work()
        SECONDS.append((time.perf_counter() - began, time.process_time() - computed))

    return both


def measured(work: Work) -> tuple[float, float]:
    """Records a second, and the seconds that this process computed: the part of a server or a JVM is left out."""
    SECONDS.clear()
    began, computed = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = SECONDS.pop() if SECONDS else (time.perf_counter() - began, time.process_time() - computed)
    return options.records / seconds, cpu
