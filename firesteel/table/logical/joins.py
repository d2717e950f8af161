"""Joins: which parts of a condition are keys, and which are left to check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.functions.binding import bind
from firesteel.table.functions.evaluation import can_fail, is_deterministic
from firesteel.table.logical.expressions import Call, Expression, InputRef, OuterRef, columns_of, parts_of, rewrite
from firesteel.table.logical.plan import Correlate, Filter, Join, Plan, Project, unique_names

__all__ = ["all_of", "conjuncts", "factored", "joined", "with_condition"]


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The parts of a condition that all have to hold."""
    if condition is None:
        return []
    return list(condition.args) if isinstance(condition, Call) and condition.function == "AND" else [condition]


def factored(condition: Expression | None) -> list[Expression]:
    """The parts of a condition that all have to hold, also those that all branches of an OR have in common: ``a = b AND
    c OR a = b AND d`` is ``a = b AND (c OR d)``."""
    return [each for part in conjuncts(condition) for each in _common_first(part)]


def _common_first(part: Expression) -> list[Expression]:
    branches = [conjuncts(branch) for branch in _disjuncts(part)]
    # What can fail stays behind what it is guarded by.
    common = [each for each in branches[0] if all(each in other for other in branches[1:]) and not can_fail(each)]
    if len(branches) == 1 or not common:
        return [part]
    rests = [all_of([each for each in branch if each not in common]) for branch in branches]
    alternatives = [each for each in rests if each is not None]
    return [*common, Call("OR", tuple(alternatives), part.type)] if len(alternatives) == len(rests) else common


def _disjuncts(part: Expression) -> list[Expression]:
    if not isinstance(part, Call) or part.function != "OR":
        return [part]
    return [each for branch in part.args for each in _disjuncts(branch)]


def joined(left: Plan, right: Plan, kind: str, condition: Expression | None, push_right: bool = True) -> Plan:
    """A join with the columns of both sides. The condition is over them. ``push_right``: whether rows of the right side
    may be left out before the join."""
    parts = factored(condition)
    left, right, parts = _pushed(left, right, parts, kind, push_right)
    width = len(left.names)
    pairs, rest, null_equal = [], [], []
    for part in parts:
        pair = _key_pair(part, width)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
            null_equal.append(isinstance(part, Call) and part.function == "IS NOT DISTINCT FROM")
    left_side, left_keys = _with_keys(left, [first for first, _ in pairs])
    right_side, right_keys = _with_keys(right, [second for _, second in pairs])
    moved = len(left_side.names) - width
    checked = [_moved(part, width, moved) for part in rest]
    filters = kind in ("SEMI", "ANTI")
    whole = Join(
        left_side,
        right_side,
        kind,
        tuple(left_keys),
        tuple(right_keys),
        all_of(checked),
        unique_names([*left_side.names, *(() if filters else right_side.names)]),
        tuple(null_equal) if any(null_equal) else (),
    )
    refs = whole.refs()
    kept = [*refs[:width], *refs[len(left_side.names) : len(left_side.names) + len(right.names)]]
    if len(kept) == len(refs):
        return whole
    return Project(whole, tuple(kept), unique_names([*left.names, *(() if filters else right.names)]))


def with_condition(plan: Plan, condition: Expression) -> Plan:
    """A filter. Over an inner join, as of ``FROM a, b WHERE a.x = b.x``, it becomes a part of the join."""
    if isinstance(plan, Join) and plan.kind == "INNER" and not plan.left_keys and plan.condition is None:
        whole = joined(plan.left, plan.right, "INNER", condition)
        if plan.state_ttl == (None, None):
            return whole
        join = whole.input if isinstance(whole, Project) else whole
        assert isinstance(join, Join)
        kept = replace(join, state_ttl=plan.state_ttl)
        return replace(whole, input=kept) if isinstance(whole, Project) else kept
    if isinstance(plan, Correlate):
        return _below_correlate(plan, condition)
    return Filter(plan, condition)


def _below_correlate(plan: Correlate, condition: Expression) -> Plan:
    """What the rows themselves can be asked is asked before others are made of them."""
    width = len(plan.kept)
    below: list[Expression] = []
    above: list[Expression] = []
    for part in conjuncts(condition):
        used = list(columns_of(part))
        alone = used and max(used) < width and is_deterministic(part)
        (below if alone else above).append(part)
    first, second = all_of(below), all_of(above)
    if first is not None:
        moved = rewrite(
            first, lambda part: InputRef(plan.kept[part.index], part.type) if isinstance(part, InputRef) else None
        )
        plan = replace(plan, input=with_condition(plan.input, moved))
    return plan if second is None else Filter(plan, second)


def _pushed(
    left: Plan, right: Plan, parts: Sequence[Expression], kind: str, push_right: bool
) -> tuple[Plan, Plan, list[Expression]]:
    """What one side alone can check is checked there, unless rows of that side stay without a match."""
    width = len(left.names)
    from_left, from_right = kind in ("INNER", "SEMI", "RIGHT"), kind in ("INNER", "SEMI", "ANTI", "LEFT") and push_right
    of_left, of_right, both = [], [], []
    for part in parts:
        columns = set(columns_of(part))
        if from_left and columns and max(columns) < width:
            of_left.append(part)
        elif from_right and columns and min(columns) >= width:
            of_right.append(_shifted_back(part, width))
        else:
            both.append(part)
    first, second = all_of(of_left), all_of(of_right)
    return (
        with_condition(left, first) if first is not None else left,
        with_condition(right, second) if second is not None else right,
        both,
    )


def _key_pair(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    if not isinstance(part, Call) or part.function not in ("=", "IS NOT DISTINCT FROM"):
        return None
    if any(isinstance(each, OuterRef) for each in parts_of(part)):
        return None
    for first, second in (part.args, part.args[::-1]):
        own, other = list(columns_of(first)), list(columns_of(second))
        if own and other and max(own) < width <= min(other):
            return first, _shifted_back(second, width)
    return None


def _shifted_back(expression: Expression, by: int) -> Expression:
    return rewrite(
        expression, lambda part: InputRef(part.index - by, part.type) if isinstance(part, InputRef) else None
    )


def _moved(expression: Expression, width: int, by: int) -> Expression:
    """Columns of the right side, when the left one has got more."""

    def move(part: Expression) -> Expression | None:
        return InputRef(part.index + by, part.type) if isinstance(part, InputRef) and part.index >= width else None

    return rewrite(expression, move) if by else expression


def _with_keys(plan: Plan, keys: Sequence[Expression]) -> tuple[Plan, list[int]]:
    """The relation with a column for each key that is none yet, and where the keys are."""
    expressions: list[Expression] = list(plan.refs())
    places = []
    for key in keys:
        if isinstance(key, InputRef):
            places.append(key.index)
            continue
        if key not in expressions:
            expressions.append(key)
        places.append(expressions.index(key))
    if len(expressions) == len(plan.names):
        return plan, places
    names = [*plan.names, *(f"$k{index}" for index in range(len(expressions) - len(plan.names)))]
    return Project(plan, tuple(expressions), unique_names(names)), places


def all_of(parts: Sequence[Expression]) -> Expression | None:
    """One condition of several; None if there is none."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else bind("AND", list(parts))
