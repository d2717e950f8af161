"""Operators on tables in jobs: rows that become columns, cross exchanges, are grouped, and become rows again; through
failures, savepoints and changes of parallelism."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from group_reference import Reference
from savepointkit import Halves

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream
from firesteel.errors import JobExecutionError
from firesteel.runtime.operators.table import (
    AggregateCall,
    Calc,
    ColumnsToRows,
    ColumnsType,
    GroupAggregate,
    KeyColumns,
    RowsToColumns,
)
from firesteel.testing import Crash

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

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        return batch.column(self.index)


@dataclass(frozen=True)
class Positive:
    index: int

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
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


@pytest.fixture
def halves(tmp_path: Path) -> Iterator[Halves]:
    made = Halves(tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_changelog_of_groups(halves: Halves, parallelism: int) -> None:
    rows = changes(500)
    got = found(halves.whole(counted, [rows[:200], rows[200:]], parallelism))
    assert by_word(got) == by_word(expected(rows))
    if parallelism == 1:
        assert got == expected(rows)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1)])
def test_groups_come_back_from_a_savepoint(halves: Halves, backend: str, before: int, after: int) -> None:
    begin, end = [changes(300), changes(100, 300)], [changes(200, 400)]

    got = halves.save(counted, begin, before, state_backend_type=backend)
    got += halves.resume(counted, [*begin, *end], after, state_backend_type=backend)

    assert by_word(found(got)) == by_word(expected(changes(600)))


def test_spark_groups_survive_a_crash_and_a_change_of_parallelism(tmp_path: Path) -> None:
    halves = Halves(tmp_path, "local")
    begin, end = [changes(300), changes(100, 300)], [changes(200, 400), changes(50, 600)]
    crash = Crash()

    got = halves.save(counted, begin, 2)
    got += halves.resume(
        counted,
        [*begin, end[0], [crash], end[1]],
        1,
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_attempts="2",
        restart__strategy_fixed__delay_delay="10 ms",
    )

    assert by_word(found(got)) == by_word(expected(changes(650)))
    assert crash.count == 1


def test_rows_are_counted_and_not_batches(halves: Halves) -> None:
    rows = changes(100)
    job, got, reader = halves.start(counted, [rows], True, 2, {})
    job.get_job_execution_result().result()
    reader.join()
    graph = job.context.spec.graph.graph
    names = {node.name: node.id for node in graph.nodes.values()}
    out = {name: job.inbox.progress.emitted[names[name]] for name in ("Columns", "Calc", "Groups")}
    assert out == {"Columns": 100, "Calc": sum(1 for row in rows if row.number > 0), "Groups": len(got)}


def test_a_row_that_does_not_fit_is_named(halves: Halves) -> None:
    with pytest.raises(JobExecutionError, match=r"Column 'number' is declared as int64, got str 'seven'"):
        halves.whole(counted, [[Row(word="a", number="seven", ratio=0.5)]], 1)
