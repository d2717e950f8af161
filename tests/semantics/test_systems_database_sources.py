"""Tables of all databases as sources."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from databasekit import NONE, SMALL, SqliteFile, options
from kit import eventually

from firesteel.common import Types
from firesteel.connectors.jdbc import scanning
from firesteel.datastream.connectors.jdbc import JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError
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


def test_a_backlog_settles_as_a_whole_and_batches_of_any_size_read_it_once(
    sqlite: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(scanning, "time", clock)
    orders(sqlite, list(range(1, 401)))
    source = JdbcSource.growing_table("orders", "id", ORDER, options(sqlite), interval=0.5, settle=5)
    enumerator, reader = source.create_enumerator(), source.create_reader()
    position, sizes, read = enumerator.initial(), [], []
    for records, seconds in ((100, 0), (50, 1), (100, 1), (100, 3), (50, 0), (100, 0), (100, 0), (100, 0)):
        clock.now += seconds
        later = enumerator.latest(position, records)
        for only in (one for share in enumerator.plan(position, later, 1) for one in share):
            read += [row.id for piece in reader.read(*only[:3]) for row in piece.values]  # type: ignore[union-attr]
        sizes.append(later[0][0])
        position = later
        if records == 50 and seconds == 1:
            add(sqlite, [401])
    assert sizes == [None, None, None, 100, 150, 250, 350, 400]
    assert read == list(range(1, 401))
    # 401 was seen two seconds after the others, at the third look.
    clock.now += 2
    assert enumerator.latest(position, 100)[0][0] == 401
    enumerator.stop()
    reader.close()


def test_what_has_settled_before_a_position_does_not_move_it_back(
    sqlite: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(scanning, "time", clock)
    orders(sqlite, [1, 2, 3])
    source = JdbcSource.growing_table("orders", "id", ORDER, options(sqlite), interval=0.5, settle=5)
    enumerator = source.create_enumerator()
    assert enumerator.latest([[0, None, 0]], 100) == [[0, None, 0]]
    clock.now += 5
    ahead = [[7, None, 7]]
    assert enumerator.latest(ahead, 100) == ahead
    enumerator.stop()


@pytest.mark.parametrize("db", ["sqlite", "mariadb"], indirect=True)
def test_what_a_source_tells(db: Any) -> None:
    db.execute("CREATE TABLE another (n int)")
    source = JdbcSource.table("orders", ORDER, options(db), "id")
    with pytest.raises(JobExecutionError, match="Create the table first") as caught:
        run_pipeline(lambda env: env.from_source(source, NONE, "orders"), restarts=2)
    assert caught.value.kind is FailureKind.PERMANENT
    db.execute("CREATE TABLE orders (id bigint, item int)")
    db.execute("INSERT INTO orders VALUES (1, 2)")
    with pytest.raises(JobExecutionError, match=r"field 'item' of ROW<.*>: expected STRING, got int 2"):
        run_pipeline(lambda env: env.from_source(source, NONE, "orders"))


@pytest.mark.parametrize("kind", ["field", "partition", "growing"])
def test_a_column_that_sqlite_does_not_have_is_no_text(sqlite: SqliteFile, kind: str) -> None:
    orders(sqlite, [1, 2])
    wrong = Types.ROW_NAMED(["id", "zzz"], [Types.LONG(), Types.STRING()])
    sources = {
        "field": JdbcSource.table("orders", wrong, options(sqlite), "id"),
        "partition": JdbcSource.table("orders", ORDER, options(sqlite), "zzz", 2),
        "growing": JdbcSource.growing_table("orders", "zzz", ORDER, options(sqlite)),
    }
    with pytest.raises(JobExecutionError, match="no such column: zzz") as caught:
        _all_of(sources[kind])
    assert caught.value.kind is FailureKind.PERMANENT


def test_names_of_sqlite_with_quotes_of_all_kinds(sqlite: SqliteFile) -> None:
    odd = 'a`b"c?d'
    sqlite.execute('CREATE TABLE orders ("a`b""c?d" bigint)')
    sqlite.execute("INSERT INTO orders VALUES (5)")
    source = JdbcSource.table("orders", Types.ROW_NAMED([odd], [Types.LONG()]), options(sqlite), odd)
    assert [tuple(row) for row in _all_of(source)] == [(5,)]


@pytest.mark.parametrize("db", ALL, indirect=True)
def test_rows_without_a_value_to_part_them_by_are_not_left_out_silently(db: Any) -> None:
    db.execute("CREATE TABLE orders (id bigint, item varchar(20))")
    db.execute("INSERT INTO orders VALUES (NULL, 'pen'), (1, 'ink'), (NULL, 'nib')")
    source = JdbcSource.table("orders", ORDER, options(db), "id", 2)
    with pytest.raises(JobExecutionError, match=r"'orders' has 2 rows without a value \(NULL\) in 'id'") as caught:
        _all_of(source)
    assert caught.value.kind is FailureKind.PERMANENT


@pytest.mark.parametrize(("db", "kind"), [("database", "real"), ("mariadb", "float")], indirect=["db"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_column_of_single_precision_loses_no_rows(db: Any, kind: str, partitions: int) -> None:
    values = [0.1, 0.2, 0.7, 1.1, 16777216.0, 3.3e38]
    db.execute(f"CREATE TABLE points (x {kind}, n int)")
    db.execute("INSERT INTO points VALUES " + ", ".join(f"({x}, {n})" for n, x in enumerate(values)))
    point = Types.ROW_NAMED(["n"], [Types.LONG()])
    source = JdbcSource.table("points", point, options(db), "x", partitions)
    found = run_pipeline(
        lambda env: env.from_source(source, NONE, "points"), config={"firesteel.batch.max-records": "2"}
    )
    assert sorted(row.n for row in found) == list(range(len(values)))
    growing = JdbcSource.growing_table("points", "x", point, options(db), interval=0.001).create_enumerator()
    position = growing.initial()
    for _ in values:
        position = growing.latest(position, 1)
    assert growing.count(growing.initial(), position) == len(values)
    assert growing.latest(position, 1) == position
    growing.stop()


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("double precision", "1.5), ('NaN'), (2", "'x', by which a table is read, has the value nan"),
        ("numeric", "1.5), ('NaN'), (2", "'x', by which a table is read, has the value NaN"),
        ("numeric", "1.5), ('Infinity'), (2", "'x', by which a table is read, has the value Infinity"),
        ("uuid", "gen_random_uuid()", "'x' has values of uuid. A table is read by a column of numbers, texts, dates"),
        ("boolean", "true), (false", "'x' has values of bool. A table is read by a column of numbers, texts, dates"),
        ("time", "'12:30'), ('12:31'", "'x' has values of time. A table is read by a column of numbers, texts, dates"),
    ],
)
@pytest.mark.parametrize("grows", [False, True])
def test_values_by_which_no_table_is_read(database: Any, kind: str, values: str, said: str, grows: bool) -> None:
    database.execute(f"CREATE TABLE points (x {kind})")
    database.execute(f"INSERT INTO points VALUES ({values})")
    given = Types.ROW_NAMED(["x"], [Types.STRING()]), options(database)
    source = (
        JdbcSource.growing_table("points", "x", *given)
        if grows
        else JdbcSource.table("points", *given, partition_column="x", partitions=2)
    )
    enumerator = source.create_enumerator()
    with pytest.raises(ConnectorError, match=said) as caught:
        enumerator.latest(enumerator.initial(), 100)
    assert caught.value.kind is FailureKind.PERMANENT
    enumerator.stop()


def test_infinity_is_the_greatest_number(database: Any) -> None:
    database.execute("CREATE TABLE points (x double precision)")
    database.execute("INSERT INTO points VALUES (1), ('Infinity'), ('-Infinity'), (2)")
    point = Types.ROW_NAMED(["x"], [Types.DOUBLE()])
    found = _all_of(JdbcSource.table("points", point, options(database), "x", 2))
    assert sorted(row.x for row in found) == [-math.inf, 1, 2, math.inf]


def test_a_value_that_python_does_not_have(database: Any) -> None:
    database.execute("CREATE TABLE visits (at timestamp)")
    database.execute("INSERT INTO visits VALUES ('infinity')")
    visit = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()]), options(database)
    for source in (JdbcSource.table("visits", *visit, "at", 2), JdbcSource.query("SELECT at FROM visits", *visit)):
        with pytest.raises(JobExecutionError, match=r"refused .*: timestamp too large .*'infinity'") as caught:
            _all_of(source)
        assert caught.value.kind is FailureKind.PERMANENT
        assert "cannot be reached" not in str(caught.value)


def test_texts_among_numbers_in_sqlite(sqlite: SqliteFile) -> None:
    sqlite.execute("CREATE TABLE orders (id integer, item text)")
    sqlite.execute("INSERT INTO orders VALUES (1, 'pen'), ('abc', 'ink')")
    with pytest.raises(JobExecutionError, match=r"has texts among the numbers in 'id'.* from 1 to 'abc'") as caught:
        _all_of(JdbcSource.table("orders", ORDER, options(sqlite), "id", 2))
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_number_without_a_sign_that_is_no_long(mariadb: Any) -> None:
    mariadb.execute("CREATE TABLE orders (id bigint unsigned, item varchar(20))")
    mariadb.execute("INSERT INTO orders VALUES (NULL, 'nib'), (9223372036854775807, 'pen'), (0, 'cap')")
    source = JdbcSource.query("SELECT id, item FROM orders", ORDER, options(mariadb))
    assert [row.id for row in _all_of(source)] == [None, 2**63 - 1, 0]
    mariadb.execute("INSERT INTO orders VALUES (18446744073709551615, 'ink')")
    with pytest.raises(JobExecutionError, match=r"field 'id' of ROW<.*>: .* 18446744073709551615"):
        _all_of(source)


def test_nonsense_is_refused_when_the_program_is_built(sqlite: SqliteFile) -> None:
    given = options(sqlite)
    with pytest.raises(ProgramError, match="name the partition_column"):
        JdbcSource.table("orders", ORDER, given, partitions=3)
    with pytest.raises(ProgramError, match="The query has 1 question marks"):
        JdbcSource.query("SELECT ?", ORDER, given)
    with pytest.raises(ProgramError, match=r"must be Types.ROW_NAMED"):
        JdbcSource.table("orders", Types.STRING(), given)  # type: ignore[arg-type]
