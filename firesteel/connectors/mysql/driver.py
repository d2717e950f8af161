"""A connection through ``PyMySQL``, and its errors reported with what to do."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from firesteel.connectors.jdbc import session
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.mysql.address import MySqlAddress
from firesteel.connectors.mysql.loading import load_driver
from firesteel.errors import ConnectorError, FailureKind, short_repr

__all__ = ["DUPLICATE_KEY", "LOCKED", "NO_SUCH_TRANSACTION", "Session", "code_of"]

DUPLICATE_KEY = 1062
LOCKED = 1205
"""Somebody else holds a lock, and was waited for long enough."""
WITHOUT_TLS = 2026
"""TLS is asked for, and the server does not have it."""
NO_SUCH_TRANSACTION = 1397
"""XAER_NOTA: there is no such transaction, or the session that prepared it has not ended yet."""

_PASSING = frozenset(
    (
        *(0, 2002, 2003, 2006, 2013, 2014, 2027, 2055),  # connections
        *(1040, 1129, 1203, 1226),  # too many connections
        *(1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1317, 1927, 3169),  # a server that stops, networks, kills
        *(LOCKED, 1213, 1412),  # locks and deadlocks
        *(1290, 1792, 1836),  # a replica before it is promoted
        *(1021, 1037, 1038, 1041, 1114),  # disks and memory
    )
)

_ADVICE = {
    1044: "Grant the user the right to use the database.",
    1045: "Check the user name and the password.",
    1698: "Check the user name and the password.",
    1048: "Check that the column may be null.",
    1049: "Create the database first, or check the address.",
    1054: "Check the statement's columns.",
    1062: "The table's constraints do not allow it.",
    1064: "Check the statement.",
    1136: "Check the statement's columns.",
    1142: "Grant the user the right to do it.",
    1146: "Create the table first, or check the statement and the database.",
    WITHOUT_TLS: "Switch TLS on in the server, or ask for less (sslMode).",
    1227: "Grant the user XA_RECOVER_ADMIN, which MySQL asks for.",
    1451: "The table's constraints do not allow it.",
    1452: "The table's constraints do not allow it.",
    4025: "The table's constraints do not allow it.",
    3819: "The table's constraints do not allow it.",
}
_VALUES = (1264, 1265, 1292, 1366, 1367, 1406, 1690)
"""Values that do not fit their column."""


def code_of(error: BaseException) -> int:
    """The server's or the client's number of an error; 0 where the connection was closed before."""
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0


def _untrusted(error: BaseException) -> bool:
    """Whether the driver's error is about the server's certificate: it says the same of all that fails while it
    connects."""
    return isinstance(getattr(error, "original_exception", None), ssl.SSLCertVerificationError)


class Session(session.Session):
    """A connection of PyMySQL."""

    def __init__(self, address: DatabaseAddress, name: str = "firesteel") -> None:
        self.address = address
        self._name = name
        self._connection: Any = None
        self._unconnected: Exception | None = None
        """Why the last connection was not made."""
        self._server = ""

    @property
    def errors(self) -> type[Exception]:
        found: type[Exception] = load_driver().Error
        return found

    def is_passing(self, error: Exception) -> bool:
        driver = load_driver()
        if _untrusted(error):
            return False
        return isinstance(error, driver.OperationalError | driver.InterfaceError | driver.InternalError) and (
            code_of(error) in _PASSING
        )

    def as_connector_error(
        self, error: Exception, doing: str, element: object = None, kind: FailureKind | None = None
    ) -> ConnectorError:
        code = code_of(error)
        said = " ".join(str(error.args[1] if len(error.args) > 1 else error).split()) or "the connection was closed"
        away = code < 1000 or 2000 <= code < 3000
        unconnected = error is self._unconnected
        if _untrusted(error):
            what = f"{self.server} at {self.address} has a certificate that is not trusted: {said.rstrip('.')}."
            advice = "Check the host's name, and name a file with the authority's certificate (serverSslCert)."
            return ConnectorError(self.address.without_password(f"{what} {advice}"), kind=FailureKind.PERMANENT)
        if away:
            what = f"{self.server} at {self.address} cannot be reached ({doing}): {said.rstrip('.')}."
        else:
            doing = "the connection" if unconnected else doing
            what = f"{self.server} at {self.address} refused {doing}: {said.rstrip('.')} (error {code})."
        if element is not None and not unconnected:
            what += f" The element is {short_repr(element)}."
        fit = "Check that the column's type and the declared type of the field agree." if code in _VALUES else ""
        advice = _ADVICE.get(code) or fit or ("Check that it runs there." if away else "")
        kind = kind or (FailureKind.PASSING if self.is_passing(error) else FailureKind.PERMANENT)
        return ConnectorError(self.address.without_password(f"{what} {advice}".rstrip()), kind=kind)

    def connection(self) -> Any:
        if self._connection is None or not self._connection.open:
            try:
                self._connection = self._connect()
            except self.errors as error:
                self._unconnected = error
                raise
            self._server = "MariaDB" if "MariaDB" in self._connection.server_version else "MySQL"
        return self._connection

    def _connect(self) -> Any:
        return load_driver().connect(
            **self.address.resolve().arguments(),
            autocommit=True,
            charset="utf8mb4",
            program_name=self._name,
            # A value that does not fit is an error, not something shorter. A lock is waited for, but not for long.
            init_command=(
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), "
                f"innodb_lock_wait_timeout = {int(session.LOCK_SECONDS)}, time_zone = '+00:00'"
            ),
        )

    @property
    def server(self) -> str:
        """What the server calls itself; before it was reached, what the address calls it."""
        if self._server:
            return self._server
        address = self.address.resolve()
        assert isinstance(address, MySqlAddress)
        return address.server

    @property
    def is_open(self) -> bool:
        """Whether the connection that was made is still there, as far as is known."""
        return self._connection is not None and bool(self._connection.open)

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection().cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def executemany(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self.connection().cursor() as cursor:
            cursor.executemany(statement, rows)

    def transaction(self, force_rollback: bool = False) -> AbstractContextManager[Any]:
        return self._transaction(force_rollback)

    @contextlib.contextmanager
    def _transaction(self, force_rollback: bool) -> Iterator[None]:
        connection = self.connection()
        connection.begin()
        try:
            yield
        except BaseException:
            # The connection may be gone, and with it the transaction.
            with contextlib.suppress(self.errors):
                connection.rollback()
            raise
        if force_rollback:
            connection.rollback()
        else:
            connection.commit()

    def stream(self, statement: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        with self.connection().cursor(load_driver().cursors.SSCursor) as cursor:
            cursor.execute(statement, parameters or None)
            while rows := cursor.fetchmany(size):
                yield list(rows)

    def column_type(self, statement: str) -> str:
        with self.connection().cursor() as cursor:
            cursor.execute(statement)
            return "FLOAT" if cursor.description[0][1] == load_driver().constants.FIELD_TYPE.FLOAT else ""

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            with contextlib.suppress(*_closing_errors()):
                connection.close()


def _closing_errors() -> tuple[type[Exception], ...]:
    return (load_driver().Error, OSError)
