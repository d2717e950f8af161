"""Functions that make expressions of the Table API, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from firesteel.errors import ProgramError
from firesteel.table.expression import NOWHERE, Expression, JsonOnNull, RowInterval, called, node_of
from firesteel.table.logical.literals import python_literal
from firesteel.table.select_fields import ColumnChoice, ColumnRange
from firesteel.table.sql.parser import parse_expression
from firesteel.table.sql.syntax import (
    ArrayConstructor,
    Binary,
    Constant,
    MapConstructor,
    Name,
    RowConstructor,
    Star,
    Symbol,
    Unary,
)
from firesteel.table.types.data_types import DataType

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
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
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]


UNBOUNDED_ROW = Expression(Symbol("UNBOUNDED_ROW", span=NOWHERE))
"""All rows before."""
UNBOUNDED_RANGE = Expression(Symbol("UNBOUNDED_RANGE", span=NOWHERE))
"""All time before."""
CURRENT_ROW = Expression(Symbol("CURRENT_ROW", span=NOWHERE))
"""The row itself."""
CURRENT_RANGE = Expression(Symbol("CURRENT_RANGE", span=NOWHERE))
"""The row, and those of the same time."""


def row_interval(rows: int) -> Expression:
    """So many rows, for the bounds of an over window and for windows of rows.

    >>> row_interval(2)
    <Expression RowInterval>
    """
    count = node_of(rows)
    assert isinstance(count, Constant)
    return Expression(RowInterval(count, rows, span=NOWHERE))


def col(name: str) -> Expression:
    """A column; ``col("*")`` stands for all of them.

    >>> col("a") > 1
    <Expression (a > 1)>
    """
    return Expression(Star(span=NOWHERE) if name == "*" else Name((name,), span=NOWHERE))


def lit(v: Any, data_type: DataType | None = None) -> Expression:
    """A constant, of the type that fits it or of a given one."""
    if data_type is not None:
        try:
            return Expression(Constant("python", python_literal(v, data_type), span=NOWHERE))
        except ValueError as error:
            raise ProgramError(str(error)) from None
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
    """The opposite; NULL where the condition is NULL."""
    return Expression(Unary("NOT", node_of(expression), span=NOWHERE))


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
    """A row of these fields, which are called f0, f1 and so on."""
    return Expression(RowConstructor(tuple(map(node_of, (head, *tail))), "f", span=NOWHERE))


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    """A map of keys and values in turn."""
    return Expression(MapConstructor(tuple(map(node_of, (key, value, *tail))), span=NOWHERE))


def with_all_columns() -> Expression:
    """All columns: ``*``."""
    return Expression(Star(span=NOWHERE))


def range_(start: str | int, end: str | int) -> Expression:
    """The columns of a table from one to another one, by their names or by their numbers, which begin with 1.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> table = env.from_elements([(1, "a", True)], ["id", "name", "there"])
    >>> table.select(range_("id", "name")).print_schema()
    (
      `id` BIGINT,
      `name` STRING
    )
    """
    return Expression(ColumnRange(start, end, span=NOWHERE))


def with_columns(head: Any, *tails: Any) -> Expression:
    """Columns of a table: ``with_columns(range_("b", "d"), col("a"))``."""
    return Expression(ColumnChoice(tuple(node_of(each) for each in (head, *tails)), span=NOWHERE))


def without_columns(head: Any, *tails: Any) -> Expression:
    """All columns of a table but these: ``without_columns(col("b"))``."""
    return Expression(ColumnChoice(tuple(node_of(each) for each in (head, *tails)), True, span=NOWHERE))


def call(f: Any, *args: Any) -> Expression:
    """A function by its name in SQL, or one that ``udf`` and its like made."""
    if not isinstance(f, str):
        found: Expression = f(*args)
        return found
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


def current_watermark(rowtimeAttribute: Any) -> Expression:
    """How far event time has come for a column with watermarks; NULL before the first one."""
    return called("CURRENT_WATERMARK", rowtimeAttribute)


def current_database() -> Expression:
    """The name of the current database."""
    return called("CURRENT_DATABASE")


def source_watermark() -> Expression:
    """The watermarks that the source has, for ``Schema.watermark``."""
    return called("SOURCE_WATERMARK")


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


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression:
    """Whether two periods have a time in common. A period is a start with an end, or with an interval.

    >>> nine, ten = lit("9:00:00").to_time, lit("10:00:00").to_time
    >>> temporal_overlaps(nine, ten, nine, lit(2).hours)
    <Expression (RowConstructor OVERLAPS RowConstructor)>
    """
    left = RowConstructor((node_of(left_time_point), node_of(left_temporal)), span=NOWHERE)
    right = RowConstructor((node_of(right_time_point), node_of(right_temporal)), span=NOWHERE)
    return Expression(Binary("OVERLAPS", left, right, span=NOWHERE))


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    """Seconds since 1970 as text."""
    return called("FROM_UNIXTIME", unixtime) if format is None else called("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    """Seconds since 1970."""
    return called("UNIX_TIMESTAMP", *[each for each in (date_str, format) if each is not None])


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression:
    """A date and time in text as clocks of another zone show it."""
    return called("CONVERT_TZ", date_str, tz_from, tz_to)


def json(value: Any) -> Expression:
    """Text that is JSON already, inside ``json_object`` and ``json_array``."""
    return called("JSON", value)


def json_string(value: Any) -> Expression:
    """A value as JSON."""
    return called("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression:
    """An object of keys and values, one behind the other.

    >>> json_object(JsonOnNull.ABSENT, "id", col("a"))
    <Expression JSON_OBJECT('id':CHAR(2), a)>
    """
    return called("JSON_OBJECT", *args, clauses=(("ON NULL", on_null.value),))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression:
    """An array of values."""
    return called("JSON_ARRAY", *args, clauses=(("ON NULL", on_null.value),))


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression:
    """An object of the keys and values of all rows of a group."""
    return called("JSON_OBJECTAGG", key_expr, value_expr, clauses=(("ON NULL", on_null.value),))


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression:
    """An array of the values of all rows of a group."""
    return called("JSON_ARRAYAGG", item_expr, clauses=(("ON NULL", on_null.value),))
