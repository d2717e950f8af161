"""Evictors: what they leave of a list of elements, and on which side of the window function."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from firesteel.common import Duration, Time
from firesteel.datastream.window import CountEvictor, DeltaEvictor, Evictor, TimeEvictor, TimestampedValue
from firesteel.errors import ProgramError

NO_TIME = -(2**63)
CONTEXT: Any = None


def distance(old: int, new: int) -> float:
    return abs(new - old)


def left(evictor: Evictor[Any, Any], elements: list[TimestampedValue], after: bool = False) -> list[Any]:
    """The values that are left in the very list that was given."""
    evict = evictor.evict_after if after else evictor.evict_before
    evict(elements, len(elements), None, CONTEXT)
    return [element.get_value() for element in elements]


def at(*times: int) -> list[TimestampedValue]:
    return [TimestampedValue(time, time) for time in times]


class TestCount:
    def test_keeps_the_latest(self) -> None:
        assert left(CountEvictor.of(2), at(5, 3, 9, 1)) == [9, 1]

    @pytest.mark.parametrize("count", [4, 5])
    def test_leaves_what_is_not_too_much(self, count: int) -> None:
        assert left(CountEvictor.of(count), at(5, 3, 9, 1)) == [5, 3, 9, 1]

    def test_a_count_must_be_above_zero(self) -> None:
        with pytest.raises(ProgramError, match="The count of CountEvictor must be an int of at least 1, got 0"):
            CountEvictor.of(0)


class TestTime:
    def test_keeps_what_is_near_the_newest_wherever_it_stands(self) -> None:
        assert left(TimeEvictor.of(Time.milliseconds(5)), at(3, 10, 5, 6, 1)) == [10, 6]

    def test_takes_a_duration(self) -> None:
        assert left(TimeEvictor.of(Duration.of_millis(5)), at(3, 10)) == [10]

    def test_does_nothing_without_timestamps(self) -> None:
        elements = [TimestampedValue("a"), TimestampedValue("b", NO_TIME)]
        assert left(TimeEvictor.of(Time.milliseconds(5)), elements) == ["a", "b"]

    def test_arguments(self) -> None:
        with pytest.raises(ProgramError, match=r"TimeEvictor.of\(time\) takes a Time"):
            TimeEvictor.of(5)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="cannot be negative, got -1 ms"):
            TimeEvictor.of(Time.milliseconds(-1))


class TestDelta:
    def test_keeps_what_is_near_the_last(self) -> None:
        assert left(DeltaEvictor.of(5, distance), at(1, 9, 20, 10, 0, 5)) == [1, 9, 5]

    def test_arguments(self) -> None:
        with pytest.raises(ProgramError, match=r"DeltaEvictor.of\(delta_function\) takes a DeltaFunction"):
            DeltaEvictor.of(5, None)  # type: ignore[arg-type]


EVERY = [
    (CountEvictor.of(1), CountEvictor.of(1, True)),
    (TimeEvictor.of(Time.milliseconds(1)), TimeEvictor.of(Time.milliseconds(1), do_evict_after=True)),
    (DeltaEvictor.of(1, distance), DeltaEvictor.of(1, distance, True)),
]


@pytest.mark.parametrize(("before", "after"), EVERY)
class TestAll:
    def test_each_works_on_one_side(self, before: Evictor[Any, Any], after: Evictor[Any, Any]) -> None:
        assert left(before, at(1, 5)) == [5]
        assert left(before, at(1, 5), after=True) == [1, 5]
        assert left(after, at(1, 5)) == [1, 5]
        assert left(after, at(1, 5), after=True) == [5]

    def test_an_empty_window_stays_empty(self, before: Evictor[Any, Any], after: Evictor[Any, Any]) -> None:
        assert left(before, []) == left(after, [], after=True) == []

    def test_they_travel(self, before: Evictor[Any, Any], after: Evictor[Any, Any]) -> None:
        assert left(pickle.loads(pickle.dumps(after)), at(1, 5), after=True) == [5]
        assert "do_evict_after=True" in repr(after)
        assert "do_evict_after" not in repr(before)


def test_timestamped_values() -> None:
    value = TimestampedValue("a", 5)
    assert (value.get_value(), value.get_timestamp(), value.has_timestamp()) == ("a", 5, True)
    assert not TimestampedValue("a").has_timestamp()
    assert value == pickle.loads(pickle.dumps(value)) != TimestampedValue("a", 6)
    assert len({value, TimestampedValue("a", 5)}) == 1
