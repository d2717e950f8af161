"""What Spark raises where a database refuses something, in a line. Classes, states, numbers and texts are those that
Spark 4.3 gave with Derby 10.16, PostgreSQL 15 (driver 42.7), MariaDB 10.11 (drivers of MariaDB, 3.5, and MySQL)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from firesteel.common.secret import Secret
from firesteel.connectors.spark.errors import as_connector_error
from firesteel.connectors.spark.targets import FilesTarget, JdbcTarget
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.spark import SparkSink
from firesteel.errors import ConnectorError, FailureKind

PERMANENT, PASSING = FailureKind.PERMANENT, FailureKind.PASSING

NOT_CONNECTED = (
    "org.apache.spark.sql.AnalysisException",
    "[FAILED_JDBC.CONNECTION] Failed JDBC jdbc:postgresql:*********(redacted) on the operation: Couldn't connect to "
    "the database SQLSTATE: HV000",
)
SYNTAX = (
    "org.apache.spark.SparkException",
    "[JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR.DURING_OUTPUT_SCHEMA_RESOLUTION] JDBC external engine syntax error. The error "
    "was caused by the query SELECT * FROM t WHERE 1=0. The error occurred during output schema resolution.",
)
STAGE = (
    "org.apache.spark.SparkException",
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 1) (192.0.2.2 executor driver): java.sql.BatchUpdateException: Batch entry 0 INSERT INTO narrow",
)
BATCH = "java.sql.BatchUpdateException"
POSTGRES = "org.postgresql.util.PSQLException"
DERBY = "org.apache.derby.shared.common.error.StandardException"


class JavaError:
    """An exception of the JVM's as Py4J shows it."""

    def __init__(self, name: str, text: str | None, state: str | None = None, code: int = 0) -> None:
        self._name, self._text, self._known, self._code = name, text, state, code
        self.cause: JavaError | None = None

    def getClass(self) -> JavaError:
        return self

    def getSimpleName(self) -> str:
        return self._name.rpartition(".")[2]

    def getMessage(self) -> str | None:
        return self._text

    def getCause(self) -> JavaError | None:
        return self.cause

    def __getattr__(self, name: str) -> Any:
        if self.__dict__["_known"] is None or name not in ("getSQLState", "getErrorCode"):
            raise TypeError(f"Method {name}([]) does not exist")
        return lambda: self._known if name == "getSQLState" else self._code


class Py4JJavaError(Exception):
    java_exception: JavaError


def raised(*chain: tuple[Any, ...]) -> Exception:
    errors = [JavaError(*one) for one in chain]
    for outer, inner in itertools.pairwise(errors):
        outer.cause = inner
    error = Py4JJavaError("An error occurred while calling o52.jdbc.")
    error.java_exception = errors[0]
    return error


LOGIN = "Check the user name and the password."
DATABASE = "Create the database first, or check the address."
TABLE = "Create the table first, or check its name and the schema."
STATEMENT = "Check the statement, the columns, and what the user may do."
VALUE = "Check that the column's type and the declared type of the field agree."
CONSTRAINT = "The table's constraints do not allow it."

SYNTAX_ERROR, NOT_ALLOWED = "java.sql.SQLSyntaxErrorException", "java.sql.SQLInvalidAuthorizationSpecException"
LOST, ROLLED_BACK = "java.sql.SQLNonTransientConnectionException", "java.sql.SQLTransactionRollbackException"
CONFLICT, OTHER = "java.sql.SQLIntegrityConstraintViolationException", "java.sql.SQLException"

