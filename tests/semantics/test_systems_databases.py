"""Sinks into MariaDB and SQLite: through crashes, and with what one is told."""

from __future__ import annotations

import datetime
import logging
import re
import sqlite3
import ssl
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from certificatekit import self_signed
from databasekit import INSERT, NONE, PAIR, SMALL, SqliteFile, options, portions, rows
from mariadb_server import DATABASE, PASSWORD, USER, MariaDbServer, why_not
from mariadbkit import MariaDb
from serverkit import cannot_run

from firesteel.common import Instant, Row, Secret, Types
from firesteel.connectors.mysql import loading
from firesteel.connectors.mysql.address import MySqlAddress
from firesteel.connectors.mysql.driver import Session
from firesteel.connectors.sqlite import driver as sqlite_driver
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError, SetupError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

pytestmark = pytest.mark.usefixtures("short_pauses")

WORDS = [("abc"[n % 3], n) for n in range(40)]
SINKS = ["mariadb", "sqlite"]
FLAVOURS = ["sink", "exactly_once_sink"]


def _end(stream: Any, sink: Any) -> None:
    stream.sink_to(sink).name("to the database")


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


# What one is told


def failure(db: Any, records: list[Any], flavour: str = "sink", **changes: Any) -> JobExecutionError:
    sink = getattr(JdbcSink, flavour)(INSERT, PAIR, options(db, **changes), portions())
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection(records), sink))
    return caught.value


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("db", SINKS, indirect=True)
def test_a_table_that_is_not_there(db: Any, flavour: str) -> None:
    db.execute("CREATE TABLE another (n int)")
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


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    ("change", "advice"),
    [({"password": "wrong"}, "Check the user name and the password."), ({"database": "nowhere"}, "address.")],
)
def test_a_connection_that_is_refused_is_no_statement_and_no_element(
    mariadb: MariaDb, flavour: str, change: dict[str, str], advice: str
) -> None:
    where, _, name = mariadb.url.rpartition("/")
    url = f"{where}/{change.get('database', name)}".replace("jdbc:mysql", "jdbc:mariadb")
    error = failure(mariadb, [("a", 1)], flavour, url=url, password=change.get("password", mariadb.password))
    assert error.kind is FailureKind.PERMANENT
    assert re.search(r"MariaDB at \S+ refused the connection: .*\(error \d+\)\.", str(error))
    assert str(error).rstrip().endswith(advice)
    assert "The element is" not in str(error)


def mysql_session(url: str) -> Session:
    return Session(MySqlAddress.parse(url, USER, PASSWORD))


@pytest.mark.parametrize("asked", ["useSSL=true", "sslMode=REQUIRED", "sslMode=verify-full", "ssl-mode=VERIFY_CA"])
def test_tls_that_the_server_does_not_have(mariadb: MariaDb, asked: str) -> None:
    source = JdbcSource.table("t", PAIR, options(mariadb, url=f"{mariadb.url}?{asked}"))
    with pytest.raises(JobExecutionError, match=r"SSL is required .*Switch TLS on in the server, or ask") as caught:
        run_pipeline(lambda env: env.from_source(source, NONE, "t"), restarts=2)
    assert caught.value.kind is FailureKind.PERMANENT


def test_what_is_asked_of_a_connection_with_tls(tmp_path: Path) -> None:
    if (missing := why_not()) is not None:
        cannot_run(missing)
    certificate, key = self_signed(tmp_path)
    with MariaDbServer({"ssl-cert": certificate, "ssl-key": key}) as server:

        def encrypted(asked: str, host: str = "127.0.0.1") -> bool:
            session = mysql_session(f"jdbc:mariadb://{host}:{server.port}/{DATABASE}?{asked}")
            try:
                ((_, cipher),) = session.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            except session.errors as error:
                raise session.as_connector_error(error, "a look") from None
            finally:
                session.drop()
            return bool(cipher)

        trusted = f"serverSslCert={certificate}"
        for asked in (
            *("sslMode=REQUIRED", "sslMode=trust", "useSSL=true&trustServerCertificate=true"),
            *(f"sslMode=verify-ca&{trusted}", f"sslMode=VERIFY_IDENTITY&{trusted}", f"useSsl=true&{trusted}"),
        ):
            assert encrypted(asked), asked
        assert not encrypted("sslMode=DISABLED")
        assert encrypted(f"sslMode=verify-ca&{trusted}", "localhost")
        for asked, host in (("sslMode=verify-ca", "127.0.0.1"), (f"sslMode=verify-full&{trusted}", "localhost")):
            with pytest.raises(ConnectorError, match="has a certificate that is not trusted") as caught:
                encrypted(asked, host)
            assert caught.value.kind is FailureKind.PERMANENT


