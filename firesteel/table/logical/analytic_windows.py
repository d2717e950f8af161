"""OVER in batch mode: all rows of a partition are there, so a frame may have rows behind the current one, every
function may have a window of its own, and functions that need the size of the partition can be computed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan import SortOrder, WithCalls

__all__ = ["RANKING", "AnalyticWindow", "Frame"]

RANKING = frozenset(["ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD"])
"""Functions of a row's place in its partition. They have no frame."""

Offset: TypeAlias = int | float | Decimal | None


@dataclass(frozen=True)
class Frame:
    """The rows around a row that a function looks at. Offsets are relative to the current row: rows, or (RANGE) what is
    added to the value that rows are ordered by, milliseconds if that is a time. None is the end of the partition.

    >>> print(Frame(True, -2, 0))
    ROWS BETWEEN 2 PRECEDING AND CURRENT ROW
    """

    rows: bool
    start: Offset
    end: Offset

    def __str__(self) -> str:
        bounds = f"{_bound(self.start, 'PRECEDING')} AND {_bound(self.end, 'FOLLOWING')}"
        return f"{'ROWS' if self.rows else 'RANGE'} BETWEEN {bounds}"


def _bound(offset: Offset, unbounded: str) -> str:
    if offset is None:
        return f"UNBOUNDED {unbounded}"
    if not offset:
        return "CURRENT ROW"
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"


@dataclass(frozen=True)
class AnalyticWindow(WithCalls):
    """The columns of the input, and functions of the rows around each row of its partition."""

    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]
    calls: tuple[AggregateCall, ...]
    frames: tuple[Frame, ...]
    """The frame of each call."""
