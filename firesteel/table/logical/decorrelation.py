"""Queries that refer to the query around them: what ties them to it is pulled out of them.

``SELECT ... FROM u WHERE u.k = t.k`` inside a query over t becomes ``SELECT ..., k FROM u`` and the condition ``k =
t.k``, which a join can check. An aggregate gets the columns of the condition as further keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from firesteel.table.logical.expressions import Call, Expression, InputRef, OuterRef, columns_of, parts_of, rewrite
from firesteel.table.logical.first_rows import first_rows
from firesteel.table.logical.joins import all_of, conjuncts, factored, joined
from firesteel.table.logical.plan import (
    Aggregate,
    Correlate,
    Filter,
    Join,
    Plan,
    Project,
    RowNumber,
    Sort,
    unique_names,
)
from firesteel.table.types.data_types import BooleanType, DataType

__all__ = ["CorrelationError", "Pulled", "equalities", "is_correlated", "map_outer", "pulled"]


_BOOLEAN = BooleanType()


class CorrelationError(Exception):
    """A query that cannot be freed from the one around it. The resolver adds the place."""


@dataclass(frozen=True)
class Pulled:
    """A query on its own, and conditions over its columns and those of the query around (:class:`OuterRef`). Columns
    that only the conditions need stand behind those of the query."""

    plan: Plan
    conditions: tuple[Expression, ...] = ()


def _is_outer(expression: Expression) -> bool:
    return any(isinstance(part, OuterRef) for part in parts_of(expression))


def _expressions(value: Any) -> Iterator[Expression]:
    """All expressions of a plan, or of one of its fields."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
    elif isinstance(value, Plan):
        for each in fields(value):
            yield from _expressions(getattr(value, each.name))


def is_correlated(plan: Plan) -> bool:
    return any(map(_is_outer, _expressions(plan)))


def map_outer(plan: Plan, place: Callable[[int], int]) -> Plan:
    """The query with other places for the columns of the query around."""
    if not is_correlated(plan):
        return plan

    def moved(part: Expression) -> Expression | None:
        return OuterRef(place(part.index), part.type) if isinstance(part, OuterRef) else None

    def mapped(value: Any) -> Any:
        if isinstance(value, Expression):
            return rewrite(value, moved)
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(map(mapped, value))
        if isinstance(value, Plan):
            return replace(value, **{each.name: mapped(getattr(value, each.name)) for each in fields(value)})
        return value

    found: Plan = mapped(plan)
    return found


def pulled(plan: Plan) -> Pulled:
    """The query without references to the one around it."""
    if not is_correlated(plan):
        return Pulled(plan)
    if isinstance(plan, Filter):
        return _of_filter(plan)
    if isinstance(plan, Project):
        return _of_project(plan)
    if isinstance(plan, Aggregate):
        return _of_aggregate(plan)
    if isinstance(plan, Join) and plan.kind == "INNER":
        return _of_join(plan)
    if isinstance(plan, Join) and plan.kind in ("SEMI", "ANTI", "LEFT") and not is_correlated(plan.right):
        return _of_left_side(plan)
    if isinstance(plan, Join) and plan.kind == "RIGHT" and not is_correlated(plan.left):
        return _of_right_side(plan)
    if isinstance(plan, Correlate) and not _is_outer(plan.call):
        return _of_correlate(plan)
    if isinstance(plan, RowNumber):
        return _of_row_number(plan)
    if isinstance(plan, Sort) and plan.limit is not None:
        return pulled(first_rows(plan))
    raise CorrelationError(f"a reference to the query around inside {type(plan).__name__}")


def _of_filter(plan: Filter) -> Pulled:
    below = pulled(plan.input)
    parts = factored(plan.condition)
    own = [part for part in parts if not _is_outer(part)]
    tied = [part for part in parts if _is_outer(part)]
    condition = all_of(own)
    result = Filter(below.plan, condition) if condition is not None else below.plan
    return Pulled(result, (*below.conditions, *tied))


def _of_project(plan: Project) -> Pulled:
    if any(map(_is_outer, plan.expressions)):
        raise CorrelationError("a column of the query around outside of WHERE")
    below = pulled(plan.input)
    expressions, conditions = _with_needed(below, list(plan.expressions))
    added = len(expressions) - len(plan.expressions)
    names = unique_names([*plan.names, *(f"$c{index}" for index in range(added))])
    return Pulled(Project(below.plan, tuple(expressions), names), conditions)


