"""Operators that take a short way write what the general one does: how fast a path runs decides nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from test_changed_windows import BACKENDS, SESSIONS, TUMBLING, events_of, run
from windowkit import Case, Stage, Step

from firesteel.runtime.operators.time_windows import AlignedWindowOperator, SessionWindowOperator
from firesteel.runtime.operators.windows import WindowOperator
from firesteel.runtime.snapshots.reading import StoredSubtask

SLIDING = "keyed.window(SlidingEventTimeWindows.of(ms(10), ms(5)))"
EVENTS = events_of("a=1 at 3\nb=5 at 9\na=3 at 8\nc=1 at 4\nwatermark 9\na=3 at 12\nb=1 at 21\na=1 at 30\nwatermark 60")
TIMERS = "event-time timers"

Content = dict[str, dict[Any, Any]]


def content(stage: Stage) -> Content:
    """By state its rows: what a savepoint would have."""
    found: Content = {}
    for store in stage.stores.values():
        stored = StoredSubtask(store)
        for uid in stored.headers:
            for state, chunks in stored.states(uid):
                rows = found.setdefault(f"{state.scope} {state.name} ({state.kind})", {})
                for places, contents in chunks:
                    for place, one in zip(places, contents, strict=True):
                        rows.setdefault(place, []).append(one)
    return {name: rows for name, rows in found.items() if rows}


def stages(windows: str, function: str, backend: str) -> tuple[Stage, Stage]:
    steps = [Step(event, []) for event in EVENTS]
    short, general = (
        Stage(Case("short", f"{windows}{trigger}.{function}", steps), 1, backend)
        for trigger in ("", ".trigger(General())")
    )
    return short, general


def operator_of(stage: Stage) -> type[Any]:
    (kind,) = {type(one) for one in stage._task(1, 0)._operators.values() if isinstance(one, WindowOperator)}
    return kind


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", ["reduce(Add(), Show())", "aggregate(Sum(), Show())"], ids=["reduce", "aggregate"])
@pytest.mark.parametrize("windows", [TUMBLING, SLIDING, SESSIONS], ids=["tumbling", "sliding", "sessions"])
def test_what_is_stored_is_the_same(windows: str, function: str, backend: str) -> None:
    short, general = stages(windows, function, backend)
    assert operator_of(short) is (SessionWindowOperator if windows is SESSIONS else AlignedWindowOperator)
    assert operator_of(general) is WindowOperator
    for at in range(len(EVENTS)):
        assert sorted(run(short, at, at + 1)) == sorted(run(general, at, at + 1))
        mine, theirs = content(short), content(general)
        if windows is SESSIONS:
            # The timer of a session's end may be earlier: it is moved when it fires, not with each record.
            assert_timers_lead_to_sessions(mine)
            assert_timers_lead_to_sessions(theirs)
        assert mine == theirs


def assert_timers_lead_to_sessions(found: Content) -> None:
    timers = found.pop(f"window {TIMERS} (timers)", {})
    sessions = found.get("key session-windows (value)", {})
    for key, ((*open_ones,),) in sessions.items():
        for start, end, _ in open_ones:
            leading = [
                time
                for (owner, (first, last)), times in timers.items()
                if owner == key and start <= first and last <= end
                for time in times
            ]
            assert leading
            assert min(leading) <= end - 1
