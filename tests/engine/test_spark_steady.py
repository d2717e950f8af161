"""What a job costs Spark while it has little to do: no processes, and no batches without a reason."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from sparkkit import eventually, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import KeyedProcessFunction, MapFunction

HOUR = 3_600_000


class ProcessesStarted:
    """The commands of all processes that Spark's JVM starts, from the JVM's own flight recorder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._file = self._jvm.java.io.File(str(folder / "recording.jfr")).toPath()
        self._recording = self._jvm.jdk.jfr.Recording()
        self._recording.enable("jdk.ProcessStart")
        self._recording.start()

    def stop(self) -> list[str]:
        self._recording.stop()
        self._recording.dump(self._file)
        self._recording.close()
        events = self._jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(self._file)
        return [str(event.getString("command")) for event in events]


def state_folders(spark: SparkSession) -> set[str]:
    """Where Spark keeps local files of state stores. Those of queries that have ended are removed whenever Spark's
    maintenance gets to them, with one `rm` each."""
    jvm: Any = spark.sparkContext._jvm
    local = jvm.org.apache.spark.util.Utils.getLocalDir(spark.sparkContext._jsc.sc().conf())
    return {str(folder) for folder in Path(local).rglob("StateStoreId(*")}


def test_processes_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    """Or the next test could not fail."""
    started = ProcessesStarted(spark, tmp_path)
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.Runtime.getRuntime().exec("true").waitFor()
    assert "true" in started.stop()


def offsets(checkpoint: Path) -> int:
    """The last batch that Spark has logged."""
    logged = [int(file.name) for file in (checkpoint / "query" / "offsets").glob("*") if file.name.isdigit()]
    return max(logged, default=-1)


class Gate(MapFunction):
    """Lets a record pass when a file is there."""

    def __init__(self, record: int, file: Path) -> None:
        self.record, self.file = record, str(file)

    def map(self, value: int) -> int:
        while value == self.record and not os.path.exists(self.file):
            time.sleep(0.01)
        return value


def test_a_steady_job_starts_no_process_and_never_waits_for_its_interval(spark: SparkSession, tmp_path: Path) -> None:
    """Twelve batches, each a checkpoint with state. If they waited for the interval of checkpoints, this would take
    half a day."""
    others = state_folders(spark)
    env = spark_env(2, {"firesteel.checkpoint.dir": tmp_path / "checkpoint", "firesteel.batch.max-records": 20})
    env.enable_checkpointing(HOUR)
    numbers = env.from_source(NumberSequenceSource(1, 240), WatermarkStrategy.no_watermarks(), "numbers")
    passed = numbers.map(Gate(41, tmp_path / "open"))
    results = passed.key_by(lambda n: n % 7).reduce(lambda a, b: a + b).execute_and_collect()
    for _ in range(40):
        next(results)
    # The third batch waits at the gate. What the job needed to begin with is there.
    before, started = offsets(tmp_path / "checkpoint"), ProcessesStarted(spark, tmp_path)
    (tmp_path / "open").touch()
    for _ in range(160):
        next(results)
    commands, batches = started.stop(), offsets(tmp_path / "checkpoint") - before
    assert len(list(results)) == 40
    assert batches >= 7
    removed = [command.removeprefix("rm -rf ") for command in commands if command.startswith("rm -rf ")]
    # Once, with its first heartbeat, Spark asks for the size of a page of memory.
    assert [command for command in commands if not command.startswith(("rm -rf ", "getconf PAGESIZE"))] == []
    # Once a minute Spark looks after all states, and may remove something of this job's, too. One process for each
    # batch would be more.
    assert len([path for path in removed if not any(path.startswith(other) for other in others)]) < batches


class Alarm(KeyedProcessFunction):
    """Answers a record some time after it came."""

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1500)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "too early" if ctx.timer_service().current_processing_time() < timestamp else "ring"


def test_a_job_without_input_has_no_batches_but_for_its_timers(tmp_path: Path) -> None:
    """One batch opens the functions, one has the record, one has the timer. Seconds of nothing have none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = spark_env(1, {"firesteel.checkpoint.dir": tmp_path / "checkpoint"})
        lines = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
        results = lines.key_by(lambda line: line).process(Alarm()).execute_and_collect()
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"wake me\n")
            assert next(results) == "wake me"
            assert next(results) == "ring"
            logged = tmp_path / "checkpoint" / "query" / "commits"
            assert eventually(lambda: (logged / str(offsets(tmp_path / "checkpoint"))).exists())
            done = offsets(tmp_path / "checkpoint")
            assert done <= 2
            time.sleep(1.5)
            assert offsets(tmp_path / "checkpoint") == done
        results.close()
