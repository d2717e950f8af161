"""A sink that is one method over a batch, and a source that is one function: through crashes, with back pressure."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from kit import eventually

from firesteel.common import WatermarkStrategy
from firesteel.connectors import logged, piece_log
from firesteel.connectors.retrying import retried
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import BatchSink, DeliveryGuarantee, PollingSource, SinkBatch
from firesteel.errors import (
    BackPressureError,
    CheckpointError,
    ConnectorError,
    FailureKind,
    JobExecutionError,
    ProgramError,
)
from firesteel.testing import CommitCrashes, Crash, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
SMALL = {"firesteel.batch.max-records": "10"}


class Files(BatchSink):
    """A line of JSON for each batch; fails as often as a file says."""

    def __init__(self, folder: Path, failures: int = 0, error: Exception | None = None) -> None:
        self.folder, self.error = folder, error
        (folder / "failures").write_text(str(failures))

    def write(self, batch: SinkBatch) -> None:
        left = int((self.folder / "failures").read_text())
        if left:
            (self.folder / "failures").write_text(str(left - 1))
            raise self.error or ConnectorError("not yet")
        with (self.folder / "batches").open("a") as file:
            file.write(json.dumps([batch.values, batch.timestamps, batch.number, batch.sink]) + "\n")


def batches(folder: Path) -> list[list[Any]]:
    return [json.loads(line) for line in (folder / "batches").read_text().splitlines()]


def test_a_batch_has_no_more_records_than_it_may(tmp_path: Path) -> None:
    sink = Files(tmp_path)
    sink.max_records = 4
    run_pipeline(lambda env: _end(env.from_collection(list(range(10))), sink))
    assert [found[0] for found in batches(tmp_path)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert {(found[1], found[2]) for found in batches(tmp_path)} == {(None, None)}
    (name,) = {found[3] for found in batches(tmp_path)}
    assert name.startswith("fs-")


def _end(stream: Any, sink: BatchSink) -> None:
    stream.sink_to(sink).name("batches")


def test_records_have_their_event_time(tmp_path: Path) -> None:
    source = PollingSource(lambda n: (list(range(n, min(n + 3, 7))), min(n + 3, 7)), 0, bounded=True, timestamp=_ms)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    run_pipeline(lambda env: _end(env.from_source(source, strategy, "numbers"), Files(tmp_path)))
    times = [moment for _, moments, *_ in batches(tmp_path) for moment in moments]
    assert times == [n * 1000 for n in range(7)]


def _ms(n: int) -> int:
    return n * 1000


def test_back_pressure_waits_as_long_as_it_was_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = Files(tmp_path, 2, BackPressureError("429 Too Many Requests", retry_after=0.015))
    with caplog.at_level(logging.WARNING, "firesteel.connectors"):
        run_pipeline(lambda env: _end(env.from_collection([1, 2]), sink))
    assert [found[0] for found in batches(tmp_path)] == [[1, 2]]
    waited = [record.args for record in caplog.records if "is tried again" in record.msg]
    assert [(args[0], args[1]) for args in waited] == [("a batch for Files", 0.015)] * 2  # type: ignore[index]


def test_a_pause_that_is_longer_than_allowed_says_so_and_one_below_zero_is_none() -> None:
    waits: list[float] = []

    def ask(errors: list[Exception]) -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    errors: list[Exception] = [BackPressureError("slow down", retry_after=-1), BackPressureError("no", retry_after=59)]
    assert retried(lambda: ask(errors), 60, "asking", waits.append) == "done"
    assert waits == [0, 59]
    errors = [BackPressureError("slow down.", retry_after=90)]
    with pytest.raises(BackPressureError, match=r"slow down. It is to be tried again after 90 s, but asking is tried "):
        retried(lambda: ask(errors), 60, "asking", waits.append)
    assert waits == [0, 59]


def test_a_guarantee_that_is_a_text_is_refused(tmp_path: Path) -> None:
    sink = Files(tmp_path)
    sink.guarantee = "exactly_once"  # type: ignore[assignment]
    with pytest.raises(Exception, match=r"guarantee of Files must be a DeliveryGuarantee.*got 'exactly_once'"):
        run_pipeline(lambda env: _end(env.from_collection([1]), sink))


def test_what_may_pass_is_tried_again_and_what_never_passes_ends_the_job(tmp_path: Path) -> None:
    run_pipeline(lambda env: _end(env.from_collection([1]), Files(tmp_path, 1)))
    assert [found[0] for found in batches(tmp_path)] == [[1]]
    refused = Files(tmp_path, 1, ConnectorError("no such table", kind=FailureKind.PERMANENT))
    with pytest.raises(JobExecutionError, match="no such table") as caught:
        run_pipeline(lambda env: _end(env.from_collection([2]), refused), restarts=3)
    assert caught.value.kind is FailureKind.PERMANENT
    assert caught.value.operator == "batches"
    assert len(batches(tmp_path)) == 1
    away = Files(tmp_path, 10**6)
    away.retry_seconds = 0.15
    with pytest.raises(JobExecutionError, match="not yet"):
        run_pipeline(lambda env: _end(env.from_collection([3]), away))


class Halves(Files):
    guarantee = DeliveryGuarantee.EXACTLY_ONCE

    def convert(self, value: Any) -> Any:
        if value % 2:
            raise ValueError("odd")
        return value // 2


def test_what_a_task_refuses_is_named_and_never_logged(tmp_path: Path) -> None:
    run_pipeline(lambda env: _end(env.from_collection([2, 4]), Halves(tmp_path)))
    assert [found[0] for found in batches(tmp_path)] == [[1, 2]]
    with pytest.raises(JobExecutionError, match="odd") as caught:
        run_pipeline(lambda env: _end(env.from_collection([2, 7, 8]), Halves(tmp_path)))
    assert caught.value.element == "7"
    assert len(batches(tmp_path)) == 1


# Exactly once


class Table(BatchSink):
    """Rows of SQLite, with the number of the batch in the same transaction."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE
    max_records = 3

    def __init__(self, path: Path, crash: Crash | None = None) -> None:
        self.path, self.crash = str(path), crash

    def open(self, context: Any) -> None:
        self.connection = sqlite3.connect(self.path, timeout=120, check_same_thread=False)
        with self.connection:
            self.connection.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
            self.connection.execute("CREATE TABLE IF NOT EXISTS written (sink TEXT PRIMARY KEY, number INTEGER)")

    def write(self, batch: SinkBatch) -> None:
        with self.connection:
            self.connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in batch.values])
            self.connection.execute("INSERT OR REPLACE INTO written VALUES (?, ?)", (batch.sink, batch.number))
        if self.crash is not None and 15 in batch.values:
            # It is written, and nobody knows.
            self.crash.hit()

    def last_written(self, sink: str) -> int | None:
        found = self.connection.execute("SELECT number FROM written WHERE sink = ?", (sink,)).fetchone()
        return found[0] if found else None

    def close(self) -> None:
        self.connection.close()


