"""A job that fails goes on by itself from its last checkpoint, as often as its restart strategy allows."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, commit_calls, committed, eventually, spark_env

from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import CheckpointError, FailureKind, JobCancelledError, JobExecutionError
from firesteel.filesystems import LocalFileSystem
from firesteel.testing import Crash

NONE = WatermarkStrategy.no_watermarks()


def memory_env(parallelism: int = 1, config: dict[str, Any] | None = None) -> StreamExecutionEnvironment:
    settings = {"firesteel.master": "memory", **{key: str(value) for key, value in (config or {}).items()}}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return env.set_parallelism(parallelism)


ENGINES = {"memory": memory_env, "spark": spark_env}


def fixed(attempts: int, delay: str = "10 ms", **more: Any) -> dict[str, Any]:
    return {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": attempts,
        "restart-strategy.fixed-delay.delay": delay,
        "firesteel.batch.max-records": 20,
        **more,
    }


class Count(KeyedProcessFunction):
    """Numbers the records of each key; a number that came twice or was left out would show. Fails at one record."""

    def __init__(self, crash: Crash, at: int) -> None:
        self._crash, self._at = crash, at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value == self._at:
            self._crash.hit()
        yield ctx.get_current_key(), count, value, self.attempt


def counted(env: StreamExecutionEnvironment, crash: Crash, at: int = 50, total: int = 100) -> Any:
    numbers = env.from_source(NumberSequenceSource(0, total - 1), NONE, "numbers")
    return numbers.key_by(lambda n: n % 3).process(Count(crash, at))


def check(records: list[Any], total: int = 100) -> None:
    assert sorted(record[2] for record in records) == list(range(total))
    for key in range(3):
        counts = sorted(record[1] for record in records if record[0] == key)
        assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize("where", ENGINES)
def test_a_failure_of_the_users_code(where: str, caplog: pytest.LogCaptureFixture) -> None:
    crash = Crash(times=2)
    env = ENGINES[where](2, fixed(2))
    with caplog.at_level(logging.WARNING, "firesteel"), counted(env, crash).execute_and_collect("shaky") as records:
        found = list(records)
    check(found)
    assert crash.count == 2
    assert {attempt for _, _, value, attempt in found if value < 20} == {0}
    assert {attempt for _, _, value, attempt in found if value >= 60} == {2}, "functions know that they began anew"
    lines = [record.getMessage() for record in caplog.records if "'shaky' failed" in record.getMessage()]
    assert len(lines) == 2
    assert "attempt 1 starts in 0.0 s" in lines[0]
    assert "CrashError: failed on purpose (1)" in lines[0]
    assert "\n" not in lines[0]


@pytest.mark.parametrize("where", ENGINES)
def test_a_failed_commit(where: str, tmp_path: Path) -> None:
    env = ENGINES[where](2, fixed(1))
    stream = counted(env, Crash(), at=-1)
    stream.map(lambda record: [*record[:3], 0]).sink_to(CommitSink(tmp_path, fail_in_call=2))
    client = env.execute_async()
    client.get_job_execution_result().result()
    check(committed(tmp_path))
    calls = commit_calls(tmp_path)
    assert calls[2] == calls[1], "it was committed again as it was"
    assert len(calls) == 6, "and the batch did not come again, for it was done"
    statistics = client.get_checkpoint_statistics().result()
    assert (statistics.completed, statistics.restored) == (5, 1)
    done = [one for one in statistics.history if one.completed]
    assert [one.records for one in done] == [20] * 5
    numbers = [one.checkpoint_id for one in done]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert all((one.checkpointed_size or 0) > 0 for one in done)
    if where == "spark":
        assert all(one.duration_ms > 0 and one.state_size is not None for one in done)


def killed_once(marker: Path) -> Any:
    def kill(value: int) -> int:
        if value == 50 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return value

    return kill


def test_a_lost_worker(tmp_path: Path) -> None:
    """Spark in one process allows a task one failure, so the query fails with the worker."""
    env = spark_env(2, fixed(1))
    numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(killed_once(tmp_path / "killed"))
    with numbers.key_by(lambda n: n % 3).process(Count(Crash(), -1)).execute_and_collect() as records:
        check(list(records))
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("where", ENGINES)
def test_a_batch_job_begins_anew(where: str) -> None:
    crash = Crash(times=1)
    env = ENGINES[where](2, fixed(1)).set_runtime_mode(RuntimeExecutionMode.BATCH)
    with counted(env, crash).execute_and_collect() as records:
        check(list(records))
    assert crash.count == 1


def test_without_checkpoints_a_failure_ends_the_job() -> None:
    crash = Crash(times=1)
    with pytest.raises(JobExecutionError, match="failed on purpose"):
        list(counted(memory_env(), crash).execute_and_collect())


def test_with_checkpoints_a_job_is_restarted() -> None:
    crash = Crash(times=1)
    env = memory_env(config={"restart-strategy.exponential-delay.initial-backoff": "20 ms"})
    # Input that ends does not wait for checkpoints: this would take an hour.
    env.enable_checkpointing(3_600_000)
    with counted(env, crash).execute_and_collect() as records:
        check(list(records))
    assert crash.count == 1


def test_the_last_failure_is_told_when_restarts_are_used_up() -> None:
    crash = Crash(times=None)
    env = memory_env(config=fixed(2))
    counted(env, crash).print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match=r"failed on purpose \(3\)"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED
    assert client.get_checkpoint_statistics().result().failed == 3


class StateWithoutKeys(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value: Any) -> Any:
        return value


class KeepsALock(KeyedProcessFunction):
    """State that cannot be pickled."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.kept.update(threading.Lock())


