"""State of operators on tables of every kind of column, in a savepoint and back at another parallelism."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from savepointkit import Halves

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    AggregateCall,
    ColumnsToRows,
    ColumnsType,
    GroupAggregate,
    KeyColumns,
    Order,
    OverAggregate,
    Rank,
    RowsToColumns,
)

TYPES: dict[str, pa.DataType] = {
    "word": pa.string(),
    "day": pa.date32(),
    "number": pa.int32(),
    "amount": pa.decimal128(10, 2),
    "ratio": pa.float64(),
    "at": pa.timestamp("ms"),
    "flag": pa.bool_(),
    "raw": pa.binary(),
}
INPUT = pa.schema(list(TYPES.items()))
CALLS = (
    *(
        AggregateCall(function, at, kind)
        for function in ("MIN", "MAX")
        for at, kind in enumerate(TYPES.values())
        if at > 1 and kind != pa.bool_()
    ),
    AggregateCall("SUM", 3, pa.decimal128(38, 2)),
    AggregateCall("AVG", 2, pa.int32()),
    AggregateCall("COUNT", 7, pa.int64(), distinct=True),
    AggregateCall("COUNT", None, pa.int64(), filter=6),
)


def rows(count: int, first: int = 0) -> list[Row]:
    found = []
    for n in range(first, first + count):
        at, kind = (n - 3, RowKind.DELETE) if n % 7 == 6 else (n, RowKind.INSERT)
        values: list[Any] = [
            f"w{at % 5}" if at % 11 else None,
            date(2024, 1, 1) + timedelta(at % 3),
            at * 37 % 101 - 50,
            Decimal(at * 31 % 977) / 100,
            at / 7,
            datetime(2024, 1, 1) + timedelta(seconds=at * 17 % 1000),
            None if at % 4 == 0 else at % 2 == 0,
            bytes([at % 6]),
        ]
        row = Row(**dict(zip(INPUT.names, values, strict=True)))
        row.set_row_kind(kind)
        found.append(row)
    return found


def batches(stream: DataStream) -> DataStream:
    spec = RowsToColumns(INPUT, kinds=True)
    return stream.transform("Columns", spec, ColumnsType(INPUT)).uid("columns").set_parallelism(1)


def grouped(stream: DataStream) -> DataStream:
    schema = pa.schema([*list(INPUT)[:2], *(pa.field(f"r{n}", call.type) for n, call in enumerate(CALLS))])
    keyed = batches(stream).key_by(KeyColumns((0, 1)))
    groups = keyed.transform("Groups", GroupAggregate((0, 1), CALLS, INPUT, schema), ColumnsType(schema)).uid("groups")
    return groups.transform("Rows", ColumnsToRows(schema)).uid("out")


def ranked(stream: DataStream) -> DataStream:
    spec = Rank((0,), (Order(5, False, False), Order(7), Order(3)), INPUT, INPUT, 3, retracts=True)
    keyed = batches(stream).key_by(KeyColumns((0,)))
    return (
        keyed.transform("Rank", spec, ColumnsType(INPUT)).uid("rank").transform("Rows", ColumnsToRows(INPUT)).uid("out")
    )


OVER = OverAggregate(
    (0,),
    (AggregateCall("FIRST_VALUE", 3, TYPES["amount"]), AggregateCall("COUNT", 7, pa.int64(), distinct=True)),
    INPUT,
    pa.schema([*INPUT, pa.field("first", TYPES["amount"]), pa.field("kinds", pa.int64())]),
    5,
    True,
    2,
)


def waiting(stream: DataStream) -> DataStream:
    """No watermark comes before the end: all rows are state."""
    spec = RowsToColumns(INPUT)
    columns = stream.transform("Columns", spec, ColumnsType(INPUT)).uid("columns").set_parallelism(1)
    over = columns.key_by(KeyColumns((0,))).transform("Over", OVER, ColumnsType(OVER.schema)).uid("over")
    return over.transform("Rows", ColumnsToRows(OVER.schema)).uid("out")


def by_group(found: list[Row], keys: int) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for row in found:
        groups.setdefault(tuple(row)[:keys], []).append((row.get_row_kind(), tuple(row)))
    return groups


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
@pytest.mark.parametrize(("program", "keys"), [(grouped, 2), (ranked, 1)], ids=["groups", "ranks"])
def test_all_types_come_back(tmp_path: Path, program: Any, keys: int, before: int, after: int) -> None:
    halves = Halves(tmp_path)
    steps = [rows(120), rows(60, 120), rows(100, 180)]
    whole = halves.whole(program, steps)

    found = halves.save(program, steps[:2], before)
    found += halves.resume(program, steps, after)

    assert by_group(found, keys) == by_group(whole, keys)
    assert Counter(row.get_row_kind() for row in whole)[RowKind.DELETE] > 0


def test_rows_of_all_types_wait_through_a_savepoint(tmp_path: Path) -> None:
    halves = Halves(tmp_path)
    steps = [[row for row in rows(120) if row.get_row_kind() is RowKind.INSERT], rows(5, 120)]
    whole = halves.whole(waiting, steps)

    found = halves.save(waiting, steps[:1], 2)
    assert not found
    found += halves.resume(waiting, steps, 3)

    assert by_group(found, 1) == by_group(whole, 1)
    assert len(found) == sum(map(len, steps))
