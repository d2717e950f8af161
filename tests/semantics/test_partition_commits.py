"""Partitions of a table are marked when they are complete: not before all of their rows are seen, and not never."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from filesinkkit import Crash, Failing, Moment, hidden, lines

from firesteel.common.serialization import Encoder
from firesteel.connectors.files.compacting import CompactionSettings
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.parts import RowFormat
from firesteel.connectors.files.rolling import RollingPolicy
from firesteel.connectors.files.writer import FileSinkSettings
from firesteel.connectors.table.batch_files import FolderAssigner
from firesteel.connectors.table.partition_commits import (
    CommitTrigger,
    PartitionCommittingSink,
    PartitionTimeTrigger,
    ProcessTimeTrigger,
)
from firesteel.connectors.table.partition_folders import FolderBatch
from firesteel.datastream.connectors.base import Committer, CommitterContext, SinkIdentity, SinkWriter, WriterContext
from firesteel.errors import CheckpointError
from firesteel.filesystems import LOCAL

BY_NUMBER = PartitionTimeTrigger(lambda folder: 10 * int(folder[2:]))
"""The partition n=3 has the time 30."""
NEVER = RollingPolicy.default_rolling_policy(1 << 30, 1 << 40, 1 << 40)


class Numbers(Encoder):
    def encode(self, element: FolderBatch) -> bytes:
        return "".join(f"{n}\n" for n in element.batch.column(0).to_pylist()).encode()


@dataclass
class Bench:
    """Two writers and the committer of a table's sink, by hand."""

    folder: Path
    trigger: CommitTrigger = BY_NUMBER
    compaction: CompactionSettings | None = None
    job: str = "job"
    files: Any = LOCAL
    now: int = 0

    def __post_init__(self) -> None:
        form = RowFormat(Numbers())
        settings = FileSinkSettings(str(self.folder), form, FolderAssigner(), NEVER, compaction=self.compaction)
        self.sink = PartitionCommittingSink(settings, self.trigger)
        self.identity = SinkIdentity(job_id=self.job, sink_uid="table")
        self.watermarks = [-(1 << 63)] * 2
        self.writers = [self._writer(subtask) for subtask in range(2)]

    def _writer(self, subtask: int) -> SinkWriter:
        def watermark() -> int:
            return self.watermarks[subtask]

        context = WriterContext(self.identity, subtask, 2, clock=lambda: self.now, watermark=watermark)
        context.file_system = lambda path: self.files  # type: ignore[assignment, method-assign]
        return self.sink.create_writer(context)

    def committer(self, files: Any = None) -> Committer:
        self.context = CommitterContext(self.identity)
        self.context.file_system = lambda path: files or self.files  # type: ignore[assignment, method-assign]
        committer = self.sink.create_committer(self.context)
        assert committer is not None
        self.context._checkpoint_id = 1
        return committer

    def batch(self, *rows: tuple[int, int, int], watermarks: tuple[int, int] | None = None, last: bool = False) -> Any:
        """Rows of a subtask, a partition, a number; then how far the watermarks of the subtasks have come."""
        for subtask, partition, number in rows:
            value = FolderBatch(f"n={partition}", pa.record_batch({"number": [number]}))
            self.writers[subtask].write(value, Moment(self.now))  # type: ignore[arg-type]
        if watermarks is not None:
            self.watermarks = list(watermarks)
        prepared = []
        for writer in self.writers:
            writer.flush(last)
            prepared += writer.prepare_commit()
        return prepared

    @property
    def marked(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.rglob("_SUCCESS"))

    def seen(self, partition: int) -> list[int]:
        return sorted(map(int, lines(self.folder / f"n={partition}")))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_partition_is_marked_when_the_watermarks_of_all_subtasks_have_passed_it(bench: Bench) -> None:
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100), (1, 1, 101), (1, 2, 200)))
    assert bench.marked == []
    assert bench.seen(1) == [], "parts are in progress"
    committer.commit(bench.batch(watermarks=(11, 10)))
    assert bench.marked == [], "one subtask may still write to it"
    committer.commit(bench.batch((0, 2, 201), watermarks=(11, 11)))
    assert bench.marked == ["n=1"]
    assert bench.seen(1) == [100, 101], "whatever the rolling policy says"
    assert bench.seen(2) == []
    committer.commit(bench.batch(last=True))
    assert bench.marked == ["n=1", "n=2"]
    assert bench.seen(2) == [200, 201]
    assert hidden(bench.folder) == []


def test_a_late_row_marks_its_partition_again(bench: Bench) -> None:
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100), watermarks=(50, 50)))
    mark = bench.folder / "n=1" / "_SUCCESS"
    mark.unlink()
    committer.commit(bench.batch((1, 2, 200)))
    assert not mark.exists()
    committer.commit(bench.batch((0, 1, 101)))
    assert mark.exists()
    assert bench.seen(1) == [100, 101]


def test_the_clock_marks_after_a_delay_though_no_rows_come(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProcessTimeTrigger(1000))
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100)))
    bench.now = 600
    committer.commit(bench.batch((1, 1, 101), (0, 1, 102)))
    assert [writer.wake_at() for writer in bench.writers] == [1001, 1601]
    bench.now = 1001
    committer.commit(bench.batch())
    assert bench.marked == [], "a part of the other subtask is in progress"
    bench.now = 1601
    committer.commit(bench.batch())
    assert bench.marked == ["n=1"]
    assert bench.seen(1) == [100, 101, 102]


