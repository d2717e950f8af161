"""Queries inside expressions become joins: a condition of WHERE a semi or anti join, everything else a left join whose
right side has at most one row for each row of the left one."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.functions.aggregates import aggregate_type
from firesteel.table.functions.binding import FunctionError, bind
from firesteel.table.logical.decorrelation import CorrelationError, Pulled, equalities, is_correlated, map_outer, pulled
from firesteel.table.logical.expressions import (
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Literal,
    OuterRef,
    Subquery,
    parts_of,
    rewrite,
)
from firesteel.table.logical.joins import all_of, conjuncts, joined, with_condition
from firesteel.table.logical.plan import Aggregate, Filter, Plan, Project, RowNumber, Values, unique_names
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.sql.source import Span
from firesteel.table.types.data_types import BigIntType, BooleanType

__all__ = ["expanded", "filtered", "has_query", "joined_to_each", "map_outer"]

_COUNT = BigIntType(is_nullable=False)
_TRUE = Literal(True, BooleanType(is_nullable=False))


def has_query(expression: Expression) -> bool:
    """Whether a query stands in it."""
    return any(isinstance(part, Subquery) for part in parts_of(expression))


def filtered(plan: Plan, condition: Expression, text: str | None) -> Plan:
    """A filter whose condition may have queries inside."""
    plain, tests, others = [], [], []
    for part in conjuncts(condition):
        test = _test(part)
        if test is not None and not _is_of_one_row(test[0]):
            tests.append(test)
        elif has_query(part):
            others.append(part)
        else:
            plain.append(part)
    first = all_of(plain)
    if first is not None:
        plan = with_condition(plan, first)
    for query, negated in tests:
        plan = _tested(plan, query, negated, text)
    rest = all_of(others)
    if rest is None:
        return plan
    width, names = len(plan.names), plan.names
    plan, (checked,) = expanded(plan, [rest], text)
    result = Filter(plan, checked)
    return Project(result, tuple(result.refs()[:width]), names)


def _test(part: Expression) -> tuple[Subquery, bool] | None:
    """IN or EXISTS, and whether it is negated."""
    negated = False
    while isinstance(part, Call) and part.function == "NOT":
        part, negated = part.args[0], not negated
    if isinstance(part, Subquery) and part.kind != "SCALAR" and not any(map(has_query, part.args)):
        return part, negated
    return None


def _freed(plan: Plan, text: str | None, span: Span) -> Pulled:
    try:
        return pulled(plan)
    except CorrelationError as error:
        raise NotSupportedError(f"Not supported yet: {error}.", text, span) from None


def joined_to_each(
    left: Plan, query: Plan, kind: str, condition: Expression | None, node: syntax.Node, text: str | None
) -> Plan:
    """Each row of ``left`` with the rows of a query that refers to it. ``condition``: over the columns of both."""
    inner = _freed(query, text, node.span)
    width = len(left.names)
    conditions = [_over_both(each, width) for each in inner.conditions]
    whole = joined(left, inner.plan, kind, all_of([*conditions, *conjuncts(condition)]))
    # Without what only the conditions need.
    kept = whole.refs()[: width + len(query.names)]
    return Project(whole, tuple(kept), unique_names([*left.names, *query.names]))


def _has_a_row(plan: Plan) -> bool:
    """Whether there is a row whatever the input: aggregates without keys."""
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, Aggregate) and not plan.keys


def _rows_of(query: Subquery) -> Plan:
    """The query; for EXISTS without what it selects, which nobody looks at."""
    plan: Plan = query.plan
    while query.kind == "EXISTS" and isinstance(plan, Project):
        plan = plan.input
    return plan


def _tested(plan: Plan, query: Subquery, negated: bool, text: str | None) -> Plan:
    if query.kind == "EXISTS" and _has_a_row(query.plan):
        return Filter(plan, Literal(False, BooleanType(is_nullable=False))) if negated else plan
    _refuse_counts(query, negated, text)
    inner = _freed(_rows_of(query), text, query.span)
    width = len(plan.names)
    conditions = [_over_both(each, width) for each in inner.conditions]
    for argument, column in zip(query.args, inner.plan.refs(), strict=False):
        other = InputRef(column.index + width, column.type)
        equal: Expression = bind("=", [argument, other])
        if negated:
            # NULL is perhaps one of them, and nobody knows whether NULL is.
            unknown = [bind("IS NULL", [each]) for each in (argument, other) if each.type.is_nullable]
            equal = bind("OR", [equal, *unknown]) if unknown else equal
        conditions.append(equal)
    return joined(plan, inner.plan, "ANTI" if negated else "SEMI", all_of(conditions))


def _refuse_counts(query: Subquery, negated: bool, text: str | None) -> None:
    """As Flink: a group without rows would have no row, where the query has one."""
    below = query.plan
    while isinstance(below, Project | Filter):
        below = below.input
    if not isinstance(below, Aggregate) or below.keys or not is_correlated(below):
        return
    if negated or query.kind == "EXISTS" or any(call.function == "COUNT" for call in below.calls):
        what = "aggregates without GROUP BY in IN or EXISTS that refer to the query around"
        raise NotSupportedError(f"Not supported yet: {what}.", text, query.span)


def _over_both(condition: Expression, width: int) -> Expression:
    """A condition over the columns of the query and of the one around, as one of a join of both."""

    def moved(part: Expression) -> Expression | None:
        if isinstance(part, OuterRef):
            return InputRef(part.index, part.type)
        return InputRef(part.index + width, part.type) if isinstance(part, InputRef) else None

    return rewrite(condition, moved)


def expanded(plan: Plan, expressions: Sequence[Expression], text: str | None) -> tuple[Plan, list[Expression]]:
    """Expressions without queries, over a plan that has columns for these behind its own."""
    if not any(map(has_query, expressions)):
        return plan, list(expressions)
    found: dict[Subquery, Expression] = {}

    def replaced(part: Expression) -> Expression | None:
        nonlocal plan
        if not isinstance(part, Subquery):
            return None
        if part not in found:
            args = tuple(rewrite(each, replaced) for each in part.args)
            query = Subquery(part.kind, args, part.plan, part.type, part.span)
            plan, found[part] = _EXPANSIONS[part.kind](plan, query, text)
        return found[part]

    results = [rewrite(each, replaced) for each in expressions]
    return plan, results


def _beside(plan: Plan, right: Plan, conditions: Sequence[Expression], pairs: Sequence[tuple[Expression, int]]) -> Plan:
    """A left join with rows of another relation: on conditions, and on expressions that equal columns of it."""
    width = len(plan.names)
    equal = [bind("=", [own, InputRef(at + width, right.types[at])]) for own, at in pairs]
    return joined(plan, right, "LEFT", all_of([*conditions, *equal]))


def _scalar(plan: Plan, query: Subquery, text: str | None) -> tuple[Plan, Expression]:
    inner = _freed(query.plan, text, query.span)
    try:
        pairs = equalities(inner.conditions)
    except CorrelationError as error:
        raise NotSupportedError(f"Not supported yet: {error}, in a query for a value.", text, query.span) from None
    right = inner.plan
    places = [own.index for own, _ in pairs if isinstance(own, InputRef)]
    if len(places) != len(pairs):
        extended = [*right.refs(), *(own for own, _ in pairs)]
        names = unique_names([*right.names, *(f"$k{at}" for at in range(len(pairs)))])
        places = list(range(len(right.names), len(extended)))
        right = Project(right, tuple(extended), names)
    default = _of_nothing(query.plan) if pairs else None
    if not _has_one_row(query.plan):
        right, places = _single(right, places, query, text)
        default = None
    width = len(plan.names)
    others = [(_as_outer(other), at) for (_, other), at in zip(pairs, places, strict=True)]
    whole = _beside(plan, right, (), others)
    value: Expression = InputRef(width, whole.types[width])
    if default is not None and not (isinstance(default, Literal) and default.value is None):
        there = bind("IS NOT NULL", [InputRef(width + places[0], whole.types[width + places[0]])])
        value = Call("CASE", (there, value, default), value.type)
    return whole, value


def _as_outer(expression: Expression) -> Expression:
    return rewrite(expression, lambda part: InputRef(part.index, part.type) if isinstance(part, OuterRef) else None)


def _of_nothing(plan: Plan) -> Expression | None:
    """What the only column of aggregates without keys is where there are no rows."""
    if isinstance(plan, Project) and len(plan.expressions) == 1:
        below = plan.input
        if isinstance(below, Aggregate) and not below.keys:
            groups = below

            def emptied(part: Expression) -> Expression | None:
                if not isinstance(part, InputRef):
                    return None
                call = groups.calls[part.index]
                return Literal(0 if call.function == "COUNT" else None, part.type.nullable())

            return rewrite(plan.expressions[0], emptied)
    if isinstance(plan, Aggregate) and not plan.keys:
        call = plan.calls[0]
        return Literal(0 if call.function == "COUNT" else None, call.type.nullable())
    return None


def _has_one_row(plan: Plan) -> bool:
    """Whether there can be no second row."""
    while isinstance(plan, Project | Filter):
        if isinstance(plan, Filter) and isinstance(plan.input, RowNumber):
            return not plan.input.partition and _is_first(plan.condition, len(plan.input.names) - 1)
        plan = plan.input
    return (isinstance(plan, Aggregate) and not plan.keys) or (isinstance(plan, Values) and len(plan.rows) == 1)


def _is_first(condition: Expression, place: int) -> bool:
    """Whether only the first place fulfils the condition."""
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in ("<=", "=") and isinstance(part.args[1], Literal):
            column = part.args[0]
            if isinstance(column, InputRef) and column.index == place and part.args[1].value == 1:
                return True
    return False


def _single(right: Plan, places: list[int], query: Subquery, text: str | None) -> tuple[Plan, list[int]]:
    """The only value of each group; a second one is an error when it comes."""
    columns = right.refs()
    below = Project(
        right,
        (columns[0], *(columns[at] for at in places)),
        unique_names([right.names[0], *(f"$k{at}" for at in range(len(places)))]),
    )
    keys = tuple(range(1, len(places) + 1))
    try:
        kind = aggregate_type("MAX", [columns[0].type], bool(keys), False)
    except FunctionError as error:
        raise NotSupportedError(
            f"Not supported yet: a query for a value of this type. {error}", text, query.span
        ) from None
    calls = (AggregateCall("MAX", (0,), kind), AggregateCall("COUNT", (), _COUNT))
    names = [*below.names[1:], "$value", "$rows"]
    groups = Aggregate(below, keys, calls, unique_names(names))
    refs = groups.refs()
    value = Call("$SINGLE_VALUE", (refs[len(keys)], refs[len(keys) + 1]), columns[0].type.nullable())
    result = Project(groups, (value, *refs[: len(keys)]), unique_names([right.names[0], *below.names[1:]]))
    return result, list(range(1, len(keys) + 1))


def _keyed(
    inner: Pulled, query: Subquery, text: str | None
) -> tuple[list[tuple[Expression, Expression]], list[Expression]]:
    """What ties the query to the one around, and the columns of IN."""
    try:
        pairs = equalities(inner.conditions)
    except CorrelationError:
        what = "a comparison with the query around that is not an equality, where the query is not a condition of WHERE"
        raise NotSupportedError(f"Not supported yet: {what}.", text, query.span) from None
    return pairs, list(inner.plan.refs()[: len(query.args)])


def _marked(plan: Plan, query: Subquery, text: str | None) -> tuple[Plan, Expression]:
    """EXISTS and IN as values: a mark beside the rows that have a match, and for NULLs how many rows there are."""
    if query.kind == "EXISTS" and _has_a_row(query.plan):
        return plan, _TRUE
    if _is_of_one_row(query):
        return _equal_to_row(plan, query, text)
    _refuse_counts(query, True, text)
    inner = _freed(_rows_of(query), text, query.span)
    pairs, columns = _keyed(inner, query, text)
    keys = [own for own, _ in pairs]
    outer = [_as_outer(other) for _, other in pairs]
    nullable = query.kind == "IN" and query.type.is_nullable
    counts: Expression | None = None
    if nullable:
        plan, counts = _counted(plan, inner, columns, keys, outer)
    names = [f"$m{at}" for at in range(len(columns) + len(keys))]
    below = Project(inner.plan, (*columns, *keys, _TRUE), unique_names([*names, "$mark"]))
    distinct = Aggregate(below, tuple(range(len(below.names))), (), below.names)
    width = len(plan.names)
    others = [(own, at) for at, own in enumerate((*query.args, *outer))]
    plan = _beside(plan, distinct, (), others)
    mark = InputRef(width + len(below.names) - 1, BooleanType())
    there: Expression = bind("IS NOT NULL", [mark])
    if counts is None:
        return plan, there
    unknown = Literal(None, BooleanType())
    false = Literal(False, BooleanType(is_nullable=False))
    rows, known = counts.args if isinstance(counts, Call) else (counts, counts)
    none = bind("OR", [bind("IS NULL", [rows]), bind("=", [rows, Literal(0, _COUNT)])])
    branches: list[Expression] = [none, false, there, _TRUE]
    for argument in query.args:
        if argument.type.is_nullable:
            branches += [bind("IS NULL", [argument]), unknown]
    branches += [bind("<", [known, rows]), unknown]
    return plan, Call("CASE", (*branches, false), BooleanType())


def _is_of_one_row(query: Subquery) -> bool:
    """Whether it is IN with aggregates without keys: it has one row for each row of the query around."""
    return query.kind == "IN" and _has_a_row(query.plan) and is_correlated(query.plan)


def _equal_to_row(plan: Plan, query: Subquery, text: str | None) -> tuple[Plan, Expression]:
    """Whether the arguments are the columns of the only row."""
    equal = []
    for argument, column in zip(query.args, query.plan.refs(), strict=True):
        one = Project(query.plan, (column,), (query.plan.names[column.index],))
        plan, value = _scalar(plan, Subquery("SCALAR", (), one, column.type.nullable(), query.span), text)
        equal.append(bind("=", [argument, value]))
    found = all_of(equal)
    assert found is not None
    return plan, found


def _counted(
    plan: Plan, inner: Pulled, columns: list[Expression], keys: list[Expression], outer: list[Expression]
) -> tuple[Plan, Expression]:
    """How many rows the query has, and how many of them have no NULL."""
    known = all_of([bind("IS NOT NULL", [column]) for column in columns])
    assert known is not None
    marked = Call("CASE", (known, _TRUE, Literal(None, BooleanType())), BooleanType())
    names = unique_names([*(f"$k{at}" for at in range(len(keys))), "$known"])
    below = Project(inner.plan, (*keys, marked), names)
    places = tuple(range(len(keys)))
    calls = (AggregateCall("COUNT", (), _COUNT), AggregateCall("COUNT", (len(keys),), _COUNT))
    groups = Aggregate(below, places, calls, unique_names([*names[:-1], "$rows", "$known"]))
    width = len(plan.names)
    whole = _beside(plan, groups, (), [(own, at) for at, own in enumerate(outer)])
    at = width + len(keys)
    return whole, Call("ROW", (InputRef(at, whole.types[at]), InputRef(at + 1, whole.types[at + 1])), _COUNT)


_EXPANSIONS = {"SCALAR": _scalar, "EXISTS": _marked, "IN": _marked}
