"""A job on Spark with all it keeps on a real HDFS: input, output, checkpoint, savepoint and the folder's lease.

As a program it is the job that the test kills.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdfskit import HdfsFolder
from pyspark.sql import SparkSession
from sparkkit import end_process, eventually, script_environment, spark_env

from firesteel.common import Duration, Encoder, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.engine import folder_lease
from firesteel.engine.spark.hadoop import HadoopStorage
from firesteel.errors import CheckpointError

NONE = WatermarkStrategy.no_watermarks()
REPOSITORY = Path(__file__).resolve().parents[2]


class Numbered(KeyedProcessFunction):
    """Numbers the lines of a key: one that came twice or was left out would show."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value}={self.count.value()}"


def program(base: str, parallelism: int, **config: str) -> StreamExecutionEnvironment:
    env = spark_env(parallelism, {"firesteel.batch.max-records": 20, **config})
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{base}/in")
    source = lines.monitor_continuously(Duration.of_millis(100)).build()
    sink = FileSink.for_row_format(f"{base}/out", Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    numbered = env.from_source(source, NONE, "lines").uid("lines").key_by(lambda line: line[0]).process(Numbered())
    numbered.uid("numbered").map(str, Types.STRING()).uid("text").sink_to(sink.build()).uid("sink")
    return env


def in_folder(base: str) -> dict[str, str]:
    return {"firesteel.checkpoint.dir": f"{base}/checkpoints/job"}


def expected(*names: str) -> list[str]:
    return sorted(f"{name}{number}={number + 1}" for name in names for number in range(30))


def test_killed_refused_saved_and_restored(hdfs: HdfsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    base = hdfs.uri()
    settings = in_folder(base)

    def add(name: str) -> None:
        hdfs.add(f"aside/{name}", "".join(f"{name}{number}\n" for number in range(30)).encode())
        hdfs.files.move(hdfs.uri(f"aside/{name}"), hdfs.uri(f"in/{name}"))

    def written(*names: str) -> bool:
        return sorted(hdfs.lines("out")) == expected(*names)

    # 1. A driver is killed, and leaves its lease.
    add("a")
    paths = f"{REPOSITORY}:{REPOSITORY}/tests:{REPOSITORY}/tools"
    driver = subprocess.Popen([sys.executable, __file__, base], env=script_environment(PYTHONPATH=paths))
    try:
        assert eventually(lambda: written("a"))
        driver.send_signal(signal.SIGKILL)
    finally:
        end_process(driver)
    lease = hdfs.uri(f"checkpoints/job/{folder_lease.LEASE}")
    left = json.loads(hdfs.files.read(lease))
    assert left["process"] == driver.pid

    # 2. The next one takes it over and goes on. A third one is refused, and changes nothing.
    monkeypatch.setattr(folder_lease, "SECONDS", 12.0)
    add("b")
    second: Any = program(base, 2, **settings).execute_async("second")
    assert eventually(lambda: written("a", "b"))
    assert json.loads(hdfs.files.read(lease))["token"] != left["token"]
    monkeypatch.setattr(folder_lease, "SECONDS", 300.0)
    with pytest.raises(CheckpointError, match=r"folder hdfs://.*/checkpoints/job is in use by job 'second'"):
        program(base, 2, **settings).execute("intruder")

    # 3. It stops with a savepoint, and gives its lease back.
    add("c")
    assert eventually(lambda: written("a", "b", "c"))
    path = second.stop_with_savepoint(False, hdfs.uri("savepoints")).result()
    assert path.startswith(hdfs.uri("savepoints"))
    second.get_job_execution_result().result()
    assert not hdfs.files.exists(lease)

    # 4. The savepoint is gone on from, at another parallelism and with a folder of its own.
    add("d")
    again = {"execution.state-recovery.path": path, "firesteel.checkpoint.dir": hdfs.uri("checkpoints/other")}
    third: Any = program(base, 3, **again).execute_async("third")
    assert eventually(lambda: written("a", "b", "c", "d"))
    third.cancel().result()
    assert written("a", "b", "c", "d")

    # 5. A file that somebody writes just now, as a lease that is renewed, is there for one who would create it.
    storage = HadoopStorage(SparkSession.builder.getOrCreate())
    stream = storage._of(hdfs.uri("written"))[0].create(storage._of(hdfs.uri("written"))[1], False)
    assert storage.create(hdfs.uri("written"), b"mine") is False
    stream.close()
    assert storage.read(hdfs.uri("written")) == b""
    assert not [name for name in hdfs.names("out") if "/." in name], "nothing stays hidden"


if __name__ == "__main__":
    program(sys.argv[1], 2, **in_folder(sys.argv[1])).execute("first")
