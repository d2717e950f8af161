"""Sinks into MariaDB and SQLite, and tables of all databases as sources: through crashes, and with what one is told."""

from __future__ import annotations

import datetime
import logging
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from kit import eventually
from mariadb_server import MariaDbServer
from mariadbkit import MariaDb

from firesteel.common import Instant, Row, Secret, Types, WatermarkStrategy
from firesteel.connectors.jdbc import session
from firesteel.connectors.mysql import loading
from firesteel.connectors.mysql.two_phase import MARKS, XaCommitter, XaWriter
from firesteel.connectors.sqlite import driver as sqlite_driver
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError, SetupError
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
INSERT = "INSERT INTO counts (word, n) VALUES (?, ?)"
SMALL = {"firesteel.batch.max-records": "10"}
WORDS = [("abc"[n % 3], n) for n in range(40)]
SINKS = ["mariadb", "sqlite"]
FLAVOURS = ["sink", "exactly_once_sink"]


class SqliteFile:
    """A file of one test."""

    user, password = "", ""

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"jdbc:sqlite:{path}"

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.path) as connection:
            found = connection.execute(statement).fetchall()
        connection.close()
        return found

    def prepared(self) -> list[str]:
        return []


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteFile:
    return SqliteFile(tmp_path / "shop.db")


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PAUSE", 0.01)


def options(db: Any, **changes: Any) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(changes.get("url", db.url))
    return builder.with_user_name(db.user).with_password(changes.get("password", db.password)).build()


def portions(size: int = 5000, retries: int = 0) -> JdbcExecutionOptions:
    return JdbcExecutionOptions.builder().with_batch_size(size).with_max_retries(retries).build()


def rows(db: Any, table: str = "counts") -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # type: ignore[no-any-return]


def _end(stream: Any, sink: Any) -> None:
    stream.sink_to(sink).name("to the database")


# Sinks


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_every_record_is_in_the_table(db: Any, flavour: str, parallelism: int) -> None:
    db.execute("CREATE TABLE counts (word varchar(10), n int)")
    sink = getattr(JdbcSink, flavour)(INSERT, PAIR, options(db), portions(3))
    run_pipeline(lambda env: _end(env.from_collection(WORDS), sink), parallelism=parallelism, config=SMALL)
    assert rows(db) == sorted(WORDS)
    assert db.prepared() == []


@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_values_of_every_type(db: Any) -> None:
    when, day = datetime.datetime(2020, 1, 1, 12, 30, 15, 500_000), datetime.date(2020, 2, 29)
    columns: dict[str, tuple[Any, str, Any]] = {
        "a": (Types.LONG(), "bigint", 2**40),
        "b": (Types.DOUBLE(), "double", 1.5),
        "c": (Types.BOOLEAN(), "boolean", True),
        "d": (Types.BIG_DEC(), "decimal(10,2)", Decimal("12.50")),
        "e": (Types.SQL_DATE(), "date", day),
        "f": (Types.SQL_TIMESTAMP(), "datetime(6)", when),
        "g": (Types.INSTANT(), "datetime(6)", Instant(1, 500_000_000)),
        "h": (Types.PRIMITIVE_ARRAY(Types.BYTE()), "blob", b"\x00\xff"),
        "k": (Types.STRING(), "text", None),
        "l": (Types.SQL_TIME(), "time", datetime.time(23, 59, 58)),
        "m": (Types.STRING(), "text", "100% '\"\\ ? %s äß☃"),
    }
    names = ", ".join(f"{name} {kind[1]}" for name, kind in columns.items())
    db.execute(f"CREATE TABLE t (id int, {names})")
    declared = Types.ROW_NAMED(["id", *columns], [Types.INT(), *(kind[0] for kind in columns.values())])
    sql = f"INSERT INTO t VALUES ({', '.join('?' for _ in range(len(columns) + 1))})"
    record = Row(id=1, **{name: kind[2] for name, kind in columns.items()})
    run_pipeline(lambda env: _end(env.from_collection([record]), JdbcSink.sink(sql, declared, options(db))))
    # And back.
    source = JdbcSource.table("t", declared, options(db))
    (found,) = run_pipeline(lambda env: env.from_source(source, NONE, "t"))
    assert found.as_dict() == record.as_dict()


