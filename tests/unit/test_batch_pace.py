"""How large batches are, how fast they follow one another, and how long the coordinator waits for input."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from coordinatorkit import NONE, coordinator, numbers

from firesteel.common import Configuration
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.batch_sizer import BACKLOG_FROM, FIRST_BATCH, LARGEST_BATCH, OVERHEADS, BatchSizer
from firesteel.engine.coordinator import CoordinatorFeedback
from firesteel.engine.processing_time import ProcessingClock
from firesteel.engine.settings import Settings


class TestSizes:
    def test_it_grows_towards_the_target(self) -> None:
        sizer = BatchSizer(target_ms=1000)
        assert sizer.limit == FIRST_BATCH
        sizer.observe(FIRST_BATCH, 100)
        assert sizer.limit == 10 * FIRST_BATCH

    def test_it_shrinks_slowly_and_never_below_the_first(self) -> None:
        sizer = BatchSizer(target_ms=1000)
        sizer.limit = 100 * FIRST_BATCH
        sizer.observe(sizer.limit, 1_000_000)
        assert sizer.limit == 25 * FIRST_BATCH
        for _ in range(10):
            sizer.observe(sizer.limit, 1_000_000)
        assert sizer.limit == FIRST_BATCH

    def test_it_is_bounded(self) -> None:
        sizer = BatchSizer(target_ms=1000)
        for _ in range(10):
            sizer.observe(sizer.limit, 0)
        assert sizer.limit == LARGEST_BATCH

    def test_a_batch_that_was_not_full_says_nothing(self) -> None:
        sizer = BatchSizer(target_ms=1000)
        sizer.observe(10, 1_000_000)
        assert sizer.limit == FIRST_BATCH

    def test_a_backlog_makes_batches_longer_until_it_is_gone(self) -> None:
        sizer = BatchSizer(target_ms=1000, backlog_ms=4000)
        sizer.limit = 100 * FIRST_BATCH
        for _ in range(BACKLOG_FROM - 1):
            sizer.observe(sizer.limit, 1000)
        assert sizer.limit == 100 * FIRST_BATCH
        sizer.observe(sizer.limit, 1000)
        assert sizer.limit == 400 * FIRST_BATCH
        sizer.observe(sizer.limit, 4000)
        assert sizer.limit == 400 * FIRST_BATCH
        for _ in range(2):
            sizer.observe(10, 500)
            assert sizer.limit == 100 * FIRST_BATCH
        sizer.observe(sizer.limit, 1000)
        assert sizer.limit == 100 * FIRST_BATCH

    @pytest.mark.parametrize("overhead", [100, 400, 1000, 3000])
    def test_batches_of_a_backlog_are_not_mostly_overhead(self, overhead: int) -> None:
        """An interval of checkpoints of a second, and a batch that costs so much beyond a microsecond per record."""
        sizer = BatchSizer(target_ms=1000, backlog_ms=1000, longest_ms=4000)
        for _ in range(100):
            records = sizer.limit
            duration = overhead + records / 1000
            sizer.observe(records, duration)
        assert duration == pytest.approx(min(max(1000, OVERHEADS * (overhead + FIRST_BATCH / 1000)), 4000), rel=0.01)
        # When it is over, records wait no longer than before.
        sizer.observe(10, overhead)
        assert sizer.limit <= max(FIRST_BATCH, records)

    @pytest.mark.parametrize(
        ("target", "full", "limit"), [(0, 1, 1), (0, BACKLOG_FROM, 4), (2000, 1, 2), (2000, BACKLOG_FROM, 2)]
    )
    def test_a_job_without_end_has_two_targets_unless_one_is_given(self, target: int, full: int, limit: int) -> None:
        endless = DataGeneratorSource(lambda n: n)
        sizer = coordinator(
            lambda env: env.from_source(endless, NONE, "n").print(), 1, Settings(target_ms=target)
        )._sizer
        for _ in range(full):
            sizer.limit = FIRST_BATCH
            sizer.observe(FIRST_BATCH, 1000)
        assert sizer.limit == limit * FIRST_BATCH

    @pytest.mark.parametrize("timeout", [10, 100, 400])
    @pytest.mark.parametrize("overhead", [50, 500])
    @pytest.mark.parametrize("record", [0.001, 3.0])
    def test_a_buffer_timeout_is_what_records_add_to_a_batch(self, timeout: int, overhead: int, record: float) -> None:
        """Whatever a batch costs beyond its records, and however slow these are."""
        sizer = coordinator(trickle, 1, Settings(buffer_timeout_ms=timeout))._sizer
        for _ in range(20):
            # Now and then a batch is not full: there is no backlog.
            sizer.observe(0, overhead)
            sizer.observe(sizer.limit, overhead + sizer.limit * record)
        assert sizer.limit * record == pytest.approx(timeout, abs=2 * record + 1)

    def test_a_backlog_counts_more_than_a_buffer_timeout(self) -> None:
        sizer = coordinator(trickle, 1, Settings(buffer_timeout_ms=100))._sizer
        sizer.observe(0, 50)
        sizer.observe(sizer.limit, 50 + sizer.limit * 0.5)
        alone = sizer.limit
        assert alone * 0.5 == pytest.approx(100, abs=2)
        for _ in range(20):
            sizer.observe(sizer.limit, 50 + sizer.limit * 0.5)
        assert sizer.limit * 0.5 == pytest.approx(4000, rel=0.05)
        sizer.observe(0, 50)
        assert sizer.limit == pytest.approx(alone, abs=1)

    def test_without_a_buffer_timeout_only_throughput_counts(self) -> None:
        sizer = coordinator(trickle, 1, Settings(buffer_timeout_ms=-1))._sizer
        sizer.observe(FIRST_BATCH, 1000)
        assert sizer.limit == 4 * FIRST_BATCH
        explicit = coordinator(trickle, 1, Settings(buffer_timeout_ms=10, target_ms=2000))._sizer
        assert explicit.limit == FIRST_BATCH
        explicit.observe(FIRST_BATCH, 1000)
        assert explicit.limit == 2 * FIRST_BATCH, "who says how long a batch takes has said it"

    def test_a_fixed_size_stays(self) -> None:
        sizer = BatchSizer(target_ms=1000, fixed=7)
        sizer.observe(7, 1)
        assert sizer.limit == 7


class TestRate:
    def test_so_many_a_second_and_no_burst_at_the_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [50.0]
        monkeypatch.setattr("firesteel.connectors.sequence.time.monotonic", lambda: now[0])
        source = IndexEnumerator(None, 10)
        # A restart at a late position has no more allowance than a first start.
        assert source.latest(1000, 10**6) == 1000
        now[0] += 0.25
        assert source.latest(1000, 10**6) == 1002
        now[0] += 0.25
        assert source.latest(1002, 10**6) == 1005
        now[0] += 1
        assert source.latest(1005, 4) == 1009
        assert source.latest(1009, 10**6) == 1015

    def test_less_than_one_a_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        monkeypatch.setattr("firesteel.connectors.sequence.time.monotonic", lambda: now[0])
        source = IndexEnumerator(None, 0.5)
        reached = []
        position = 0
        for _ in range(9):
            position = source.latest(position, 100)
            reached.append(position)
            now[0] += 0.5
        assert reached == [0, 0, 0, 0, 1, 1, 1, 1, 2]


def trickle(env: Any) -> Any:
    source = DataGeneratorSource(lambda index: index, records_per_second=1000)
    return env.from_source(source, NONE, "n").print()


def starts(settings: Settings, build: Any = trickle, seconds: float = 0.5) -> int:
    """How many batches begin in some time, if each takes a millisecond. The time is simulated."""
    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    with pytest.MonkeyPatch.context() as patch:
        for module in ("firesteel.engine.coordinator", "firesteel.connectors.sequence"):
            patch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: now[0], sleep=wait))
        c = coordinator(build, 1, settings)
        offset, count = c.initial(), 0
        while now[0] < seconds and not offset["last"]:
            reached = c.next(offset)
            count += reached is not offset
            offset = reached
            wait(0.001)
    return count


def test_results_do_not_wait_for_the_interval_of_checkpoints() -> None:
    """A batch begins as soon as there is input, as if there were no interval."""
    rare = Configuration.from_dict(
        {"execution.checkpointing.interval": "1 min", "execution.checkpointing.min-pause": "1 min"}
    )
    assert starts(Settings.of(rare)) == starts(Settings()) > 10
    assert starts(replace(Settings.of(rare), max_records=10), numbers(95)) == 10, "input that ends"


class TestPatience:
    """How long ``next`` looks before it says that there is nothing. The time is simulated."""

    @pytest.fixture
    def slept(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        slept: list[float] = []
        simulated = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
        for module in ("firesteel.engine.coordinator", "firesteel.connectors.sequence"):
            monkeypatch.setattr(f"{module}.time", simulated)
        return slept

    @staticmethod
    def rare(env: Any) -> None:
        env.from_source(DataGeneratorSource(lambda n: n, records_per_second=2), NONE, "n").print()

    def test_it_is_over_when_there_is_something(self, slept: list[float]) -> None:
        c = coordinator(self.rare, 1, patience=100.0)
        first = c.next(c.initial())
        assert c.next(first)["batch"] == 2
        assert sum(slept) == pytest.approx(0.5, abs=0.05)

    def test_it_ends_where_there_is_nothing(self, slept: list[float]) -> None:
        c = coordinator(self.rare, 1, patience=0.2)
        first = c.next(c.initial())
        assert c.next(first) is first
        assert sum(slept) == pytest.approx(0.2, abs=0.05)

    def test_the_longer_nothing_comes_the_rarer_are_its_looks(self, slept: list[float]) -> None:
        never = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
        c = coordinator(lambda env: env.from_source(never, NONE, "n").print(), 1, patience=6.0)
        first = c.next(c.initial())
        assert c.next(first) is first
        assert sum(slept) == pytest.approx(6, abs=0.1)
        assert slept[0] == slept[100] == 0.005
        assert c.next(first) is first
        assert sum(slept) == pytest.approx(66, abs=0.5), "and the rarer does Spark hear of it"
        assert c.next(first) is first
        assert slept[-1] == 0.1
        assert len(slept) < 2500, "a look every twenty milliseconds would be 6,300"

    def test_a_timer_that_comes_due_ends_it(self, slept: list[float]) -> None:
        clock = ProcessingClock(lambda: int(1000 + sum(slept) * 1000), lambda: sum(slept))
        c = coordinator(self.rare, 1, patience=100.0, wake_at=lambda: 1300, clock=clock)
        first = c.next(c.initial())
        assert c.next(first)["time"] == pytest.approx(1300, abs=25)

    def test_a_timer_of_an_idle_job_is_not_late(self, slept: list[float]) -> None:
        never = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
        clock = ProcessingClock(lambda: int(1000 + sum(slept) * 1000), lambda: sum(slept))
        build = lambda env: env.from_source(never, NONE, "n").print()  # noqa: E731
        c = coordinator(build, 1, patience=100.0, wake_at=lambda: 91_047, clock=clock)
        first = c.next(c.initial())
        assert c.next(first)["time"] == pytest.approx(91_047, abs=2)

    @pytest.mark.parametrize("instruction", ["hold", "drain", "leave"])
    def test_an_instruction_ends_it(self, slept: list[float], instruction: str) -> None:
        feedback = lambda: CoordinatorFeedback(**({instruction: True} if sum(slept) > 0.1 else {}))  # noqa: E731
        c = coordinator(self.rare, 1, patience=100.0, feedback=feedback)
        first = c.next(c.initial())
        reached = c.next(first)
        assert sum(slept) < 0.2
        assert reached["last"] if instruction == "drain" else reached is first


def test_an_interval_of_batches_makes_them_fewer() -> None:
    assert starts(Settings(interval_ms=200)) == 1 + 3
    assert starts(Settings(interval_ms=3_600_000)) == 1 + 1, "the first records do not wait behind the empty batch"


@pytest.mark.parametrize(
    ("interval", "target", "bounded", "unbounded"),
    [(0, 0, 4000, 4000), (60_000, 0, 4000, 4000), (2500, 0, 2500, 2500), (10, 0, 1000, 1000), (10, 3000, 3000, 3000)],
)
def test_the_interval_of_checkpoints_bounds_how_long_a_batch_takes(
    interval: int, target: int, bounded: int, unbounded: int
) -> None:
    """Of a backlog: full batches, several in a row."""
    settings = Settings(checkpoint_interval_ms=interval, target_ms=target)
    for build, wanted in ((numbers(10**9), bounded), (trickle, unbounded)):
        sizer = coordinator(build, settings=settings)._sizer
        for _ in range(30):
            # A record takes 0.02 ms.
            sizer.observe(sizer.limit, sizer.limit * 0.02)
        assert sizer.limit * 0.02 == pytest.approx(wanted, rel=0.01)
