"""Sinks that users write: transactions and write-ahead, exactly once through crashes."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from sparkkit import spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream import (
    CheckpointedFunction,
    GenericWriteAheadSink,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
    TwoPhaseCommitSinkFunction,
)
from firesteel.datastream.connectors import FileCheckpointCommitter
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, Crash, CrashPoint, OneInputHarness, memory_environment

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}


class Transactions(TwoPhaseCommitSinkFunction):
    """Transactions are files; what was called is noted in a file of its own."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = str(folder)

    def use_prefix(self, prefix: str) -> None:
        self.prefix = prefix

    def open(self, runtime_context: RuntimeContext) -> None:
        # Cannot be pickled, as a connection could not.
        self.log = open(f"{self.folder}/calls", "a", buffering=1)  # noqa: SIM115 - closed in close()
        assert runtime_context.get_job_parameter("where") is None

    def close(self) -> None:
        self.log.close()

    def _path(self, transaction: str, state: str) -> str:
        return f"{self.folder}/{transaction}.{state}"

    def begin_transaction(self) -> str:
        self.log.write("begin\n")
        return f"{self.prefix}.{uuid.uuid4().hex}"

    def invoke(self, transaction: str, value: Any, context: SinkFunction.Context) -> None:
        with open(self._path(transaction, "open"), "a") as file:
            file.write(json.dumps(value) + "\n")

    def pre_commit(self, transaction: str) -> None:
        self.log.write("pre_commit\n")
        os.rename(self._path(transaction, "open"), self._path(transaction, "prepared"))

    def commit(self, transaction: str) -> None:
        self.log.write("commit\n")
        os.rename(self._path(transaction, "prepared"), self._path(transaction, "done"))

    def abort(self, transaction: str) -> None:
        self.log.write("abort\n")
        os.remove(self._path(transaction, "open"))

    def recover_and_commit(self, transaction: str) -> None:
        self.log.write("recover_and_commit\n")
        if not os.path.exists(self._path(transaction, "done")):
            self.commit(transaction)

    def recover_and_abort(self, transaction: str) -> None:
        self.log.write("recover_and_abort\n")
        Path(self._path(transaction, "prepared")).unlink(missing_ok=True)

    def abort_leftovers(self, prefix: str, pending: list[Any]) -> None:
        for file in Path(self.folder).glob(f"{prefix}.*.prepared"):
            if file.stem not in pending:
                self.log.write("leftover\n")
                file.unlink()


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def check(folder: Path, total: int = 40) -> None:
    records = [json.loads(line) for file in folder.glob("*.done") for line in file.read_text().splitlines()]
    assert sorted(records) == list(range(total))
    assert not [file.name for file in folder.iterdir() if file.suffix in (".open", ".prepared")]


def numbers(env: StreamExecutionEnvironment, total: int = 40) -> Any:
    return env.from_source(NumberSequenceSource(0, total - 1), NONE, "numbers")


def test_a_transaction_per_batch_in_order(tmp_path: Path) -> None:
    env = memory_environment(config={"firesteel.batch.max-records": "20"})
    numbers(env).add_sink(Transactions(tmp_path)).uid("files")
    env.execute()
    check(tmp_path)
    assert calls(tmp_path) == ["begin", "pre_commit", "commit"] * 2


@pytest.mark.parametrize("point", list(CrashPoint))
def test_transactions_through_crashes(point: CrashPoint, tmp_path: Path) -> None:
    sides = [tmp_path / "left", tmp_path / "right"]
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config})
        for side in sides:
            side.mkdir()
            numbers(env).sink_to(Transactions(side))
        env.execute()
        assert crashes.reached(point) > 2
    check(sides[0])
    check(sides[1])
    called = calls(sides[0]) + calls(sides[1])
    if point is CrashPoint.LOGGED:
        assert "recover_and_abort" in called or "leftover" in called
    if point in (CrashPoint.PREPARED, CrashPoint.BEFORE_LOG):
        assert "leftover" in called
    if point in (CrashPoint.BEFORE_COMMIT, CrashPoint.BETWEEN_SINKS, CrashPoint.COMMITTED):
        assert "recover_and_commit" in called
        assert "leftover" not in called


