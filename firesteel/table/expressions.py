"""Functions that make expressions of the Table API, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from firesteel.table.expression import NOWHERE, Expression, called, node_of
from firesteel.table.logical.literals import python_literal
from firesteel.table.sql.parser import parse_expression
from firesteel.table.sql.syntax import ArrayConstructor, Constant, MapConstructor, Name, RowConstructor, Star
from firesteel.table.types.data_types import DataType

__all__ = [
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "current_date",
    "current_time",
    "current_timestamp",
    "date_format",
    "e",
    "from_unixtime",
    "if_then_else",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "negative",
    "not_",
    "null_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "row",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
]


def col(name: str) -> Expression:
    """A column.

    >>> col("a") > 1
    <Expression (a > 1)>
    """
    return Expression(Name((name,), span=NOWHERE))


def lit(v: Any, data_type: DataType | None = None) -> Expression:
    """A constant, of the type that fits it or of a given one."""
    if data_type is not None:
        return Expression(Constant("python", python_literal(v, data_type), span=NOWHERE))
    return Expression(node_of(v))


def null_of(data_type: DataType) -> Expression:
    """NULL of a type."""
    return lit(None, data_type.nullable())


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """All of them."""
    found = lit(predicate0) if not isinstance(predicate0, Expression) else predicate0
    for each in (predicate1, *predicates):
        found = found & each
    return found


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """One of them at least."""
    found = lit(predicate0) if not isinstance(predicate0, Expression) else predicate0
    for each in (predicate1, *predicates):
        found = found | each
    return found


def not_(expression: Expression) -> Expression:
    """The opposite."""
    return ~expression


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """One of two values."""
    return Expression(node_of(condition)).then(if_true, if_false)


def coalesce(*args: Any) -> Expression:
    """The first one that is not NULL."""
    return called("COALESCE", *args)


def array(head: Any, *tail: Any) -> Expression:
    """An array of these elements."""
    return Expression(ArrayConstructor(tuple(map(node_of, (head, *tail))), span=NOWHERE))


def row(head: Any, *tail: Any) -> Expression:
    """A row of these fields."""
    return Expression(RowConstructor(tuple(map(node_of, (head, *tail))), span=NOWHERE))


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    """A map of keys and values in turn."""
    return Expression(MapConstructor(tuple(map(node_of, (key, value, *tail))), span=NOWHERE))


def with_all_columns() -> Expression:
    """All columns: ``*``."""
    return Expression(Star(span=NOWHERE))


def call(f: str, *args: Any) -> Expression:
    """A function by its name in SQL."""
    return called(f, *args)


def call_sql(sql_expression: str) -> Expression:
    """An expression in SQL."""
    return Expression(parse_expression(sql_expression))


def negative(v: Any) -> Expression:
    """With the other sign."""
    return -Expression(node_of(v))


def concat(first: Any, *others: Any) -> Expression:
    """Texts, one behind the other."""
    return called("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    """Texts with a separator between them."""
    return called("CONCAT_WS", separator, first, *others)


def atan2(y: Any, x: Any) -> Expression:
    """The angle of a point."""
    return called("ATAN2", y, x)


def log(v: Any, base: Any = None) -> Expression:
    """The logarithm: natural, or to a base."""
    return called("LN", v) if base is None else called("LOG", base, v)


def pi() -> Expression:
    """3.14159..."""
    return called("PI")


def e() -> Expression:
    """2.71828..."""
    return called("E")


def rand(seed: Any = None) -> Expression:
    """A number from 0 up to 1."""
    return called("RAND") if seed is None else called("RAND", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression:
    """A whole number from 0 up to a bound."""
    return called("RAND_INTEGER", bound) if seed is None else called("RAND_INTEGER", seed, bound)


def uuid() -> Expression:
    """A random UUID."""
    return called("UUID")


def current_date() -> Expression:
    """Today in the session's zone."""
    return called("CURRENT_DATE")


def current_time() -> Expression:
    """The time of day in the session's zone."""
    return called("CURRENT_TIME")


def current_timestamp() -> Expression:
    """Now."""
    return called("CURRENT_TIMESTAMP")


def local_time() -> Expression:
    """The time of day in the session's zone."""
    return called("LOCALTIME")


def local_timestamp() -> Expression:
    """Date and time in the session's zone."""
    return called("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Expression:
    """A date out of text."""
    return called("TO_DATE", date_str) if format is None else called("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:
    """A timestamp out of text."""
    return called("TO_TIMESTAMP", timestamp_str) if format is None else called("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression:
    """A moment out of seconds, or with 3 out of milliseconds, since 1970."""
    return called("TO_TIMESTAMP_LTZ", *args)


def date_format(timestamp: Any, format: Any) -> Expression:
    """A timestamp as text."""
    return called("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: Any, time_point1: Any, time_point2: Any) -> Expression:
    """How many units lie between two times."""
    return called("TIMESTAMPDIFF", time_point_unit, time_point1, time_point2)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    """Seconds since 1970 as text."""
    return called("FROM_UNIXTIME", unixtime) if format is None else called("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    """Seconds since 1970."""
    return called("UNIX_TIMESTAMP", *[each for each in (date_str, format) if each is not None])
