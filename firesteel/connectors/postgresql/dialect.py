"""PostgreSQL among databases."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.common.secret import Secret
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.dialect import Dialect
from firesteel.connectors.jdbc.writing import Target
from firesteel.connectors.postgresql import statements
from firesteel.connectors.postgresql.address import Address
from firesteel.connectors.postgresql.driver import Session
from firesteel.connectors.postgresql.rows import Rows
from firesteel.connectors.postgresql.two_phase import TwoPhaseSink
from firesteel.datastream.connectors.base import Sink

__all__ = ["DIALECT"]


class _PostgreSql(Dialect):
    name = "PostgreSQL"

    def parse(self, url: str, user: str | None, password: str | Secret | None) -> DatabaseAddress:
        return Address.parse(url, user, password)

    def statement(self, sql: str) -> tuple[str, int]:
        return statements.with_numbers(sql)

    def quoted(self, name: str) -> str:
        return statements.quoted(name)

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        return statements.upsert(table, columns, keys)

    def rows(self, declared: RowTypeInfo | TupleTypeInfo) -> Rows:
        return Rows(declared)

    def session(self, address: DatabaseAddress, name: str) -> Session:
        return Session(address, name)

    def exactly_once(self, target: Target, commit_attempts: int) -> Sink:
        return TwoPhaseSink(target, commit_attempts)


DIALECT = _PostgreSql()
