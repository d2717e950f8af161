"""Compaction of a file sink's parts: fewer files, the same records, through a crash at every step."""

from __future__ import annotations

import json
import os
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from filesinkkit import Crash, Failing
from kit import eventually
from s3kit import Bucket

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.writer import FileWriter
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from firesteel.errors import CheckpointError, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment

NONE = WatermarkStrategy.no_watermarks()
TEXT = Encoder.simple_string_encoder()
EVERY_BATCH = RollingPolicy.on_checkpoint_rolling_policy()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}
CONCAT = FileCompactor.concat_file_compactor()


class ByParity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"parity={int(element) % 2}"


def after(checkpoints: int) -> FileCompactStrategy:
    return FileCompactStrategy.builder().enable_compaction_on_checkpoint(checkpoints).build()


def sink(folder: str, strategy: FileCompactStrategy | None, compactor: FileCompactor = CONCAT) -> FileSink:
    builder = FileSink.for_row_format(folder, TEXT).with_bucket_assigner(ByParity()).with_rolling_policy(EVERY_BATCH)
    return (builder.enable_compact(strategy, compactor) if strategy else builder.disable_compact()).build()


def _files(folder: Path, seen: bool) -> list[Path]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return sorted(one for one in files if seen != any(name[0] in "._" for name in one.relative_to(folder).parts))


def visible(folder: Path) -> list[Path]:
    return _files(folder, True)


def hidden(folder: Path) -> list[Path]:
    return _files(folder, False)


def numbers_in(folder: Path) -> list[int]:
    return sorted(int(line) for file in visible(folder) for line in file.read_text().split())


def run(folder: Path, strategy: FileCompactStrategy, compactor: FileCompactor = CONCAT, **config: str) -> None:
    env = memory_environment(config={**RESTART, **config})
    numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(str)
    numbers.sink_to(sink(str(folder), strategy, compactor)).uid("sink")
    env.execute("numbers")


# What comes of it


def test_parts_of_several_checkpoints_become_one_file(tmp_path: Path) -> None:
    run(tmp_path, after(5))
    assert numbers_in(tmp_path) == list(range(100))
    names = [file.name for file in visible(tmp_path)]
    assert len(names) == 4
    assert all(name.startswith("compacted-part-") for name in names)
    assert hidden(tmp_path) == []
    for file in visible(tmp_path):
        assert len({int(line) % 2 for line in file.read_text().split()}) == 1, "buckets stay apart"


def test_by_size(tmp_path: Path) -> None:
    # Five numbers of a bucket take 15 bytes a batch, and fewer at first.
    run(tmp_path, FileCompactStrategy.builder().set_size_threshold(40).set_num_compact_threads(2).build())
    assert numbers_in(tmp_path) == list(range(100))
    sizes = sorted(file.stat().st_size for file in visible(tmp_path))
    assert len(sizes) == 8
    assert sum(size >= 40 for size in sizes) == 6


def test_what_waits_at_the_end_is_put_together(tmp_path: Path) -> None:
    run(tmp_path, after(1000))
    assert numbers_in(tmp_path) == list(range(100))
    assert len(visible(tmp_path)) == 2


def test_a_delimiter_between_files(tmp_path: Path) -> None:
    run(tmp_path, after(1000), FileCompactor.concat_file_compactor(b"--\n"))
    texts = [file.read_text() for file in visible(tmp_path)]
    assert [text.count("--\n") for text in texts] == [9, 9]
    assert not any(text.endswith("--\n") for text in texts)


def test_identical_files(tmp_path: Path) -> None:
    run(tmp_path, after(3), FileCompactor.identical_file_compactor())
    assert numbers_in(tmp_path) == list(range(100))
    assert len(visible(tmp_path)) == 20
    assert hidden(tmp_path) == []


