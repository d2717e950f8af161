"""A real MariaDB for the tests: one server for all of them, a database for each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from mariadb_server import PASSWORD, USER, MariaDbServer, why_not

__all__ = ["MariaDb", "mariadb", "mariadb_server"]


class MariaDb:
    """A database of one test."""

    user, password = USER, PASSWORD

    def __init__(self, server: MariaDbServer, name: str) -> None:
        self.server, self.name, self.url = server, name, server.url_of(name)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, database=self.name)

    def prepared(self) -> list[str]:
        """The transactions that are prepared and neither committed nor rolled back."""
        return self.server.prepared()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    """The server, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with MariaDB: {missing}")
        pytest.skip(f"no MariaDB to test with: {missing}")
    with MariaDbServer() as server:
        yield server


@pytest.fixture
def mariadb(mariadb_server: MariaDbServer) -> Iterator[MariaDb]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    mariadb_server.execute(f"CREATE DATABASE {name}")
    yield MariaDb(mariadb_server, name)
    for prepared in mariadb_server.prepared():
        mariadb_server.execute(f"XA ROLLBACK '{prepared}'")
    mariadb_server.execute(f"DROP DATABASE {name}")