def _with_needed(below: Pulled, expressions: list[Expression]) -> tuple[list[Expression], tuple[Expression, ...]]:
    """Expressions with the columns that the conditions need behind them, and the conditions over these."""
    place: dict[int, int] = {}
    for index in dict.fromkeys(index for each in below.conditions for index in columns_of(each)):
        column = InputRef(index, below.plan.types[index])
        if column not in expressions:
            expressions.append(column)
        place[index] = expressions.index(column)

    def moved(part: Expression) -> Expression | None:
        return InputRef(place[part.index], part.type) if isinstance(part, InputRef) else None

    return expressions, tuple(rewrite(each, moved) for each in below.conditions)


def equalities(conditions: tuple[Expression, ...]) -> list[tuple[Expression, Expression]]:
    """Of conditions that are equalities all: what the query has, and what the query around has."""
    found = []
    for each in conditions:
        pair = _equality(each)
        if pair is None:
            raise CorrelationError("a comparison with the query around that is not an equality, below an aggregate")
        found.append(pair)
    return found


def _equality(condition: Expression) -> tuple[Expression, Expression] | None:
    if isinstance(condition, Call) and condition.function == "=":
        for own, other in (condition.args, condition.args[::-1]):
            if not _is_outer(own) and _is_outer(other) and not list(columns_of(other)):
                return own, other
    return None


def _of_aggregate(plan: Aggregate) -> Pulled:
    below = pulled(plan.input)
    pairs = equalities(below.conditions)
    source, places = _with_columns(below.plan, [own for own, _ in pairs])
    added = [place for place in dict.fromkeys(places) if place not in plan.keys]
    keys = (*plan.keys, *added)
    width = len(plan.keys)
    key_names = [*plan.names[:width], *(f"$k{at}" for at in range(len(added)))]
    groups = Aggregate(source, keys, plan.calls, unique_names([*key_names, *plan.names[width:]]))
    # The new keys belong behind everything else.
    refs = groups.refs()
    order = [*refs[:width], *refs[len(keys) :], *refs[width : len(keys)]]
    result = Project(groups, tuple(order), unique_names([groups.names[each.index] for each in order]))
    conditions = []
    for (own, other), place in zip(pairs, places, strict=True):
        at = order.index(refs[keys.index(place)])
        conditions.append(Call("=", (InputRef(at, own.type), other), _equal_type(own, other)))
    return Pulled(result, tuple(conditions))


def _equal_type(own: Expression, other: Expression) -> DataType:
    from_both = own.type.is_nullable or other.type.is_nullable
    return _BOOLEAN.with_nullability(from_both)


def _of_join(plan: Join) -> Pulled:
    left, right = pulled(plan.left), pulled(plan.right)
    width, grown = len(plan.left.names), len(left.plan.names)
    parts = conjuncts(plan.condition)

    def moved(part: Expression) -> Expression | None:
        if isinstance(part, InputRef) and part.index >= width:
            return InputRef(part.index - width + grown, part.type)
        return None

    def of_right(part: Expression) -> Expression | None:
        return InputRef(part.index + grown, part.type) if isinstance(part, InputRef) else None

    keys = [
        Call(
            "IS NOT DISTINCT FROM" if plan.null_equal and plan.null_equal[at] else "=",
            (InputRef(one, plan.left.types[one]), InputRef(other + grown, plan.right.types[other])),
            _BOOLEAN,
        )
        for at, (one, other) in enumerate(zip(plan.left_keys, plan.right_keys, strict=True))
    ]
    own = [rewrite(part, moved) for part in parts if not _is_outer(part)]
    tied = [rewrite(part, moved) for part in parts if _is_outer(part)]
    whole = joined(left.plan, right.plan, "INNER", all_of([*keys, *own]))
    conditions = [*left.conditions, *(rewrite(each, of_right) for each in right.conditions), *tied]
    # The columns of the query first, then those that were added to either side.
    refs = whole.refs()
    added_left = refs[width:grown]
    first_right = refs[grown : grown + len(plan.right.names)]
    order = [*refs[:width], *first_right, *added_left, *refs[grown + len(plan.right.names) :]]
    if order == refs:
        return Pulled(whole, tuple(conditions))
    return _reordered(whole, order, tuple(conditions))


