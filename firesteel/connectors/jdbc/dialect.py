"""What differs from database to database, and which one an address means."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.common.secret import Secret
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.errors import ProgramError

if TYPE_CHECKING:
    from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
    from firesteel.connectors.jdbc.rows import Rows
    from firesteel.connectors.jdbc.session import Session
    from firesteel.connectors.jdbc.writing import Target
    from firesteel.datastream.connectors.base import Sink

__all__ = ["Dialect", "dialect_of"]

_HOMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
}
"""By what stands in front of the colon."""


class Dialect(ABC):
    """One kind of database. It has no state: where one is needed, it is made."""

    name: str

    @abstractmethod
    def parse(self, url: str, user: str | None, password: str | Secret | None) -> DatabaseAddress:
        """Reads an address; ``user`` and ``password`` override those in it."""

    @abstractmethod
    def statement(self, sql: str) -> tuple[str, int]:
        """A statement with the driver's own marks for its question marks, and how many there are."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A table's or column's name, with its schema where it has one, as the server reads it."""

    @abstractmethod
    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Inserts a row, or gives the one with the same key these values; with question marks."""

    @abstractmethod
    def rows(self, declared: RowTypeInfo | TupleTypeInfo) -> Rows:
        """Turns records into parameters."""

    @abstractmethod
    def session(self, address: DatabaseAddress, name: str) -> Session:
        """A connection that is made when it is first needed."""

    @abstractmethod
    def exactly_once(self, target: Target, commit_attempts: int) -> Sink:
        """What writes to a target exactly once."""


def dialect_of(url: str) -> Dialect:
    """The dialect of an address.

    >>> dialect_of("jdbc:mariadb://db/shop").name
    'MySQL'
    >>> dialect_of("jdbc:oracle:thin:@db")
    Traceback (most recent call last):
      ...
    firesteel.errors.ProgramError: A database is addressed as jdbc:postgresql://host:port/database, \
jdbc:mysql://…, jdbc:mariadb://… or jdbc:sqlite:path, got one that starts with 'jdbc:oracle'.
    """
    kind = url.removeprefix("jdbc:").partition(":")[0]
    home = _HOMES.get(kind) if ":" in url.removeprefix("jdbc:") else None
    if home is None:
        start = f"jdbc:{kind}" if url.startswith("jdbc:") else kind
        raise ProgramError(
            "A database is addressed as jdbc:postgresql://host:port/database, jdbc:mysql://…, jdbc:mariadb://… or "
            f"jdbc:sqlite:path, got one that starts with {start.rpartition('@')[2]!r}."
        )
    dialect: Dialect = importlib.import_module(f"firesteel.connectors.{home}.dialect").DIALECT
    return dialect