def numbers(path: Path) -> list[int]:
    with sqlite3.connect(path, timeout=120) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]


@pytest.mark.parametrize("point", CrashPoint)
def test_a_sink_that_stores_the_number_is_exactly_once_through_crashes(point: CrashPoint, tmp_path: Path) -> None:
    paths = [tmp_path / "left", tmp_path / "right"]

    def build(env: StreamExecutionEnvironment) -> None:
        for path in paths:
            env.from_collection(list(range(40))).rebalance().sink_to(Table(path))

    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
        assert crashes.reached(point) > 2
    assert [numbers(path) for path in paths] == [list(range(40))] * 2


def test_a_crash_between_writing_and_the_next_batch(tmp_path: Path) -> None:
    sink = Table(tmp_path / "table", Crash(times=1))
    run_pipeline(lambda env: _end(env.from_collection(list(range(40))), sink), parallelism=2, config=SMALL, restarts=1)
    assert numbers(tmp_path / "table") == list(range(40))


def test_without_a_memory_a_batch_comes_again_with_its_number(tmp_path: Path) -> None:
    sink = Files(tmp_path)
    sink.guarantee, sink.max_records = DeliveryGuarantee.EXACTLY_ONCE, 4
    with CommitCrashes({CrashPoint.COMMITTED: ["pass", "error"]}) as crashes:
        config = SMALL | crashes.config
        run_pipeline(lambda env: _end(env.from_collection(list(range(40))), sink), config=config, restarts=1)
    found = batches(tmp_path)
    again = [json.dumps(one) for one in found if found.count(one) > 1]
    assert again, "a batch that was written before the crash came again"
    assert len({one[2] for one in found}) == len({json.dumps(one) for one in found}), (
        "the same number, the same records"
    )
    once = {one[2]: one[0] for one in found}
    assert [n for number in sorted(once) for n in once[number]] == list(range(40))


# A source that is one function


def pages(cursor: int) -> tuple[list[int], int]:
    """Seven at a time, up to fifty."""
    end = min(cursor + 7, 50)
    return list(range(cursor, end)), end


