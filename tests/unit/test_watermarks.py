"""The valve: one watermark per channel, the slowest decides, idle ones are left out. And generators."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.durable.headers import ValveHeader
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP, TimestampGenerator, WatermarkValve

A, B, C = (0, 0, 1), (0, 1, 1), (-5, 0, 4)


def valve(*channels: tuple[int, int, int], kept: ValveHeader | None = None) -> WatermarkValve:
    return WatermarkValve(channels, ValveHeader() if kept is None else kept)


def test_the_slowest_channel_decides() -> None:
    v = valve(A, B)
    assert v.advance(A, 100) is None
    assert v.watermark == MIN_TIMESTAMP
    assert v.advance(B, 70) == 70
    assert v.advance(B, 120) == 100
    assert v.advance(A, MAX_WATERMARK) == 120
    assert v.advance(B, MAX_WATERMARK) == MAX_WATERMARK


def test_a_watermark_never_goes_back() -> None:
    v = valve(A)
    assert v.advance(A, 100) == 100
    assert v.advance(A, 50) is None
    assert v.advance(A, None) is None
    assert v.watermark == 100


@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(-100, 100)), max_size=50))
def test_it_is_the_minimum_of_the_maxima(steps: list[tuple[Any, int]]) -> None:
    v = valve(A, B, C)
    levels = dict.fromkeys((A, B, C), MIN_TIMESTAMP)
    for channel, watermark in steps:
        levels[channel] = max(levels[channel], watermark)
        moved = v.advance(channel, watermark)
        assert v.watermark == min(levels.values())
        assert moved is None or moved == v.watermark


def test_an_idle_channel_is_left_out_after_its_timeout() -> None:
    v = valve(A, B)
    v.advance(A, 100)
    v.advance(B, 10)
    assert v.activity(B, 50, now=1000) is None
    assert v.activity(A, None, now=1000) is None
    assert v.activity(B, 50, now=1049) is None
    assert v.activity(B, 50, now=1050) == 100


def test_an_idle_channel_that_wakes_counts_again() -> None:
    v = valve(A, B)
    v.advance(A, 100)
    v.activity(B, 0, now=0)
    assert v.watermark == 100
    v.activity(B, None, now=1)
    v.advance(A, 200)
    assert v.activity(A, None, now=1) is None
    assert v.watermark == 100
    assert v.advance(B, 150) == 150


def test_when_all_are_idle_the_furthest_decides() -> None:
    """As in Flink: nobody is left who could be late."""
    v = valve(A, B)
    v.advance(A, 100)
    v.advance(B, 10)
    assert v.activity(A, 0, now=0) is None
    assert not v.idle(0)
    assert v.activity(B, 0, now=0) == 100
    assert v.idle(0)


def test_channels_that_were_never_heard_do_not_move_time_by_being_idle() -> None:
    v = valve(A, B)
    assert v.activity(A, 0, now=0) is None
    assert v.activity(B, 0, now=0) is None
    assert v.watermark == MIN_TIMESTAMP


def test_it_goes_on_from_what_was_kept() -> None:
    kept = ValveHeader()
    v = valve(A, B, kept=kept)
    v.advance(A, 100)
    v.advance(B, 70)
    v.activity(B, 10, now=5)
    later = valve(A, B, kept=copy.deepcopy(kept))
    assert later.watermark == 70
    assert later.activity(B, 10, now=15) == 100


def test_an_operator_of_the_same_task_is_idle_only_in_the_batch_that_says_so() -> None:
    kept = ValveHeader()
    v = valve(A, C, kept=kept)
    v.advance(A, 100)
    v.advance(C, 10)
    assert v.activity(C, 0, now=0) == 100
    later = valve(A, C, kept=copy.deepcopy(kept))
    later.advance(A, 200)
    assert later.activity(A, None, now=1) is None
    assert later.activity(C, 0, now=1) == 200


def test_no_channels_no_watermark() -> None:
    v = valve()
    assert v.watermark == MIN_TIMESTAMP


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (WatermarkStrategy.for_monotonous_timestamps(), 99),
        (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30)), 69),
        (WatermarkStrategy.no_watermarks(), None),
    ],
)
def test_generators(strategy: WatermarkStrategy, expected: int | None) -> None:
    generator = TimestampGenerator(strategy)
    assert generator.watermark() is None
    generator.observe([])
    assert generator.watermark() is None
    generator.observe([50, 100, 60])
    generator.observe([70])
    assert generator.watermark() == expected
    generator.reset()
    assert generator.watermark() is None


def test_a_watermark_stays_in_range() -> None:
    generator = TimestampGenerator(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(1)))
    generator.observe([MIN_TIMESTAMP + 5])
    assert generator.watermark() == MIN_TIMESTAMP
