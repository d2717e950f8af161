"""Tables of all databases as sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from databasekit import NONE, SMALL, SqliteFile, options
from kit import eventually

from firesteel.common import Types
from firesteel.datastream.connectors.jdbc import JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.errors import FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment, run_pipeline

pytestmark = pytest.mark.usefixtures("short_pauses")

ALL = ["sqlite", "mariadb", "database"]
ORDER = Types.ROW_NAMED(["id", "item"], [Types.LONG(), Types.STRING()])


def orders(db: Any, ids: list[int]) -> None:
    db.execute("CREATE TABLE orders (id bigint PRIMARY KEY, item varchar(20))")
    add(db, ids)


def add(db: Any, ids: list[int]) -> None:
    db.execute("INSERT INTO orders VALUES " + ", ".join(f"({n}, 'item {n}')" for n in ids))


@pytest.mark.parametrize("db", ALL, indirect=True)
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_table_in_parts(db: Any, partitions: int) -> None:
    # Gaps and clusters: parts are even in values, not in rows.
    ids = [-5, *range(10, 40), 10**9, 10**9 + 1, 10**12]
    orders(db, ids)
    source = JdbcSource.table("orders", ORDER, options(db), "id", partitions)
    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        config = SMALL | crashes.config
        found = run_pipeline(
            lambda env: env.from_source(source, NONE, "orders"), parallelism=2, config=config, restarts=1
        )
    assert sorted((row.id, row.item) for row in found) == [(n, f"item {n}") for n in ids]


@pytest.mark.parametrize("db", ALL, indirect=True)
def test_queries_with_parameters(db: Any) -> None:
    orders(db, list(range(20)))
    sql = "SELECT id, item FROM orders WHERE id >= ? AND id < ?"
    source = JdbcSource.query(sql, ORDER, options(db), [(0, 5), (5, 7), (15, 100)])
    found = run_pipeline(lambda env: env.from_source(source, NONE, "orders"), parallelism=2)
    assert sorted(row.id for row in found) == [*range(7), *range(15, 20)]


def test_an_empty_table_and_one_without_a_column_to_part_it(sqlite: SqliteFile) -> None:
    orders(sqlite, [1])
    sqlite.execute("DELETE FROM orders")
    for parts in ((), ("id", 3)):
        source = JdbcSource.table("orders", ORDER, options(sqlite), *parts)
        assert _all_of(source) == []


def _all_of(source: JdbcSource) -> Any:
    return run_pipeline(lambda env: env.from_source(source, NONE, "orders"))


@pytest.mark.parametrize("db", ALL, indirect=True)
def test_rows_as_they_come(db: Any, tmp_path: Path) -> None:
    orders(db, list(range(1, 31)))
    target = SqliteFile(tmp_path / "copy.db")
    target.execute("CREATE TABLE copies (id int PRIMARY KEY, item text)")
    env = memory_environment(2, config=SMALL)
    source = JdbcSource.growing_table("orders", "id", ORDER, options(db), start=10, interval=0.02)
    stream = env.from_source(source, NONE, "orders")
    stream.sink_to(JdbcSink.exactly_once_sink("INSERT INTO copies VALUES (?, ?)", ORDER, options(target)))
    job = env.execute_async("copies")

    def copied() -> list[int]:
        return [row[0] for row in target.execute("SELECT id FROM copies ORDER BY 1")]

    assert eventually(lambda: copied() == list(range(11, 31)))
    add(db, [31, 32, 50])
    assert eventually(lambda: copied() == [*range(11, 33), 50])
    job.cancel().result()


def test_a_row_that_is_committed_late_is_not_missed(sqlite: SqliteFile, tmp_path: Path) -> None:
    orders(sqlite, [1, 3])
    source = JdbcSource.growing_table("orders", "id", ORDER, options(sqlite), interval=0.01, settle=0.3)
    enumerator = source.create_enumerator()
    position = enumerator.latest(enumerator.initial(), 100)
    assert position == enumerator.initial(), "3 was not there for long enough"
    add(sqlite, [2])
    assert eventually(lambda: enumerator.latest(position, 100)[0][0] == 3)
    ((only,),) = enumerator.plan(position, [[3, None, 3]], 1)
    values = [row.id for piece in source.create_reader().read(*only[:3]) for row in piece.values]  # type: ignore[union-attr]
    assert values == [1, 2, 3]
    enumerator.stop()


@pytest.mark.parametrize("db", ["sqlite", "mariadb"], indirect=True)
def test_what_a_source_tells(db: Any) -> None:
    source = JdbcSource.table("orders", ORDER, options(db), "id")
    with pytest.raises(JobExecutionError, match="Create the table first") as caught:
        run_pipeline(lambda env: env.from_source(source, NONE, "orders"), restarts=2)
    assert caught.value.kind is FailureKind.PERMANENT
    db.execute("CREATE TABLE orders (id bigint, item int)")
    db.execute("INSERT INTO orders VALUES (1, 2)")
    with pytest.raises(JobExecutionError, match=r"field 'item' of ROW<.*>: expected STRING, got int 2"):
        run_pipeline(lambda env: env.from_source(source, NONE, "orders"))


def test_nonsense_is_refused_when_the_program_is_built(sqlite: SqliteFile) -> None:
    given = options(sqlite)
    with pytest.raises(ProgramError, match="name the partition_column"):
        JdbcSource.table("orders", ORDER, given, partitions=3)
    with pytest.raises(ProgramError, match="The query has 1 question marks"):
        JdbcSource.query("SELECT ?", ORDER, given)
    with pytest.raises(ProgramError, match=r"must be Types.ROW_NAMED"):
        JdbcSource.table("orders", Types.STRING(), given)  # type: ignore[arg-type]