@pytest.mark.parametrize("point", [CrashPoint.PREPARED, CrashPoint.BEFORE_COMMIT])
def test_each_polled_record_counts_once_through_crashes(point: CrashPoint, tmp_path: Path, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_source(PollingSource(pages, 0, bounded=True), NONE, "pages").sink_to(Table(tmp_path / "table"))

    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=parallelism, config=SMALL | crashes.config, restarts=1)
    assert numbers(tmp_path / "table") == list(range(50))


def test_a_system_that_forgets_what_it_has_given(tmp_path: Path) -> None:
    """A queue: what was polled once is never given again. The log has it."""
    queue = [list(range(n, n + 5)) for n in range(0, 40, 5)]
    crash = Crash(times=2)

    def fragile(value: int) -> int:
        if value in (12, 31):
            crash.hit()
        return value

    source = PollingSource(lambda cursor: (queue.pop(0), cursor + 1) if queue else ([], cursor), 0, bounded=True)

    def build(env: StreamExecutionEnvironment) -> None:
        env.from_source(source, NONE, "queue").map(fragile).sink_to(Table(tmp_path / "table"))

    run_pipeline(build, config=SMALL, restarts=2)
    assert numbers(tmp_path / "table") == list(range(40))


def test_polling_goes_on_and_waits_where_nothing_is(tmp_path: Path) -> None:
    given: list[int] = []
    asked: list[int] = []

    def poll(cursor: int) -> tuple[list[int], int]:
        asked.append(cursor)
        return given[cursor:], len(given)

    env = memory_environment()
    others = set(threading.enumerate())
    # The engine pickles the source: what the function closes over would be a copy of its own.
    _POLLS["poll"] = poll
    source = PollingSource(_poll, 0, interval=0.01)
    sink = Table(tmp_path / "table")
    # A file is there before its tables are: here they are before anybody looks.
    sink.open(None)
    sink.close()
    del sink.connection
    env.from_source(source, NONE, "growing").sink_to(sink)
    job = env.execute_async("growing")
    assert eventually(lambda: len(asked) > 2)
    given += [1, 2]
    assert eventually(lambda: numbers(tmp_path / "table") == [1, 2])
    given.append(3)
    assert eventually(lambda: numbers(tmp_path / "table") == [1, 2, 3])
    job.cancel().result()
    assert eventually(lambda: not any(t.name == "firesteel-receive" for t in set(threading.enumerate()) - others))


_POLLS: dict[str, Any] = {}


def _poll(cursor: Any) -> Any:
    return _POLLS["poll"](cursor)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda cursor: [1, 2, 3], r"must return the records and the next cursor, as a pair; it returned \[1, 2, 3\]"),
        (lambda cursor: None, "it returned None"),
        (lambda cursor: ([1], {1, 2}), r"A cursor is a JSON value, got \{1, 2\}"),
    ],
)
def test_a_function_that_returns_something_else(answer: Any, message: str) -> None:
    with pytest.raises(JobExecutionError, match=message) as caught:
        run_pipeline(lambda env: env.from_source(PollingSource(answer), NONE, "odd"), restarts=3)
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_poll_that_fails_is_tried_again_also_by_a_restart(tmp_path: Path) -> None:
    answers: list[Any] = [BackPressureError("slow down", retry_after=0.01), ConnectorError("gone"), ValueError("odd")]

    def poll(cursor: Any) -> Any:
        if answers:
            raise answers.pop(0)
        return ([], cursor) if cursor else ([1], 1)

    _POLLS["poll"] = poll
    source = PollingSource(_poll, 0, bounded=True)
    sink = Table(tmp_path / "table")
    run_pipeline(lambda env: _end(env.from_source(source, NONE, "api"), sink), restarts=1)
    assert numbers(tmp_path / "table") == [1]


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match="poll must be a function"):
        PollingSource([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="A cursor is a JSON value"):
        PollingSource(pages, start=object())
    with pytest.raises(ProgramError, match="interval must be 0 or more"):
        PollingSource(pages, interval=-1)


# The log


def test_a_log_forgets_what_lies_before_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_log, "SEGMENT_BYTES", 100)
    log = piece_log.PieceLog(str(tmp_path))
    for number in range(20):
        log.append([number] * 10, number)
    files = len(list(tmp_path.iterdir()))
    log.forget(95)
    assert log.begin <= 95
    assert len(list(tmp_path.iterdir())) < files
    assert log.records(95, 105) == [9] * 5 + [10] * 5
    log.close()
    again = piece_log.PieceLog(str(tmp_path))
    assert (again.begin, again.end, again.cursor) == (log.begin, 200, 19)
    assert again.records(195, 200) == [19] * 5
    with pytest.raises(Exception, match="is damaged or incomplete"):
        again.records(0, 10)