def test_parquet_record_by_record(tmp_path: Path) -> None:
    row_type = Types.TUPLE([Types.LONG(), Types.STRING()])
    factory = ParquetBulkWriters.for_row_type(row_type)
    builder = FileSink.for_bulk_format(str(tmp_path), factory)
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    with pytest.raises(ProgramError, match=r"cannot be put one behind the other: use FileCompactor\.record_wise"):
        builder.enable_compact(after(5), CONCAT)
    reader = ParquetColumnarRowInputFormat(row_type)
    builder.enable_compact(after(5), FileCompactor.record_wise_file_compactor(reader, factory))
    env = memory_environment(config=RESTART)
    numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(lambda n: (n, str(n)))
    numbers.sink_to(builder.build())
    env.execute("numbers")
    found = [row for file in visible(tmp_path) for row in pyarrow.parquet.read_table(file).to_pylist()]
    assert sorted(row["f0"] for row in found) == list(range(100))
    assert all(row["f1"] == str(row["f0"]) for row in found)
    assert len(visible(tmp_path)) == 2


def test_a_compactor_that_fails_fails_the_job(tmp_path: Path) -> None:
    class Broken(FileCompactor):
        def compact(self, inputs: Any, out: Any) -> None:
            raise ValueError("this file I do not like")

    with pytest.raises(JobExecutionError, match="this file I do not like"):
        run(tmp_path, after(2), Broken(), **{"restart-strategy.type": "none"})
    assert numbers_in(tmp_path) == []


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="needs a condition"):
        FileCompactStrategy.builder().build()
    with pytest.raises(ProgramError, match=r"set_size_threshold\(\) takes a number of bytes of at least 1, got 0"):
        FileCompactStrategy.builder().set_size_threshold(0)
    with pytest.raises(ProgramError, match=r"enable_compact\(\) takes a FileCompactStrategy and a FileCompactor"):
        FileSink.for_row_format(str(tmp_path), TEXT).enable_compact(after(1), "concat")  # type: ignore[arg-type]


# Crashes


@pytest.mark.parametrize("crash_in", [1, 4])
@pytest.mark.parametrize("point", list(CrashPoint))
def test_every_record_once_through_crashes_of_the_commit(point: CrashPoint, crash_in: int, tmp_path: Path) -> None:
    sides = [tmp_path / "left", tmp_path / "right"]
    with CommitCrashes({point: ["pass"] * crash_in + ["error"]}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config})
        numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(str)
        for side in sides:
            numbers.sink_to(sink(str(side), after(3)))
        env.execute()
        assert crashes.reached(point) > crash_in
    for side in sides:
        assert numbers_in(side) == list(range(100))
        assert hidden(side) == []


class Bench:
    """A writer of three batches and the committer, by hand."""

    def __init__(self, folder: Path, folders: bool) -> None:
        self.folder, self.folders = folder, folders
        self.settings = sink(str(folder), after(2))._settings
        self.identity = SinkIdentity()
        context = WriterContext(self.identity, clock=lambda: 0)
        context.file_system = lambda path: Failing(folders, 10**9)  # type: ignore[assignment, method-assign, return-value]
        self.writer = FileWriter(self.settings, context)

    def batch(self, *numbers: int) -> list[Any]:
        for number in numbers:
            self.writer.write(str(number), _MOMENT)
        self.writer.flush(False)
        return self.writer.prepare_commit()

    def committer(
        self, dies_at: int = 10**9, compaction: bool = True
    ) -> tuple[FileCommitter, CommitterContext, Failing]:
        context, files = CommitterContext(self.identity), Failing(self.folders, dies_at)
        context.file_system = lambda path: files  # type: ignore[assignment, method-assign, return-value]
        made = FileCommitter(str(self.folder), context, self.settings.compaction if compaction else None)
        return made, context


class _Moment:
    def current_processing_time(self) -> int:
        return 0


_MOMENT: Any = _Moment()


def _commit_all(bench: Bench, batches: list[list[Any]], dies_at: int) -> tuple[list[Any], bool]:
    """Commits until the process ends. Returns what was not committed then, and whether it has ended."""
    committer, context = bench.committer(dies_at)
    try:
        for number, prepared in enumerate(batches):
            context._checkpoint_id = number
            try:
                committer.commit(prepared)
            except Crash:
                return [one for batch in batches[number:] for one in batch], True
            # In threads of their own, and here one after the other.
            running = list(committer._compaction._running.values())
            wait(running)
            if any(future.exception() for future in running):
                return [one for batch in batches[number + 1 :] for one in batch], True
        return [], False
    finally:
        committer.close()


