"""What each batch reads: positions, ticks, the last flag, and shares that a replay repeats."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from coordinatorkit import NO_NEWS, NONE, Clock, batches, coordinator, numbers, records_of

from firesteel.common import Duration, WatermarkStrategy
from firesteel.connectors.batch_versions import BatchVersions
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.engine.batch_sizer import FIRST_BATCH
from firesteel.engine.coordinator import STEPS, Coordinator, CoordinatorFeedback
from firesteel.engine.processing_time import RESTART_MS, SPEED
from firesteel.engine.settings import Settings
from firesteel.testing import ListSource, Record


class TestBatches:
    def test_a_bounded_source_ends_with_the_last_flag(self) -> None:
        c = coordinator(numbers(25), settings=Settings(max_records=10))
        found = batches(c)
        assert [o["batch"] for o in found] == [1, 2, 3]
        assert [o["last"] for o in found] == [False, False, True]
        assert c.next(found[-1]) is found[-1]

    def test_offsets_are_small_json(self) -> None:
        c = coordinator(numbers(25))
        (offset,) = batches(c)
        assert json.loads(json.dumps(offset)) == offset
        assert len(json.dumps(offset)) < 200

    def test_all_records_are_read_once_and_in_order(self) -> None:
        c = coordinator(numbers(25), settings=Settings(max_records=10))
        offsets = [c.initial(), *batches(c)]
        read = [records_of(c, a, b) for a, b in itertools.pairwise(offsets)]
        assert [n for batch in read for task in batch for n in task] == list(range(1, 26))
        assert read[0] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]

    def test_the_same_offsets_give_the_same_shares_in_another_run(self) -> None:
        def build(env: StreamExecutionEnvironment) -> None:
            stream = env.from_collection(list("abcdefghij"))
            stream.union(env.from_collection(list("klmnopqrst"))).print()

        first = coordinator(build, settings=Settings(max_records=6))
        offsets = [first.initial(), *batches(first)]
        second = coordinator(build, settings=Settings(max_records=100))
        for start, end in itertools.pairwise(offsets):
            restored = [json.loads(json.dumps(o)) for o in (start, end)]
            assert second.plan(*restored) == first.plan(start, end)

    def test_a_replayed_batch_sees_the_same_time(self) -> None:
        clock = Clock()
        c = coordinator(numbers(25), clock=clock)
        start = c.initial()
        end = c.next(start)
        clock.now += 5000
        assert {share.time for share in c.plan(start, end)} == {1000}

    def test_time_never_goes_back(self) -> None:
        clock = Clock()
        c = coordinator(numbers(25), settings=Settings(max_records=10), clock=clock)
        first = c.next(c.initial())
        clock.now = 10
        assert c.next(first)["time"] == 1000

    def test_it_does_not_stand_still_where_the_clock_jumped_ahead_and_back(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A timer of one second is due after a second, whatever the wall clock says, again and again."""
        clock = Clock()
        hour = 3_600_000
        wake: list[int] = [2000]
        source = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
        c = coordinator(lambda env: env.from_source(source, NONE, "n").print(), wake_at=lambda: wake[0], clock=clock)
        start = c.initial()
        clock.jump(hour)
        ahead = c.next(start)
        assert ahead["time"] == 1000 + hour
        clock.jump(-hour)
        times, offset = [ahead["time"]], ahead
        for _ in range(8):
            wake[0] = offset["time"] + 1000
            clock.wait(1000)
            assert c.next(offset) is offset, "a little slower"
            clock.wait(60)
            offset = c.next(offset)
            times.append(offset["time"])
        assert all(1000 <= b - a <= 1010 for a, b in itertools.pairwise(times))
        assert [record.getMessage() for record in caplog.records] == [
            "the clock is 3599.0 s behind the processing time that this job has reached: it was set back, or had been "
            "ahead. Processing time goes on from there, slightly slower, until the clock has caught up."
        ]

    def test_a_restart_goes_on_from_the_time_that_was_logged(self) -> None:
        clock = Clock()
        wake = [10_000]
        source = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
        c = coordinator(lambda env: env.from_source(source, NONE, "n").print(), wake_at=lambda: wake[0], clock=clock)
        first = c.next({**c.initial(), "batch": 5, "time": 8000})
        assert first["time"] == 8000 + RESTART_MS
        clock.wait(500)
        assert c.next(first) is first
        clock.wait(600)
        assert c.next(first)["time"] == 8000 + RESTART_MS + int(1100 * SPEED)
        clock.wait(30_000)
        wake[0] = 20_000
        assert c.next(first)["time"] == clock.now, "the clock has got there"

    @pytest.mark.parametrize("clock_now", [1000, 7999, 20_000])
    def test_what_is_written_after_a_restart_is_newer_than_what_was_written_before(self, clock_now: int) -> None:
        """Some systems keep the greater version, and versions are made of the times of batches."""
        clock = Clock()
        clock.now = clock_now
        c = coordinator(numbers(3), clock=clock)
        last = {**c.initial(), "batch": 5, "time": 8000}
        before = BatchVersions(lambda: last["time"], per_millisecond=1000).take(500)

        first = c.next(last)

        assert BatchVersions(lambda: first["time"], per_millisecond=1000).take(1) >= before + 500

    def test_an_empty_source_is_one_last_batch(self) -> None:
        c = coordinator(lambda env: env.from_collection([]).print())
        (offset,) = batches(c)
        assert offset["last"]
        shares = c.plan(c.initial(), offset)
        assert [share.shares for share in shares] == [{}, {}]
        assert all(share.last and share.ended for share in shares)

    def test_the_job_ends_with_its_longest_source_and_earlier_ends_are_told_in_every_batch(self) -> None:
        def build(env: StreamExecutionEnvironment) -> None:
            env.from_collection([1, 2]).union(env.from_collection(list(range(9)))).print()

        c = coordinator(build, settings=Settings(max_records=4))
        offsets = [c.initial(), *batches(c)]
        ended = [c.plan(a, b)[0].ended for a, b in itertools.pairwise(offsets)]
        assert [len(e) for e in ended] == [1] * (len(ended) - 1) + [2]
        assert len(ended) > 2

    def test_everything_at_once_for_batch_mode(self) -> None:
        c = coordinator(numbers(25), settings=Settings(max_records=1))
        shares = c.everything()
        assert all(share.last for share in shares)
        assert [share.subtask for share in shares] == [0, 1]

    def test_no_plan_between_equal_offsets(self) -> None:
        c = coordinator(numbers(5))
        assert c.plan(c.initial(), c.initial()) == []

    def test_sources_share_a_batch(self) -> None:
        def build(env: StreamExecutionEnvironment) -> None:
            for _ in range(2):
                env.from_source(NumberSequenceSource(1, 100), NONE, "n").print()

        c = coordinator(build, settings=Settings(max_records=10))
        assert list(c.next(c.initial())["positions"].values()) == [5, 5]


