"""States of queries as tables with the columns of SQL, made of what is stored and of its description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from firesteel.durable.state_tables import OperatorTables, ShownCall, ShownColumn, StateTable
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.runtime.columns.nested import from_keys
from firesteel.runtime.operators.table import AggregateCall
from firesteel.runtime.operators.table.accumulators import arrow_of
from firesteel.runtime.operators.table.aggregate_functions import accumulator_of
from firesteel.runtime.snapshots.saved import StateId
from firesteel.state_processor.plain_values import load_plain
from firesteel.table.sql.type_parser import parse_type
from firesteel.table.types.arrow import arrow_type

__all__ = ["ShownState", "shown_table"]

Row = tuple[Any, ...]
Array = npt.NDArray[Any]

_KINDS = ("+I", "-U", "+U", "-D")
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
"""The milliseconds of the years 1 to 9999. What is not among them stands for no time at all."""


def shown_table(operator: OperatorTables | None, state: StateId) -> StateTable | None:
    """The table of a state; None where it is not described."""
    if operator is None:
        return None
    if state.kind != "timers":
        return operator.state(state.name)
    time = ShownColumn("time", "TIMESTAMP_LTZ(3)", "time", (len(operator.key),), "moment")
    return StateTable(state.name, "a timer", (*operator.key, time), "timers")


class ShownState:
    """Makes rows as they are shown of rows as they are stored. It loads plain values only, and runs nobody's code."""

    def __init__(self, operator: OperatorTables, table: StateTable, state: StateId) -> None:
        self._key_width = len(operator.key)
        self._table = table
        self._has_parts = state.scope == "place"
        self._form = RowFormat(state, load_plain)
        self._types = [_arrow(column.type) for column in table.columns]
        names = [column.name for column in table.columns]
        self.schema = pa.schema(list(zip(names, self._types, strict=True)))

    def batch(self, stored: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch of a savepoint's file."""
        rows = [
            row for place, content in zip(*self._form.rows(stored), strict=True) for row in self._flat(place, content)
        ]
        arrays = [
            _FORMS[column.form](column, kind, [[row[at] for row in rows] for at in column.at])
            for column, kind in zip(self._table.columns, self._types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _flat(self, place: Any, content: Any) -> Iterator[Row]:
        key, *parts = place if self._has_parts else (place,)
        begin: Row = () if not self._key_width else (key,) if self._key_width == 1 else tuple(key)
        shape = self._table.shape
        if shape == "timers":
            yield (*begin, content)
        elif shape == "events":
            time, events = content
            for event in events:
                yield (*begin, time, *event)
        elif shape == "matches":
            for match in _partial_matches(content):
                yield (*begin, *match)
        else:
            row = (*begin, *parts, *content)
            if self._table.unnested is None:
                yield row
                return
            for position, element in enumerate(row[self._table.unnested] or (), 1):
                yield (*row, position, *element.values())


def _partial_matches(stored: dict[str, Any]) -> Iterator[Row]:
    """The events of each match that is under way, in order: :mod:`firesteel.cep.stored`."""
    steps, events = stored["steps"], stored["events"]
    under_way = [run for run in stored["partial"] if run is not None]
    for number, (waits_for, node, *_) in enumerate(under_way, 1):
        path = []
        while node >= 0:
            variable, event, node = steps[node]
            path.append((variable, event))
        for variable, event in reversed(path):
            time, _, values = events[event]
            yield (number, waits_for, variable, time, *values)


def _arrow(kind: str) -> pa.DataType:
    return arrow_type(parse_type(kind))


# From what is stored to columns: see firesteel.durable.state_tables.


def _value(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    return pa.array(from_keys(stored[0], kind), kind)


def _text(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in stored[0]], pa.string())


def _moment(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    times = [None if not _FIRST <= time <= _LAST else time + column.shift for time in stored[0]]
    return pa.array(times, pa.int64()).view(kind)


def _kept(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    values = [value if known else None for value, known in zip(*stored, strict=True)]
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if pa.types.is_boolean(kind):
        return pa.array([None if value is None else bool(value) for value in values], kind)
    return pa.array(values, kind)


def _unscaled(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    if not pa.types.is_decimal(kind):
        return _kept(column, kind, stored)
    values = [Decimal(value).scaleb(-kind.scale) if known else None for value, known in zip(*stored, strict=True)]
    return pa.array(values, kind)


def _kind(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    return pa.array([_KINDS[number] for number in stored[0]], pa.string())


def _result(column: ShownColumn, kind: pa.DataType, stored: Sequence[list[Any]]) -> pa.Array:
    call = column.call
    assert call is not None
    accumulator = accumulator_of(_call(call, kind), call.argument and _arrow(call.argument), call.retracts)
    rows, states, parts = len(stored[0]), [], iter(stored)
    for part in accumulator.columns:
        states.append(part.fresh(rows) if part.type is None else part.from_arrow(pa.array(next(parts), part.type)))
    return arrow_of(accumulator.result(states), kind)


def _call(call: ShownCall, kind: pa.DataType) -> AggregateCall:
    return AggregateCall(call.function, None if call.argument is None else 0, kind, options=call.options)


_FORMS = {
    "value": _value,
    "text": _text,
    "moment": _moment,
    "kept": _kept,
    "unscaled": _unscaled,
    "kind": _kind,
    "result": _result,
}
