"""A file of SQLite, and its errors reported with what to do."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.connectors.jdbc import session
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.errors import ConnectorError, FailureKind, ProgramError, short_repr

__all__ = ["Session", "SqliteAddress"]

BUSY_SECONDS = 20.0
"""For how long a lock of another connection is waited for: a file takes one writer at a time."""


@dataclass(frozen=True)
class SqliteAddress(DatabaseAddress):
    """A file.

    >>> str(SqliteAddress.parse("jdbc:sqlite:/data/shop.db")), str(SqliteAddress.parse("sqlite:///data/shop.db"))
    ('/data/shop.db', '/data/shop.db')
    """

    path: str

    @staticmethod
    def parse(url: str) -> SqliteAddress:
        path = url.removeprefix("jdbc:").removeprefix("sqlite:")
        path = (path[2:] if path.startswith("//") else path).partition("?")[0]
        if path in ("", ":memory:"):
            raise ProgramError("A SQLite database is a file that all workers reach: jdbc:sqlite:/path/to/file.")
        # Workers may run in other folders.
        return SqliteAddress(os.path.abspath(path))

    def __str__(self) -> str:
        return self.path

    def arguments(self) -> dict[str, Any]:
        # A path that is mistyped must not become a file.
        return {"database": f"{Path(self.path).as_uri()}?mode=rw", "uri": True}

    def without_password(self, text: str) -> str:
        return text


_MISSING = "no such file"
_ADVICE = (
    ("no such table", "Create the table first, or check the statement."),
    ("has no column", "Check the statement's columns."),
    ("no such column", "Check the statement's columns."),
    ("ON CONFLICT clause does not match", "ON CONFLICT needs a unique or primary key on exactly these columns."),
    ("constraint failed", "The table's constraints do not allow it."),
    ("cannot store", "Check that the column's type and the declared type of the field agree."),
    ("datatype mismatch", "Check that the column's type and the declared type of the field agree."),
    ("syntax error", "Check the statement."),
    (_MISSING, "Check the address, or create the file with its tables first."),
    ("unable to open", "Check that the folder is there and may be written to."),
    ("readonly", "Check that the file and its folder may be written to."),
    ("not a database", "Check the address: the file is something else."),
)


class Session(session.Session):
    """A connection of the standard library's driver."""

    errors = sqlite3.Error

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self._connection: sqlite3.Connection | None = None

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            # Commits come from a thread of their own, one at a time.
            address = self.address.resolve()
            try:
                self._connection = sqlite3.connect(
                    **address.arguments(), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
            except sqlite3.OperationalError as error:
                if os.path.exists(str(address)):
                    raise
                missing = sqlite3.OperationalError(f"there is {_MISSING}")
                missing.sqlite_errorcode, missing.sqlite_errorname = error.sqlite_errorcode, error.sqlite_errorname
                raise missing from None
        return self._connection

    def is_passing(self, error: Exception) -> bool:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)

    def as_connector_error(
        self, error: Exception, doing: str, element: object = None, kind: FailureKind | None = None
    ) -> ConnectorError:
        said = str(error)
        what = f"SQLite refused {doing} in {self.address}: {said} ({getattr(error, 'sqlite_errorname', 'error')})."
        if element is not None and _MISSING not in said:
            what += f" The element is {short_repr(element)}."
        advice = next((advice for words, advice in _ADVICE if words in said), "")
        kind = kind or (FailureKind.PASSING if self.is_passing(error) else FailureKind.PERMANENT)
        return ConnectorError(f"{what} {advice}".rstrip(), kind=kind)

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection().execute(statement, parameters).fetchall()

    def executemany(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self.connection().executemany(statement, rows)

    def transaction(self, force_rollback: bool = False) -> AbstractContextManager[Any]:
        return self._transaction(force_rollback)

    @contextlib.contextmanager
    def _transaction(self, force_rollback: bool) -> Iterator[None]:
        connection = self.connection()
        # At once with the right to write: two that begin by reading could not both go on.
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("ROLLBACK" if force_rollback else "COMMIT")

    def stream(self, statement: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self.connection().execute(statement, parameters)
        while rows := cursor.fetchmany(size):
            yield rows

    def column_type(self, statement: str) -> str:
        # Each value has one of its own.
        self.execute(statement)
        return ""

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
