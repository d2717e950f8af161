"""A connection through ``psycopg``, and its errors reported with what to do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from firesteel.connectors.jdbc import session
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.postgresql.address import Address
from firesteel.connectors.postgresql.loading import load_driver
from firesteel.errors import ConnectorError, FailureKind, short_repr

if TYPE_CHECKING:
    import psycopg

__all__ = ["LOCKED", "NO_SUCH_TRANSACTION", "Session", "as_connector_error", "is_passing"]

LOCKED = "55P03"
"""lock_not_available: somebody else holds a lock, and was waited for long enough."""
NO_SUCH_TRANSACTION = "42704"
"""undefined_object: there is no prepared transaction of that name."""

_PASSING_CLASSES = ("08", "40", "53", "57", "58")
"""Connections, conflicts between transactions, lack of resources, an administrator's doing, the server's own disks."""
_PASSING_STATES = ("25006", "25P02", "25P03", "55006", LOCKED, "XX000")
"""A standby before it is promoted, a transaction that failed before or stood still for too long, things in use, a lock
that was not to be had, what went wrong within the server."""

_REFUSED = {
    "28": re.compile(
        r"authentication failed|no password supplied|no pg_hba\.conf entry"
        r'|role ".*" (?:does not exist|is not permitted to log in)'
    ),
    "3D": re.compile(r'database ".*" does not exist'),
    "42501": re.compile(r'permission denied for database "'),
    "TLS": re.compile(
        r"certificate verify failed|server certificate for .* does not match|root certificate file .* does not exist"
        r"|server does not support SSL"
    ),
}
"""What a server says to a connection that it will not allow the next time either. That it has too many of them, in all
or of a role, is nothing of the kind. The words are looked at where the driver does not know the code: libpq keeps that
of a connection that failed to itself, and a server speaks the language that it was set up in."""
_REFUSED_STATES = ("28", "3D")
"""Of connections only: a login, and a database that is not there."""

_ADVICE = {
    "TLS": "Check the host's name, sslmode and sslrootcert.",
    "28": "Check the user name and the password.",
    "3D": "Create the database first, or check the address.",
    "42P01": "Create the table first, or check the statement and the schema.",
    "42703": "Check the statement's columns.",
    "42P10": "ON CONFLICT needs a unique or primary key on exactly these columns.",
    "42601": "Check the statement.",
    "42501": "Grant the user the right to do it.",
    "42804": "Check that the column's type and the declared type of the field agree.",
    "22": "Check that the column's type and the declared type of the field agree.",
    "23": "The table's constraints do not allow it.",
    "55000": "Set max_prepared_transactions in postgresql.conf to more than all subtasks of all sinks together.",
    "53200": "Raise max_prepared_transactions in postgresql.conf to more than all subtasks of all sinks together.",
}


def as_connector_error(
    error: Exception, address: DatabaseAddress, doing: str, element: object = None, kind: FailureKind | None = None
) -> ConnectorError:
    """An error of the driver as a ConnectorError: where, what was tried, what the server said, what to do. ``kind`` is
    for an error that means more at the place where it was caught than its code says."""
    state = getattr(error, "sqlstate", None) or ""
    said = " ".join(str(error).split()) or type(error).__name__
    refusal = state or _refused_connection(error)
    if state[:2] in _REFUSED_STATES:
        what, element = f"PostgreSQL at {address} refused the connection: {said} (SQLSTATE {state}).", None
    elif state:
        what = f"PostgreSQL at {address} refused {doing}: {said} (SQLSTATE {state})."
    elif refusal:
        what, element = f"PostgreSQL at {address} refused the connection: {said}.", None
    elif not isinstance(error, _connection_errors()):
        # Values of either side that the other one does not have.
        what = f"The driver of PostgreSQL at {address} refused {doing}: {said.rstrip('.')}."
        refusal = "22"
    else:
        what = f"PostgreSQL at {address} cannot be reached ({doing}): {said}."
    if element is not None:
        what += f" The element is {short_repr(element)}."
    advice = _ADVICE.get(refusal) or _ADVICE.get(refusal[:2]) or ("" if refusal else "Check that it runs there.")
    kind = kind or (FailureKind.PASSING if is_passing(error) else FailureKind.PERMANENT)
    return ConnectorError(address.without_password(f"{what} {advice}".rstrip()), kind=kind)


def _refused_connection(error: Exception) -> str:
    """The class of a refusal. The driver passes on what the server said to a connection, but not its code."""
    said = str(error)
    if getattr(getattr(error, "pgconn", None), "needs_password", False):
        return "28"
    return next((refusal for refusal, words in _REFUSED.items() if words.search(said)), "")


def _connection_errors() -> tuple[type[Exception], ...]:
    driver = load_driver()
    return driver.OperationalError, driver.InterfaceError


def is_passing(error: Exception) -> bool:
    """Whether the same may go well the next time."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, _connection_errors()) and not _refused_connection(error)
    return state in _PASSING_STATES or state[:2] in _PASSING_CLASSES


class Session(session.Session):
    """A connection of psycopg."""

    def __init__(self, address: DatabaseAddress, name: str = "firesteel") -> None:
        self.address = address
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None

    def connection(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            driver = load_driver()
            address = self.address.resolve()
            assert isinstance(address, Address)
            conninfo = address.conninfo(application_name=self._name)
            self._connection = driver.connect(conninfo, autocommit=True, cursor_factory=driver.RawCursor)
        return self._connection

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows."""
        cursor = self.connection().execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def execute_with(self, statement: str, literal: str) -> None:
        """Runs a statement of a kind that takes no parameters, with a text in place of ``{}``."""
        sql = load_driver().sql
        self.connection().execute(sql.SQL(statement).format(sql.Literal(literal)))

    @property
    def in_transaction(self) -> bool:
        """Whether statements go into a transaction that is open and can still be prepared or committed."""
        connection = self._connection
        if connection is None or connection.closed:
            return False
        return bool(connection.info.transaction_status == load_driver().pq.TransactionStatus.INTRANS)

    def executemany(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self.connection().cursor() as cursor:
            cursor.executemany(statement.encode(), rows)

    @property
    def errors(self) -> type[Exception]:
        found: type[Exception] = load_driver().Error
        return found

    def is_passing(self, error: Exception) -> bool:
        return is_passing(error)

    def as_connector_error(
        self, error: Exception, doing: str, element: object = None, kind: FailureKind | None = None
    ) -> ConnectorError:
        return as_connector_error(error, self.address, doing, element, kind)

    def transaction(self, force_rollback: bool = False) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = self.connection().transaction(force_rollback=force_rollback)
        return found

    def stream(self, statement: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        driver = load_driver()
        # The server sends rows while those before are worked on, and not more than a connection's buffers take. A libpq
        # before version 17 gives them only one by one.
        at_once = size if driver.capabilities.has_stream_chunked() else 1
        with self.connection().cursor() as cursor:
            rows = cursor.stream(statement.encode(), parameters or None, size=at_once)
            while piece := list(itertools.islice(rows, size)):
                yield piece

    def column_type(self, statement: str) -> str:
        cursor = self.connection().execute(statement.encode())
        assert cursor.description is not None
        known = load_driver().adapters.types.get(cursor.description[0].type_code)
        return known.name if known is not None else ""

    def drop(self) -> None:
        """Lets the connection go, with the transaction it may be in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