def _of_left_side(plan: Join) -> Pulled:
    """A join whose rows are those of its left side, each of them there or not, or with others beside it."""
    if plan.condition is not None and _is_outer(plan.condition):
        raise CorrelationError("a reference to the query two levels around")
    left = pulled(plan.left)
    width, grown = len(plan.left.names), len(left.plan.names)

    def moved(part: Expression) -> Expression | None:
        if isinstance(part, InputRef) and part.index >= width:
            return InputRef(part.index - width + grown, part.type)
        return None

    condition = rewrite(plan.condition, moved) if plan.condition is not None else None
    names = left.plan.names if plan.kind != "LEFT" else unique_names([*left.plan.names, *plan.right.names])
    whole = replace(plan, left=left.plan, condition=condition, column_names=names)
    if plan.kind != "LEFT" or grown == width:
        return Pulled(whole, left.conditions)
    refs = whole.refs()
    return _reordered(whole, [*refs[:width], *refs[grown:], *refs[width:grown]], left.conditions)


def _of_right_side(plan: Join) -> Pulled:
    """As the left side of the same join the other way round."""
    width, other = len(plan.left.names), len(plan.right.names)

    def moved(part: Expression) -> Expression | None:
        if not isinstance(part, InputRef):
            return None
        return InputRef(part.index - width if part.index >= width else part.index + other, part.type)

    turned = replace(
        plan,
        left=plan.right,
        right=plan.left,
        kind="LEFT",
        left_keys=plan.right_keys,
        right_keys=plan.left_keys,
        condition=rewrite(plan.condition, moved) if plan.condition is not None else None,
        column_names=unique_names([*plan.right.names, *plan.left.names]),
        state_ttl=plan.state_ttl[::-1],
    )
    found = _of_left_side(turned)
    refs = found.plan.refs()
    return _reordered(
        found.plan, [*refs[other : width + other], *refs[:other], *refs[width + other :]], found.conditions
    )


def _of_correlate(plan: Correlate) -> Pulled:
    """The rows that are made of each row: columns that tie the row to the query around go along."""
    below = pulled(plan.input)
    needed = dict.fromkeys(index for each in below.conditions for index in columns_of(each))
    added = [index for index in needed if index not in plan.kept]
    kept = (*plan.kept, *added)
    width, first = len(plan.names), len(plan.kept)
    names = [*plan.names[:first], *(f"$c{at}" for at in range(len(added))), *plan.names[first:]]
    whole = replace(plan, input=below.plan, kept=kept, column_names=unique_names(names))

    def moved(part: Expression) -> Expression | None:
        return InputRef(kept.index(part.index), part.type) if isinstance(part, InputRef) else None

    refs = whole.refs()
    order = [*refs[:first], *refs[len(kept) :], *refs[first : len(kept)]]
    assert len(order) == width + len(added)
    return _reordered(whole, order, tuple(rewrite(each, moved) for each in below.conditions))


def _of_row_number(plan: RowNumber) -> Pulled:
    """Places among the rows for each row of the query around: what ties them to it are further keys."""
    below = pulled(plan.input)
    pairs = equalities(below.conditions)
    source, places = _with_columns(below.plan, [own for own, _ in pairs])
    partition = tuple(dict.fromkeys((*plan.partition, *places)))
    numbered = RowNumber(source, partition, plan.order, plan.number_name)
    refs, width = numbered.refs(), len(plan.input.names)
    conditions = tuple(
        Call("=", (refs[place], other), _equal_type(own, other))
        for (own, other), place in zip(pairs, places, strict=True)
    )
    return _reordered(numbered, [*refs[:width], refs[-1], *refs[width:-1]], conditions)


def _with_columns(plan: Plan, expressions: list[Expression]) -> tuple[Plan, list[int]]:
    """The relation with columns for expressions behind its own, and where these are."""
    columns: list[Expression] = list(plan.refs())
    columns += [each for each in dict.fromkeys(expressions) if each not in columns]
    places = [columns.index(each) for each in expressions]
    added = len(columns) - len(plan.names)
    if not added:
        return plan, places
    return Project(plan, tuple(columns), unique_names([*plan.names, *(f"$k{at}" for at in range(added))])), places


def _reordered(plan: Plan, order: list[InputRef], conditions: tuple[Expression, ...]) -> Pulled:
    """The columns in another order, and conditions over them."""
    place = {each.index: at for at, each in enumerate(order)}

    def moved(part: Expression) -> Expression | None:
        return InputRef(place[part.index], part.type) if isinstance(part, InputRef) else None

    names = unique_names([plan.names[each.index] for each in order])
    return Pulled(Project(plan, tuple(order), names), tuple(rewrite(each, moved) for each in conditions))
