"""Windows and joins whose program was changed between two batches: the state that the one left is read by the other.

Both programs run as tasks over the same stores, as a job does that is started again with its checkpoint folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import Sessions, Windows
from test_window_properties import END, FUNCTIONS, TRIES, TRIGGERS, an_interval_join, by_key, scripts, scripts_in_time
from windowkit import Case, Event, Stage, Step, case_of

from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.state.store import MemoryStore

SESSIONS = "keyed.window(EventTimeSessionWindows.with_gap(ms(10)))"
TUMBLING = "keyed.window(TumblingEventTimeWindows.of(ms(10)))"
SHOWN = "reduce(Add(), Show())"
BACKENDS = ["hashmap", "rocksdb"]


def events_of(script: str) -> list[Event]:
    return [step.event for step in case_of({"case": "changed", "stream": "", "script": script}).steps]


def changed(
    before: str,
    after: str,
    events: list[Event],
    at: int,
    backend: str = "hashmap",
    parallelism: int = 1,
    batch: int = 1,
) -> tuple[Stage, list[str]]:
    """Runs ``at`` events with one program, the rest with another one over the same stores."""
    steps = [Step(event, []) for event in events]
    old, new = (Stage(Case("changed", stream, steps), parallelism, backend) for stream in (before, after))
    found = run(old, 0, at, batch)
    new.stores, new.position = old.stores, old.position
    found += run(new, at, len(events), batch)
    assert new.position["last"]
    new.dropped += old.dropped
    return new, found


def run(stage: Stage, first: int, end: int, batch: int = 1) -> list[str]:
    lines = []
    for start in range(first, end, batch):
        lines += stage.batch(min(batch, end - start))
    return lines


# What was lost or wrong once


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [SHOWN, "aggregate(Sum(), Show())"], ids=["reduce", "aggregate"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ".allowed_lateness(5)"),
        (".allowed_lateness(5)", ""),
        ("", ".trigger(General())"),
        (".trigger(General())", ""),
    ],
    ids=["lateness added", "lateness removed", "trigger changed", "trigger removed"],
)
def test_an_open_session_goes_on(before: str, after: str, function: str, backend: str) -> None:
    events = events_of("a=1 at 3\na=3 at 8\nb=5 at 9\nc=1 at 4\nc=2 at 6\na=3 at 12\nwatermark 40")
    stage, lines = changed(f"{SESSIONS}{before}.{function}", f"{SESSIONS}{after}.{function}", events, 5, backend)
    # Nothing comes for the last one after the change: the timer that it has is that of its first record.
    assert sorted(lines) == ["a[3,22): 7", "b[9,19): 5", "c[4,16): 3"]
    assert stage.left() == []


@pytest.mark.parametrize("after", [".allowed_lateness(5)", ".trigger(General())"], ids=["lateness", "trigger"])
def test_a_session_whose_timer_has_moved_goes_on(after: str) -> None:
    events = events_of("a=1 at 3\na=3 at 8\nwatermark 13\na=3 at 10\nwatermark 40")
    stage, lines = changed(f"{SESSIONS}.{SHOWN}", f"{SESSIONS}{after}.{SHOWN}", events, 4)
    # Its timer was that of its first record, then the one of its second; the third has none.
    assert lines == ["a[3,20): 7"]
    assert stage.left() == []


@pytest.mark.parametrize("windows", [TUMBLING, SESSIONS], ids=["tumbling", "sessions"])
def test_what_has_fired_does_not_fire_again_without_lateness(windows: str) -> None:
    events = events_of("a=1 at 3\nwatermark 20\nwatermark 60")
    stage, lines = changed(f"{windows}.allowed_lateness(30).{SHOWN}", f"{windows}.{SHOWN}", events, 2)
    assert lines == [f"a[{3 if windows is SESSIONS else 0},{13 if windows is SESSIONS else 10}): 1"]
    assert stage.left() == []


@pytest.mark.parametrize("windows", [TUMBLING, SESSIONS], ids=["tumbling", "sessions"])
@pytest.mark.parametrize("function", [SHOWN, "process(Show())"], ids=["fold", "elements"])
def test_windows_end_with_the_lateness_that_they_have_now(windows: str, function: str) -> None:
    events = events_of("a=1 at 3\nwatermark 15\nwatermark 30\na=2 at 4\nwatermark 60")
    for now, then, at in ((0, 30, 1), (2, 30, 1), (30, 2, 2), (30, 0, 2), (30, 5, 1), (5, 30, 2)):
        streams = [f"{windows}.allowed_lateness({lateness}).{function}" for lateness in (now, then)]
        stage, lines = changed(streams[0], streams[1], events, at)
        assert len(lines) == (2 if then == 30 else 1), (now, then, at, lines)
        assert (stage.left(), stage.dropped) == ([], 0 if then == 30 else 1), (now, then)


def test_a_purged_session_goes_on() -> None:
    purging = f"{SESSIONS}.trigger(PurgingTrigger.of(CountTrigger.of(2))).{SHOWN}"
    events = events_of("a=1 at 3\na=2 at 8\na=4 at 9\nwatermark 40")
    stage, lines = changed(purging, f"{SESSIONS}.{SHOWN}", events, 2)
    assert lines == ["a[3,18): 3", "a[3,19): 4"]
    assert stage.left() == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bounds", [((-5, 5), (-40, 40)), ((-40, 40), (-5, 5)), ((-4, 4), (0, 8))])
def test_an_interval_join_with_other_bounds(bounds: Any, backend: str) -> None:
    """What the records of the first program meet later is decided by the bounds of the second one."""
    before, after = (an_interval_join(*one) for one in bounds)
    events = events_of("a=2 at 20\na=4 at 21\nwatermark 22\na=1 at 27\na=3 at 50\nwatermark 99")
    stage, lines = changed(before, after, events, 3, backend)
    assert sorted(lines) == sorted(changed(after, after, events, 3, backend)[1])
    assert stage.left() == []


# Whatever comes


@TRIES
@given(
    scripts(),
    FUNCTIONS,
    TRIGGERS,
    TRIGGERS,
    st.sampled_from(BACKENDS),
    st.integers(0, 25),
    st.sampled_from([1, 3, 100]),
)
def test_sessions_of_any_operator(
    events: Any, function: str, before: str, after: str, backend: str, at: int, batch: int
) -> None:
    streams = [f"{SESSIONS}{trigger}.{function}" for trigger in (before, after)]
    model = Sessions(10, 0)
    expected = by_key(list(model.play(events)))
    stage, lines = changed(streams[0], streams[1], [*events, END], min(at, len(events)), backend, 3, batch)
    assert by_key(lines) == expected
    assert stage.dropped == model.dropped
    assert stage.left() == []


@TRIES
@given(scripts_in_time(), FUNCTIONS, st.sampled_from([(0, 20), (20, 0), (5, 9)]), st.integers(0, 25))
def test_another_lateness_where_nothing_is_late(events: Any, function: str, lateness: Any, at: int) -> None:
    streams = [f"{TUMBLING}.allowed_lateness({one}).{function}" for one in lateness]
    stage, lines = changed(streams[0], streams[1], [*events, END], min(at, len(events)))
    assert by_key(lines) == by_key(list(Windows(10, 10, 0, 0).play(events)))
    assert stage.left() == []


# What cannot be taken over


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{TUMBLING}.{SHOWN}", f"{SESSIONS}.{SHOWN}"),
        (f"{SESSIONS}.process(Show())", f"{TUMBLING}.process(Show())"),
        (f"{SESSIONS}.{SHOWN}", f"{SESSIONS}.aggregate(Sum(), Show())"),
        (f"{TUMBLING}.{SHOWN}", f"{TUMBLING}.process(Show())"),
        (f"{TUMBLING}.process(Show())", f"{TUMBLING}.evictor(CountEvictor.of(1)).process(Show())"),
        ("keyed.window(Bursts()).process(Show())", f"{SESSIONS}.process(Show())"),
    ],
)
def test_state_of_another_kind_is_refused(before: str, after: str) -> None:
    with pytest.raises(OperatorFailure, match=r"was saved as '.* of .*but the operator keeps '.* of .*another uid"):
        changed(before, after, events_of("a=1 at 3\na=2 at 4\nwatermark 99"), 1)


# What former versions wrote

FORMER = json.loads((Path(__file__).parent / "former_layouts.json").read_text())


@pytest.mark.parametrize("entry", FORMER, ids=[entry["name"] for entry in FORMER])
def test_a_checkpoint_of_a_former_layout(entry: dict[str, Any]) -> None:
    """Recorded when sessions had two layouts, and layouts did not say what windows hold: see ``record``."""
    events = events_of(entry["script"])
    stage = Stage(Case("former", entry["stream"], [Step(event, []) for event in events]), 1, entry["backend"])
    for place, cells in entry["stores"].items():
        index, subtask = map(int, place.split("/"))
        stage.stores[index, subtask] = MemoryStore({bytes.fromhex(k): bytes.fromhex(v) for k, v in cells.items()})
    stage.position = entry["position"]
    lines = run(stage, entry["at"], len(events))
    assert sorted(lines) == sorted(entry["lines"])
    assert stage.left() == []


def record(name: str, stream: str, script: str, at: int, backend: str) -> dict[str, Any]:
    """How ``former_layouts.json`` was made: the state after some events, and what the rest gave."""
    events = events_of(script)
    stage = Stage(Case(name, stream, [Step(event, []) for event in events]), 1, backend)
    run(stage, 0, at)
    stores = {
        f"{index}/{subtask}": {key.hex(): cell.hex() for key, cell in store.content.items()}
        for (index, subtask), store in stage.stores.items()
    }
    position = json.loads(json.dumps(stage.position))
    return {
        "name": f"{name}, {backend}",
        "stream": stream,
        "script": script,
        "at": at,
        "backend": backend,
        "position": position,
        "stores": stores,
        "lines": run(stage, at, len(events)),
    }