@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_maps_lists_and_rows_are_json(db: Any) -> None:
    db.execute("CREATE TABLE t (a text, b text, c text)")
    kinds = [Types.MAP(Types.STRING(), Types.INT()), Types.LIST(Types.INT()), PAIR]
    sink = JdbcSink.sink("INSERT INTO t VALUES (?, ?, ?)", Types.ROW(kinds), options(db))
    run_pipeline(lambda env: _end(env.from_collection([({"x": 1}, [1, 2], Row("a", 1))]), sink))
    assert rows(db, "t") == [('{"x": 1}', "[1, 2]", '{"word": "a", "n": 1}')]


@pytest.mark.parametrize("db", SINKS, indirect=True)
@pytest.mark.parametrize("point", CrashPoint)
def test_exactly_once_through_a_crash(db: Any, point: CrashPoint) -> None:
    """The key would refuse a row that comes twice, and rows of a lost transaction would make its repetition wait."""
    for table in ("counts", "more"):
        db.execute(f"CREATE TABLE {table} (word varchar(10), n int PRIMARY KEY)")
    statements = [INSERT, "INSERT INTO more VALUES (?, ?)"]
    sinks = [JdbcSink.exactly_once_sink(sql, PAIR, options(db), portions(3)) for sql in statements]

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection(WORDS)
        for sink in sinks:
            stream.sink_to(sink)

    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
        assert crashes.reached(point) > 2
    assert rows(db) == sorted(WORDS)
    assert rows(db, "more") == sorted(WORDS)
    assert db.prepared() == []


@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_an_upsert_ends_up_right_through_a_crash(db: Any) -> None:
    db.execute("CREATE TABLE counts (word varchar(10) PRIMARY KEY, n int)")
    sink = JdbcSink.upsert_sink("counts", ["word"], PAIR, options(db))

    def build(env: StreamExecutionEnvironment) -> None:
        pairs = env.from_collection(WORDS).map(lambda pair: (pair[0], 1))
        pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(sink)

    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
    assert rows(db) == [("a", 14), ("b", 13), ("c", 13)]


