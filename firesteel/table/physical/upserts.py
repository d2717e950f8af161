"""Rows for sinks that overwrite by key: those of a key come in order, and the last one that is left stands."""

from __future__ import annotations

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import KeyConflicts, Rank
from firesteel.table.logical.expressions import Call, Expression, InputRef
from firesteel.table.logical.plan import Aggregate, Plan, Project
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    BigIntType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarCharType,
)

__all__ = ["column_of", "materialized", "upsert_key", "without_conflicts"]


def upsert_key(plan: Plan) -> frozenset[int] | None:
    """Columns by which each change of a relation overwrites the one before; None where that is not known. Behind a
    filter it is not: a row that does not pass any more is taken back with -U alone."""
    if isinstance(plan, Aggregate):
        return frozenset(range(len(plan.keys)))
    if isinstance(plan, Project):
        below = upsert_key(plan.input)
        if below is None:
            return None
        places: dict[int, int] = {}
        for place, expression in enumerate(plan.expressions):
            column = column_of(expression)
            if column is not None:
                places.setdefault(column, place)
        return frozenset(places[column] for column in below) if below <= places.keys() else None
    return None


def column_of(expression: Expression) -> int | None:
    """The column that an expression is, also as a larger type: values that differ stay different ones."""
    if isinstance(expression, InputRef):
        return expression.index
    if isinstance(expression, Call) and expression.function == "CAST":
        (inner,) = expression.args
        return column_of(inner) if _keeps_apart(inner.type, expression.type) else None
    return None


_WHOLE = (TinyIntType, SmallIntType, IntType, BigIntType)
_TOLD_APART = (*_WHOLE, BooleanType, FloatType, DoubleType, DateType, TimeType, TimestampType)
"""Types whose values have texts of their own. Flink does not count decimals among them."""


def _keeps_apart(source: DataType, target: DataType) -> bool:
    if source.not_null() == target.not_null():
        return True
    if isinstance(source, _TOLD_APART) and isinstance(target, VarCharType):
        return target.length == MAX_LENGTH
    if isinstance(source, CharType | VarCharType) and isinstance(target, VarCharType):
        return target.length >= source.length
    if type(source) in _WHOLE and type(target) in _WHOLE:
        return _WHOLE.index(type(target)) >= _WHOLE.index(type(source))
    return False


def materialized(stream: DataStream, plan: Plan, keys: tuple[int, ...]) -> DataStream:
    """Rows by a key that is not the one by which the query changes them: all rows of a key are kept, so that one which
    is taken back gives way to another. This is Flink's SinkUpsertMaterializer."""
    schema = arrow_schema(plan.names, plan.types)
    spec = Rank(keys, (), schema, schema, 1, retracts=True, update_before=False, last_wins=True)
    return stream.key_by(KeyColumns(keys)).transform("SinkMaterialize", spec, ColumnsType(schema))


def without_conflicts(stream: DataStream, plan: Plan, keys: tuple[int, ...], fails: bool, target: str) -> DataStream:
    """Rows of which at each watermark the first of each key stays; or a second one fails the job."""
    schema = arrow_schema(plan.names, plan.types)
    spec = KeyConflicts(keys, schema, fails, target)
    return stream.key_by(KeyColumns(keys)).transform("SinkConflicts", spec, ColumnsType(schema))
