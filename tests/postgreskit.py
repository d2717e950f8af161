"""A real PostgreSQL for the tests: one server for all of them, a database for each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import PASSWORD, USER, PostgresServer, binaries


def why_not() -> str | None:
    """What is missing for tests with PostgreSQL, in a line."""
    if binaries() is None:
        return "PostgreSQL's programs were not found (Debian: apt-get install postgresql)"
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        return f"psycopg cannot be imported ({error})"
    return None


class Database:
    """A database of one test."""

    user, password = USER, PASSWORD

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server, self.name, self.url = server, name, server.url_of(name)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, self.name)

    def prepared(self) -> list[str]:
        """The transactions that are prepared and neither committed nor rolled back."""
        found = self.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY gid")
        return [gid for (gid,) in found]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with PostgreSQL: {missing}")
        pytest.skip(f"no PostgreSQL to test with: {missing}")
    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    with postgres_server.database(name):
        yield Database(postgres_server, name)
