"""Aggregate functions: the types of their results. Operators compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.table.functions.binding import FunctionError
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BigIntType,
    DataType,
    DoubleType,
    IntegralType,
    MapType,
    MultisetType,
    NumericType,
    RowField,
    RowType,
    VarCharType,
)
from firesteel.table.types.derivation import average_type, is_text, sum_type

__all__ = ["AGGREGATES", "KNOWN_AGGREGATES", "AggregateFunction", "aggregate_type"]


@dataclass(frozen=True)
class AggregateFunction:
    """What is known about an aggregate."""

    name: str
    result: Callable[[DataType], DataType]
    numeric: bool = False
    text: bool = False
    most: int = 1
    """How many arguments it takes; those behind the first one are constants."""

    def constants(self, args: list[Expression]) -> tuple[list[Expression], tuple[Any, ...]]:
        """The arguments that are columns, and the values of the others."""
        if self.name == "PERCENTILE":
            return _percentile(args)
        if len(args) > self.most:
            raise FunctionError(f"{self.name} takes {self.most} argument{'s' * (self.most > 1)}, got {len(args)}.")
        values = []
        for argument in args[1:]:
            if not isinstance(argument, Literal):
                raise FunctionError(f"{self.name} takes constants behind its first argument.")
            values.append(argument.value)
        return args[:1], tuple(values)


AGGREGATES = {
    each.name: each
    for each in (
        AggregateFunction("COUNT", lambda kind: BigIntType(is_nullable=False)),
        AggregateFunction("SUM", sum_type, numeric=True),
        AggregateFunction("AVG", average_type, numeric=True),
        AggregateFunction("MIN", lambda kind: kind),
        AggregateFunction("MAX", lambda kind: kind),
        AggregateFunction("FIRST_VALUE", lambda kind: kind.nullable()),
        AggregateFunction("LAST_VALUE", lambda kind: kind.nullable()),
        AggregateFunction("LISTAGG", lambda kind: VarCharType(MAX_LENGTH), text=True, most=2),
        AggregateFunction("COLLECT", lambda kind: MultisetType(kind.not_null(), is_nullable=False)),
        AggregateFunction("ARRAY_AGG", lambda kind: ArrayType(kind)),
        AggregateFunction("PERCENTILE", lambda kind: DoubleType(), most=3),
        AggregateFunction("SINGLE_VALUE", lambda kind: kind.nullable()),
        AggregateFunction("JSON_OBJECTAGG", lambda kind: VarCharType(MAX_LENGTH, is_nullable=False)),
        AggregateFunction("JSON_ARRAYAGG", lambda kind: VarCharType(MAX_LENGTH, is_nullable=False)),
        *(
            AggregateFunction(name, lambda kind: average_type(kind).nullable(), numeric=True)
            for name in ("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP")
        ),
    )
}
"""Those that can be run."""

KNOWN_AGGREGATES = frozenset(
    [
        *AGGREGATES,
        "ARRAY_AGG",
        "COLLECT",
        "CUME_DIST",
        "DENSE_RANK",
        "FIRST_VALUE",
        "JSON_ARRAYAGG",
        "JSON_OBJECTAGG",
        "LAG",
        "LAST_VALUE",
        "LEAD",
        "LISTAGG",
        "NTILE",
        "PERCENTILE",
        "PERCENT_RANK",
        "RANK",
        "ROW_NUMBER",
        "SINGLE_VALUE",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "SUM0",
        "VARIANCE",
        "VAR_POP",
        "VAR_SAMP",
    ]
)


_OWN_NULLABILITY = (
    "FIRST_VALUE",
    "LAST_VALUE",
    "LISTAGG",
    "COLLECT",
    "ARRAY_AGG",
    "SINGLE_VALUE",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
)


def _percentile(args: list[Expression]) -> tuple[list[Expression], tuple[Any, ...]]:
    """The value, in a row with its frequency where it has one; whether the result is an array, and of what shares."""
    if not 2 <= len(args) <= 3:
        raise FunctionError(
            f"PERCENTILE takes a value, the share of values below, and how often the value counts: got {len(args)}."
        )
    value, share, *frequency = args
    if not isinstance(value.type, NumericType):
        raise FunctionError(f"PERCENTILE takes a number, got {value.type}.")
    many = isinstance(share, Call) and share.function == "ARRAY"
    shares = [_share(each) for each in (share.args if many else (share,))]  # type: ignore[attr-defined]
    if frequency:
        if not isinstance(frequency[0].type, IntegralType):
            raise FunctionError(f"PERCENTILE takes a whole number as frequency, got {frequency[0].type}.")
        fields = (RowField("value", value.type), RowField("frequency", frequency[0].type))
        value = Call("ROW", (value, frequency[0]), RowType(fields, is_nullable=False))
    return [value], ("ARRAY" if many else "VALUE", *shares)


def _share(expression: Expression) -> float:
    while isinstance(expression, Call) and expression.function == "CAST" and isinstance(expression.type, NumericType):
        expression = expression.args[0]
    if not isinstance(expression, Literal) or not isinstance(expression.value, int | float | Decimal):
        raise FunctionError("PERCENTILE takes constants from 0 to 1 for the shares, or an array of them.")
    if not 0 <= expression.value <= 1:
        raise FunctionError(f"PERCENTILE takes shares from 0 to 1, got {expression.value}.")
    return float(expression.value)


def aggregate_type(
    name: str, kinds: list[DataType], has_keys: bool, has_filter: bool, options: tuple[Any, ...] = ()
) -> DataType:
    """The type of an aggregate. Only a group that may be empty makes NULL of arguments that are not."""
    function = AGGREGATES[name]
    if name == "PERCENTILE":
        return ArrayType(DoubleType()) if options[0] == "ARRAY" else DoubleType()
    if name == "COUNT":
        return function.result(BigIntType())
    if len(kinds) != 1:
        raise FunctionError(f"{name} takes one argument, got {len(kinds)}.")
    (kind,) = kinds
    if function.numeric and not isinstance(kind, NumericType):
        raise FunctionError(f"{name} takes a number, got {kind}.")
    if function.text and not is_text(kind):
        raise FunctionError(f"{name} takes a text, got {kind}.")
    if name in ("MIN", "MAX") and isinstance(kind, ArrayType | MapType | MultisetType | RowType):
        raise FunctionError(f"{name} takes a value that has an order, got {kind}: take one of its elements or fields.")
    if name in _OWN_NULLABILITY:
        return function.result(kind)
    nullable = kind.is_nullable or not has_keys or has_filter
    return function.result(kind).with_nullability(nullable)
