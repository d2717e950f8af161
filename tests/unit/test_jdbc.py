"""The PostgreSQL sinks without a server: addresses, statements, rows, options."""

from __future__ import annotations

import datetime
import importlib
import pickle
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from firesteel.common import Instant, Row, Types
from firesteel.connectors.jdbc.dialect import dialect_of
from firesteel.connectors.postgresql.address import Address
from firesteel.connectors.postgresql.driver import Session, as_connector_error, is_passing
from firesteel.connectors.postgresql.rows import Rows
from firesteel.connectors.postgresql.statements import upsert, with_numbers
from firesteel.connectors.postgresql.two_phase import PreparedTransaction, TransactionCommitter
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from firesteel.errors import ConnectorError, FailureKind, ProgramError, SetupError, TypeMismatchError

PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
SECRET = "hunter2"


def options(url: str = "jdbc:postgresql://db:5433/shop", password: str = SECRET) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    return builder.with_url(url).with_user_name("ada").with_password(password).build()


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("jdbc:postgresql://db:5433/shop", "db:5433/shop"),
            ("jdbc:postgresql://db/shop", "db:5432/shop"),
            ("jdbc:postgresql:shop", "localhost:5432/shop"),
            ("jdbc:postgresql:///shop", "localhost:5432/shop"),
            ("jdbc:postgresql://[::1]:5433/shop", "::1:5433/shop"),
            ("jdbc:postgresql://[::1]/shop", "::1:5432/shop"),
            ("jdbc:postgresql://one:1,two/shop", "one:1,two:5432/shop"),
            ("jdbc:postgresql://db/my%20shop", "db:5432/my shop"),
            ("jdbc:postgresql://db/?user=ada", "db:5432/ada"),
            ("postgresql://ada:pw@db/shop", "db:5432/shop"),
        ],
    )
    def test_forms(self, url: str, expected: str) -> None:
        assert str(Address.parse(url)) == expected

    def test_user_and_password_in_the_address(self) -> None:
        for url in ("jdbc:postgresql://db/shop?user=ada&password=p%26w", "postgresql://ada:p%26w@db/shop"):
            arguments = Address.parse(url).arguments()
            assert (arguments["user"], arguments["password"]) == ("ada", "p&w")

    def test_given_ones_win(self) -> None:
        arguments = Address.parse("jdbc:postgresql://db/shop?user=eve&password=x", "ada", "y").arguments()
        assert (arguments["user"], arguments["password"]) == ("ada", "y")

    def test_parameters(self) -> None:
        url = "jdbc:postgresql://db/shop?ssl=true&ApplicationName=me&connectTimeout=3&currentSchema=s"
        found = Address.parse(url + "&reWriteBatchedInserts=true").arguments()
        assert found == {
            "host": "db",
            "port": "5432",
            "dbname": "shop",
            "sslmode": "verify-full",
            "application_name": "me",
            "connect_timeout": "3",
            "options": "-c search_path=s",
        }

    def test_what_has_spaces_and_quotes_reaches_libpq_as_it_is(self) -> None:
        address = Address.parse("jdbc:postgresql://db/my%20shop?currentSchema=a%20b", "a'da", "p w\\'")
        found = psycopg.conninfo.conninfo_to_dict(address.conninfo(application_name="the job's"))
        assert found["dbname"] == "my shop"
        assert (found["user"], found["password"]) == ("a'da", "p w\\'")
        assert found["options"] == "-c search_path=a\\ b"
        assert found["application_name"] == "the job's"

    def test_without_user_and_password_the_environment_decides(self) -> None:
        assert set(Address.parse("jdbc:postgresql://db/shop").arguments()) == {
            "host",
            "port",
            "dbname",
            "connect_timeout",
        }

    @pytest.mark.parametrize(
        ("url", "text"),
        [
            ("jdbc:postgresql://db:x/shop?password=hunter2", "must be a number, got 'x'"),
            ("jdbc:postgresql://ada:hunter2%zz@db/shop", "The address jdbc:postgresql://db/shop cannot be read"),
            ("jdbc:postgresql://[::1/shop?password=hunter2", "The address jdbc:postgresql://[::1/shop cannot be read"),
            (
                "jdbc:postgresql://db/shop?colour=red&password=hunter2",
                "The parameter 'colour' in jdbc:postgresql://db/shop",
            ),
        ],
    )
    def test_refusals_do_not_show_the_password(self, url: str, text: str) -> None:
        with pytest.raises(ProgramError) as caught:
            Address.parse(url)
        assert text in str(caught.value)
        assert SECRET not in str(caught.value)

    def test_no_text_has_the_password(self) -> None:
        given = options(f"jdbc:postgresql://db/shop?password={SECRET}")
        sink = JdbcSink.sink("INSERT INTO t VALUES (?, ?)", PAIR, given)
        for text in (
            repr(given),
            str(given),
            repr(given.address()),
            str(given.address()),
            repr(sink),
            repr(sink._target),
        ):
            assert SECRET not in text
        assert given.address().without_password(f"a {SECRET} b") == "a *** b"

    @pytest.mark.parametrize(
        ("url", "start"),
        [("jdbc:oracle:thin:@db", "jdbc:oracle"), ("db:5432", "db"), ("shop.db", "shop.db")],
    )
    def test_another_database(self, url: str, start: str) -> None:
        with pytest.raises(ProgramError, match=f"got one that starts with '{start}'"):
            dialect_of(url)