def test_sources_learn_once_that_a_batch_is_complete_also_of_the_last_one() -> None:
    """Whoever asks for the next batch has logged the last one; Spark says so itself of all but the last."""
    holds: list[bool] = []
    hold = CoordinatorFeedback(hold=True)
    c = coordinator(
        numbers(20), settings=Settings(max_records=10), feedback=lambda: hold if len(offsets) == 3 else NO_NEWS
    )
    c._on_hold = lambda: holds.append(True)
    (source,) = c._sources.values()
    seen: list[Any] = []
    source.committed = seen.append  # type: ignore[method-assign]
    offsets = [c.initial()]
    for _ in range(2):
        offsets.append(c.next(offsets[-1]))
        c.plan(*offsets[-2:])
    c.committed(offsets[1])
    assert offsets[-1]["last"]
    assert c.next(offsets[-1]) == offsets[-1]
    assert seen == [next(iter(offset["positions"].values())) for offset in offsets]
    assert holds == [True], "and the driver learns that they know"


class TestTicks:
    """A batch without data: when a job was started, a timer is due, or a source may fall idle."""

    def endless(self, strategy: WatermarkStrategy = NONE, **options: Any) -> tuple[Coordinator, Any]:
        source = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
        c = coordinator(lambda env: env.from_source(source, strategy, "n").print(), **options)
        return c, c.next(c.initial())

    def test_a_job_that_was_started_opens_its_functions_and_learns_its_timers(self) -> None:
        for batch in (0, 7):
            source = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
            c = coordinator(lambda env, source=source: env.from_source(source, NONE, "n").print())
            start = {**c.initial(), "batch": batch}
            tick = c.next(start)
            assert (tick["batch"], tick["last"], tick["positions"]) == (batch + 1, False, start["positions"])
            assert c.next(tick) is tick

    def test_a_timer_that_is_due(self) -> None:
        wake: list[int | None] = [None]
        clock = Clock()
        c, start = self.endless(wake_at=lambda: wake[0], clock=clock)
        assert c.next(start) is start
        wake[0] = 1500
        assert c.next(start) is start
        clock.now = 1500
        tick = c.next(start)
        assert (tick["batch"], tick["time"], tick["last"]) == (2, 1500, False)
        assert tick["positions"] == start["positions"]
        assert [share.shares for share in c.plan(start, tick)] == [{}, {}]

    def test_a_source_that_may_fall_idle(self) -> None:
        clock = Clock()
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(1))
        c, start = self.endless(strategy, clock=clock)
        start["time"] = clock.now
        assert c.next(start) is start
        clock.now += 499
        assert c.next(start) is start
        clock.now += 1
        assert c.next(start)["batch"] == 2

    def test_ingestion_time_goes_on(self) -> None:
        clock = Clock()
        c, start = self.endless(WatermarkStrategy.for_ingestion_time(), clock=clock)
        start["time"] = clock.now
        clock.now += 999
        assert c.next(start) is start
        clock.now += 1
        assert c.next(start)["batch"] == 2

    def test_the_interval_is_the_least_time_between_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        simulated = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None)
        monkeypatch.setattr("firesteel.engine.coordinator.time", simulated)
        c = coordinator(numbers(100), settings=Settings(max_records=10, interval_ms=150))
        first = c.next(c.initial())
        for moment in (0.0, 0.149):
            now[0] = moment
            assert c.next(first) is first
        now[0] = 0.151
        assert c.next(first)["batch"] == 2


ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