def test_a_transaction_under_way_is_aborted_in_its_task(tmp_path: Path) -> None:
    crash = Crash(times=1)

    def fail(value: int) -> int:
        if value == 15:
            crash.hit()
        return value

    env = memory_environment(config={**RESTART, "firesteel.batch.max-records": "20"})
    # Not chained: the first half of the batch has arrived when the second one fails.
    stream = numbers(env)
    stream.add_sink(Transactions(tmp_path))
    stream.map(fail).print()
    env.execute()
    check(tmp_path)
    assert "abort" in calls(tmp_path)


def test_transactions_on_spark(tmp_path: Path) -> None:
    with CommitCrashes({CrashPoint.BEFORE_COMMIT: ["pass", "error"]}) as crashes:
        env = spark_env(2, {**RESTART, **crashes.config})
        numbers(env).key_by(lambda n: n % 3).map(int).add_sink(Transactions(tmp_path))
        env.execute()
    check(tmp_path)
    assert "recover_and_commit" in calls(tmp_path)


def test_a_harness_shows_what_a_transaction_function_does(tmp_path: Path) -> None:
    with OneInputHarness(Transactions(tmp_path)) as harness:
        harness.process_elements([1, 2])
        harness.end_batch()
        assert calls(tmp_path) == ["begin", "pre_commit"]
        harness.process_element(3)
    assert calls(tmp_path) == ["begin", "pre_commit", "begin", "abort"]


def test_state_beside_transactions_is_refused(tmp_path: Path) -> None:
    class Both(Transactions, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None: ...

        def snapshot_state(self, context: Any) -> None: ...

    with pytest.raises(ProgramError, match="Both is a TwoPhaseCommitSinkFunction and a CheckpointedFunction"):
        memory_environment().from_collection([1]).add_sink(Both(tmp_path))


# Write-ahead


class Mail(GenericWriteAheadSink):
    """Sends into a file, and may be out of order for some calls."""

    def __init__(self, folder: Path, fails: int = 0, **options: Any) -> None:
        super().__init__(FileCheckpointCommitter(str(folder / "sent")), **options)
        self.path, self.fails = str(folder / "mail"), fails

    def send_values(self, values: list[Any], checkpoint_id: int, timestamp: int) -> bool:
        if self.fails:
            self.fails -= 1
            return False
        with open(self.path, "a") as file:
            file.write(json.dumps([checkpoint_id, values, timestamp > 10**12]) + "\n")
        return True


def mail(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "mail").read_text().splitlines()]


def test_values_are_sent_when_their_checkpoint_is_complete(tmp_path: Path) -> None:
    env = memory_environment(config={"firesteel.batch.max-records": "2"})
    env.from_collection(["a", "b", "c"]).sink_to(Mail(tmp_path))
    env.execute()
    first, second = mail(tmp_path)
    assert (first[1:], second[1:]) == ([["a", "b"], True], [["c"], True])
    assert first[0] < second[0]


@pytest.mark.parametrize("point", list(CrashPoint))
def test_values_are_sent_once_through_crashes(point: CrashPoint, tmp_path: Path) -> None:
    sides = [tmp_path / "left", tmp_path / "right"]
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config})
        for side in sides:
            side.mkdir()
            numbers(env).sink_to(Mail(side))
        env.execute()
    for side in sides:
        assert sorted(value for _, values, _ in mail(side) for value in values) == list(range(40))


def test_sending_is_tried_again(tmp_path: Path) -> None:
    env = memory_environment()
    env.from_collection(["a"]).add_sink(Mail(tmp_path, fails=2))
    env.execute()
    assert [values for _, values, _ in mail(tmp_path)] == [["a"]]


def test_sending_that_never_succeeds_fails_the_job(tmp_path: Path) -> None:
    env = memory_environment()
    env.from_collection(["a"]).add_sink(Mail(tmp_path, fails=10**6, retry_seconds=0.1)).name("letters")
    with pytest.raises(JobExecutionError, match=r"send_values\(\) of Mail was not successful for 0.1 s") as caught:
        env.execute()
    assert caught.value.operator == "letters"
