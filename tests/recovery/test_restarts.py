"""A job that fails goes on by itself from its last checkpoint, as often as its restart strategy allows."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, commit_calls, committed, eventually, spark_env

from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import CheckpointError, JobCancelledError, JobExecutionError
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
    env.enable_checkpointing(60_000)
    began = time.monotonic()
    with counted(env, crash).execute_and_collect() as records:
        check(list(records))
    assert crash.count == 1
    assert time.monotonic() - began < 20, "input that ends does not wait for checkpoints"


def test_the_last_failure_is_told_when_restarts_are_used_up() -> None:
    crash = Crash(times=None)
    env = memory_env(config=fixed(2))
    counted(env, crash).print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match=r"failed on purpose \(3\)"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED
    assert client.get_checkpoint_statistics().result().failed == 3


def test_what_would_fail_again_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    from firesteel.engine.memory import MemoryJob
    from firesteel.errors import ProgramError

    runs = []

    def run(job: MemoryJob) -> None:
        runs.append(job.spec.attempt)
        raise ProgramError("cannot work")

    monkeypatch.setattr(MemoryJob, "run", run)
    env = memory_env(config=fixed(5))
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match="cannot work"):
        env.execute()
    assert runs == [0]


@pytest.mark.parametrize("where", ENGINES)
def test_a_job_is_cancelled_while_it_waits(where: str) -> None:
    env = ENGINES[where](1, fixed(5, delay="10 min"))
    counted(env, Crash(times=None), at=0).print()
    client = env.execute_async()
    assert eventually(lambda: client.get_job_status().result() is JobStatus.RESTARTING, 60)
    began = time.monotonic()
    client.cancel().result()
    assert time.monotonic() - began < 10
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()


# The folder of a job


def endless(env: StreamExecutionEnvironment) -> Any:
    source = DataGeneratorSource(lambda index: index, records_per_second=200)
    return env.from_source(source, NONE, "numbers").key_by(lambda n: n % 3).process(Count(Crash(), -1)).uid("count")


@pytest.mark.parametrize("retain", [True, False])
def test_cancelling_keeps_or_deletes_the_folder(retain: bool, tmp_path: Path) -> None:
    def start() -> Any:
        env = spark_env(2, {"state.checkpoints.dir": tmp_path, "state.checkpoints.num-retained": 3})
        env.enable_checkpointing(50)
        if retain:
            retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
            env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        endless(env).map(lambda record: record[1]).print()
        return env.execute_async("kept")

    client = start()
    assert eventually(lambda: client.get_checkpoint_statistics().result().completed > 1, 60)
    client.cancel().result()
    if not retain:
        assert list(tmp_path.iterdir()) == []
        return
    names = ["firesteel-checkpoint.json", "firesteel-lock", "query"]
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == names
    client = start()
    assert eventually(lambda: client.get_checkpoint_statistics().result().completed > 0, 60)
    client.cancel().result()
    statistics = client.get_checkpoint_statistics().result()
    assert statistics.restored == 1
    assert statistics.history[0].checkpoint_id > 0, "it went on"
    # Another program of the same name is kept away from it.
    env = spark_env(3, {"state.checkpoints.dir": tmp_path}).enable_checkpointing(50)
    endless(env).map(lambda record: record[1]).print()
    with pytest.raises(CheckpointError, match="had parallelism 2 and has 3 now"):
        env.execute_async("kept")