class TestStatements:
    @pytest.mark.parametrize(
        ("sql", "expected", "count"),
        [
            ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES ($1, $2)", 2),
            ("SELECT '?', \"a?\", ?", "SELECT '?', \"a?\", $1", 1),
            ("SELECT 'it''s ?', ?", "SELECT 'it''s ?', $1", 1),
            ("SELECT E'\\'?', ?", "SELECT E'\\'?', $1", 1),
            ("SELECT $$ ? $$, $a$ ? $a$, ?", "SELECT $$ ? $$, $a$ ? $a$, $1", 1),
            ("SELECT ? -- why?\n, ?", "SELECT $1 -- why?\n, $2", 2),
            ("SELECT ? /* ? */, ?", "SELECT $1 /* ? */, $2", 2),
            ("SELECT a ?? 'b', 5 % ?", "SELECT a ? 'b', 5 % $1", 1),
        ],
    )
    def test_question_marks(self, sql: str, expected: str, count: int) -> None:
        assert with_numbers(sql) == (expected, count)

    def test_an_upsert(self) -> None:
        assert upsert("s.t", ["a", "b", "c"], ["a", "b"]) == (
            'INSERT INTO "s"."t" ("a", "b", "c") VALUES (?, ?, ?) '
            'ON CONFLICT ("a", "b") DO UPDATE SET "c" = EXCLUDED."c"'
        )
        assert upsert("t", ["a"], ["a"]).endswith('ON CONFLICT ("a") DO NOTHING')
        with pytest.raises(ProgramError, match="needs the columns of its key"):
            upsert("t", ["a"], [])
        with pytest.raises(ProgramError, match=r"Key columns \['x'\] are none of the columns of 't': \['a'\]"):
            upsert("t", ["a"], ["x"])


class TestRows:
    @pytest.mark.parametrize("record", [Row("a", 1), Row(n=1, word="a"), ("a", 1), ["a", 1], {"word": "a", "n": 1}])
    def test_records_of_every_form(self, record: Any) -> None:
        assert Rows(PAIR).row(record) == ("a", 1)

    def test_values(self) -> None:
        kinds = [Types.INSTANT(), Types.BIG_DEC(), Types.SQL_TIMESTAMP(), Types.LIST(Types.INSTANT()), Types.INT()]
        when = datetime.datetime(2020, 1, 1, 12)
        at = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=datetime.UTC)
        moment = Instant.of_epoch_milli(1500)
        found = Rows(Types.ROW(kinds)).row((moment, Decimal("1.5"), when, [moment], None))
        assert found == (at, Decimal("1.5"), when, [at], None)

    def test_maps_and_rows_become_json(self) -> None:
        pytest.importorskip("psycopg")
        declared = Types.ROW([Types.MAP(Types.STRING(), Types.INT()), PAIR])
        first, second = Rows(declared).row(({"x": 1}, Row("a", 1)))
        assert (first.obj, second.obj) == ({"x": 1}, {"word": "a", "n": 1})

    @pytest.mark.parametrize("record", [("a", "x"), ("a",), 5, None])
    def test_what_does_not_fit_is_refused(self, record: Any) -> None:
        with pytest.raises(TypeMismatchError, match="expected "):
            Rows(PAIR).row(record)