def test_who_plans_makes_no_records_but_where_tasks_share_a_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records pass through the one process that plans, so what can be left to the tasks is."""
    enumerator = PollingSource(lambda cursor: ([], cursor), bounded=True).create_enumerator()
    enumerator.start(str(tmp_path))
    log = enumerator._live_log  # type: ignore[attr-defined]
    for first in range(0, 40, 10):
        log.append(list(range(first, first + 10)), first)
    enumerator.latest(0, 40)
    made: list[bytes] = []
    unpickled = piece_log.pickle.loads
    monkeypatch.setattr(piece_log.pickle, "loads", lambda content: made.append(content) or unpickled(content))

    ranges = [(0, 40, 2, 0), (0, 40, 4, 0), (10, 30, 3, 2), (5, 35, 1, 2), (20, 30, 8, 1)]
    for start, end, parallelism, parted in ranges:
        made.clear()
        plan = enumerator.plan(start, end, parallelism)
        assert len(made) == parted, "each piece once, and only if it is parted"
        reader = PollingSource(lambda cursor: ([], cursor)).create_reader()
        found = [value for share in plan for one in share for part in reader.read(*one[:3]) for value in part.values]
        assert found == list(range(start, end))
    enumerator.stop()


def test_a_share_is_read_from_within(tmp_path: Path) -> None:
    log = piece_log.PieceLog(str(tmp_path))
    for first in range(0, 3 * logged.CHUNK_RECORDS, 1000):
        log.append(list(range(first, first + 1000)), first)
    (share,) = log.shares([(500, log.end)])
    parts = list(logged.LoggedReader[int]().read(share, 10, logged.CHUNK_RECORDS + 20))
    assert [value for part in parts for value in part.values] == list(range(510, 500 + logged.CHUNK_RECORDS + 20))
    assert [len(part.values) for part in parts] == [logged.CHUNK_RECORDS, 10]


def test_a_piece_that_was_being_written_is_dropped_and_a_damaged_one_is_noticed(tmp_path: Path) -> None:
    log = piece_log.PieceLog(str(tmp_path))
    log.append(["a"], 1)
    log.append(["b"], 2)
    log.close()
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for cut in (1, 10, 30):
        file.write_bytes(whole[:-cut])
        assert (piece_log.PieceLog(str(tmp_path)).cursor, file.stat().st_size) == (1, len(whole) // 2)
    file.write_bytes(whole[:20] + b"?" + whole[21:])
    with pytest.raises(Exception, match="is damaged or incomplete"):
        piece_log.PieceLog(str(tmp_path)).records(0, 2)


@pytest.mark.parametrize("pieces", [0, 1])
@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        (b"fsp2", "has format 2, of a newer Firesteel; this one reads 1 only. Use the Firesteel that wrote it"),
        (b"fsp0", "has format 0, which this Firesteel no longer reads"),
        (b"text", "is damaged or incomplete"),
    ],
)
def test_a_log_of_another_version_is_refused_and_stays_as_it_was(
    tmp_path: Path, pieces: int, mark: bytes, reason: str
) -> None:
    log = piece_log.PieceLog(str(tmp_path))
    log.append(["a"], 1)
    log.close()
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    # The other version may have another header, so the rest may be shorter than one of ours.
    for rest in (whole[4:], b"\x00\x01"):
        content = whole * pieces + mark + rest
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=reason):
            piece_log.PieceLog(str(tmp_path))
        assert file.read_bytes() == content


@pytest.mark.parametrize("torn", [b"f", b"fsp1", b"fs\0\0", b"\0" * 100, b"fsp1" + b"\0" * 100])
def test_the_beginning_of_a_piece_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    log = piece_log.PieceLog(str(tmp_path))
    log.append(["a"], 1)
    log.close()
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + torn)
    assert piece_log.PieceLog(str(tmp_path)).end == 1
    assert file.read_bytes() == whole


def test_what_is_not_read_is_not_polled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(logged, "MOST_WAITING", 20)
    enumerator = PollingSource(lambda n: ([n] * 10, n + 1), 0).create_enumerator()
    enumerator.start(str(tmp_path))
    try:
        assert eventually(lambda: enumerator.latest(0, 1000) == 20)
        assert not eventually(lambda: enumerator.latest(0, 1000) > 20, 0.1)
        assert eventually(lambda: enumerator.latest(10, 1000) == 30)
    finally:
        enumerator.stop()
