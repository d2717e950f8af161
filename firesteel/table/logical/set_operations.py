"""UNION, INTERSECT and EXCEPT, with what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.table.functions.binding import bind, cast_to
from firesteel.table.logical.expressions import AggregateCall, Call, Expression, InputRef, Literal
from firesteel.table.logical.joins import all_of, joined
from firesteel.table.logical.plan import Aggregate, Filter, Plan, Project, Replicate, UnionAll, unique_names
from firesteel.table.types.data_types import BigIntType, BooleanType, DataType, NullType
from firesteel.table.types.derivation import common_type

__all__ = ["SET_OPERATIONS", "distinct", "fitted_branches"]

_COUNT = BigIntType(is_nullable=False)
_TRUE = Literal(True, BooleanType(is_nullable=False))
_NULL = Literal(None, BooleanType())


def fitted_branches(branches: Sequence[Plan]) -> list[Plan]:
    """Plans with one common type for each column, and the names of the first. ValueError if there is none."""
    first, *others = branches
    for other in others:
        if len(other.names) != len(first.names):
            raise ValueError(f"{len(first.names)} columns and {len(other.names)} columns do not go together.")
    kinds = []
    for index, name in enumerate(first.names):
        common = common_type([branch.types[index] for branch in branches])
        if common is None:
            shown = " and ".join(str(branch.types[index]) for branch in branches)
            raise ValueError(f"column {name} has no common type: {shown}. Cast one of them.")
        kinds.append(common)
    return [_fitted(branch, kinds, first.names) for branch in branches]


def _fitted(plan: Plan, kinds: Sequence[DataType], names: tuple[str, ...]) -> Plan:
    if list(plan.types) == list(kinds) and plan.names == names:
        return plan
    expressions = [
        cast_to(column, kind) if not isinstance(kind, NullType) else column
        for column, kind in zip(plan.refs(), kinds, strict=True)
    ]
    # A branch without NULLs takes the type of the whole.
    typed = [_typed(each, kind) for each, kind in zip(expressions, kinds, strict=True)]
    return Project(plan, tuple(typed), names)


def _typed(column: Expression, kind: DataType) -> Expression:
    """A column, as it is or cast, with another nullability."""
    if isinstance(column, InputRef):
        return InputRef(column.index, kind)
    return Call(column.function, column.args, kind) if isinstance(column, Call) else column


def distinct(plan: Plan) -> Plan:
    """Every row once."""
    return Aggregate(plan, tuple(range(len(plan.names))), (), plan.names)


def _union(left: Plan, right: Plan, all: bool) -> Plan:
    flat: list[Plan] = []
    for branch in fitted_branches([left, right]):
        flat += branch.branches if isinstance(branch, UnionAll) else (branch,)
    result = UnionAll(tuple(flat))
    return result if all else distinct(result)


def _intersect(left: Plan, right: Plan, all: bool) -> Plan:
    """Rows that both have: as often as the one that has fewer of them, or once."""
    if not all:
        return distinct(_matched(left, right, "SEMI"))
    first, second = fitted_branches([left, right])
    both = UnionAll((_marked(first, (_TRUE, _NULL)), _marked(second, (_NULL, _TRUE))))
    width = len(first.names)
    calls = tuple(AggregateCall("COUNT", (width + at,), _COUNT) for at in (0, 1))
    groups = Aggregate(both, tuple(range(width)), calls, unique_names([*first.names, "$left", "$right"]))
    one, other = groups.refs()[width:]
    there = [bind(">=", [count, Literal(1, _COUNT)]) for count in (one, other)]
    counted = Filter(groups, bind("AND", there))
    fewer = Call("CASE", (bind(">", [one, other]), other, one), _COUNT)
    return _repeated(counted, fewer, first.names)


def _except(left: Plan, right: Plan, all: bool) -> Plan:
    """Rows of the first without those of the second: as often as it has more of them, or once."""
    if not all:
        return distinct(_matched(left, right, "ANTI"))
    first, second = fitted_branches([left, right])
    branches = (_marked(first, (Literal(1, _COUNT),)), _marked(second, (Literal(-1, _COUNT),)))
    width = len(first.names)
    total = AggregateCall("SUM", (width,), _COUNT)
    groups = Aggregate(UnionAll(branches), tuple(range(width)), (total,), unique_names([*first.names, "$more"]))
    more = groups.refs()[width]
    return _repeated(Filter(groups, bind(">", [more, Literal(0, _COUNT)])), more, first.names)


def _matched(left: Plan, right: Plan, kind: str) -> Plan:
    """Rows of the first that are, or are not, among those of the second. NULLs are equal here."""
    first, second = fitted_branches([left, right])
    width = len(first.names)
    others = [InputRef(column.index + width, column.type) for column in second.refs()]
    pairs = zip(first.refs(), others, strict=True)
    return joined(first, second, kind, all_of([bind("IS NOT DISTINCT FROM", [one, other]) for one, other in pairs]))


def _marked(plan: Plan, marks: Sequence[Expression]) -> Plan:
    names = unique_names([*plan.names, *(f"$m{at}" for at in range(len(marks)))])
    # Both branches have one type, also where only one of them has NULLs.
    typed = [Literal(each.value, each.type.nullable()) if isinstance(each, Literal) else each for each in marks]
    return Project(plan, (*plan.refs(), *typed), names)


def _repeated(plan: Plan, times: Expression, names: tuple[str, ...]) -> Plan:
    refs = plan.refs()[: len(names)]
    return Replicate(Project(plan, (*refs, times), unique_names([*names, "$times"])))


SET_OPERATIONS: dict[str, Callable[[Plan, Plan, bool], Plan]] = {
    "UNION": _union,
    "INTERSECT": _intersect,
    "EXCEPT": _except,
    "MINUS": _except,
}
"""By name: of two relations, and whether rows that come several times stay several."""
