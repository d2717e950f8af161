"""FOR SYSTEM_TIME AS OF the clock: joins with what a connector has now."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.functions.binding import bind, cast_to
from firesteel.table.functions.evaluation import folded
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, columns_of, rewrite, shifted
from firesteel.table.logical.joins import all_of, conjuncts
from firesteel.table.logical.plan import Filter, LookupJoin, Plan, Project, Scan, unique_names
from firesteel.table.types.data_types import (
    CharType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    LocalZonedTimestampType,
    NumericType,
    TimestampType,
    VarCharType,
)

__all__ = ["TemporalJoinError", "looked_up"]


class TemporalJoinError(Exception):
    """What Flink refuses too. The resolver adds the place."""


def looked_up(
    left: Plan, right: Plan, kind: str, condition: Expression | None, options: tuple[tuple[str, str], ...]
) -> Plan:
    """The columns of both sides. What the right one computes and leaves out is done with the answers."""
    scan, columns, filters = _table_of(right)
    width = len(left.names)

    def over_scan(part: Expression) -> Expression | None:
        if not isinstance(part, InputRef) or part.index < width:
            return None
        return shifted(columns[part.index - width], width)

    parts = [rewrite(part, over_scan) for part in conjuncts(condition)]
    parts += [shifted(part, width) for part in filters]
    keys, rest = _keys_of(parts, width, scan)
    if not keys:
        raise TemporalJoinError("A lookup needs a condition of the kind left.column = table.column.")
    expressions: list[Expression] = list(left.refs())
    places = []
    for value in keys.values():
        if value not in expressions:
            expressions.append(value)
        places.append(expressions.index(value))
    side = left
    added = len(expressions) - width
    if added:
        names = unique_names([*left.names, *(f"$k{at}" for at in range(added))])
        side = Project(left, tuple(expressions), names)

    def behind_keys(part: Expression) -> Expression | None:
        return InputRef(part.index + added, part.type) if isinstance(part, InputRef) and part.index >= width else None

    checked = all_of([rewrite(part, behind_keys) for part in rest])
    join = LookupJoin(side, scan, kind, tuple(places), tuple(keys), checked, options)
    if not added and right is scan:
        return join
    refs = join.refs()
    answer = refs[width + added :]
    results = [_substituted(column, answer) for column in columns]
    if kind == "LEFT":
        answered = answer[next(iter(keys))]
        results = [_where_answered(each, answered) for each in results]
    return Project(join, (*refs[:width], *results), unique_names([*left.names, *right.names]))


def _table_of(right: Plan) -> tuple[Scan, list[Expression], list[Expression]]:
    """The table that is asked, the columns of the right side over those of the table, and the conditions on them."""
    columns: list[Expression] = list(right.refs())
    filters: list[Expression] = []
    while isinstance(right, Project | Filter):
        if isinstance(right, Filter):
            filters += conjuncts(right.condition)
        else:
            below = right.expressions
            columns = [_substituted(each, below) for each in columns]
            filters = [_substituted(each, below) for each in filters]
        right = right.input
    if not isinstance(right, Scan):
        raise TemporalJoinError(
            "With PROCTIME() the joined table is one of a connector that can look up keys, not a view of more than "
            "its columns and conditions on them. Views have versions: join them at an event time."
        )
    return right, columns, filters


def _keys_of(parts: list[Expression], width: int, scan: Scan) -> tuple[dict[int, Expression], list[Expression]]:
    """By which columns the table is asked, each with its value; and all else that the answers have to fulfil."""
    keys: dict[int, Expression] = {}
    rest = []
    for part in parts:
        pair = _lookup_key(part, width)
        if pair is None or pair[0] in keys:
            rest.append(part)
            continue
        column, value = pair
        keys[column] = cast_to(value, scan.types[column])
        if keys[column] is not value:
            # The value may have been changed by the cast.
            rest.append(part)
    return keys, rest


def _lookup_key(part: Expression, width: int) -> tuple[int, Expression] | None:
    """A column of the table, and what of the left side, or which constant, it equals."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for column, value in (part.args, part.args[::-1]):
        while isinstance(column, Call) and column.function == "CAST" and _keeps(column.args[0].type, column.type):
            column = column.args[0]
        used = list(columns_of(value))
        if not isinstance(column, InputRef) or column.index < width or any(at >= width for at in used):
            continue
        if used or isinstance(value := folded(value), Literal):
            return column.index - width, value
    return None


def _keeps(source: DataType, target: DataType) -> bool:
    """Whether a cast keeps different values apart, so that what equals the result is found by the value itself."""
    if isinstance(source, IntegralType):
        return isinstance(target, NumericType) and getattr(target, "bits", 64) >= source.bits
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        return target.scale >= source.scale
    if isinstance(source, NumericType):
        return isinstance(target, NumericType) and not isinstance(target, IntegralType | DecimalType)
    if isinstance(source, CharType | VarCharType):
        return isinstance(target, CharType | VarCharType) and target.length >= source.length
    if isinstance(source, DateType):
        return isinstance(target, DateType | TimestampType)
    if isinstance(source, TimestampType | LocalZonedTimestampType):
        return type(source) is type(target) and getattr(target, "precision", 0) >= source.precision
    return source.nullable() == target.nullable()


def _where_answered(column: Expression, answered: Expression) -> Expression:
    """NULL where the table had no row: keys are never NULL."""
    if isinstance(column, InputRef):
        return column
    return bind("IF", [bind("IS NULL", [answered]), Literal(None, column.type.nullable()), column])


def _substituted(expression: Expression, below: Sequence[Expression]) -> Expression:
    return rewrite(expression, lambda part: below[part.index] if isinstance(part, InputRef) else None)
