"""SQL for a server that numbers its parameters, and the SQL of an upsert."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.connectors.jdbc.statements import check_keys, marked
from firesteel.connectors.postgresql.loading import load_driver

__all__ = ["quoted", "upsert", "with_numbers"]


def with_numbers(sql: str) -> tuple[str, int]:
    """The statement with ``$1, $2, …`` for its question marks, and how many there are.

    >>> with_numbers("INSERT INTO t (a, b) VALUES (?, ? || '?')")
    ("INSERT INTO t (a, b) VALUES ($1, $2 || '?')", 2)
    """
    return marked(sql, lambda number: f"${number}")


def quoted(name: str) -> str:
    """A table's or column's name, with its schema where it has one, as the server reads it.

    >>> quoted("shop.Orders"), quoted('a"b')
    ('"shop"."Orders"', '"a""b"')
    """
    text: str = load_driver().sql.Identifier(*name.split(".")).as_string(None)
    return text


def upsert(table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """Inserts a row, or gives the one with the same key these values.

    >>> upsert("counts", ["word", "n"], ["word"])
    'INSERT INTO "counts" ("word", "n") VALUES (?, ?) ON CONFLICT ("word") DO UPDATE SET "n" = EXCLUDED."n"'
    """
    check_keys(table, columns, keys)
    names = ", ".join(quoted(column) for column in columns)
    marks = ", ".join("?" for _ in columns)
    changed = [f"{quoted(column)} = EXCLUDED.{quoted(column)}" for column in columns if column not in keys]
    action = f"UPDATE SET {', '.join(changed)}" if changed else "NOTHING"
    conflict = ", ".join(quoted(key) for key in keys)
    return f"INSERT INTO {quoted(table)} ({names}) VALUES ({marks}) ON CONFLICT ({conflict}) DO {action}"