class TestOptions:
    def test_connection(self) -> None:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://db/shop")
        found = builder.with_driver_name("org.postgresql.Driver").with_user_name("ada").with_password(SECRET).build()
        assert found.get_db_url() == "jdbc:postgresql://db/shop"
        assert found.get_driver_name() == "org.postgresql.Driver"
        assert (found.get_user_name(), found.get_password()) == ("ada", SECRET)

    def test_an_address_is_needed(self) -> None:
        with pytest.raises(ProgramError, match=r"need an address: with_url"):
            JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()

    def test_execution(self) -> None:
        found = JdbcExecutionOptions.defaults()
        assert (found.get_batch_size(), found.get_batch_interval_ms(), found.get_max_retries()) == (5000, 0, 3)
        builder = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(8).with_max_retries(9)
        found = builder.build()
        assert (found.get_batch_size(), found.get_batch_interval_ms(), found.get_max_retries()) == (7, 8, 9)
        with pytest.raises(ProgramError, match="batch_size must be 0 or more, got -1"):
            builder.with_batch_size(-1)

    def test_exactly_once(self) -> None:
        assert JdbcExactlyOnceOptions.defaults().get_max_commit_attempts() == 3
        with pytest.raises(ProgramError, match="must be 1 or more, got 0"):
            JdbcExactlyOnceOptions.builder().with_max_commit_attempts(0)


class TestSinks:
    def test_the_statement_must_fit_the_type(self) -> None:
        with pytest.raises(ProgramError, match=r"1 question marks for the 2 fields of ROW<word STRING, n INT>"):
            JdbcSink.sink("INSERT INTO t VALUES (?)", PAIR, options())

    def test_the_type_must_have_fields(self) -> None:
        with pytest.raises(ProgramError, match=r"type_info must be Types.ROW.*got STRING"):
            JdbcSink.sink("INSERT INTO t VALUES (?)", Types.STRING(), options())  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="type_info must be"):
            JdbcSink.upsert_sink("t", ["a"], None, options())  # type: ignore[arg-type]

    def test_options_must_be_options(self) -> None:
        with pytest.raises(ProgramError, match=r"must be JdbcConnectionOptions, got 'jdbc:"):
            JdbcSink.sink("INSERT INTO t VALUES (?, ?)", PAIR, "jdbc:postgresql://db")  # type: ignore[arg-type]

    def test_they_travel(self) -> None:
        sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", PAIR, options())
        assert pickle.loads(pickle.dumps(sink))._target == sink._target

    def test_without_the_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = importlib.import_module

        def missing(name: str, *rest: Any) -> Any:
            if name == "psycopg":
                raise ModuleNotFoundError("No module named 'psycopg'")
            return real(name, *rest)

        monkeypatch.setattr(importlib, "import_module", missing)
        with pytest.raises(SetupError, match=r"pip install 'firesteel\[postgres\]'"):
            JdbcSink.sink("INSERT INTO t VALUES (?, ?)", PAIR, options())


