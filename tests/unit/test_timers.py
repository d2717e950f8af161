"""The timer queue against a plain model: registered, deleted, due, over many batches and through the store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.timers import _MAX_SEGMENTS, TimerQueue

END = 2**63 - 1


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.read += len(keys)
        return super().get_many(keys)


class Timers:
    """A queue over many batches."""

    def __init__(self) -> None:
        self.store = CountingStore()
        self.coarse: set[int] = set()

    def begin(self) -> TimerQueue:
        return TimerQueue(b"t", self.store, self.coarse)

    def end(self, queue: TimerQueue) -> None:
        self.store.write(queue.changes())


TIMES = st.one_of(
    st.integers(0, 5000),
    st.integers(0, 5).map(lambda n: n << 10),
    st.integers(0, 3).map(lambda n: n << 20),
    st.sampled_from([END, END - 1, -1, -5000, -(2**63)]),
)
STEPS = st.one_of(
    st.tuples(st.just("register"), TIMES, st.integers(0, 3)),
    st.tuples(st.just("delete"), TIMES, st.integers(0, 3)),
    st.tuples(st.just("due"), TIMES, st.just(0)),
    st.tuples(st.just("next"), st.just(0), st.just(0)),
    st.tuples(st.just("pending"), st.just(0), st.just(0)),
    st.tuples(st.just("batch"), st.just(0), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_timers_are_a_sorted_set(steps: list[tuple[str, int, int]]) -> None:
    timers = Timers()
    queue = timers.begin()
    model: set[tuple[int, int]] = set()
    for step, time, key in steps:
        match step:
            case "register":
                queue.register(time, key)
                model.add((time, key))
            case "delete":
                queue.delete(time, key)
                model.discard((time, key))
            case "due":
                fired = list(queue.due(time))
                assert [t for t, _ in fired] == sorted(t for t, _ in fired)
                assert sorted(fired) == sorted(entry for entry in model if entry[0] <= time)
                model = {entry for entry in model if entry[0] > time}
            case "next":
                assert queue.next_due() == min((t for t, _ in model), default=None)
            case "pending":
                pending = queue.pending()
                assert [t for t, _ in pending] == sorted(t for t, _ in pending)
                assert sorted(pending) == sorted(model)
            case "batch":
                timers.end(queue)
                queue = timers.begin()
    timers.end(queue)
    queue = timers.begin()
    assert queue.next_due() == min((t for t, _ in model), default=None)
    assert sorted(queue.due(END)) == sorted(model)
    timers.end(queue)
    assert timers.store.content == {}
    assert timers.coarse == set()


def test_timers_of_one_moment_fire_in_the_order_they_were_set() -> None:
    timers = Timers()
    queue = timers.begin()
    queue.register(5, "b")
    timers.end(queue)
    queue = timers.begin()
    queue.register(5, "a")
    queue.register(5, "b")
    assert list(queue.due(5)) == [(5, "b"), (5, "a")]


def test_timers_set_and_deleted_while_others_fire() -> None:
    timers = Timers()
    queue = timers.begin()
    for time in (1000, 2000, 3000, 4000):
        queue.register(time, "k")
    timers.end(queue)
    queue = timers.begin()
    fired = []
    for time, key in queue.due(10_000):
        fired.append(time)
        if time == 1000:
            queue.register(1500, key)
            queue.delete(3000, key)
        if time == 2000:
            queue.register(500, key)
    assert fired == [1000, 1500, 2000, 500, 4000]


def test_a_timer_that_sets_itself_again_fires_again() -> None:
    queue = Timers().begin()
    queue.register(5, "k")
    fired = []
    for time, key in queue.due(5):
        fired.append(time)
        if len(fired) < 3:
            queue.register(time, key)
    assert fired == [5, 5, 5]


def test_deleting_a_timer_of_the_same_moment_that_has_not_fired_yet() -> None:
    queue = Timers().begin()
    for key in "abc":
        queue.register(5, key)
    fired = []
    for _, key in queue.due(5):
        fired.append(key)
        queue.delete(5, "b")
    assert fired == ["a", "c"]


def test_many_batches_that_add_to_one_stretch_are_merged_now_and_then() -> None:
    timers = Timers()
    for number in range(100):
        queue = timers.begin()
        queue.register(500, number)
        timers.end(queue)
        segments = [key for key in timers.store.content if b"\0s" in key]
        assert len(segments) <= _MAX_SEGMENTS + 1
    assert sorted(timers.begin().due(500)) == [(500, number) for number in range(100)]


def test_a_watermark_reads_only_what_is_due() -> None:
    timers = Timers()
    queue = timers.begin()
    for number in range(2000):
        queue.register(number * 1024, "k")
    timers.end(queue)
    timers.store.read = 0
    queue = timers.begin()
    assert list(queue.due(1023)) == [(0, "k")]
    # One coarse page and one segment.
    assert timers.store.read == 2
    timers.end(queue)


def test_registering_costs_what_it_registers() -> None:
    timers = Timers()
    queue = timers.begin()
    for number in range(5000):
        queue.register(10_000_000 + number, number)
    timers.end(queue)
    queue = timers.begin()
    queue.register(10_000_000, "new")
    written = list(queue.changes())
    assert len(written) == 2
    assert sum(len(value or b"") for _, value in written) < 1000


def test_the_next_timer_is_found_behind_thousands_of_deleted_ones() -> None:
    timers = Timers()
    count = 2 * sys.getrecursionlimit()
    for delete in (False, True):
        queue = timers.begin()
        for number in range(count):
            (queue.delete if delete else queue.register)(number * 1024, "k")
        queue.register(10**9, "last")
        timers.end(queue)
    assert timers.begin().next_due() == 10**9


def test_stretches_name_the_keys_to_read() -> None:
    timers = Timers()
    queue = timers.begin()
    for number in range(10):
        queue.register(number, f"key-{number % 4}")
        queue.register(number + 100, "later")
    timers.end(queue)
    queue = timers.begin()
    stretches = list(queue.stretches(50, keys_at_once=3))
    assert [len(keys) for _, keys in stretches] == [3, 3, 3, 1]
    assert [until for until, _ in stretches] == [2, 5, 8, 50]
    assert {key for _, keys in stretches for key in keys} == {f"key-{n}" for n in range(4)}


@pytest.mark.parametrize("limit", [-1, 50])
def test_there_are_no_stretches_where_nothing_is_due(limit: int) -> None:
    queue = Timers().begin()
    queue.register(100, "k")
    assert list(queue.stretches(limit, 10)) == []


def test_two_queues_share_a_store() -> None:
    store, first, second = MemoryStore(), set[int](), set[int]()
    for prefix, coarse, key in ((b"e", first, "event"), (b"p", second, "processing")):
        queue: Any = TimerQueue(prefix, store, coarse)
        queue.register(5, key)
        store.write(queue.changes())
    assert list(TimerQueue(b"e", store, first).due(9)) == [(5, "event")]
    assert list(TimerQueue(b"p", store, second).due(9)) == [(5, "processing")]


def test_deleting_what_is_not_there_leaves_nothing_behind() -> None:
    timers = Timers()
    queue = timers.begin()
    queue.register(500, "a")
    timers.end(queue)
    queue = timers.begin()
    queue.delete(400, "a")
    assert list(queue.due(END)) == [(500, "a")]
    timers.end(queue)
    assert timers.store.content == {}
    assert timers.coarse == set()
