"""Typed expressions as columns of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

# Each registers its functions.
from firesteel.table.batch import native_casts, native_logic, native_numbers, native_text, native_times  # noqa: F401
from firesteel.table.batch.kernels import KernelContext, kernel_column
from firesteel.table.batch.layout import is_number_in_spark, to_spark
from firesteel.table.batch.native import NATIVE
from firesteel.table.batch.native_times import moment_of_micros
from firesteel.table.batch.spark_types import spark_type
from firesteel.table.functions.evaluation import can_fail
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, UserCall
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    LocalZonedTimestampType,
    NumericType,
    TimestampType,
    VarCharType,
)

__all__ = ["ExpressionTranslator", "literal_column"]

_LAZY = ("AND", "OR", "CASE", "COALESCE", "IFNULL")
"""They do not look at parts that do not matter."""


class ExpressionTranslator:
    """Translates expressions over the columns of one DataFrame.

    A call becomes one of Spark's if it means the same there; otherwise a function of ours computes it, with everything
    below it, of the columns that are left. Spark computes such functions for all rows, before it looks at conditions:
    a choice with a part that is ours and may fail is ours as a whole.
    """

    def __init__(self, names: Sequence[str], context: KernelContext) -> None:
        self._names = names
        self._context = context
        # A call into the JVM takes longer than all that is done here: what was made of an expression is kept. They are
        # told apart as objects, for 0.0 equals -0.0.
        self._made: dict[int, tuple[Expression, Column | None]] = {}

    def column(self, expression: Expression) -> Column:
        """The expression."""
        found = self._native(expression)
        return kernel_column(expression, self._names, self._context) if found is None else found

    def _native(self, expression: Expression) -> Column | None:
        made = self._made.get(id(expression))
        if made is None:
            made = self._made[id(expression)] = expression, self._translated(expression)
        return made[1]

    def _translated(self, expression: Expression) -> Column | None:
        if isinstance(expression, InputRef):
            return F.col(self._names[expression.index])
        if isinstance(expression, Literal):
            return literal_column(expression.value, expression.type)
        assert isinstance(expression, Call)
        translate = _native_function(expression)
        if translate is None:
            return None
        if expression.function in _LAZY and any(map(self._risky, expression.args[1:])):
            return None
        return translate(expression, [self.column(argument) for argument in expression.args])

    def is_native(self, expression: Expression) -> bool:
        """Whether Spark computes all of it."""
        if not isinstance(expression, Call):
            return True
        return all(map(self.is_native, expression.args)) and self._native(expression) is not None

    def _risky(self, expression: Expression) -> bool:
        """Whether ours computes something that can fail."""
        return can_fail(expression) and not self.is_native(expression)


def _native_function(call: Call) -> Any:
    """What Spark has for a function; nothing for a user's, whatever its name."""
    return None if isinstance(call, UserCall) else NATIVE.get(call.function)


def literal_column(value: Any, kind: DataType) -> Column:
    """A constant."""
    target = spark_type(kind)
    if value is None:
        return F.lit(None).cast(target)
    if isinstance(kind, CharType | VarCharType | BooleanType | DateType):
        return F.lit(value)
    if isinstance(kind, DecimalType):
        return F.lit(Decimal(value)).cast(target)
    if isinstance(kind, NumericType):
        return F.lit(value).cast(target)
    array = to_spark(pa.array([value], arrow_type(kind)), kind)
    if isinstance(kind, TimestampType | LocalZonedTimestampType) and not is_number_in_spark(kind):
        number = F.lit(array.cast(pa.int64())[0].as_py())
        return moment_of_micros(number) if isinstance(kind, TimestampType) else F.timestamp_micros(number)
    return F.lit(array[0].as_py()).cast(target)
