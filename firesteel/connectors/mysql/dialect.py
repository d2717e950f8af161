"""MariaDB and MySQL among databases."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
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
from firesteel.connectors.mysql.address import MySqlAddress
from firesteel.connectors.mysql.driver import Session
from firesteel.connectors.mysql.loading import load_driver
from firesteel.connectors.mysql.two_phase import XaSink
from firesteel.datastream.connectors.base import Sink

__all__ = ["DIALECT"]


class _MySql(Dialect):
    """
    >>> DIALECT.statement("INSERT INTO t VALUES (?, ? % 5, '100%?')")
    ("INSERT INTO t VALUES (%s, %s %% 5, '100%%?')", 2)
    >>> DIALECT.upsert("shop.counts", ["word", "n"], ["word"])
    'INSERT INTO `shop`.`counts` (`word`, `n`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `n` = VALUES(`n`)'
    """

    name = "MySQL"

    def parse(self, url: str, user: str | None, password: str | Secret | None) -> DatabaseAddress:
        # A missing driver is told when the program is built.
        load_driver()
        return MySqlAddress.parse(url, user, password)

    def statement(self, sql: str) -> tuple[str, int]:
        return marked(sql.replace("%", "%%"), lambda number: "%s")

    def quoted(self, name: str) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        check_keys(table, columns, keys)
        names = ", ".join(self.quoted(column) for column in columns)
        marks = ", ".join("?" for _ in columns)
        changed = [column for column in columns if column not in keys] or list(keys[:1])
        changes = ", ".join(f"{self.quoted(column)} = VALUES({self.quoted(column)})" for column in changed)
        return f"INSERT INTO {self.quoted(table)} ({names}) VALUES ({marks}) ON DUPLICATE KEY UPDATE {changes}"

    def rows(self, declared: RowTypeInfo | TupleTypeInfo) -> Rows:
        return Rows(declared, _parameter)

    def session(self, address: DatabaseAddress, name: str) -> Session:
        return Session(address, name)

    def exactly_once(self, target: Target, commit_attempts: int) -> Sink:
        return XaSink(target, commit_attempts)


def _parameter(value: Any) -> Any:
    if isinstance(value, Instant):
        # Sessions are in UTC.
        return moment(value).replace(tzinfo=None)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict | Row | list | tuple):
        return as_json(value)
    return value


DIALECT = _MySql()
