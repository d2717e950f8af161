"""Aggregate functions: the types of their results. Operators compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firesteel.table.functions.binding import FunctionError
from firesteel.table.types.data_types import BigIntType, DataType, NumericType
from firesteel.table.types.derivation import average_type, sum_type

__all__ = ["AGGREGATES", "KNOWN_AGGREGATES", "AggregateFunction", "aggregate_type"]


@dataclass(frozen=True)
class AggregateFunction:
    """What is known about an aggregate."""

    name: str
    result: Callable[[DataType], DataType]
    numeric: bool = False


AGGREGATES = {
    each.name: each
    for each in (
        AggregateFunction("COUNT", lambda kind: BigIntType(is_nullable=False)),
        AggregateFunction("SUM", sum_type, numeric=True),
        AggregateFunction("AVG", average_type, numeric=True),
        AggregateFunction("MIN", lambda kind: kind),
        AggregateFunction("MAX", lambda kind: kind),
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
        "STDDEV_POP",
        "STDDEV_SAMP",
        "SUM0",
        "VARIANCE",
        "VAR_POP",
        "VAR_SAMP",
    ]
)


def aggregate_type(name: str, kinds: list[DataType], has_keys: bool, has_filter: bool) -> DataType:
    """The type of an aggregate. Only a group that may be empty makes NULL of arguments that are not."""
    function = AGGREGATES[name]
    if name == "COUNT":
        return function.result(BigIntType())
    if len(kinds) != 1:
        raise FunctionError(f"{name} takes one argument, got {len(kinds)}.")
    (kind,) = kinds
    if function.numeric and not isinstance(kind, NumericType):
        raise FunctionError(f"{name} takes a number, got {kind}.")
    nullable = kind.is_nullable or not has_keys or has_filter
    return function.result(kind).with_nullability(nullable)