def stations(env: Any) -> None:
    scripts = {name: [[Record(name, n)] for n in range(3)] for name in ("north", "south", "west")}
    env.from_source(ListSource(scripts), ASCENDING, "stations").print()


class TestEventTime:
    """Stage 0 has no store: what it must remember comes from the driver's feedback, and is in the offsets."""

    def test_it_goes_into_the_offset_and_from_there_to_each_subtask(self) -> None:
        reported = {"1/0": {"own": 7}, "1/1": {"own": 9, "idle": True}}
        c = coordinator(
            numbers(25), settings=Settings(max_records=10), feedback=lambda: CoordinatorFeedback(kept=reported)
        )
        first = c.next(c.initial())
        second = c.next(first)
        assert second["kept"] == reported
        assert [share.kept for share in c.plan(first, second)] == [{1: reported["1/0"]}, {1: reported["1/1"]}]

    @pytest.mark.parametrize(("moment", "known"), [(500, 8), (499, 7)])
    def test_after_a_restart_the_word_counts_if_it_is_of_the_last_batch(self, moment: int, known: int) -> None:
        """A feedback of another batch may be that of a run which got further and was given up."""
        c = coordinator(numbers(25), feedback=lambda: CoordinatorFeedback(kept={"1/0": {"own": 8}}, time=moment))
        start = {**c.initial(), "batch": 3, "time": 500, "kept": {"1/0": {"own": 7}}}
        assert c.next(start)["kept"] == {"1/0": {"own": known}}

    def test_one_that_has_nothing_to_remember_any_more(self) -> None:
        c = coordinator(
            numbers(25), settings=Settings(max_records=10), feedback=lambda: CoordinatorFeedback(kept={"1/0": {}})
        )
        start = {**c.next(c.initial()), "kept": {"1/0": {"idle": True}}}
        assert c.next(start)["kept"] == {}

    def test_each_subtask_knows_its_splits_before_and_after_a_batch(self) -> None:
        c = coordinator(stations)
        offsets = [c.initial(), *batches(c)]
        shares = [c.plan(a, b) for a, b in itertools.pairwise(offsets)]
        both = ["north", "west"]
        assert [share.splits[1] for share in shares[0]] == [(both, both), (["south"], ["south"])]
        assert [share.splits[1] for share in shares[2]] == [(both, []), (["south"], [])]

    def test_the_time_of_a_split_follows_it_to_another_subtask(self) -> None:
        kept = {
            "1/0": {"own": 4, "splits": {"north": [5, None], "west": [4, 100]}},
            "1/1": {"splits": {"south": [6, None]}},
        }
        c = coordinator(stations, parallelism=3, feedback=lambda: CoordinatorFeedback(kept=kept))
        c.next(c.initial())
        first = {**c.initial(), "batch": 1, "positions": {"1": 1}}
        shares = c.plan(first, c.next(first))
        assert [share.kept[1] for share in shares] == [
            {"own": 4, "splits": {"north": [5, None]}},
            {"splits": {"south": [6, None]}},
            {"splits": {"west": [4, 100]}},
        ]

    def test_whose_source_must_wait_is_told_to_its_tasks_and_to_a_replay(self) -> None:
        def build(env: StreamExecutionEnvironment) -> None:
            aligned = ASCENDING.with_watermark_alignment("group", Duration.of_millis(50))
            for _ in range(2):
                env.from_source(NumberSequenceSource(1, 100), aligned, "n").print()

        kept = {"1/0": {"own": 100}, "3/0": {"own": 900}}
        c = coordinator(
            build, settings=Settings(max_records=10), feedback=lambda: CoordinatorFeedback(kept=kept, time=500)
        )
        first = c.next(c.initial())
        assert c.plan(c.initial(), first)[0].paused == frozenset()
        second = json.loads(json.dumps(c.next(first)))
        assert second["paused"] == ["3"]
        assert [share.paused for share in c.plan(first, second)] == [frozenset({3})] * 2


