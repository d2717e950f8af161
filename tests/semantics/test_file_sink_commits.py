"""FileSink's commits: every record once through crashes, and the writer and the committer by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from filesinkkit import NONE, RESTART, Bench, ByRest, hidden, lines, visible

from firesteel.common import Encoder, Types
from firesteel.connectors.files.layout import Layout
from firesteel.connectors.files.parts import Finished, InProgress
from firesteel.datastream.connectors.file_system import (
    FileSink,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.formats.parquet import ParquetBulkWriters
from firesteel.filesystems import LOCAL
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment

# Crashes


class Watching(RollingPolicy):
    """Rolls by size, so that parts of every kind are there when the crash comes."""

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return part.size > 25

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return part.size > 50

    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        return False


@pytest.mark.parametrize("policy", [RollingPolicy.default_rolling_policy(), Watching()], ids=["one part", "many parts"])
@pytest.mark.parametrize("crash_in", [1, 2, 3])
@pytest.mark.parametrize("point", list(CrashPoint))
def test_every_record_once_through_crashes(
    point: CrashPoint, crash_in: int, policy: RollingPolicy, tmp_path: Path
) -> None:
    sides = [tmp_path / "left", tmp_path / "right"]
    with CommitCrashes({point: ["pass"] * crash_in + ["error"]}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config})
        numbers = env.from_source(NumberSequenceSource(0, 59), NONE, "numbers").key_by(lambda n: n % 7)
        for side in sides:
            sink = FileSink.for_row_format(str(side), Encoder.json_encoder()).with_bucket_assigner(ByRest())
            numbers.map(int).sink_to(sink.with_rolling_policy(policy).build())
        env.execute()
        assert crashes.reached(point) > crash_in
    for side in sides:
        assert sorted(map(int, lines(side))) == list(range(60))
        assert hidden(side) == []


def test_parquet_through_crashes(tmp_path: Path) -> None:
    with CommitCrashes({CrashPoint.LOGGED: ["error"], CrashPoint.BEFORE_COMMIT: ["pass", "error"]}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config})
        numbers = env.from_source(NumberSequenceSource(0, 59), NONE, "numbers")
        factory = ParquetBulkWriters.for_row_type(Types.TUPLE([Types.LONG()]))
        numbers.map(lambda n: (n,)).sink_to(FileSink.for_bulk_format(str(tmp_path), factory).build())
        env.execute()
    found = [row["f0"] for file in visible(tmp_path) for row in pyarrow.parquet.read_table(file).to_pylist()]
    assert sorted(found) == list(range(60))
    assert hidden(tmp_path) == []


def test_only_what_grew_is_prepared_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    writer, committer = bench.writer(), bench.committer()
    first = bench.batch(writer, "a")
    committer.commit(first)
    assert isinstance(first[0], InProgress)
    assert bench.batch(writer) == []
    (grown,) = bench.batch(writer, "b")
    assert (grown.path, grown.length) == (first[0].path, 4)


def test_committing_twice_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    committables = bench.batch(bench.writer(), "a", last=True)
    bench.committer().commit(committables)
    again = bench.committer()
    again.recover(committables)
    again.recover_and_commit(committables)
    assert lines(tmp_path) == ["a"]
    # A consumer took it: it does not come back, and is no reason to fail.
    visible(tmp_path)[0].unlink()
    again.recover(committables)
    again.recover_and_commit(committables)
    assert visible(tmp_path) == []


def test_a_finished_part_that_is_gone_is_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (part,) = bench.batch(bench.writer(), "a", last=True)
    assert isinstance(part, Finished)
    Path(Layout(str(tmp_path), "", LOCAL).hidden(part.path)).unlink()
    with pytest.raises(FileNotFoundError, match=r"is gone, and .* is not there either"):
        bench.committer().commit([part])


def test_the_run_of_a_batch_that_did_not_count_is_left_behind(tmp_path: Path) -> None:
    """Its task was done, but what it sent never reached the driver; the batch came again, to the same writer."""
    bench = Bench(tmp_path)
    writer, committer = bench.writer(), bench.committer()
    committer.commit(bench.batch(writer, "a"))
    bench.batch(writer, "b")
    committer.commit(bench.batch(writer, "b"))
    committer.commit(bench.batch(writer, "c", last=True))
    committer.recover([])
    assert sorted(lines(tmp_path)) == ["a", "b", "c"]
    assert hidden(tmp_path) == []


def test_a_subtask_that_moves_to_and_fro(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    one, two, committer = bench.writer(), bench.writer(), bench.committer()
    committer.commit(bench.batch(one, "a"))
    assert visible(tmp_path) == []
    committer.commit(bench.batch(two, "b"))
    assert lines(tmp_path) == ["a"], "what the first writer had is closed"
    committer.commit(bench.batch(one, "c"))
    assert sorted(lines(tmp_path)) == ["a", "b"]
    committer.commit(bench.batch(one, "d", last=True))
    assert sorted(lines(tmp_path)) == ["a", "b", "c", "d"]
    assert hidden(tmp_path) == []


def test_another_subtask_is_left_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    one, two, committer = bench.writer(0), bench.writer(1), bench.committer()
    committer.commit(bench.batch(one, "a") + bench.batch(two, "b"))
    committer.commit(bench.batch(two, "c"))
    assert visible(tmp_path) == []


def test_a_task_that_goes_on_after_it_was_given_up_does_no_harm(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    writer = bench.writer()
    bench.committer().commit(bench.batch(writer, "a"))
    bench.committer().recover([])
    bench.batch(writer, "ghost", last=True)
    assert lines(tmp_path) == ["a"]
    bench.committer().recover([])
    assert lines(tmp_path) == ["a"]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("step", ["os.remove", "os.rename"])
def test_a_crash_while_recovering(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    bench.committer().commit(bench.batch(bench.writer(), "a"))

    def crash(*given: Any) -> None:
        raise OSError("power is gone")

    with monkeypatch.context() as broken:
        broken.setattr(step, crash)
        with pytest.raises(OSError, match="power is gone"):
            bench.committer().recover([])
    assert visible(tmp_path) == []
    bench.committer().recover([])
    assert lines(tmp_path) == ["a"]
    assert hidden(tmp_path) == []


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".part-fs-0000-0.inprogress").write_text("another sink's")
    (tmp_path / "mine.txt").write_text("a user's")
    bench = Bench(tmp_path)
    bench.committer().recover([])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_part_is_given_up_though_there_is_no_room_for_the_rest_of_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    writer = bench.writer()
    bench.batch(writer, "one")
    (part,) = writer._parts.values()

    def full() -> None:
        raise OSError(28, "No space left on device")

    file, part._file = part._file, SimpleNamespace(close=full)  # type: ignore[assignment]
    writer.close()
    assert writer._parts == {}
    file.close()