def test_without_a_delay_the_clock_marks_with_each_batch(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProcessTimeTrigger())
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100)))
    assert bench.marked == ["n=1"]
    committer.commit(bench.batch((0, 2, 200)))
    assert bench.marked == ["n=1", "n=2"]


def test_compacted_parts_are_seen_before_their_partition_is_marked(tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
    bench = Bench(tmp_path, compaction=CompactionSettings(strategy, FileCompactor.concat_file_compactor()))
    committer = bench.committer()
    with closing(committer):
        committer.recover([])
        committer.commit(bench.batch((0, 1, 100), (1, 1, 101), watermarks=(50, 50)))
        assert bench.marked == []
        assert bench.seen(1) == []
        committer.commit(bench.batch((0, 2, 200), last=True))
        # The job is over: what waits for compaction is put together now.
        committer.recover([])
    assert bench.marked == ["n=1", "n=2"]
    assert bench.seen(1) == [100, 101]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("left", [0, 1])
def test_the_job_that_goes_on_marks_what_a_stopped_one_has_left(tmp_path: Path, left: int) -> None:
    bench = Bench(tmp_path)
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100), (1, 2, 200)))
    if left:
        # Ended otherwise than by a stop: the same job starts again.
        committer = bench.committer()
    else:
        committer.recover([])
    committer.close()
    assert bench.marked == []
    following = Bench(tmp_path, job="job" if left else "another job")
    again = following.committer()
    again.recover([])
    again.commit(following.batch(watermarks=(15, 15)))
    assert following.marked == ["n=1"]
    assert following.seen(1) == [100]
    again.commit(following.batch(watermarks=(25, 25)))
    assert following.marked == ["n=1", "n=2"]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "partitions": 7}', '{"format": 99}'])
def test_a_damaged_list_of_partitions_is_told_with_its_file(tmp_path: Path, content: str) -> None:
    bench = Bench(tmp_path)
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100)))
    (path,) = tmp_path.glob(".*.partitions")
    path.write_text(content)
    with pytest.raises(CheckpointError, match=str(path)):
        bench.committer().recover([])


def test_reports_of_another_parallelism_do_not_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    committer = bench.committer()
    committer.recover([])
    committer.commit(bench.batch((0, 1, 100), watermarks=(15, 5)))
    third = [replace(each, subtask=0, parallelism=3) for each in bench.batch(watermarks=(20, 20))[-1:]]
    committer.commit(third)
    assert bench.marked == []


STEPS: list[dict[str, Any]] = [
    {"rows": [(0, 1, 10), (1, 1, 11), (1, 2, 20)], "watermarks": (5, 5)},
    {"rows": [(0, 1, 12), (0, 2, 21)], "watermarks": (15, 5)},
    {"rows": [(1, 3, 30)], "watermarks": (15, 15)},
    {"rows": [(0, 3, 31), (1, 1, 13)], "watermarks": (25, 25)},
    {"rows": [], "watermarks": (100, 100), "last": True},
]
ALL = {1: [10, 11, 12, 13], 2: [20, 21], 3: [30, 31]}


@pytest.mark.parametrize("folders", [True, False], ids=["folders", "object store"])
def test_nothing_is_lost_or_marked_too_early_whatever_step_a_process_ends_at(
    tmp_path: Path, folders: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process ends here, not the machine.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    dies_at, crashed = 1, True
    while crashed:
        crashed = False
        bench = Bench(tmp_path / str(dies_at), files=Failing(folders, 10**9))
        committer = bench.committer(Failing(folders, dies_at))
        number = -1
        pending: list[Any] = []
        try:
            committer.recover([])
            for number, step in enumerate(STEPS):
                pending = bench.batch(*step["rows"], watermarks=step["watermarks"], last=step.get("last", False))
                committer.commit(pending)
                pending = []
                _check(bench, number)
            committer.recover([])
        except Crash:
            crashed = True
            _check(bench, number)
            # The next start, which dies at each of its steps as well. Its writers begin anew.
            for second in range(1, 100):
                files = Failing(folders, second)
                again = bench.committer(files)
                try:
                    again.recover(list(pending))
                    again.recover_and_commit(list(pending))
                    files.dies_never()
                    break
                except Crash:
                    _check(bench, number)
            bench.writers = [bench._writer(subtask) for subtask in range(2)]
            for following, step in enumerate(STEPS[number + 1 :], number + 1):
                again.commit(bench.batch(*step["rows"], watermarks=step["watermarks"], last=step.get("last", False)))
                _check(bench, following)
            again.recover([])
        assert bench.marked == ["n=1", "n=2", "n=3"], f"step {dies_at}"
        assert {partition: bench.seen(partition) for partition in ALL} == ALL, f"step {dies_at}"
        assert hidden(bench.folder) == []
        dies_at += 1
    assert dies_at > 15, "there were as many steps to end at"


def _check(bench: Bench, number: int) -> None:
    """What is marked has all rows that were written to it when its time had come."""
    at = {1: 2, 2: 3, 3: 4}
    for partition, complete in at.items():
        if f"n={partition}" in bench.marked:
            assert number >= complete, f"n={partition} was marked in batch {number}"
            due = [row[2] for step in STEPS[: complete + 1] for row in step["rows"] if row[1] == partition]
            assert set(due) <= set(bench.seen(partition))