PERMANENT_ONES = [
    (NOT_CONNECTED, POSTGRES, 'FATAL: password authentication failed for user "ada"', "28P01", 0, LOGIN),
    (NOT_CONNECTED, LOST, "Connection authentication failure occurred.", "08004", 40000, LOGIN),
    (NOT_CONNECTED, NOT_ALLOWED, "(conn=16) Access denied for user 'ada'@'db'", "28000", 1045, LOGIN),
    (NOT_CONNECTED, POSTGRES, 'FATAL: database "none" does not exist', "3D000", 0, DATABASE),
    (NOT_CONNECTED, SYNTAX_ERROR, "(conn=17) Unknown database 'none'", "42000", 1049, DATABASE),
    (NOT_CONNECTED, OTHER, "Database '/data/none' not found.", "XJ004", 40000, DATABASE),
    (SYNTAX, POSTGRES, 'ERROR: relation "nowhere" does not exist\n  Position: 15', "42P01", 0, TABLE),
    (SYNTAX, SYNTAX_ERROR, "Table/View 'NOWHERE' does not exist.", "42X05", 30000, TABLE),
    (SYNTAX, SYNTAX_ERROR, "(conn=13) Table 'shop.nowhere' doesn't exist", "42S02", 1146, TABLE),
    (SYNTAX, POSTGRES, 'ERROR: syntax error at or near "1"\n  Position: 22', "42601", 0, STATEMENT),
    (SYNTAX, POSTGRES, 'ERROR: column "zz" does not exist\n  Position: 23', "42703", 0, STATEMENT),
    (SYNTAX, POSTGRES, "ERROR: permission denied for table t", "42501", 0, STATEMENT),
    (STAGE, POSTGRES, "ERROR: value too long for type character varying(2)", "22001", 0, VALUE),
    (STAGE, SYNTAX_ERROR, "(conn=22) Out of range value for column 'n' at row 1", "22003", 1264, VALUE),
    (STAGE, CONFLICT, "(conn=27) Duplicate entry '7' for key 'PRIMARY'", "23000", 1062, CONSTRAINT),
]
PASSING_ONES = [
    (NOT_CONNECTED, LOST, "Socket fail to connect to 127.0.0.1:1.", "08000", 0, "Check that it runs there."),
    (NOT_CONNECTED, POSTGRES, "FATAL: the database system is starting up", "57P03", 0, ""),
    (NOT_CONNECTED, POSTGRES, "FATAL: sorry, too many clients already", "53300", 0, ""),
    (NOT_CONNECTED, LOST, "Too many connections", "08004", 1040, "The server has no connection left."),
    (STAGE, POSTGRES, "ERROR: canceling statement due to statement timeout", "57014", 0, ""),
    (STAGE, POSTGRES, "ERROR: cannot execute INSERT in a read-only transaction", "25006", 0, ""),
    (STAGE, ROLLED_BACK, "A lock could not be obtained within the time requested", "40XL1", 30000, ""),
]


@pytest.mark.parametrize(
    ("kind", "said"),
    [(PERMANENT, said) for said in PERMANENT_ONES] + [(PASSING, said) for said in PASSING_ONES],
    ids=lambda given: given[3] if isinstance(given, tuple) else given.name,
)
def test_what_a_database_refused_is_told_in_a_line(kind: FailureKind, said: tuple[Any, ...]) -> None:
    outer, name, text, state, code, advice = said
    error = as_connector_error(raised(outer, (name, text, state, code), (DERBY, text, state, code)), "write to t")
    said_in_a_line = " ".join(text.split()).rstrip(".")
    assert str(error) == f"Spark could not write to t: {said_in_a_line} (SQLSTATE {state}). {advice}".rstrip()
    assert error.kind is kind


def test_the_innermost_of_a_batch_counts_and_what_lies_below_it_is_told() -> None:
    in_batch = (BATCH, "Batch entry 0 INSERT INTO t was aborted: ERROR: value too long", "22001")
    error = as_connector_error(raised(STAGE, in_batch, (POSTGRES, "ERROR: value too long", "22001")), "write to t")
    assert str(error).startswith("Spark could not write to t: ERROR: value too long (SQLSTATE 22001). ")
    unknown_host = ("java.net.UnknownHostException", "nowhere.invalid")
    failed = (POSTGRES, "The connection attempt failed.", "08001")
    error = as_connector_error(raised(NOT_CONNECTED, failed, unknown_host), "read")
    assert "The connection attempt failed (UnknownHostException: nowhere.invalid) (SQLSTATE 08001). " in str(error)
    assert error.kind is PASSING


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        ([NOT_CONNECTED, (OTHER, "Failed to start database 'x'.", "XJ040", 45000)], PASSING),
        ([SYNTAX, (SYNTAX_ERROR, "no such table: nowhere", "", 1)], PERMANENT),
        ([STAGE, (OTHER, "[SQLITE_BUSY] The database file is locked", None, 5)], PASSING),
    ],
)
def test_where_the_state_says_nothing_the_class_does(chain: Any, kind: FailureKind) -> None:
    assert as_connector_error(raised(*chain), "read").kind is kind


@pytest.mark.parametrize("text", ["No suitable driver", "org.apache.spark.x.jdbc.DriverWrapper.<init>()"])
def test_without_a_driver_it_says_how_to_bring_one(text: str) -> None:
    error = as_connector_error(raised(NOT_CONNECTED, (OTHER, text, "08001")), "read")
    advice = "Give Spark the driver's JAR (spark.jars.packages), and the name of its class as 'driver'."
    assert str(error) == f"Spark could not read: {text}. {advice}"
    assert error.kind is PERMANENT


