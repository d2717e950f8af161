"""Types of Spark for those of tables, and back."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as spark

from firesteel.errors import ProgramError
from firesteel.table.batch.layout import is_number_in_spark
from firesteel.table.types import data_types as ours

__all__ = ["column_names", "spark_schema", "spark_type", "type_of_spark"]

_SIMPLE: dict[type[ours.DataType], spark.DataType] = {
    ours.NullType: spark.NullType(),
    ours.BooleanType: spark.BooleanType(),
    ours.TinyIntType: spark.ByteType(),
    ours.SmallIntType: spark.ShortType(),
    ours.IntType: spark.IntegerType(),
    ours.BigIntType: spark.LongType(),
    ours.FloatType: spark.FloatType(),
    ours.DoubleType: spark.DoubleType(),
    ours.CharType: spark.StringType(),
    ours.VarCharType: spark.StringType(),
    ours.BinaryType: spark.BinaryType(),
    ours.VarBinaryType: spark.BinaryType(),
    ours.DateType: spark.DateType(),
    ours.TimeType: spark.IntegerType(),
    ours.YearMonthIntervalType: spark.IntegerType(),
    ours.DayTimeIntervalType: spark.LongType(),
}


def spark_type(kind: ours.DataType) -> spark.DataType:
    """How a column is kept in a DataFrame; see :mod:`firesteel.table.batch.layout`.

    >>> spark_type(ours.DecimalType(10, 2)), spark_type(ours.TimestampType(3))
    (DecimalType(10,2), TimestampNTZType())
    """
    simple = _SIMPLE.get(type(kind))
    if simple is not None:
        return simple
    if isinstance(kind, ours.DecimalType):
        return spark.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, ours.TimestampType | ours.LocalZonedTimestampType):
        if is_number_in_spark(kind):
            return spark.LongType()
        return spark.TimestampNTZType() if isinstance(kind, ours.TimestampType) else spark.TimestampType()
    if isinstance(kind, ours.ArrayType):
        return spark.ArrayType(spark_type(kind.element_type))
    if isinstance(kind, ours.MultisetType):
        return spark.MapType(spark_type(kind.element_type), spark.IntegerType())
    if isinstance(kind, ours.MapType):
        return spark.MapType(spark_type(kind.key_type), spark_type(kind.value_type))
    assert isinstance(kind, ours.RowType), f"No type of Spark for {kind}."
    return spark.StructType([spark.StructField(each.name, spark_type(each.data_type)) for each in kind.fields])


def column_names(width: int, prefix: str = "c") -> list[str]:
    """Columns of DataFrames are called by their places: names of tables may come twice and have dots in them."""
    return [f"{prefix}{index}" for index in range(width)]


def spark_schema(kinds: Sequence[ours.DataType]) -> spark.StructType:
    """The schema of a DataFrame for columns of these types."""
    names = column_names(len(kinds))
    return spark.StructType(
        [spark.StructField(name, spark_type(kind)) for name, kind in zip(names, kinds, strict=True)]
    )


_BACK: dict[type[spark.DataType], ours.DataType] = {
    spark.NullType: ours.NullType(),
    spark.BooleanType: ours.BooleanType(),
    spark.ByteType: ours.TinyIntType(),
    spark.ShortType: ours.SmallIntType(),
    spark.IntegerType: ours.IntType(),
    spark.LongType: ours.BigIntType(),
    spark.FloatType: ours.FloatType(),
    spark.DoubleType: ours.DoubleType(),
    spark.StringType: ours.VarCharType(ours.MAX_LENGTH),
    spark.BinaryType: ours.VarBinaryType(ours.MAX_LENGTH),
    spark.DateType: ours.DateType(),
    spark.TimestampType: ours.LocalZonedTimestampType(6),
    spark.TimestampNTZType: ours.TimestampType(6),
}


def type_of_spark(kind: spark.DataType, name: str = "") -> ours.DataType:
    """The type of a column of the user's DataFrame.

    >>> str(type_of_spark(spark.ArrayType(spark.LongType())))
    'ARRAY<BIGINT>'
    """
    known = _BACK.get(type(kind))
    if known is not None:
        return known
    if isinstance(kind, spark.DecimalType):
        return ours.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, spark.CharType):
        return ours.CharType(kind.length)
    if isinstance(kind, spark.VarcharType):
        return ours.VarCharType(kind.length)
    if isinstance(kind, spark.ArrayType):
        return ours.ArrayType(type_of_spark(kind.elementType, name))
    if isinstance(kind, spark.MapType):
        return ours.MapType(type_of_spark(kind.keyType, name).not_null(), type_of_spark(kind.valueType, name))
    if isinstance(kind, spark.StructType):
        return ours.RowType(
            tuple(ours.RowField(each.name, type_of_spark(each.dataType, each.name)) for each in kind.fields)
        )
    raise ProgramError(f"No type of tables corresponds to Spark's {kind.simpleString()} (column {name!r}).")