@pytest.fixture
def given_folders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that sources are started with."""
    given: list[str] = []
    monkeypatch.setattr(IndexEnumerator, "start", lambda self, directory: given.append(directory), raising=False)
    return given


@pytest.mark.parametrize("uid", ["/etc/firesteel", "../../victim", "..", "a/b", "numbers"])
def test_a_sources_files_are_inside_the_jobs_folder_whatever_its_uid(uid: str, given_folders: list[str]) -> None:
    coordinator(lambda env: env.from_source(NumberSequenceSource(1, 9), NONE, "n").uid(uid).print()).start()
    assert [os.path.dirname(os.path.abspath(folder)) for folder in given_folders] == ["/nonexistent"]


def test_two_sources_never_share_a_folder(given_folders: list[str]) -> None:
    uids = ["Clicks", "clicks", "click s", "click/s", "集計一", "集計二"]

    def build(env: Any) -> None:
        for uid in uids:
            env.from_source(NumberSequenceSource(1, 9), NONE, "n").uid(uid).print()

    coordinator(build).start()
    assert len({folder.casefold() for folder in given_folders}) == len(uids)


@pytest.mark.parametrize(("uid", "moves"), [("Clicks", True), ("..", False), ("clicks", False)])
def test_files_of_a_source_are_found_under_the_name_of_an_earlier_version(
    uid: str, moves: bool, given_folders: list[str], tmp_path: Path
) -> None:
    sources = tmp_path / "sources"
    (sources / "Clicks").mkdir(parents=True)
    (sources / "Clicks" / "log").write_text("what was received")
    build = coordinator(lambda env: env.from_source(NumberSequenceSource(1, 9), NONE, "n").uid(uid).print())
    build._directory = str(sources)
    build.start()
    (folder,) = given_folders
    assert Path(folder).parent == sources
    assert (Path(folder) / "log").exists() is moves
    assert (sources / "Clicks").exists() is not moves


def test_when_event_time_moves_within_a_batch_is_logged_with_it() -> None:
    ascending = WatermarkStrategy.for_monotonous_timestamps()
    planned = coordinator(lambda env: env.from_source(NumberSequenceSource(0, 9999), ascending, "n").print())
    start = planned.initial()
    end = json.loads(json.dumps(planned.next(start)))
    (step,) = end["steps"].values()
    assert step == FIRST_BATCH // 2 // STEPS + 1
    # As it was decided, whatever would be decided now.
    assert {tuple(share.steps.values()) for share in planned.plan(start, {**end, "steps": {"1": 7}})} == {(7,)}


def test_without_event_time_there_are_no_steps() -> None:
    planned = coordinator(lambda env: env.from_source(NumberSequenceSource(0, 9999), NONE, "n").print())
    assert "steps" not in planned.next(planned.initial())