ADDRESS = Address.parse("jdbc:postgresql://db/shop")
REFUSALS = {
    "no such table": "42P01",
    "a wrong password": "28P01",
    "a row that is there already": "23505",
    "a value that is too large": "22003",
    "no right": "42501",
    "prepared transactions are disabled": "55000",
}
PASSING = {
    "a lost connection": "08006",
    "a deadlock": "40P01",
    "a conflict of transactions": "40001",
    "a full disk": "53100",
    "too many connections": "53300",
    "the server shuts down": "57P01",
    "the server starts": "57P03",
    "a lock that was not to be had": "55P03",
    "a standby that is not promoted yet": "25006",
    "a transaction that stood still for too long": "25P03",
    "a broken disk": "58030",
}
FATAL = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: FATAL:  '
CONNECTING = {
    'password authentication failed for user "ada"': FailureKind.PERMANENT,
    'no pg_hba.conf entry for host "10.0.0.1", user "ada", database "shop", no encryption': FailureKind.PERMANENT,
    'role "ada" does not exist': FailureKind.PERMANENT,
    'role "ada" is not permitted to log in': FailureKind.PERMANENT,
    'database "shop" does not exist': FailureKind.PERMANENT,
    'permission denied for database "shop"': FailureKind.PERMANENT,
    'too many connections for role "ada"': FailureKind.PASSING,
    'too many connections for database "shop"': FailureKind.PASSING,
    "remaining connection slots are reserved for roles with the SUPERUSER attribute": FailureKind.PASSING,
    "canceling authentication due to timeout": FailureKind.PASSING,
    "the database system is starting up": FailureKind.PASSING,
    "the database system is shutting down": FailureKind.PASSING,
    "SSL error: certificate verify failed": FailureKind.PERMANENT,
    'server certificate for "db" does not match host name "shop"': FailureKind.PERMANENT,
    "server does not support SSL, but SSL was required": FailureKind.PERMANENT,
}


class TestKinds:
    """What no restart changes ends the job; what may pass is for the restart strategy."""

    @pytest.mark.parametrize("state", REFUSALS.values(), ids=REFUSALS)
    def test_refusals(self, state: str) -> None:
        error = psycopg.errors.lookup(state)("said")
        assert not is_passing(error)
        assert as_connector_error(error, ADDRESS, "it").kind is FailureKind.PERMANENT

    @pytest.mark.parametrize("state", PASSING.values(), ids=PASSING)
    def test_what_may_pass(self, state: str) -> None:
        error = psycopg.errors.lookup(state)("said")
        assert is_passing(error)
        assert as_connector_error(error, ADDRESS, "it").kind is FailureKind.PASSING

    @pytest.mark.parametrize("said", CONNECTING)
    def test_connecting(self, said: str) -> None:
        """The driver gives no code then."""
        assert as_connector_error(psycopg.OperationalError(FATAL + said), ADDRESS, "it").kind is CONNECTING[said]

    @pytest.mark.parametrize("state", ["28P01", "28000", "3D000"])
    def test_a_connection_whose_code_is_known(self, state: str) -> None:
        """In a language that nobody here has words for."""
        error = psycopg.errors.lookup(state)("Benutzer oder Datenbank gibt es nicht")
        found = as_connector_error(error, ADDRESS, "the statement", element=7)
        assert found.kind is FailureKind.PERMANENT
        assert "refused the connection: Benutzer oder" in str(found)
        assert "The element" not in str(found)

    def test_a_password_that_is_missing_in_any_language(self) -> None:
        error = psycopg.OperationalError("kein Passwort angegeben", pgconn=SimpleNamespace(needs_password=True))
        found = as_connector_error(error, ADDRESS, "it")
        assert found.kind is FailureKind.PERMANENT
        assert "Check the user name and the password." in str(found)

    def test_a_transaction_that_another_connection_is_committing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Elsewhere the same code is a refusal."""

        def execute(session: Session, statement: str, literal: str) -> None:
            raise psycopg.errors.lookup("55000")('prepared transaction with identifier "x" is busy')

        monkeypatch.setattr(Session, "execute_with", execute)
        committer = TransactionCommitter(ADDRESS, CommitterContext(SinkIdentity("job", "job-1", "sink-1")), 1)
        monkeypatch.setattr(committer, "_prepared", lambda: [PreparedTransaction("x", 7)])
        with pytest.raises(ConnectorError, match="is busy") as caught:
            committer.commit([PreparedTransaction("x", 7)])
        assert caught.value.kind is FailureKind.PASSING

    def test_what_the_driver_itself_refuses(self) -> None:
        assert (
            as_connector_error(psycopg.ProgrammingError("2 placeholders, 3 parameters"), ADDRESS, "it").kind
            is FailureKind.PERMANENT
        )
