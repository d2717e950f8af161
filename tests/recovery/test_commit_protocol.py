"""Crashes at every point of the commit protocol: each record becomes visible once, and nothing stays prepared."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sparkkit import eventually, spark_env

from firesteel.common import Encoder, WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}


class Ledger(Sink):
    """An outside system with transactions, in a folder: a file each, whose ending says how far it is.

    Strict on purpose: what is committed for the first time must be prepared, and what is rolled back never comes back.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = str(folder)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LedgerWriter(Path(self.folder), context)

    def create_committer(self, context: CommitterContext) -> Committer:
        return LedgerCommitter(Path(self.folder), context)


class LedgerWriter(SinkWriter):
    def __init__(self, folder: Path, context: WriterContext) -> None:
        self.folder, self.prefix, self.number = folder, f"{context.name_prefix()}.{context.writer_id()}", 0
        self.pending: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.pending.append(value)

    def prepare_commit(self) -> list[Any]:
        if not self.pending:
            return []
        name, self.number = f"{self.prefix}.{self.number}", self.number + 1
        (self.folder / f"{name}.prepared").write_text(json.dumps(self.pending))
        self.pending = []
        return [name]


class LedgerCommitter(Committer):
    def __init__(self, folder: Path, context: CommitterContext) -> None:
        self.folder, self.prefix = folder, context.name_prefix()

    def _turn(self, name: str, ending: str) -> None:
        os.rename(self.folder / f"{name}.prepared", self.folder / f"{name}.{ending}")

    def commit(self, committables: list[Any]) -> None:
        for name in committables:
            self._turn(name, "committed")

    def recover_and_commit(self, committables: list[Any]) -> None:
        for name in committables:
            if not (self.folder / f"{name}.committed").exists():
                self._turn(name, "committed")

    def abort(self, committables: list[Any]) -> None:
        for name in committables:
            if (self.folder / f"{name}.prepared").exists():
                self._turn(name, "aborted")

    def recover(self, pending: list[Any]) -> None:
        for file in self.folder.glob(f"{self.prefix}.*.prepared"):
            if file.stem not in pending:
                self._turn(file.stem, "rolled-back")


def visible(folder: Path) -> list[Any]:
    return sorted(record for file in folder.glob("*.committed") for record in json.loads(file.read_text()))


def ended(folder: Path) -> Counter[str]:
    """How many transactions ended how."""
    return Counter(file.suffix[1:] for file in folder.iterdir())


