"""What tests of databases share: a table's address, a file of SQLite, and how large portions are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.connectors.jdbc import session
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions

__all__ = [
    "INSERT",
    "NONE",
    "PAIR",
    "SMALL",
    "SqliteFile",
    "db",
    "options",
    "portions",
    "rows",
    "short_pauses",
    "sqlite",
]

NONE = WatermarkStrategy.no_watermarks()
PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
INSERT = "INSERT INTO counts (word, n) VALUES (?, ?)"
SMALL = {"firesteel.batch.max-records": "10"}


class SqliteFile:
    """A file of one test."""

    user, password = "", ""

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"jdbc:sqlite:{path}"

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.path, timeout=120) as connection:
            found = connection.execute(statement).fetchall()
        connection.close()
        return found

    def prepared(self) -> list[str]:
        return []


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteFile:
    return SqliteFile(tmp_path / "shop.db")


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Any:
    """The database whose fixture is the parameter."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def short_pauses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "PAUSE", 0.01)
        yield


def options(db: Any, **changes: Any) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(changes.get("url", db.url))
    return builder.with_user_name(db.user).with_password(changes.get("password", db.password)).build()


def portions(size: int = 5000, retries: int = 0) -> JdbcExecutionOptions:
    return JdbcExecutionOptions.builder().with_batch_size(size).with_max_retries(retries).build()


def rows(db: Any, table: str = "counts") -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # type: ignore[no-any-return]
