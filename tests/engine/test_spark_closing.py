"""However a job ends, the users' functions are closed in the workers: cancelled, left by its reader, or failed."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import BATCH, AppendSink, alive, descendants, eventually, note, notes, process_table, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, RuntimeExecutionMode
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.errors import JobExecutionError

NONE = WatermarkStrategy.no_watermarks()


class Life:
    """Notes its opening and closing: name, subtask, process."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = str(folder), name

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.process = os.getpid()
        self.thread = threading.get_ident()
        note(self.folder, "open", [self.name, self.subtask, self.process])

    def close(self) -> None:
        assert (os.getpid(), threading.get_ident()) == (self.process, self.thread)
        note(self.folder, "close", [self.name, self.subtask, self.process])


class LifeMap(Life, MapFunction):
    def map(self, value: Any) -> Any:
        return value


class LifeKeyed(Life, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value


def endless(env: Any, per_second: float = 200) -> Any:
    return env.from_source(DataGeneratorSource(lambda n: n, records_per_second=per_second), NONE, "numbers")


def build(env: Any, folder: Path) -> Any:
    return endless(env).map(LifeMap(folder, "map")).key_by(lambda n: n % 7).process(LifeKeyed(folder, "keyed"))


def check_all_closed(folder: Path, parallelism: int) -> None:
    opened = notes(folder, "open")
    places = sorted([name, subtask] for name, subtask, _ in opened)
    assert places == [[name, n] for name in ("keyed", "map") for n in range(parallelism)]
    assert sorted(notes(folder, "close")) == sorted(opened), "each once, where it was opened"


def test_cancel_closes_every_function(tmp_path: Path) -> None:
    env = spark_env(2)
    build(env, tmp_path).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("cancelled")
    assert eventually(lambda: len(notes(tmp_path, "seen")) > 50)
    assert notes(tmp_path, "close") == []
    client.cancel().result()
    check_all_closed(tmp_path, 2)


def test_a_reader_that_leaves_closes_every_function(tmp_path: Path) -> None:
    with build(spark_env(2), tmp_path).execute_and_collect("left") as records:
        for _ in range(20):
            next(records)
        # Both subtasks of both stages have begun.
        assert eventually(lambda: len(notes(tmp_path, "open")) == 4)
    check_all_closed(tmp_path, 2)


class FailLater(LifeMap):
    def map(self, value: Any) -> Any:
        if value > 150 and self.subtask == 1:
            raise ValueError("as asked")
        return value


def test_a_failure_closes_the_functions_of_the_other_subtasks(tmp_path: Path) -> None:
    env = spark_env(2, {"firesteel.batch.max-records": 50})
    numbers = endless(env).map(FailLater(tmp_path, "map")).key_by(lambda n: n % 7)
    numbers.process(LifeKeyed(tmp_path, "keyed")).add_sink(AppendSink(tmp_path, "seen"))
    with pytest.raises(JobExecutionError, match="as asked"):
        env.execute("failing")
    check_all_closed(tmp_path, 2)


class Stuck(LifeMap):
    """Waits for ever inside a call."""

    def map(self, value: Any) -> Any:
        note(self.folder, "stuck", os.getpid())
        time.sleep(600)
        return value


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, BATCH], ids=["streaming", "batch"])
def test_cancel_interrupts_a_function_that_waits_and_closes_it(mode: RuntimeExecutionMode, tmp_path: Path) -> None:
    env = spark_env(1, mode=mode)
    env.from_collection([1]).map(Stuck(tmp_path, "map")).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("stuck")
    assert eventually(lambda: notes(tmp_path, "stuck"))
    client.cancel().result()
    assert eventually(lambda: notes(tmp_path, "close") == notes(tmp_path, "open"))


def test_a_task_that_spark_kills_is_interrupted_and_closed(tmp_path: Path) -> None:
    """Spark kills a task by killing the worker that it talks to: here the front, behind which a host does the work."""
    env = spark_env(1)
    env.from_collection([1]).map(Stuck(tmp_path, "map")).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("killed")
    assert eventually(lambda: notes(tmp_path, "stuck"))
    ours = descendants(os.getpid())
    forked = {pid for pid, command in ours.items() if "-m firesteel.engine.spark.daemon" in command}
    table = process_table()
    fronts = {pid for pid in forked if table[pid][0] in forked}
    (host,) = notes(tmp_path, "stuck")
    assert fronts
    assert host not in fronts
    for pid in fronts:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(JobExecutionError, match="Spark"):
        client.get_job_execution_result().result()
    assert eventually(lambda: not alive(host))
    assert notes(tmp_path, "close") == notes(tmp_path, "open") == [["map", 0, host]]


class Held(LifeMap):
    """Waits in the middle of its records until a file is there."""

    def map(self, value: Any) -> Any:
        note(self.folder, "held", value)
        while value == 50 and not (Path(self.folder) / "go on").exists():
            time.sleep(0.01)
        return value


def test_cancelling_a_batch_job_leaves_the_other_jobs_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = spark_env(1)
    other.from_collection(list(range(100))).map(Held(tmp_path / "other", "map")).print()
    watched = other.execute_async("other")
    assert eventually(lambda: 50 in notes(tmp_path / "other", "held"))
    env = spark_env(1, mode=BATCH)
    env.from_collection([1]).map(Stuck(tmp_path, "map")).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("stuck")
    assert eventually(lambda: notes(tmp_path, "stuck"))
    client.cancel().result()
    (tmp_path / "other" / "go on").touch()
    watched.get_job_execution_result().result()
    assert notes(tmp_path / "other", "held") == list(range(100))


class Stubborn(Stuck):
    """Cannot be interrupted, nor closed."""

    def map(self, value: Any) -> Any:
        note(self.folder, "stuck", os.getpid())
        while True:
            try:
                time.sleep(600)
            except BaseException:
                continue

    def close(self) -> None:
        time.sleep(600)


def test_a_function_that_cannot_be_closed_ends_with_its_process(tmp_path: Path) -> None:
    env = spark_env(1)
    endless(env).map(Stubborn(tmp_path, "map")).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("stubborn")
    assert eventually(lambda: notes(tmp_path, "stuck"))
    client.cancel().result()
    (process,) = set(notes(tmp_path, "stuck"))
    assert eventually(lambda: not alive(process))
    # Its successor serves the next job.
    with spark_env(1).from_collection([1, 2]).map(lambda n: n).execute_and_collect() as records:
        assert list(records) == [1, 2]


class Clumsy(LifeMap):
    def close(self) -> None:
        raise ValueError("cannot\nclose")


def test_a_close_that_fails_is_logged_and_the_others_are_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = spark_env(1)
    numbers = endless(env).map(Clumsy(tmp_path, "clumsy")).map(LifeMap(tmp_path, "map"))
    numbers.add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("clumsy")
    assert eventually(lambda: notes(tmp_path, "seen"))
    with caplog.at_level(logging.WARNING, "firesteel"):
        client.cancel().result()
    (warning,) = [record.getMessage() for record in caplog.records if "closing" in record.getMessage()]
    assert warning.startswith("closing the functions of job 'clumsy': Operator 'Map' failed in subtask 0. operator Map")
    assert warning.endswith("ValueError: cannot close")
    assert [name for name, _, _ in notes(tmp_path, "close")] == ["map"]
