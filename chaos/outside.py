"""The systems outside of the job: where its results become visible, and what may happen to them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg

from chaos.check import compare, in_files
from chaos.job import Plan, Result
from chaos.outcome import Outcome
from chaos.sql_queries import APPENDED, CHANGED

__all__ = ["Outside", "PostgresAndFiles", "TablesOfSql"]

Misfortune = Callable[[random.Random], None]


class Outside(ABC):
    """What a run looks at from outside."""

    environment: Mapping[str, str] = {}
    """What the job finds in its environment, such as passwords."""
    misfortunes: Mapping[str, Misfortune] = {}
    """What can happen to these systems, by name."""

    @abstractmethod
    def count(self) -> int:
        """How many results everybody can see."""

    @abstractmethod
    def check(self, plan: Plan, expected: Counter[Result], outcome: Outcome) -> None:
        """Compares all results with those of a run without faults, and looks for transactions without an end."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """The job has ended."""


class PostgresAndFiles(Outside):
    """A table and a folder."""

    def __init__(self, database: dict[str, Any], crash: Callable[[float], None] | None) -> None:
        self._database, self._crash = database, crash
        self._asked: psycopg.Connection[Any] | None = None
        self.environment = {"PGUSER": database["user"], "PGPASSWORD": database["password"]}
        self.misfortunes = {"database": self._crashes}
        with psycopg.connect(**database) as connection:
            connection.execute("CREATE TABLE results (kind text, key int, n bigint, value bigint)")

    def count(self) -> int:
        if self._asked is None or self._asked.broken:
            self._asked = psycopg.connect(autocommit=True, **self._database)
        row = self._asked.execute("SELECT count(*) FROM results").fetchone()
        assert row is not None
        return int(row[0])

    def _crashes(self, chance: random.Random) -> None:
        assert self._crash is not None
        self.close()
        # Sometimes it is back before anybody noticed, sometimes a restart of the job finds nobody there.
        self._crash(chance.uniform(0, 3))

    def check(self, plan: Plan, expected: Counter[Result], outcome: Outcome) -> None:
        with psycopg.connect(**self._database) as connection:
            rows = connection.execute("SELECT kind, key, n, value FROM results").fetchall()
            prepared = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
            left = connection.execute(prepared).fetchone()
        outcome.left = left[0] if left else 0
        for sink, found, asked in (
            ("PostgreSQL", Counter(rows), self.in_table(expected)),
            ("files", in_files(Path(plan.folder)), self.in_files(expected)),
        ):
            outcome.differences[sink] = compare(found, asked)

    def in_table(self, expected: Counter[Result]) -> Counter[Result]:
        """What the table should have."""
        return expected

    def in_files(self, expected: Counter[Result]) -> Counter[Result]:
        """What the files should have."""
        return expected

    def close(self) -> None:
        if self._asked is not None:
            self._asked.close()
            self._asked = None


class TablesOfSql(PostgresAndFiles):
    """A table that is written by key, and a folder for rows that never change."""

    def __init__(self, database: dict[str, Any], crash: Callable[[float], None] | None) -> None:
        super().__init__(database, crash)
        with psycopg.connect(**database) as connection:
            connection.execute("ALTER TABLE results ADD PRIMARY KEY (kind, key, n)")

    def in_table(self, expected: Counter[Result]) -> Counter[Result]:
        return Counter({row: count for row, count in expected.items() if row[0] in CHANGED})

    def in_files(self, expected: Counter[Result]) -> Counter[Result]:
        return Counter({row: count for row, count in expected.items() if row[0] in APPENDED})
