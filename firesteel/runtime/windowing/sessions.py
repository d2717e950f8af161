"""A key's open sessions, whatever assigner, trigger and function they have: one list, in the order of their starts.

A session is [start, end, content]. Sessions of a key never touch (those that would become one), so the list is in the
order of their ends, too, and whatever is looked for is found by bisection. The content is

- what the records were folded into, if the windows have a fold: :data:`PURGED` after a trigger has taken it away;
- else the token under which the elements are: that of the window that its first record opened.

The list is the entry of its key in the table ``session-windows``. Every operator of sessions reads and writes just
this, so that a change of the trigger or the allowed lateness finds what the program before it left.
"""

from __future__ import annotations

import copyreg
from bisect import bisect_left, bisect_right
from enum import Enum
from operator import itemgetter
from typing import Any, Final

from firesteel.datastream.window import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    TimeWindow,
)
from firesteel.durable.names import stored_as
from firesteel.runtime.windowing.contents import Contents, Place
from firesteel.runtime.windowing.folds import Fold
from firesteel.runtime.windowing.merging import NOWHERE, OnMerge

__all__ = ["PURGED", "TABLE", "Session", "SessionContents", "SessionSet", "holding", "near", "of_sessions"]

TABLE = "session-windows"

Session = list[Any]
"""[start, end, content]"""

_START, _END = itemgetter(0), itemgetter(1)


class _Content(Enum):
    """The same object again when it is read from a pickle."""

    PURGED = "purged"


PURGED: Final = _Content.PURGED
"""The content of a session that has none."""


@stored_as("purged")
def _purged() -> _Content:
    return PURGED


def _reduce(content: _Content) -> tuple[Any, ...]:
    return _purged, ()


copyreg.pickle(_Content, _reduce)


def of_sessions(assigner: Any) -> bool:
    """Whether the windows of an assigner are sessions. A class of a user's may merge otherwise."""
    return type(assigner) in (
        EventTimeSessionWindows,
        ProcessingTimeSessionWindows,
        DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows,
    )


def near(sessions: list[Session], start: int, end: int) -> slice:
    """Where the sessions are that a window would become one with; where it belongs, if there are none.

    >>> sessions = [[0, 10, "a"], [20, 30, "b"], [40, 50, "c"]]
    >>> near(sessions, 5, 20), near(sessions, 31, 39)
    (slice(0, 2, None), slice(2, 2, None))
    """
    first = bisect_left(sessions, start, key=_END)
    return slice(first, bisect_right(sessions, end, first, key=_START))


def holding(sessions: list[Session], start: int, end: int) -> int | None:
    """The position of the session that a window is, or has become part of; None if it is over.

    >>> holding([[0, 10, "a"], [20, 30, "b"]], 22, 30), holding([[0, 10, "a"]], 12, 20)
    (1, None)
    """
    at = bisect_right(sessions, start, key=_START) - 1
    return at if at >= 0 and sessions[at][1] >= end else None


class SessionSet:
    """The sessions of one key, as :class:`~.merging.MergingWindows` are the windows of a user's assigner.

    ``inline``: contents are in the sessions themselves, so a session is the place of its contents.
    """

    def __init__(self, sessions: list[Session], inline: bool) -> None:
        self.stored = sessions
        """The state itself. Whoever changes it marks the key as changed."""
        self._inline = inline

    def add(self, window: TimeWindow, on_merge: OnMerge) -> TimeWindow:
        """Adds a window and merges what must be merged. Returns the window that the new one is now part of."""
        sessions, start, end = self.stored, window.start, window.end
        where = near(sessions, start, end)
        old = sessions[where]
        if not old:
            sessions.insert(where.start, [start, end, PURGED if self._inline else (start, end)])
            return window
        stay = old[0]
        result = TimeWindow(min(start, stay[0]), max(end, old[-1][1]))
        if len(old) > 1 or (stay[0], stay[1]) != (result.start, result.end):
            merged = [TimeWindow(one[0], one[1]) for one in old]
            stay[0], stay[1] = result.start, result.end
            del sessions[where.start + 1 : where.stop]
            on_merge(result, merged, self._place(stay), [self._place(one) for one in old[1:]])
        return result

    def place(self, token: Any) -> Any:
        """Where the contents of a window are, or NOWHERE."""
        at = holding(self.stored, *token)
        if at is None or self.stored[at][:2] != [*token]:
            return NOWHERE
        return self._place(self.stored[at])

    def successor(self, token: Any) -> Any:
        """The token of the window that another one has become part of; None if there is none."""
        at = holding(self.stored, *token)
        return None if at is None else tuple(self.stored[at][:2])

    def retire(self, token: Any) -> None:
        at = holding(self.stored, *token)
        if at is not None:
            del self.stored[at]

    def beside(self, token: Any) -> list[Any]:
        """The tokens of the windows that a window would become one with."""
        return [tuple(one[:2]) for one in self.stored[near(self.stored, *token)]]

    def touched(self, token: Any) -> list[Any]:
        """The tokens under which there is state that a record of a new window may need."""
        tokens = self.beside(token)
        return tokens if self._inline else tokens + [self.place(one) for one in tokens]

    def _place(self, session: Session) -> Any:
        return session if self._inline else session[2]


class SessionContents(Contents):
    """Folded values in the sessions themselves: a place is (key, session)."""

    def __init__(self, fold: Any) -> None:
        self._fold = Fold(fold)

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        session = place[1]
        session[2] = self._fold.first(value) if session[2] is PURGED else self._fold.add(session[2], value)

    def get(self, place: Place) -> list[Any] | None:
        folded, result = place[1][2], self._fold.result
        return None if folded is PURGED else [folded if result is None else result(folded)]

    def clear(self, place: Place) -> None:
        place[1][2] = PURGED

    def merge(self, target: Place, sources: Any) -> None:
        stay = target[1]
        for _, session in sources:
            if session[2] is not PURGED:
                stay[2] = session[2] if stay[2] is PURGED else self._fold.merge(stay[2], session[2])