@pytest.mark.parametrize("folders", [True, False], ids=["folders", "object store"])
@pytest.mark.parametrize("goes_on", [True, False], ids=["goes on", "without compaction"])
def test_every_record_once_whatever_step_a_process_ends_at(
    tmp_path: Path, folders: bool, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process ends here, not the machine.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    dies_at, crashed = 1, True
    while crashed:
        folder = tmp_path / str(dies_at)
        bench = Bench(folder, folders)
        batches = [bench.batch(*range(first, first + 4)) for first in (0, 4, 8)]
        pending, crashed = _commit_all(bench, batches, dies_at)
        seen = numbers_in(folder)
        assert len(seen) == len(set(seen)), f"doubled before recovery, step {dies_at}"
        # The next start, which dies at each of its steps as well.
        for second in range(1, 100):
            committer, _ = bench.committer(second, compaction=goes_on)
            try:
                committer.recover(list(pending))
                committer.recover_and_commit(list(pending))
                break
            except Crash:
                continue
        assert numbers_in(folder) == list(range(12)), f"step {dies_at}"
        assert hidden(folder) == []
        dies_at += 1
    assert dies_at > 12, "there were as many steps to end at"


def test_intervals_without_a_commit_count_as_checkpoints(tmp_path: Path) -> None:
    bench = Bench(tmp_path, True)
    bench.settings = sink(str(tmp_path), after(4))._settings
    committer, context = bench.committer()
    compaction = committer._compaction

    def commit(checkpoint: int, *numbers: int) -> None:
        context._checkpoint_id = checkpoint
        committer.commit(bench.batch(*numbers))

    def silence(intervals: int) -> None:
        for _ in range(intervals):
            compaction.silent()
        wait(compaction._running.values())

    try:
        # Silence before there is anything makes nothing due later.
        silence(5)
        commit(7, 0, 1)
        silence(2)
        assert visible(tmp_path) == []
        silence(1)
        assert numbers_in(tmp_path) == [0, 1], "the fourth one"
        # What comes later has its own time.
        commit(8, 2, 3)
        silence(1)
        commit(9, 4, 5)
        assert numbers_in(tmp_path) == [0, 1]
        commit(10, 6, 7)
        wait(compaction._running.values())
        assert numbers_in(tmp_path) == list(range(8))
    finally:
        committer.close()
    assert hidden(tmp_path) == []


def test_a_stream_that_went_idle_is_compacted_while_the_job_runs(tmp_path: Path) -> None:
    env = memory_environment(config={"firesteel.batch.max-records": "10"})
    # The job goes on, and brings this sink nothing more.
    endless = DataGeneratorSource(lambda index: index, records_per_second=100)
    builder = FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(ByParity())
    builder.with_rolling_policy(EVERY_BATCH).with_bucket_check_interval(50).enable_compact(after(4), CONCAT)
    few = env.from_source(endless, NONE, "numbers").filter(lambda n: n < 3).map(str)
    few.sink_to(builder.build()).uid("sink")
    client = env.execute_async("idle")
    try:
        assert eventually(lambda: numbers_in(tmp_path) == [0, 1, 2])
    finally:
        client.cancel().result()
    assert numbers_in(tmp_path) == [0, 1, 2]
    assert hidden(tmp_path) == []


def test_a_log_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, True)
    prefix = CommitterContext(bench.identity).name_prefix()
    (tmp_path / f".{prefix}.compaction").write_text(json.dumps({"format": 99}))
    with pytest.raises(CheckpointError, match="The log of a file sink's compaction has format 99, of a newer"):
        bench.committer()


def test_on_an_object_store(bucket: Bucket) -> None:
    with CommitCrashes({CrashPoint.COMMITTED: ["pass", "pass", "error"]}) as crashes:
        env = memory_environment(config={**RESTART, **crashes.config, **bucket.settings})
        numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(str)
        numbers.sink_to(sink(bucket.uri("out"), after(4))).uid("sink")
        env.execute("numbers")
    assert sorted(map(int, bucket.lines("out/"))) == list(range(100))
    assert len(bucket.names()) < 14
    assert not [name for name in bucket.names() if "/." in name]
