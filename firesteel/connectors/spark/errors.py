"""What Spark raises, in a line: what was tried, what was said, what to do, and whether it may pass.

What a database refused lies below several exceptions of Spark's, whose classes say little: a refused login and a server
that does not run are an AnalysisException both. The database's own state (SQLSTATE) says which of them it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from firesteel.common.secret import Secret, secrets_in_urls, without_url_secrets
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["as_connector_error"]

PERMANENT, PASSING = FailureKind.PERMANENT, FailureKind.PASSING

_PERMANENT_CLASSES = ("AnalysisException", "ParseException", "IllegalArgumentException", "ClassNotFoundException")
"""Spark's and Java's classes of errors that the same call gives again."""
_PERMANENT_SQL_CLASSES = (
    "SQLSyntaxErrorException",
    "SQLDataException",
    "SQLIntegrityConstraintViolationException",
    "SQLInvalidAuthorizationSpecException",
    "SQLFeatureNotSupportedException",
)
"""The same of JDBC, for drivers whose states say nothing. Connections that are lost have none of these classes."""

_LOGIN = PERMANENT, "Check the user name and the password."
_NO_DATABASE = PERMANENT, "Create the database first, or check the address."
_NO_TABLE = PERMANENT, "Create the table first, or check its name and the schema."
_MANY_CONNECTIONS = PASSING, "The server has no connection left."
_VALUE = PERMANENT, "Check that the column's type and the declared type of the field agree."
_STATES = {
    # Values, rows and statements: a repetition would be refused as well.
    "22": _VALUE,
    "23": (PERMANENT, "The table's constraints do not allow it."),
    "42": (PERMANENT, "Check the statement, the columns, and what the user may do."),
    **dict.fromkeys(("07", "0A", "21", "26", "2F", "44"), (PERMANENT, "")),
    **dict.fromkeys(("42P01", "42S02", "42X05", "42Y07"), _NO_TABLE),
    "28": _LOGIN,
    "08004": _LOGIN,
    **dict.fromkeys(("3D", "XJ004", "42000/1049"), _NO_DATABASE),
    # Connections, a standby before it is promoted, conflicts, resources, locks, an administrator, the server's disks.
    "08": (PASSING, "Check that it runs there."),
    **dict.fromkeys(("25", "40", "53", "55", "57", "58"), (PASSING, "")),
    # MySQL has states for these that mean something else elsewhere, or nothing.
    **dict.fromkeys(("08004/1040", "42000/1203", "42000/1226"), _MANY_CONNECTIONS),
    "HY000/1366": _VALUE,
}
"""By the beginning of "SQLSTATE/the vendor's number" what is so. The longest beginning counts."""

_NO_DRIVER = ("No suitable driver", "DriverWrapper")
"""What the JVM says where no driver, or none that it may see, is for an address."""
_GIVE_DRIVER = "Give Spark the driver's JAR (spark.jars.packages), and the name of its class as 'driver'."


class _Said(NamedTuple):
    """One exception of the JVM's in a chain of them."""

    name: str
    text: str
    state: str | None
    """SQLSTATE and the vendor's number; None where it is not a database's."""


def as_connector_error(
    error: Exception, doing: str, secrets: Iterable[Any] = (), unknown: FailureKind = PASSING
) -> ConnectorError:
    """What Spark raised, in a line. ``secrets``: options, of which neither secrets nor passwords in addresses are to be
    shown. ``unknown``: whether it may pass where nobody says so."""
    if isinstance(error, ConnectorError):
        return error
    secrets = list(secrets)
    # Before anything is cut: the part of an address that is left may not look like one.
    chain = [said._replace(text=_masked(said.text, secrets)) for said in _chain(error)]
    names = [said.name for said in chain]
    of_database = [said for said in chain if said.state is not None]
    advice = ""
    if any(text in chain[-1].text for text in _NO_DRIVER):
        said, kind, advice = _first_line(chain[-1]), PERMANENT, _GIVE_DRIVER
    elif of_database:
        said, kind, advice = _refusal(of_database[-1], chain[-1], unknown)
    else:
        # A failed stage hides the reason below several others.
        said = _first_line(chain[-1])
        kind = PERMANENT if any(name in _PERMANENT_CLASSES for name in names) else unknown
    return ConnectorError(f"Spark could not {_masked(doing, secrets)}: {said}. {advice}".rstrip(), kind=kind)


def _refusal(said: _Said, innermost: _Said, unknown: FailureKind) -> tuple[str, FailureKind, str]:
    """What a database said, and what that means."""
    text = _line(said.text)
    if innermost.state is None and innermost.text not in said.text:
        # Such as the host that nobody knows.
        text += f" ({innermost.name}: {_line(innermost.text)})"
    known = said.state or ""
    state = known.partition("/")[0]
    if state:
        text += f" (SQLSTATE {state})"
    for length in range(len(known), 1, -1):
        if known[:length] in _STATES:
            return text, *_STATES[known[:length]]
    return text, PERMANENT if said.name in _PERMANENT_SQL_CLASSES else unknown, ""


def _chain(error: Exception) -> Iterator[_Said]:
    """What was raised, from Python's exception to the innermost cause."""
    yield _Said(type(error).__name__, str(error), None)
    # Spark's own classes have the JVM's exception in a private field.
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            return
        name = str(cause.getClass().getSimpleName())
        yield _Said(name, str(cause.getMessage() or name), _state(cause))
        cause = cause.getCause()


def _state(cause: Any) -> str | None:
    try:
        return f"{cause.getSQLState() or ''}/{cause.getErrorCode()}"
    except Exception:
        # Py4J's way to say that it has no such method: it is not a database's.
        return None


def _first_line(said: _Said) -> str:
    return next((_line(line) for line in said.text.splitlines() if line.strip()), said.name)


def _line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")[:500]


def _masked(text: str, values: Iterable[Any]) -> str:
    for value in values:
        if isinstance(value, Secret):
            text = value.mask(text)
        else:
            for password in secrets_in_urls(str(value)):
                text = text.replace(password, "***")
    return without_url_secrets(text)
