"""What one state of one operator is, apart from how a store keeps it: its kind, whose it is, and rows.

A row is a *place* (whose it is) and a *content*:

| kind | content of a row |
|---|---|
| value | the value |
| list | (position, element) |
| map | (key of the map, value) |
| timers | the time |
| split, union, raw | the element of an operator's list |
| broadcast | (key of the map, value) |

| scope | place |
|---|---|
| key | the user's key |
| window | (key, token of a window) |
| place | a tuple that begins with the key |
| operator | None: it belongs to no key |

Values of a state with a time to live are pairs (time of last use, value).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from firesteel.common.typeinfo import TypeInformation
from firesteel.durable.headers import StateSchema

__all__ = ["EVENT_TIMERS", "PROCESSING_TIMERS", "Facts", "Rows", "StateChunk", "StateId"]

EVENT_TIMERS = "event-time timers"
PROCESSING_TIMERS = "processing-time timers"
ROWS = 8192
"""Rows that are handed on at once."""

Rows = tuple[list[Any], list[Any]]
"""Places and contents."""


@dataclass(frozen=True)
class StateId:
    """One state of one operator."""

    uid: str
    name: str
    kind: str
    scope: str
    schema: StateSchema
    key_type: TypeInformation | None = None

    def user_keys(self, places: list[Any]) -> list[Any]:
        """The keys that places belong to.

        >>> from firesteel.durable.headers import UNDECLARED
        >>> StateId("w", "sums", "value", "window", UNDECLARED).user_keys([("a", (0, 10))])
        ['a']
        """
        return places if self.scope == "key" else [place[0] for place in places]


class StateChunk(NamedTuple):
    """Rows on their way to a subtask."""

    state: StateId
    places: list[Any]
    contents: list[Any]
    targets: Sequence[int] | None = None
    """The subtasks that get all of it; None where keys decide."""
    instead: bool = False
    """Whether it takes the place of what is there."""


class Facts(NamedTuple):
    """What every subtask of an operator learns when it is restored."""

    uid: str
    watermark: int | None
    layout: str | None
    checkpointed: bool
    """Whether the operator had state of its own besides that of keys."""
