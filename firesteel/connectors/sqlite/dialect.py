"""SQLite among databases."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from firesteel.common.secret import Secret
from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.common.types import Row
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.dialect import Dialect
from firesteel.connectors.jdbc.rows import Rows, as_json, moment
from firesteel.connectors.jdbc.statements import check_keys, marked
from firesteel.connectors.jdbc.writing import Target
from firesteel.connectors.sqlite.driver import Session, SqliteAddress
from firesteel.connectors.sqlite.write_ahead import SqliteSink
from firesteel.datastream.connectors.base import Sink

__all__ = ["DIALECT"]


class _Sqlite(Dialect):
    """
    >>> DIALECT.upsert("counts", ["word", "n"], ["word"])
    'INSERT INTO `counts` (`word`, `n`) VALUES (?, ?) ON CONFLICT (`word`) DO UPDATE SET `n` = excluded.`n`'
    """

    name = "SQLite"

    def parse(self, url: str, user: str | None, password: str | Secret | None) -> DatabaseAddress:
        return SqliteAddress.parse(url)

    def statement(self, sql: str) -> tuple[str, int]:
        return marked(sql, lambda number: "?")

    def quoted(self, name: str) -> str:
        # Not with double quotes: where there is no such column, SQLite takes "zzz" for the text 'zzz'.
        return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        check_keys(table, columns, keys)
        names = ", ".join(self.quoted(column) for column in columns)
        marks = ", ".join("?" for _ in columns)
        changed = [column for column in columns if column not in keys]
        changes = ", ".join(f"{self.quoted(column)} = excluded.{self.quoted(column)}" for column in changed)
        action = f"UPDATE SET {changes}" if changed else "NOTHING"
        conflict = ", ".join(self.quoted(key) for key in keys)
        return f"INSERT INTO {self.quoted(table)} ({names}) VALUES ({marks}) ON CONFLICT ({conflict}) DO {action}"

    def rows(self, declared: RowTypeInfo | TupleTypeInfo) -> Rows:
        return Rows(declared, _parameter)

    def session(self, address: DatabaseAddress, name: str) -> Session:
        return Session(address)

    def exactly_once(self, target: Target, commit_attempts: int) -> Sink:
        return SqliteSink(target)


def _parameter(value: Any) -> Any:
    """SQLite has numbers, texts and bytes; the rest is text that sorts as it should."""
    if isinstance(value, Instant):
        return moment(value).isoformat(sep=" ")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict | Row | list | tuple):
        return as_json(value)
    return value


DIALECT = _Sqlite()