@pytest.mark.parametrize(
    ("asked", "mode", "verified", "identity"),
    [
        ("useSSL=true", "mysql", False, False),
        ("useSSL=true&verifyServerCertificate=true", "mysql", True, False),
        ("useSSL=true", "mariadb", True, True),
        ("useSSL=true&disableSslHostnameVerification=true", "mariadb", True, False),
        ("useSSL=true&trustServerCertificate=true", "mariadb", False, False),
        ("sslMode=REQUIRED", "mysql", False, False),
        ("sslMode=VERIFY_CA", "mysql", True, False),
        ("sslMode=VERIFY_IDENTITY&useSSL=false", "mysql", True, True),
        ("sslMode=verify-full", "mariadb", True, True),
    ],
)
def test_the_driver_gets_a_context_that_asks_for_as_much(asked: str, mode: str, verified: bool, identity: bool) -> None:
    context = MySqlAddress.parse(f"jdbc:{mode}://db/shop?{asked}").arguments()["ssl"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode is ssl.CERT_REQUIRED, context.check_hostname) == (verified, identity)


def test_what_asks_for_no_tls_and_what_nobody_knows() -> None:
    assert MySqlAddress.parse("jdbc:mysql://db/shop?useSSL=false").arguments()["ssl_disabled"] is True
    for asked in ("", "?sslMode=PREFERRED"):
        assert not {"ssl", "ssl_disabled"} & MySqlAddress.parse(f"jdbc:mysql://db/shop{asked}").arguments().keys()
    with pytest.raises(ProgramError, match=r"sslMode=strict in jdbc:mysql://db/shop.* is not known. It may be DISABLE"):
        MySqlAddress.parse("jdbc:mysql://db/shop?sslMode=strict")
    with pytest.raises(ConnectorError, match=r"The certificates in '/not/there.pem' cannot be read") as caught:
        MySqlAddress.parse("jdbc:mysql://db/shop?sslMode=VERIFY_CA&serverSslCert=/not/there.pem").arguments()
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_server_is_called_as_it_calls_itself(mariadb: MariaDb) -> None:
    url = mariadb.url.replace("jdbc:mariadb", "jdbc:mysql")
    error = failure(mariadb, [("a", 1)], url=url)
    assert "MariaDB at 127.0.0.1" in str(error)
    assert "Create the table first" in str(error)


@pytest.mark.parametrize("flavour", ["sink", "exactly_once_sink", "table", "query"])
def test_a_file_that_is_not_there_is_not_made(sqlite: SqliteFile, flavour: str) -> None:
    if flavour.endswith("sink"):
        error = failure(sqlite, [("a", 1)], flavour)
    else:
        made = (
            JdbcSource.table("counts", PAIR, options(sqlite), "n")
            if flavour == "table"
            else JdbcSource.query("SELECT word, n FROM counts", PAIR, options(sqlite))
        )
        with pytest.raises(JobExecutionError) as caught:
            run_pipeline(lambda env: env.from_source(made, NONE, "counts"))
        error = caught.value
    assert error.kind is FailureKind.PERMANENT
    assert f"in {sqlite.path}: there is no such file (SQLITE_CANTOPEN). Check the address" in str(error)
    assert not sqlite.path.exists()


def test_a_file_with_an_odd_name(tmp_path: Path) -> None:
    odd = SqliteFile(tmp_path / "a b#c%41.db")
    odd.execute("CREATE TABLE counts (word text, n int)")
    run_pipeline(lambda env: _end(env.from_collection([("a", 1)]), JdbcSink.sink(INSERT, PAIR, options(odd))))
    assert rows(odd) == [("a", 1)]


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
