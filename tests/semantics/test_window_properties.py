"""Windows and joins against plain models: any order of records and watermarks, any cut into micro-batches."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import Sessions, Windows, co_group, interval_join, window_join
from windowkit import NO_TIME, Case, Event, Stage, Step, play

TRIES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

END: Event = ("end", None, None, NO_TIME)


@st.composite
def scripts(draw: st.DrawFn) -> list[Event]:
    """Records of a few keys at any times, and watermarks that rise between them."""
    events: list[Event] = []
    watermark = draw(st.integers(-20, 10))
    # Small ones hit the edges of windows and intervals, where a millisecond decides.
    spread = draw(st.sampled_from([3, 10, 30]))
    for number in range(draw(st.integers(0, 25))):
        if draw(st.integers(0, 3)) == 0:
            watermark += draw(st.integers(1, spread))
            events.append(("watermark", None, watermark, NO_TIME))
        else:
            # Around the watermark: early, in time, late, and too late.
            time = watermark + draw(st.integers(-spread, spread))
            events.append(("record", draw(st.sampled_from("abc")), number, time))
    return events


@st.composite
def scripts_in_time(draw: st.DrawFn) -> list[Event]:
    """The same without records that are late."""
    records = [event for event in draw(scripts()) if event[0] == "record"]
    events: list[Event] = []
    for number, record in enumerate(records):
        events.append(record)
        rest = [time for _, _, _, time in records[number + 1 :]]
        if rest and draw(st.booleans()):
            events.append(("watermark", None, min(rest) - 1, NO_TIME))
    return events


LAYOUTS = st.fixed_dictionaries(
    {
        "parallelism": st.sampled_from([1, 3]),
        "backend": st.sampled_from(["hashmap", "rocksdb"]),
        "batch": st.sampled_from([1, 2, 5, 100]),
    }
)

FUNCTIONS = st.sampled_from(["reduce(Chain(), Show())", "aggregate(Collect(), Show())", "process(Show())"])
TRIGGERS = st.sampled_from(["", ".trigger(General())"])


def played(stream: str, events: list[Event], layout: dict[str, Any]) -> tuple[Stage, list[str]]:
    case = Case("generated", stream, [Step(event, []) for event in [*events, END]])
    stage, emitted = play(case, **layout)
    return stage, [line for lines in emitted for line in lines]


def by_key(lines: list[str]) -> dict[str, list[str]]:
    """Each key's results in their order. Nothing is promised of the order of keys."""
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line[0], []).append(line)
    return found


def check(model: Windows, stream: str, events: list[Event], layout: dict[str, Any]) -> None:
    expected = list(model.play(events))
    stage, came = played(stream, events, layout)
    assert by_key(came) == by_key(expected)
    assert stage.dropped == model.dropped
    assert stage.left() == []


@TRIES
@given(scripts(), LAYOUTS, FUNCTIONS, TRIGGERS, st.sampled_from([0, 7, 40]), st.sampled_from([0, 3, -4]))
def test_tumbling(events: Any, layout: Any, function: str, trigger: str, lateness: int, offset: int) -> None:
    windows = f"TumblingEventTimeWindows.of(ms(10), ms({offset}))"
    stream = f"keyed.window({windows}){trigger}.allowed_lateness({lateness}).{function}"
    check(Windows(10, 10, offset, lateness), stream, events, layout)


@TRIES
@given(
    scripts(),
    LAYOUTS,
    FUNCTIONS,
    TRIGGERS,
    st.sampled_from([0, 7, 40]),
    st.sampled_from([(20, 5, 0), (20, 10, 3), (15, 10, -2), (5, 8, 0), (10, 10, 0)]),
)
def test_sliding(events: Any, layout: Any, function: str, trigger: str, lateness: int, sizes: Any) -> None:
    size, slide, offset = sizes
    windows = f"SlidingEventTimeWindows.of(ms({size}), ms({slide}), ms({offset}))"
    stream = f"keyed.window({windows}){trigger}.allowed_lateness({lateness}).{function}"
    check(Windows(size, slide, offset, lateness), stream, events, layout)


