"""CAST and TRY_CAST where nothing can go wrong and Spark gives the same value."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.table.batch.layout import is_number_in_spark
from firesteel.table.batch.native import native
from firesteel.table.batch.spark_types import spark_type
from firesteel.table.logical.expressions import Call
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    TimestampType,
    VarCharType,
)

__all__: list[str] = []

_FLOATS = (FloatType, DoubleType)


@native("CAST", "TRY_CAST")
def _cast(call: Call, args: list[Column]) -> Column | None:
    source, target = call.args[0].type.not_null(), call.type.not_null()
    if source == target:
        return args[0]
    if isinstance(source, NullType):
        return args[0].cast(spark_type(target))
    if isinstance(source, CharType | VarCharType) and isinstance(target, VarCharType):
        return args[0] if target.length >= source.length else F.substring(args[0], 1, target.length)
    if isinstance(target, VarCharType) and target.length == MAX_LENGTH:
        return args[0].cast("string") if isinstance(source, IntegralType | DateType) else None
    return args[0].cast(spark_type(target)) if _same_in_spark(source, target) else None


def _same_in_spark(source: DataType, target: DataType) -> bool:
    if isinstance(source, IntegralType | BooleanType) and isinstance(target, IntegralType | FloatType | DoubleType):
        return True
    if isinstance(source, IntegralType) and isinstance(target, DecimalType | BooleanType):
        return True
    if isinstance(source, _FLOATS) and isinstance(target, _FLOATS):
        return True
    if isinstance(source, DecimalType) and isinstance(target, (DecimalType, *_FLOATS)):
        return True
    if is_number_in_spark(source) or is_number_in_spark(target):
        return False
    if isinstance(source, DateType) and isinstance(target, TimestampType):
        return True
    if isinstance(source, TimestampType) and isinstance(target, DateType):
        return True
    # A lower precision cuts digits off.
    return (
        isinstance(source, TimestampType) and isinstance(target, TimestampType) and source.precision <= target.precision
    )
