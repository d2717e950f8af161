"""What the state of a window operator looks like in the store, and how that of another layout is taken over.

The layout follows from what the windows are (their family) and what they hold, from nothing else: not from the trigger,
not from the allowed lateness, not from the operator that was fast enough. It is kept by the header of the store and by
savepoints. State of another layout is converted where that can be done, and refused elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.window import MergingWindowAssigner
from firesteel.durable.headers import OperatorHeader
from firesteel.graph.specs import WindowSpec
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MAX_WATERMARK
from firesteel.runtime.windowing.contents import STATE
from firesteel.runtime.windowing.sessions import PURGED, TABLE, of_sessions

__all__ = ["WindowLayout", "convert"]

_SETS = "merging-windows"
_FORMER_WINDOWS = "windows"
"""What all layouts but the next one were called once."""
_FORMER_SESSIONS = "sessions"
"""What that of sessions with a fold, no allowed lateness and the default trigger was called, and the table of their
lists. They were as now, but had timers of keys."""


@dataclass(frozen=True)
class WindowLayout:
    """How one operator keeps its windows."""

    family: str
    contents: str

    @staticmethod
    def of(spec: WindowSpec) -> WindowLayout:
        merging = isinstance(spec.assigner, MergingWindowAssigner)
        family = "sessions" if of_sessions(spec.assigner) else "merging windows" if merging else "windows"
        if spec.evictor is not None:
            return WindowLayout(family, "elements with times")
        if spec.fold is None:
            return WindowLayout(family, "elements")
        return WindowLayout(family, "accumulators" if isinstance(spec.fold, AggregateFunction) else "reduced values")

    @property
    def name(self) -> str:
        return f"{self.family} of {self.contents}"

    @property
    def sessions(self) -> bool:
        return self.family == "sessions"

    @property
    def folded(self) -> bool:
        return not self.contents.startswith("elements")

    @property
    def inline(self) -> bool:
        """Whether contents are in the sessions themselves."""
        return self.sessions and self.folded

    @property
    def table(self) -> str:
        """Where windows that merge are kept, key by key."""
        return TABLE if self.sessions else _SETS

    def takes_over(self, saved: str, header: OperatorHeader) -> bool:
        """Whether state that was saved under another name can be converted. The former names say less: what they leave
        open is seen from what is there, as far as it can be."""
        if saved == _FORMER_SESSIONS:
            return self.inline
        if saved != _FORMER_WINDOWS:
            return False
        sets, contents = header.tables.states.get(_SETS), header.windows.states.get(STATE)
        if contents is None or contents.schema is None:
            return True
        merged = sets is not None and "entries" in sets.shapes
        return merged == (self.family != "windows") and (contents.schema.kind == "value") == self.folded


def convert(
    saved: str, layout: WindowLayout, backend: KeyedStateBackend, windows: KeyedStateBackend, event: TimerQueue
) -> None:
    """Brings what an operator has found in its store into its layout, once."""
    if saved == _FORMER_SESSIONS:
        _timers_of_windows(backend, event)
    elif layout.sessions:
        _sessions_of_sets(layout, backend, windows)


def _timers_of_windows(backend: KeyedStateBackend, event: TimerQueue) -> None:
    for _ in event.take(MAX_WATERMARK):
        pass
    table, former = backend.table(TABLE), backend.table(_FORMER_SESSIONS)
    for keys in former.every_key():
        backend.prepare(keys)
        for key in keys:
            sessions = former.get(key)
            for start, end, _ in sessions:
                event.register(end - 1, (key, (start, end)))
            table.put(key, sessions)
            former.put(key, None)


def _sessions_of_sets(layout: WindowLayout, backend: KeyedStateBackend, windows: KeyedStateBackend) -> None:
    sets, sessions = backend.table(_SETS), backend.table(TABLE)
    contents = windows.table(STATE)
    for keys in sets.every_key():
        backend.prepare(keys)
        places = {key: sorted(sets.get(key).items()) for key in keys}
        if layout.inline:
            windows.prepare([(key, place) for key, found in places.items() for _, place in found])
        for key, found in places.items():
            if layout.inline:
                boxes = [contents.get((key, place)) for _, place in found]
                kept = [
                    [start, end, PURGED if box is None else box[0]]
                    for ((start, end), _), box in zip(found, boxes, strict=True)
                ]
                for _, place in found:
                    contents.put((key, place), None)
            else:
                kept = [[start, end, place] for (start, end), place in found]
            sessions.put(key, kept)
            sets.put(key, None)