def test_the_address_may_be_found_elsewhere(mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    mariadb.execute("CREATE TABLE counts (word varchar(10), n int)")
    given = JdbcConnectionOptions(Secret.from_environment("SHOP"), user_name=mariadb.user)
    # Which database it is turns out when the job runs.
    sink = JdbcSink.exactly_once_sink(INSERT, PAIR, given)
    with pytest.raises(ProgramError, match="has 1 question marks for the 2 fields"):
        JdbcSink.sink("INSERT INTO counts VALUES (?)", PAIR, given)
    monkeypatch.setenv("SHOP", f"{mariadb.url}?password={mariadb.password.replace(' ', '%20').replace('&', '%26')}")
    run_pipeline(lambda env: _end(env.from_collection(WORDS), sink))
    assert rows(mariadb) == sorted(WORDS)


# XA, step by step


class At(SinkFunction.Context):
    """What a writer is told in a batch that began at some time."""

    def __init__(self, time: int) -> None:
        self._time = time

    def current_processing_time(self) -> int:
        return self._time

    def current_watermark(self) -> int:
        return 0

    def timestamp(self) -> int | None:
        return None


class Bench:
    """Writers and a committer of one sink."""

    def __init__(self, db: MariaDb, job: str = "job-1") -> None:
        db.execute("CREATE TABLE IF NOT EXISTS counts (word varchar(10), n int PRIMARY KEY)")
        self._sink = JdbcSink.exactly_once_sink(INSERT, PAIR, options(db), portions())
        self._identity = SinkIdentity("job", job, "sink-1")
        committer = self._sink.create_committer(CommitterContext(self._identity))
        assert isinstance(committer, XaCommitter)
        self.committer = committer

    def prepare(self, time: int, *records: Any, subtask: int = 0) -> list[str]:
        writer = self._sink.create_writer(WriterContext(self._identity, subtask, 2))
        assert isinstance(writer, XaWriter)
        for record in records:
            writer.write(record, At(time))
        writer.flush(False)
        found = writer.prepare_commit()
        writer.close()
        return found


def test_rows_appear_with_the_commit_and_a_second_one_changes_nothing(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    prepared = bench.prepare(1000, ("a", 1), ("b", 2))
    assert rows(mariadb) == []
    assert mariadb.prepared() == prepared
    bench.committer.commit(prepared)
    bench.committer.commit(prepared)
    assert rows(mariadb) == [("a", 1), ("b", 2)]
    assert (mariadb.prepared(), bench.prepare(2000)) == ([], [])


def test_a_second_try_of_a_task_takes_over_what_the_first_one_prepared(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    first, second = bench.prepare(1000, ("a", 1)), bench.prepare(1000, ("a", 1))
    assert second == first
    bench.committer.commit(second)
    assert rows(mariadb) == [("a", 1)]


def test_a_later_transaction_of_a_committed_name_never_begins(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    bench.committer.commit(bench.prepare(1000, ("a", 1)))
    with pytest.raises(ConnectorError, match="Duplicate entry") as caught:
        bench.prepare(1000, ("a", 2))
    assert caught.value.kind is FailureKind.PASSING


def test_recovery_rolls_back_what_is_not_to_be_committed_and_nobody_elses(mariadb: MariaDb) -> None:
    bench, other = Bench(mariadb), Bench(mariadb, "job-2")
    foreign = other.prepare(1000, ("x", 100))
    pending, lost = bench.prepare(1000, ("a", 1)), bench.prepare(2000, ("a", 2))
    bench.committer.recover(pending)
    assert mariadb.prepared() == sorted(pending + foreign)
    bench.committer.recover_and_commit(pending)
    bench.committer.abort(lost)
    other.committer.abort(foreign)
    assert (rows(mariadb), mariadb.prepared()) == ([("a", 1)], [])
    bench.committer.recover([])
    assert mariadb.execute(f"SELECT * FROM {MARKS}") == [], "no mark outlives its use"


def test_batches_that_are_all_committed_are_committed_again(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    first, second = bench.prepare(1000, ("a", 1)), bench.prepare(2000, ("a", 2))
    for _ in range(2):
        # Another sink of the job has failed meanwhile, so the log still has both when it is read again.
        bench.committer.recover(first + second)
        bench.committer.recover_and_commit(first)
        bench.committer.recover_and_commit(second)
    assert rows(mariadb) == [("a", 1), ("a", 2)]
    bench.committer.commit(third := bench.prepare(3000, ("a", 3)))
    assert [name for (name,) in mariadb.execute(f"SELECT name FROM {MARKS}")] == third


def test_what_somebody_rolled_back_is_not_taken_for_committed(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    (name,) = bench.prepare(1000, ("a", 1))
    assert eventually(lambda: _rolled_back(mariadb, name))
    with pytest.raises(ConnectorError, match="was not committed and is gone") as caught:
        bench.committer.commit([name])
    assert caught.value.kind is FailureKind.PERMANENT


def _rolled_back(db: MariaDb, name: str) -> bool:
    try:
        db.execute(f"XA ROLLBACK '{name}'")
    except Exception:
        return False
    return True


def test_a_process_is_killed_after_it_has_prepared(mariadb: MariaDb, tmp_path: Path) -> None:
    """``kill -9`` between prepare and commit; another process commits."""
    bench = Bench(mariadb)
    program = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from test_systems_databases import Bench
        from mariadbkit import MariaDb
        from mariadb_server import MariaDbServer
        server = MariaDbServer(); server.port = {mariadb.server.port}
        print(Bench(MariaDb(server, {mariadb.name!r})).prepare(1000, ("a", 1), ("b", 2)), flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert rows(mariadb) == []
    prepared = mariadb.prepared()
    assert done.stdout.strip() == str(prepared)
    bench.committer.recover(prepared)
    bench.committer.recover_and_commit(prepared)
    assert rows(mariadb) == [("a", 1), ("b", 2)]


@pytest.mark.timeout(300)
def test_the_server_is_killed_and_every_row_is_there_once(mariadb: MariaDb) -> None:
    server: MariaDbServer = mariadb.server
    total = 1000
    mariadb.execute("CREATE TABLE results (word varchar(10), n int)")
    config = {
        "firesteel.batch.max-records": "50",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100000",
        "restart-strategy.fixed-delay.delay": "20 ms",
    }
    env = memory_environment(2, config=config)
    numbers = env.from_source(DataGeneratorSource(lambda n: ("a", n), total, 500), NONE, "numbers")
    sink = JdbcSink.exactly_once_sink("INSERT INTO results VALUES (?, ?)", PAIR, options(mariadb))
    numbers.rebalance().map(lambda pair: pair, output_type=PAIR).sink_to(sink).uid("sink")
    job = env.execute_async("into MariaDB")
    for reached, seconds_down in ((100, 0.0), (500, 0.3)):

        def there(reached: int = reached) -> bool:
            return bool(mariadb.execute("SELECT count(*) FROM results")[0][0] >= reached)

        assert eventually(there)
        server.crash(seconds_down)
    job.get_job_execution_result().result()
    assert Counter(n for (n,) in mariadb.execute("SELECT n FROM results")) == Counter(range(total))
    assert mariadb.prepared() == []


# What one is told


def failure(db: Any, records: list[Any], flavour: str = "sink", **changes: Any) -> JobExecutionError:
    sink = getattr(JdbcSink, flavour)(INSERT, PAIR, options(db, **changes), portions())
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection(records), sink))
    return caught.value


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_a_table_that_is_not_there(db: Any, flavour: str) -> None:
    error = failure(db, [("a", 1)], flavour)
    assert error.kind is FailureKind.PERMANENT
    assert "Create the table first" in str(error)
    assert "INSERT INTO counts" in str(error)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_value_that_the_column_refuses(mariadb: MariaDb, flavour: str) -> None:
    mariadb.execute("CREATE TABLE counts (word varchar(10), n smallint)")
    error = failure(mariadb, [("a", 1), ("b", 70_000), ("c", 3)], flavour)
    assert "Out of range value for column 'n'" in str(error)
    assert "The element is ('b', 70000). Check that the column's type" in str(error)
    assert rows(mariadb) == []
    assert mariadb.prepared() == []


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_value_that_the_file_refuses(sqlite: SqliteFile, flavour: str) -> None:
    sqlite.execute("CREATE TABLE counts (word text, n int CHECK (n < 1000))")
    error = failure(sqlite, [("a", 1), ("b", 70_000), ("c", 3)], flavour)
    assert "CHECK constraint failed" in str(error)
    assert "The element is ('b', 70000). The table's constraints do not allow it." in str(error)
    assert rows(sqlite) == []


def test_a_server_that_is_not_there_is_tried_again(mariadb: MariaDb) -> None:
    error = failure(mariadb, [("a", 1)], url="jdbc:mysql://127.0.0.1:1/shop")
    assert error.kind is FailureKind.PASSING
    assert "MySQL at 127.0.0.1:1/shop cannot be reached" in str(error)
    assert "Check that it runs there." in str(error)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_login_that_is_refused_and_a_password_that_is_told_to_nobody(
    mariadb: MariaDb, flavour: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "wr0ng-but-s3cret"
    with caplog.at_level(logging.DEBUG):
        error = failure(mariadb, [("a", 1)], flavour, password=secret)
    assert error.kind is FailureKind.PERMANENT
    assert "Check the user name and the password." in str(error)
    shown = [str(error), repr(error), error.cause_text or "", repr(error.__cause__), *caplog.messages]
    assert [text for text in shown if secret in text] == []
    assert secret not in repr(options(mariadb, url=f"jdbc:mysql://ada:{secret}@db/shop"))


def test_a_file_that_somebody_else_holds_is_waited_for(sqlite: SqliteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_driver, "BUSY_SECONDS", 0.05)
    sqlite.execute("CREATE TABLE counts (word text, n int)")
    holder = sqlite3.connect(sqlite.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    error = failure(sqlite, [("a", 1)])
    assert error.kind is FailureKind.PASSING
    assert "database is locked (SQLITE_BUSY)" in str(error)
    holder.close()


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(SetupError, match=r"pip install 'firesteel\[mysql\]'"):
        loading.load_driver()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("jdbc:oracle:thin:@db", "starts with 'jdbc:oracle'"),
        ("shop.db", "starts with 'shop.db'"),
        ("jdbc:sqlite::memory:", "a file that all workers reach"),
        ("jdbc:mysql://ada:hunter2@db:x/shop", "The port in jdbc:mysql://db:x/shop must be a number"),
        ("jdbc:mysql://db/shop?colour=red&password=hunter2", "The parameter 'colour' in jdbc:mysql://db/shop"),
        ("jdbc:mysql:shop", "It should be jdbc:mysql://host:port/database"),
    ],
)
def test_addresses_that_cannot_be_read(url: str, text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    assert text in str(caught.value)
    assert "hunter2" not in str(caught.value)


# Sources

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