@TRIES
@given(scripts(), LAYOUTS, FUNCTIONS, TRIGGERS, st.sampled_from([0, 0, 7, 40]), st.sampled_from([1, 6, 15]))
def test_sessions(events: Any, layout: Any, function: str, trigger: str, lateness: int, gap: int) -> None:
    windows = f"EventTimeSessionWindows.with_gap(ms({gap}))"
    stream = f"keyed.window({windows}){trigger}.allowed_lateness({lateness}).{function}"
    check(Sessions(gap, lateness), stream, events, layout)


def _by_moment(lines: list[str]) -> list[list[str]]:
    """The lines of each moment, without their order."""
    return [sorted(together) for _, together in itertools.groupby(lines, lambda line: line.rpartition(" at ")[2])]


@TRIES
@given(
    scripts(),
    LAYOUTS,
    st.sampled_from(["reduce(Chain(), Show())", "aggregate(Collect())", "reduce(Chain(), Forgetful())"]),
    st.sampled_from(
        [
            "TumblingEventTimeWindows.of(ms(10), ms(3))",
            "SlidingEventTimeWindows.of(ms(20), ms(5))",
            "EventTimeSessionWindows.with_gap(ms(8))",
        ]
    ),
    st.sampled_from(["", ".allowed_lateness(9)"]),
)
def test_short_ways_give_what_the_general_one_gives(
    events: Any, layout: Any, function: str, windows: str, lateness: str
) -> None:
    """With the same timestamps, and in the same order across all keys of a subtask too. Only of sessions that end at
    the same moment either may come first: a timer that was moved takes its new place when it fires."""
    short, general = (
        played(f"keyed.window({windows}){trigger}{lateness}.{function}.process(Stamped())", events, layout)
        for trigger in ("", ".trigger(General())")
    )
    ordered = _by_moment if "Session" in windows else list
    assert ordered(short[1]) == ordered(general[1])
    assert short[0].dropped == general[0].dropped
    if "Forgetful" not in function or not lateness:
        # A late firing makes that function count a window twice, and clear() takes it off once.
        assert short[0].left() == general[0].left() == []


INTERVALS = st.sampled_from([(-5, 5), (0, 20), (-30, 0), (0, 0), (3, 9), (-20, -4)])


def an_interval_join(lower: int, upper: int) -> str:
    left, right = "evens(stream).key_by(key)", "odds(stream).key_by(key)"
    return f"{left}.interval_join({right}).between(ms({lower}), ms({upper})).process(Pairs())"


@TRIES
@given(scripts(), LAYOUTS, INTERVALS)
def test_interval_join(events: Any, layout: Any, interval: Any) -> None:
    # Of two inputs a micro-batch brings one after the other: which records are late depends on the batch.
    layout["batch"] = 1
    expected, dropped = interval_join(events, *interval)
    stage, came = played(an_interval_join(*interval), events, layout)
    assert sorted(came) == sorted(expected)
    assert stage.dropped == dropped
    assert stage.left() == []


@TRIES
@given(scripts_in_time(), LAYOUTS, INTERVALS)
def test_interval_join_without_late_records(events: Any, layout: Any, interval: Any) -> None:
    expected, _ = interval_join([event for event in events if event[0] == "record"], *interval)
    stage, came = played(an_interval_join(*interval), events, layout)
    assert sorted(came) == sorted(expected)
    assert stage.dropped == 0
    assert stage.left() == []


@TRIES
@given(scripts_in_time(), LAYOUTS, st.sampled_from([(10, 10), (20, 5)]))
@pytest.mark.parametrize("kind", ["join", "co_group"])
def test_window_joins(kind: str, events: Any, layout: Any, sizes: Any) -> None:
    size, slide = sizes
    windows = f"SlidingEventTimeWindows.of(ms({size}), ms({slide}))"
    two = f"evens(stream).{kind}(odds(stream)).where(key).equal_to(key)"
    function = "pair" if kind == "join" else "groups"
    expected = (window_join if kind == "join" else co_group)(events, size, slide)
    stage, came = played(f"{two}.window({windows}).apply({function})", events, layout)
    assert sorted(came) == sorted(expected)
    assert stage.left() == []
