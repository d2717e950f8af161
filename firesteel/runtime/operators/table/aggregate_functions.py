"""Aggregate functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.common.type_system.jsontext import write_json
from firesteel.errors import ProgramError
from firesteel.runtime.operators.table.accumulators import (
    Accumulator,
    Average,
    Count,
    Extreme,
    RetractingExtreme,
    Sum,
)
from firesteel.runtime.operators.table.percentiles import Percentile
from firesteel.runtime.operators.table.sequence_accumulators import EndValue, Lag, Rank, ValueList, collected
from firesteel.runtime.operators.table.specs import AggregateCall
from firesteel.runtime.operators.table.variance import Variance

__all__ = ["accumulator_of"]


def accumulator_of(call: AggregateCall, argument: pa.DataType | None, retracts: bool) -> Accumulator:
    """What works out a call. ``retracts``: whether rows may be taken back."""
    name = call.function.upper()
    if name == "COUNT":
        return Count()
    if name not in _FUNCTIONS:
        raise ProgramError(
            f"The aggregate function {name} is not known here. There are COUNT, {', '.join(sorted(_FUNCTIONS))}."
        )
    if argument is None:
        raise ProgramError(f"{name} needs an argument.")
    return _FUNCTIONS[name](call, argument, retracts)


def _extreme(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    return (RetractingExtreme if retracts else Extreme)(argument, call.function.upper() == "MAX")


def _end_value(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    last = call.function.upper() == "LAST_VALUE"
    if retracts:
        return ValueList(argument, _last if last else _first, argument)
    return EndValue(argument, last)


def _first(values: list[Any]) -> Any:
    return values[0]


def _last(values: list[Any]) -> Any:
    return values[-1]


def _lag(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    if retracts:
        raise ProgramError("LAG has no frame of its own.")
    offset, default = call.options or (1, None)
    return Lag(argument, offset, default)


def _list_agg(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    (separator,) = call.options or (",",)
    return ValueList(argument, separator.join, call.type)


def _variance(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    kind, _, what = call.function.upper().partition("_")
    return Variance(argument, call.type, what != "POP", kind == "STDDEV", call.options == ("sums",))


def _single(values: list[Any]) -> Any:
    if len(values) > 1:
        raise ProgramError("SINGLE_VALUE: a group has more than one row.")
    return values[0]


def _json_array_agg(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    return ValueList(argument, write_json, call.type, with_nulls=call.options == ("NULL",), empty="[]")


def _json_object_agg(call: AggregateCall, argument: pa.DataType, retracts: bool) -> Accumulator:
    absent = call.options == ("ABSENT",)

    def made(pairs: list[Any]) -> str:
        content = {pair["key"]: pair["value"] for pair in pairs if not (absent and pair["value"] is None)}
        if None in content:
            raise ProgramError("JSON_OBJECTAGG: a key is NULL.")
        return write_json(content)

    return ValueList(argument, made, call.type, empty="{}")


_FUNCTIONS: dict[str, Callable[[AggregateCall, pa.DataType, bool], Accumulator]] = {
    "SUM": lambda call, argument, retracts: Sum(argument, call.type),
    "AVG": lambda call, argument, retracts: Average(argument, call.type),
    "MIN": _extreme,
    "MAX": _extreme,
    "FIRST_VALUE": _end_value,
    "LAST_VALUE": _end_value,
    "LAG": _lag,
    "RANK": lambda call, argument, retracts: Rank(dense=False),
    "DENSE_RANK": lambda call, argument, retracts: Rank(dense=True),
    "LISTAGG": _list_agg,
    "VAR_POP": _variance,
    "VAR_SAMP": _variance,
    "VARIANCE": _variance,
    "STDDEV_POP": _variance,
    "STDDEV_SAMP": _variance,
    "SINGLE_VALUE": lambda call, argument, retracts: ValueList(argument, _single, argument, with_nulls=True),
    "JSON_ARRAYAGG": _json_array_agg,
    "JSON_OBJECTAGG": _json_object_agg,
    "COLLECT": lambda call, argument, retracts: ValueList(argument, collected, call.type, empty=[]),
    "PERCENTILE": lambda call, argument, retracts: Percentile(argument, call.options[1:], call.type),
    "ARRAY_AGG": lambda call, argument, retracts: ValueList(argument, list, call.type, with_nulls=True),
}