def ledgers(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("left", "right")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return folders


def build(env: StreamExecutionEnvironment, folders: list[Path], total: int = 60) -> None:
    numbers = env.from_source(NumberSequenceSource(0, total - 1), NONE, "numbers").key_by(lambda n: n % 5).map(int)
    for folder in folders:
        numbers.sink_to(Ledger(folder)).uid(folder.name)


def add_files(env: StreamExecutionEnvironment, folder: Path, total: int = 60) -> None:
    """A file sink chained to its source, whose parts go on over batches."""
    sink = FileSink.for_row_format(str(folder), Encoder.json_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    env.from_source(NumberSequenceSource(0, total - 1), NONE, "more").map(int).sink_to(sink.build()).uid("files")


def check_files(folder: Path, total: int = 60) -> None:
    files = list(folder.iterdir())
    assert [file.name for file in files if file.name.startswith(".")] == []
    assert sorted(int(line) for file in files for line in file.read_text().split()) == list(range(total))


def check(folders: list[Path], total: int = 60) -> None:
    for folder in folders:
        assert visible(folder) == list(range(total)), folder.name
        assert ended(folder)["prepared"] == 0, folder.name


POINTS = [
    # point, the words for it, how what was prepared in vain ended in both ledgers together
    (CrashPoint.BEFORE_PREPARE, ["pass"] * 3 + ["error"], {"rolled-back"}),
    (CrashPoint.PREPARED, ["pass"] * 3 + ["error"], {"rolled-back"}),
    (CrashPoint.BEFORE_LOG, ["pass", "error"], {"rolled-back"}),
    (CrashPoint.LOGGED, ["pass", "error"], {"rolled-back", "aborted"}),
    (CrashPoint.BEFORE_COMMIT, ["pass", "error"], set()),
    (CrashPoint.BETWEEN_SINKS, ["pass", "error"], set()),
    (CrashPoint.COMMITTED, ["pass", "error"], set()),
]


@pytest.mark.parametrize(("point", "words", "in_vain"), POINTS, ids=[point for point, _, _ in POINTS])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_in_memory(point: CrashPoint, words: list[str], in_vain: set[str], parallelism: int, tmp_path: Path) -> None:
    folders = ledgers(tmp_path)
    with CommitCrashes({point: words}) as crashes:
        config = {"firesteel.batch.max-records": "20", **RESTART, **crashes.config}
        build_and_run(memory_environment(parallelism, config=config), folders)
        assert crashes.reached(point) > len(words), "the job went on after the crash"
    check(folders)
    endings = set(ended(folders[0]) + ended(folders[1])) - {"committed", "prepared"}
    assert endings <= in_vain
    assert bool(endings) == bool(in_vain)


def build_and_run(env: StreamExecutionEnvironment, folders: list[Path]) -> None:
    build(env, folders)
    env.execute("protocol")


@pytest.mark.parametrize("point", list(CrashPoint))
def test_a_batch_job_in_memory(point: CrashPoint, tmp_path: Path) -> None:
    """It begins anew, unless its one batch was done: then only what is left to commit is committed."""
    folders = ledgers(tmp_path)
    with CommitCrashes({point: ["error"]}) as crashes:
        env = memory_environment(2, RuntimeExecutionMode.BATCH, {**RESTART, **crashes.config})
        build_and_run(env, folders)
        assert crashes.reached(point) > 1
    check(folders)


@pytest.mark.parametrize("point", list(CrashPoint))
def test_a_job_that_fails_for_good_leaves_nothing_prepared(point: CrashPoint, tmp_path: Path) -> None:
    folders = ledgers(tmp_path)
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        env = memory_environment(config={"firesteel.batch.max-records": "20", **crashes.config})
        build(env, folders)
        with pytest.raises(Exception, match="failed on purpose"):
            env.execute("protocol")
    seen = [visible(folder) for folder in folders]
    assert seen[0] == seen[1] == list(range(len(seen[0]))), "whole batches, in both"
    assert all(ended(folder)["prepared"] == 0 for folder in folders)


def test_a_cancelled_job_leaves_nothing_prepared(tmp_path: Path) -> None:
    (folder,) = ledgers(tmp_path)[:1]
    env = memory_environment(config={"firesteel.batch.max-records": "20"})
    source = DataGeneratorSource(lambda index: index, records_per_second=2000)
    env.from_source(source, NONE, "numbers").sink_to(Ledger(folder))
    client = env.execute_async()
    assert eventually(lambda: ended(folder)["committed"] > 2)
    client.cancel().result()
    seen = visible(folder)
    assert seen == list(range(len(seen)))
    assert ended(folder)["prepared"] == 0


# On Spark. A driver that is killed at these points and started again: ``test_postgres_recovery``,
# ``test_kafka_recovery`` and ``test_systems_on_spark``.


def test_several_crashes_of_one_job_on_spark(tmp_path: Path) -> None:
    folders = ledgers(tmp_path)
    words = {
        CrashPoint.PREPARED: ["pass"] * 5 + ["error"],
        CrashPoint.LOGGED: ["pass", "error"],
        CrashPoint.BETWEEN_SINKS: ["error"],
    }
    with CommitCrashes(words) as crashes:
        env = spark_env(2, {"firesteel.batch.max-records": 40, **RESTART, **crashes.config})
        add_files(env, tmp_path / "files")
        build_and_run(env, folders)
        assert all(crashes.reached(point) > len(used) for point, used in words.items())
    check(folders)
    check_files(tmp_path / "files")


def test_a_batch_job_on_spark_whose_commit_failed_is_not_run_again(tmp_path: Path) -> None:
    folders = ledgers(tmp_path)
    with CommitCrashes({CrashPoint.BETWEEN_SINKS: ["error"], CrashPoint.PREPARED: []}) as crashes:
        env = spark_env(2, {**RESTART, **crashes.config}, RuntimeExecutionMode.BATCH)
        build_and_run(env, folders)
        assert crashes.reached(CrashPoint.PREPARED) == 4, "two sinks, two subtasks, once"
    check(folders)


def test_what_spark_has_logged_is_committed_though_no_batch_follows(tmp_path: Path) -> None:
    """Records trickle: the next batch may be far away."""
    (folder,) = ledgers(tmp_path)[:1]
    env = spark_env(1, {"firesteel.batch.interval": "1 h"})
    source = DataGeneratorSource(lambda index: index, records_per_second=1000)
    env.from_source(source, NONE, "numbers").sink_to(Ledger(folder))
    client = env.execute_async()
    assert eventually(lambda: ended(folder)["committed"] == 1)
    client.cancel().result()
    seen = visible(folder)
    assert seen == list(range(len(seen)))
    assert ended(folder)["prepared"] == 0
