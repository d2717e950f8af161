"""Which columns of a relation are the begin and end of windows, and what is done within windows."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.logical.expressions import InputRef
from firesteel.table.logical.plan import Aggregate, Expand, Filter, Join, Plan, Project, RowNumber, WindowTable

__all__ = ["WindowColumns", "is_window_join", "is_windowed", "kept_columns", "window_columns"]


@dataclass(frozen=True)
class WindowColumns:
    """Where the begin, the end and the time of a row's window are. A projection may have a column twice."""

    starts: frozenset[int]
    ends: frozenset[int]
    times: frozenset[int]
    partition: tuple[frozenset[int], ...]
    """Of sessions: where the columns are that have sessions of their own."""
    window: WindowTable
    """The table that gave the windows."""

    def through(self, places: list[int | None]) -> WindowColumns:
        """Behind a step whose columns are those of its input at these places."""

        def moved(columns: frozenset[int]) -> frozenset[int]:
            return frozenset(at for at, place in enumerate(places) if place in columns)

        partition = tuple(map(moved, self.partition))
        return WindowColumns(moved(self.starts), moved(self.ends), moved(self.times), partition, self.window)

    def in_all(self, columns: tuple[int, ...]) -> bool:
        """Whether begin and end are among some columns."""
        return bool(self.starts & set(columns)) and bool(self.ends & set(columns))


def window_columns(plan: Plan) -> WindowColumns | None:
    """The windows that the rows of a relation are in; None if they are in none."""
    if isinstance(plan, WindowTable):
        first = len(plan.input.names)
        partition = tuple(frozenset({key}) for key in plan.partition)
        return WindowColumns(frozenset({first}), frozenset({first + 1}), frozenset({first + 2}), partition, plan)
    if isinstance(plan, Project):
        below = window_columns(plan.input)
        places = [each.index if isinstance(each, InputRef) else None for each in plan.expressions]
        return below.through(places) if below is not None else None
    if isinstance(plan, Filter):
        return window_columns(plan.input)
    if isinstance(plan, Expand):
        below, kept = window_columns(plan.input), kept_columns(plan)
        return below.through([at if at in kept else None for at in range(len(plan.names))]) if below else None
    if isinstance(plan, Aggregate):
        below = window_columns(plan.input)
        return below.through([*plan.keys]) if below is not None and is_windowed(plan) else None
    if isinstance(plan, RowNumber):
        below = window_columns(plan.input)
        return below if below is not None and below.in_all(plan.partition) else None
    if isinstance(plan, Join) and is_window_join(plan):
        return window_columns(plan.right if plan.kind == "RIGHT" else plan.left) if plan.kind != "FULL" else None
    return None


def kept_columns(plan: Expand) -> set[int]:
    """The columns that no grouping set clears."""
    cleared = set(plan.cleared)
    return (set(range(len(plan.input.names))) - cleared) | cleared.intersection(*map(set, plan.sets))


def is_windowed(plan: Aggregate) -> bool:
    """Whether groups are of windows, so that they end. Groups of sessions are those that have sessions of their own."""
    below = window_columns(plan.input)
    if below is None or not below.in_all(plan.keys):
        return False
    if below.window.kind != "SESSION":
        return True
    keys = set(plan.keys) - below.starts - below.ends - below.times
    return all(keys & columns for columns in below.partition) and keys <= frozenset().union(*below.partition)


def is_window_join(plan: Join) -> bool:
    """Whether rows of two tables of the same windows meet in their window."""
    left, right = window_columns(plan.left), window_columns(plan.right)
    if left is None or right is None or _shape(left.window) != _shape(right.window):
        return False
    pairs = list(zip(plan.left_keys, plan.right_keys, strict=True))
    return any(a in left.starts and b in right.starts for a, b in pairs) and any(
        a in left.ends and b in right.ends for a, b in pairs
    )


def _shape(window: WindowTable) -> tuple[object, ...]:
    return window.kind, window.size, window.slide, window.offset, window.input.types[window.time].not_null()