class UnreadableEnumerator(IndexEnumerator):
    def latest(self, position: int, max_records: int) -> int:
        raise CheckpointError("the source's own file is damaged")


class Misspelt(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_sate()  # type: ignore[attr-defined]

    def map(self, value: Any) -> Any:
        return value


class Unreadable(NumberSequenceSource):
    """Fails where batches are planned, beside the driver."""

    def create_enumerator(self) -> IndexEnumerator:
        return UnreadableEnumerator(None)


# By name: how the program goes on from its numbers, of which class the cause is, and a piece of the text.
PERMANENT: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a mistake in open()": (lambda s: s.map(Misspelt()), "AttributeError", "get_sate"),
    "state without keys": (lambda s: s.map(StateWithoutKeys()), "ProgramError", "key_by"),
    "a result of another type": (
        lambda s: s.map(str, output_type=Types.INT()),
        "TypeMismatchError",
        "expected",
    ),
    "a key that cannot be hashed": (
        lambda s: s.key_by(lambda n: [n]).map(str),
        "UnstableKeyError",
        "list",
    ),
    "a key that is not stable": (
        lambda s: s.key_by(lambda n: object()).map(str),
        "UnstableKeyError",
        "object",
    ),
    "a record that cannot be pickled": (
        lambda s: s.map(lambda n: threading.Lock()).rebalance().map(str),
        "TypeError",
        "cannot pickle",
    ),
    "state that cannot be pickled": (
        lambda s: s.key_by(lambda n: n).process(KeepsALock()),
        "SerializationError",
        "cannot pickle",
    ),
}


@pytest.mark.parametrize("name", PERMANENT)
def test_what_would_fail_again_ends_the_job_at_once(name: str) -> None:
    check_permanent(memory_env(2, fixed(5)), *PERMANENT[name])


@pytest.mark.parametrize("name", ["state without keys", "a result of another type", "state that cannot be pickled"])
def test_what_would_fail_again_ends_the_job_at_once_on_spark(name: str) -> None:
    check_permanent(spark_env(2, fixed(5)), *PERMANENT[name])


def attempts(client: Any) -> int:
    return int(client.context.spec.attempt) + 1


def check_permanent(env: StreamExecutionEnvironment, program: Callable[[Any], Any], cause: str, text: str) -> None:
    program(env.from_source(NumberSequenceSource(0, 9), NONE, "numbers")).print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match=text) as caught:
        client.get_job_execution_result().result()
    assert caught.value.kind is FailureKind.PERMANENT
    assert (caught.value.cause_class or "").endswith(cause)
    assert attempts(client) == 1