PATH = "[PATH_NOT_FOUND] Path does not exist: file:/none. SQLSTATE: 42K03"


@pytest.mark.parametrize(
    ("chain", "kind", "said"),
    [
        ([("java.lang.ClassNotFoundException", "org.foo.Driver")], PERMANENT, "org.foo.Driver"),
        ([("org.apache.spark.sql.AnalysisException", PATH)], PERMANENT, PATH),
        ([STAGE, ("java.io.IOException", "No space left on device")], PASSING, "No space left on device"),
        ([("java.lang.NullPointerException", None)], PASSING, "NullPointerException"),
    ],
)
def test_what_spark_itself_refused_is_known_by_its_class(chain: Any, kind: FailureKind, said: str) -> None:
    error = as_connector_error(raised(*chain), "read")
    assert str(error) == f"Spark could not read: {said}."
    assert error.kind is kind


def test_where_nobody_says_whether_it_may_pass_the_caller_does() -> None:
    nothing_said = raised(("java.sql.SQLException", "no such table: t", "", 1))
    assert as_connector_error(nothing_said, "look", unknown=PERMANENT).kind is PERMANENT
    closed = raised((POSTGRES, "This connection has been closed.", "08003"))
    assert as_connector_error(closed, "look", unknown=PERMANENT).kind is PASSING


def test_what_is_an_error_of_ours_stays_as_it_is() -> None:
    error = ConnectorError("the table t has no column 'n'")
    assert as_connector_error(error, "write to t") is error


URLS = [
    "jdbc:postgresql://ada:hunter2@db/shop",
    "jdbc:postgresql://db/shop?user=ada&password=hunter2",
    "jdbc:sqlserver://db;user=ada;password=hunter2",
    "jdbc:derby:shop;user=ada;password=hunter2",
    "jdbc:oracle:thin:ada/hunter2@//db:1521/shop",
]


@pytest.mark.parametrize("url", URLS)
def test_passwords_in_addresses_are_shown_nowhere(url: str) -> None:
    said = raised(("java.sql.SQLException", f"cannot reach {url} as ada with hunter2", "08001"))
    target = JdbcTarget(url, "totals", {"user": "ada"})
    files = FilesTarget("csv", "s3a://ada:hunter2@bucket/totals", {}, ())
    shown = [
        # A DataFrame that somebody else has made, whose options nobody knows.
        str(as_connector_error(raised(("java.sql.SQLException", f"cannot reach {url}", "08001")), "read")),
        str(as_connector_error(said, "read", [url])),
        str(target._failure(said, f"write to {target}")),
        str(target),
        repr(target),
        str(files),
        repr(SparkSink.jdbc(url, "totals")),
    ]
    assert "hunter2" not in " ".join(shown)
    assert "totals of jdbc:" in shown[3]
    assert shown[5] == "s3a://ada:******@bucket/totals"


def test_secrets_among_the_options_are_shown_nowhere() -> None:
    said = raised(("java.sql.SQLException", "login with swordfish failed", "28000"))
    assert "login with *** failed" in str(as_connector_error(said, "read", [Secret("swordfish"), "ada"]))


@pytest.mark.parametrize("before", range(440, 500, 3))
def test_what_is_cut_shows_no_passwords(before: int) -> None:
    of_spark = f"{'x' * before} jdbc:oracle:thin:ada/hunter2@//db:1521/shop"
    url = "jdbc:sqlserver://db;password={hunter2 and more};encrypt=true"
    chain = ("java.sql.SQLException", f"{'x' * before} {url}", "08001")
    known = ("java.sql.SQLException", f"{'x' * before} hunter2 and more", "08001")
    shown = [
        str(as_connector_error(raised(("java.io.IOException", of_spark)), "read")),
        str(as_connector_error(raised(chain), "read")),
        str(as_connector_error(raised(known), "read", [url])),
        str(as_connector_error(raised(known), "read", [Secret("hunter2 and more")])),
        str(as_connector_error(raised(known), f"write to {url}", (one for one in [url]))),
    ]
    for text in shown:
        assert "hun" not in text
        assert len(text) < 700


def test_a_plan_does_not_show_them() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).sink_to(SparkSink.jdbc(URLS[1], "totals"))
    assert "hunter2" not in env.get_execution_plan()
