"""Records of megabytes through a JVM with little memory, and what is said when the JVM is gone, or does not start."""

from __future__ import annotations

import pytest
from sparkkit import run_script, write_script

PROGRAM = """
    import os
    from pyspark import SparkContext
    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.state import ValueStateDescriptor
    from firesteel.errors import SetupError

    COUNT, SIZE = 48, 10 << 20
    HEAP = {"spark.driver.memory": "480m"}

    class Remember(KeyedProcessFunction):
        def open(self, context):
            self.last = context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, context):
            self.last.update(value[1][: 1 << 20])
            yield value

    def environment(**settings):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({**HEAP, **settings}))
        return env.set_parallelism(2)

    # 1. Spark does not start.
    env = environment(**{"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/there/is/no/such/folder"})
    env.from_collection([1, 2]).print()
    try:
        env.execute()
    except SetupError as error:
        print("refused:", "no/such/folder" in str(error))

    # 2. It does, and has a heap that is smaller than what goes through it.
    env = environment()
    # Small numbers become large records, and nobody knows that before: all of them are in the first batch, which is
    # larger than the heap, and so are its results.
    large = env.from_collection(list(range(COUNT))).map(lambda n: (n, b"%08d" % n * (SIZE // 8)))
    # And some that come large from the source.
    more = env.from_collection([(n, b"%08d" % n * (SIZE // 8)) for n in range(COUNT, COUNT + 4)])
    stream = large.union(more).key_by(lambda pair: pair[0]).process(Remember())
    with stream.execute_and_collect() as found:
        checked = sorted((n, content == b"%08d" % n * (SIZE // 8)) for n, content in found)
    print("complete:", checked == [(n, True) for n in range(COUNT + 4)])
    print("small:", SparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() < COUNT * SIZE)

    # 3. It is killed.
    source = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    try:
        with stream.execute_and_collect() as found:
            next(found)
            SparkContext._gateway.proc.kill()
            for _ in found:
                pass
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """By a program whose Spark does not start at first, then has little memory, and is killed."""
    done = run_script(write_script(tmp_path_factory.mktemp("large"), PROGRAM))
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stdout + done.stderr[-2000:]
    return lines


def test_spark_starts_after_a_start_that_failed(printed: list[str]) -> None:
    assert printed[:2] == ["refused: True", "complete: True"]


def test_large_records_through_a_small_heap(printed: list[str]) -> None:
    assert printed[1:3] == ["complete: True", "small: True"]


def test_a_jvm_that_was_killed_is_told(printed: list[str]) -> None:
    assert "JobExecutionError Spark's JVM has ended: it was killed (SIGKILL)." in printed[3]
