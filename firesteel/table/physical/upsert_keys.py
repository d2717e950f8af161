"""By which columns a query changes its rows, as Flink works it out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import (
    Aggregate,
    Filter,
    Join,
    LookupJoin,
    Plan,
    Project,
    RowNumber,
    Scan,
    Sort,
    TemporalJoin,
)
from firesteel.table.physical.calcs import merged_calc, place_limits
from firesteel.table.physical.upserts import column_of

__all__ = ["upsert_keys"]

Keys = frozenset[frozenset[int]]
"""Sets of columns, each of which no two rows have in common."""

_NONE: Keys = frozenset()
_ALTERNATIVES = 16
"""How many sets are looked at where a query has columns several times."""


def upsert_keys(plan: Plan) -> Keys:
    """All keys of a query's rows that Flink knows of. It does not tell columns apart that a join makes equal."""
    derive = _DERIVED.get(type(plan))
    return _NONE if derive is None else derive(plan)


def _calc(plan: Project | Filter) -> Keys:
    calc = merged_calc(plan)
    keys = upsert_keys(calc.input)
    if isinstance(calc.input, RowNumber):
        limits = place_limits(calc, len(calc.input.names) - 1)
        if limits is not None and (limits.first, limits.last) == (1, 1):
            keys |= {frozenset(calc.input.partition)}
    places: dict[int, list[int]] = {}
    for place, expression in enumerate(calc.expressions):
        column = column_of(expression)
        if column is not None:
            places.setdefault(column, []).append(place)
    return frozenset(found for key in keys for found in _placed(key, places))


def _placed(key: Iterable[int], places: dict[int, list[int]]) -> Iterable[frozenset[int]]:
    choices = itertools.product(*(places.get(column, ()) for column in key))
    return map(frozenset, itertools.islice(choices, _ALTERNATIVES))


def _row_number(plan: RowNumber) -> Keys:
    return upsert_keys(plan.input) | {frozenset((*plan.partition, len(plan.names) - 1))}


def _sort(plan: Sort) -> Keys:
    # Flink loses them where it sorts.
    return _NONE if plan.order else upsert_keys(plan.input)


def _join(plan: Join) -> Keys:
    left = upsert_keys(plan.left)
    if plan.kind in ("SEMI", "ANTI"):
        return left
    width = len(plan.left.names)
    right = upsert_keys(plan.right)
    left_once = any(key <= set(plan.left_keys) for key in left)
    right_once = any(key <= set(plan.right_keys) for key in right)
    moved = frozenset(frozenset(width + at for at in key) for key in right)
    found: Keys = _NONE
    if right_once and plan.kind in ("INNER", "LEFT"):
        found |= left
    if left_once and plan.kind in ("INNER", "RIGHT"):
        found |= moved
    return found | frozenset(one | other for one in left for other in moved)


def _scan(plan: Scan) -> Keys:
    if not isinstance(plan.table, DeclaredTable) or not plan.table.primary_key:
        return _NONE
    names = plan.names
    key = plan.table.primary_key
    return frozenset([frozenset(map(names.index, key))]) if set(key) <= set(names) else _NONE


_DERIVED: dict[type[Plan], Callable[[Any], Keys]] = {
    Project: _calc,
    Filter: _calc,
    Aggregate: lambda plan: frozenset([frozenset(range(len(plan.keys)))]),
    RowNumber: _row_number,
    Sort: _sort,
    Join: _join,
    TemporalJoin: lambda plan: upsert_keys(plan.left),
    LookupJoin: lambda plan: upsert_keys(plan.left),
    Scan: _scan,
}
