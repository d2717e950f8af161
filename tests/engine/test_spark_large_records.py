"""Records of megabytes through a JVM with little memory, and what is said when the JVM is gone."""

from __future__ import annotations

from pathlib import Path

from sparkkit import run_script, write_script

LARGE = """
    from firesteel.common import Configuration, Types
    from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from firesteel.datastream.state import ValueStateDescriptor

    COUNT, SIZE = 24, 10 << 20

    class Remember(KeyedProcessFunction):
        def open(self, context):
            self.last = context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, context):
            self.last.update(value[1][: 1 << 20])
            yield value

    settings = Configuration.from_dict({"spark.driver.memory": "512m"})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(2)
    # Small numbers become large records, and nobody knows that before: all of them are in the first batch.
    large = env.from_collection(list(range(COUNT))).map(lambda n: (n, b"%08d" % n * (SIZE // 8)))
    # And some that come large from the source.
    more = env.from_collection([(n, b"%08d" % n * (SIZE // 8)) for n in range(COUNT, COUNT + 4)])
    stream = large.union(more).key_by(lambda pair: pair[0]).process(Remember())
    with stream.execute_and_collect() as found:
        checked = sorted((n, content == b"%08d" % n * (SIZE // 8)) for n, content in found)
    print(checked == [(n, True) for n in range(COUNT + 4)])
"""

KILLED = """
    import os, signal, time
    from pyspark import SparkContext
    from firesteel.common import WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource

    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
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


def test_large_records_through_a_small_heap(tmp_path: Path) -> None:
    done = run_script(write_script(tmp_path, LARGE))
    assert done.stdout == "True\n", done.stderr[-2000:]


def test_a_jvm_that_was_killed_is_told(tmp_path: Path) -> None:
    done = run_script(write_script(tmp_path, KILLED))
    assert "JobExecutionError Spark's JVM has ended: it was killed (SIGKILL)." in done.stdout, done.stderr[-2000:]
