"""GROUP BY one row at a time: what the vectorised operator is compared with, and the means to run that one; and a
program that groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from operatorkit import Change, OperatorRun

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    AggregateCall,
    Calc,
    ColumnsToRows,
    ColumnsType,
    GroupAggregate,
    GroupAggregateOperator,
    KeyColumns,
    RowsToColumns,
)


class Vectorised(OperatorRun):
    """The operator, for groups."""

    def __init__(self, spec: GroupAggregate) -> None:
        super().__init__(GroupAggregateOperator, spec)

    def process(self, rows: Sequence[Change]) -> None:
        self.take(rows, self._spec.input)


class _Group:
    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self.rows = 0
        self.values: list[list[Any]] = [[] for _ in calls]


class Reference:
    """Keeps the values of each group in lists."""

    def __init__(self, spec: GroupAggregate) -> None:
        self._spec = spec
        self._groups: dict[Any, _Group] = {}
        self.changes: list[Change] = []

    def process(self, rows: Sequence[Change]) -> None:
        for kind, row in rows:
            self._take(kind, row)

    def _take(self, kind: int, row: tuple[Any, ...]) -> None:
        key = tuple(row[index] for index in self._spec.keys)
        group = self._groups.get(key)
        adds = kind in (0, 2)
        if group is None:
            if not adds:
                return
            group = self._groups[key] = _Group(self._spec.calls)
        before, existed = self._results(group), group.rows > 0
        group.rows += 1 if adds else -1
        for call, values in zip(self._spec.calls, group.values, strict=True):
            if call.filter is not None and row[call.filter] is not True:
                continue
            value = 1 if call.argument is None else row[call.argument]
            if value is None and call.function != "ARRAY_AGG":
                continue
            if adds:
                values.append(value)
            elif value in values:
                values.remove(value)
        after = self._results(group)
        if group.rows == 0:
            del self._groups[key]
            self.changes.append((3, key + before))
        elif not existed:
            self.changes.append((0, key + after))
        elif before != after:
            if self._spec.update_before:
                self.changes.append((1, key + before))
            self.changes.append((2, key + after))

    def _results(self, group: _Group) -> tuple[Any, ...]:
        return tuple(_result(call, values) for call, values in zip(self._spec.calls, group.values, strict=True))


def _result(call: AggregateCall, values: list[Any]) -> Any:
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.function == "COUNT":
        return len(values)
    if call.function == "COLLECT":
        return {value: values.count(value) for value in values}
    if not values:
        return None
    if call.function in ("FIRST_VALUE", "LAST_VALUE"):
        return values[0 if call.function == "FIRST_VALUE" else -1]
    if call.function == "LISTAGG":
        return call.options[0].join(values)
    if call.function == "ARRAY_AGG":
        return list(values)
    if call.function in ("MIN", "MAX"):
        return (min if call.function == "MIN" else max)(values)
    total = sum(values[1:], values[0])
    if call.function == "SUM":
        return _wrapped(total, call.type)
    if isinstance(total, Decimal):
        raise AssertionError("averages of decimals are compared with given results")
    if isinstance(total, float):
        return total / len(values)
    return _wrapped(abs(total) // len(values) * (1 if total >= 0 else -1), call.type)


def _wrapped(number: Any, kind: pa.DataType) -> Any:
    if not isinstance(number, int):
        return number
    span = 1 << kind.bit_width
    return (number + span // 2) % span - span // 2


# A program

INPUT = pa.schema([("word", pa.string()), ("number", pa.int64()), ("ratio", pa.float64())])
RESULT = pa.schema([("word", pa.string()), ("count", pa.int64()), ("sum", pa.int64()), ("kinds", pa.int64())])
CALLS = (
    AggregateCall("COUNT", None, pa.int64()),
    AggregateCall("SUM", 1, pa.int64()),
    AggregateCall("COUNT", 1, pa.int64(), distinct=True),
)
GROUPS = GroupAggregate((0,), CALLS, INPUT, RESULT)


@dataclass(frozen=True)
class Column:
    index: int

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return batch.column(self.index)


@dataclass(frozen=True)
class Positive:
    index: int

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.greater(batch.column(self.index), 0)


def counted(stream: DataStream) -> DataStream:
    """SELECT word, COUNT(*), SUM(number), COUNT(DISTINCT number) FROM stream WHERE number > 0 GROUP BY word"""
    batches = (
        stream.transform("Columns", RowsToColumns(INPUT, kinds=True), ColumnsType(INPUT))
        .uid("columns")
        .set_parallelism(1)
    )
    calc = Calc((Column(0), Column(1), Column(2)), INPUT, Positive(1))
    chosen = batches.transform("Calc", calc, ColumnsType(INPUT)).uid("calc").set_parallelism(1)
    groups = chosen.key_by(KeyColumns((0,))).transform("Groups", GROUPS, ColumnsType(RESULT)).uid("groups")
    return groups.transform("Rows", ColumnsToRows(RESULT)).uid("rows")


def changes(count: int, first: int = 0) -> list[Row]:
    """Insertions, and every fifth time what was inserted two before is taken back."""
    rows = []
    for n in range(first, first + count):
        at, kind = (n - 2, RowKind.DELETE) if n % 5 == 4 else (n, RowKind.INSERT)
        row = Row(word=f"w{at % 11}", number=at % 4, ratio=at / 3)
        row.set_row_kind(kind)
        rows.append(row)
    return rows


def expected(rows: list[Row]) -> list[tuple[int, tuple[Any, ...]]]:
    reference = Reference(GROUPS)
    reference.process([(row.get_row_kind().value, tuple(row)) for row in rows if row.number > 0])
    return reference.changes


def found(rows: list[Row]) -> list[tuple[int, tuple[Any, ...]]]:
    return [(row.get_row_kind().value, tuple(row)) for row in rows]


def by_word(every: list[tuple[int, tuple[Any, ...]]]) -> dict[Any, list[Any]]:
    words: dict[Any, list[Any]] = {}
    for change in every:
        words.setdefault(change[1][0], []).append(change)
    return words