@pytest.mark.parametrize("where", ENGINES)
def test_what_fails_where_batches_are_planned_keeps_its_kind(where: str) -> None:
    env = ENGINES[where](1, fixed(5))
    env.from_source(Unreadable(0, 1), NONE, "unreadable").print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match="'Source: unreadable' failed") as caught:
        client.get_job_execution_result().result()
    assert "the source's own file is damaged" in str(caught.value)
    assert caught.value.kind is FailureKind.PERMANENT
    assert (caught.value.cause_class or "").endswith("CheckpointError")
    assert attempts(client) == 1


def test_a_full_disk_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The log of commits is on a disk that is full twice."""
    full = iter([True, False, True])
    write = LocalFileSystem.write

    def write_if_there_is_room(storage: LocalFileSystem, path: str, content: bytes) -> None:
        if next(full, False):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(storage, path, content)

    monkeypatch.setattr(LocalFileSystem, "write", write_if_there_is_room)
    env = memory_env(2, fixed(2))
    counted(env, Crash(), at=-1).map(lambda record: [*record[:3], 0]).sink_to(CommitSink(tmp_path))
    client = env.execute_async()
    client.get_job_execution_result().result()
    check(committed(tmp_path))
    assert client.get_checkpoint_statistics().result().failed == 2


@pytest.mark.parametrize("where", ENGINES)
def test_a_job_is_cancelled_while_it_waits(where: str) -> None:
    env = ENGINES[where](1, fixed(5, delay="1 h"))
    counted(env, Crash(times=None), at=0).print()
    client = env.execute_async()
    assert eventually(lambda: client.get_job_status().result() is JobStatus.RESTARTING)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()


# The folder of a job


def endless(env: StreamExecutionEnvironment) -> Any:
    source = DataGeneratorSource(lambda index: index, records_per_second=200)
    return env.from_source(source, NONE, "numbers").key_by(lambda n: n % 3).process(Count(Crash(), -1)).uid("count")


@pytest.mark.parametrize("retain", [True, False])
def test_cancelling_keeps_or_deletes_the_folder(retain: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def start() -> Any:
        env = spark_env(2, {"state.checkpoints.dir": tmp_path, "state.checkpoints.num-retained": 3})
        env.enable_checkpointing(50)
        if retain:
            retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
            env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        endless(env).map(lambda record: record[1]).print()
        return env.execute_async("kept")

    client = start()
    assert eventually(lambda: client.get_checkpoint_statistics().result().completed > 1)
    client.cancel().result()
    if not retain:
        assert list(tmp_path.iterdir()) == []
        assert f"was cancelled, and its checkpoint in {tmp_path / 'kept'} was deleted" in caplog.text
        return
    assert "deleted" not in caplog.text
    names = ["checkpoint.json", "coordinator-lock", "job.pkl", "lock", "sources"]
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == [*(f"firesteel-{n}" for n in names), "query"]
    sources = tmp_path / "kept" / "firesteel-sources"
    assert (sources / "coordinator-feedback.json").exists(), "for the next driver's coordinator"
    client = start()
    assert eventually(lambda: client.get_checkpoint_statistics().result().completed > 0)
    client.cancel().result()
    statistics = client.get_checkpoint_statistics().result()
    assert statistics.restored == 1
    assert statistics.history[0].checkpoint_id > 0, "it went on"
    # Another program of the same name is kept away from it.
    env = spark_env(3, {"state.checkpoints.dir": tmp_path}).enable_checkpointing(50)
    endless(env).map(lambda record: record[1]).print()
    with pytest.raises(CheckpointError, match="had parallelism 2 and has 3 now"):
        env.execute_async("kept")


def test_a_rerun_of_a_finished_job_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def run() -> list[Any]:
        env = spark_env(1, {"firesteel.checkpoint.dir": tmp_path})
        with env.from_collection([1, 2, 3]).map(lambda n: n).execute_and_collect("once") as records:
            return list(records)

    assert run() == [1, 2, 3]
    assert "had finished before" not in caplog.text
    assert run() == []
    assert f"job 'once' had finished before: nothing is left to do from its checkpoint in {tmp_path}" in caplog.text
    assert "delete that folder or name another one" in caplog.text
