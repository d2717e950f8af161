"""The registry in a SQLite file (write-ahead log), for one job manager on one machine."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firesteel.cluster.registry import (
    AttemptRow,
    DriverRow,
    JobRow,
    Leader,
    OperationRow,
    StaleEpochError,
    check_registry_version,
)
from firesteel.cluster.row_text import attempt_of, job_of, operation_of, text_of
from firesteel.durable.versions import REGISTRY
from firesteel.errors import SetupError

__all__ = ["SqliteRegistry"]

_CLUSTER = "CREATE TABLE IF NOT EXISTS cluster (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, position INTEGER NOT NULL, known TEXT NOT NULL, record TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    job TEXT NOT NULL, number INTEGER NOT NULL, known TEXT NOT NULL, PRIMARY KEY (job, number)
);
CREATE TABLE IF NOT EXISTS operations (
    id TEXT PRIMARY KEY, job TEXT NOT NULL, done INTEGER NOT NULL, known TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS operations_of_jobs ON operations (job);
"""


class SqliteRegistry:
    """Rows are JSON in a column.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> registry = SqliteRegistry(Path(folder.name) / "registry.sqlite")
    >>> registry.claim()
    1
    >>> registry.add_job(JobRow("a" * 32, "orders", "p.py"))
    >>> registry.update_job("a" * 32, state="RUNNING", pid=7).state
    'RUNNING'
    >>> [(job.name, job.pid) for job in registry.jobs()]
    [('orders', 7)]
    >>> registry.close(); folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._epoch = 0
        # Made by us, so that it has a mode of its own; SQLite gives the same one to the files beside it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            self._prepare(path)
        except sqlite3.DatabaseError as error:
            raise SetupError(
                f"The registry {path} cannot be read: {error}. Put back a copy of it, or move it away to begin anew "
                "without jobs."
            ) from error

    def _prepare(self, path: Path) -> None:
        self._base = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
        self._base.execute("PRAGMA journal_mode=WAL")
        # A row that was written is there after a loss of power: which attempt may run depends on it.
        self._base.execute("PRAGMA synchronous=FULL")
        self._base.execute(_CLUSTER)
        known = self._value("version")
        if known is not None:
            check_registry_version(int(known) if known.isdecimal() else known, str(path))
        self._base.executescript(_SCHEMA)
        if known is None:
            self._base.execute("INSERT INTO cluster VALUES ('version', ?)", (str(REGISTRY.version),))

    def _value(self, name: str) -> str | None:
        row = self._base.execute("SELECT value FROM cluster WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of this epoch."""
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                if int(self._value("epoch") or 0) != self._epoch:
                    raise StaleEpochError("Another job manager has taken over.")
                yield self._base
                self._base.execute("COMMIT")
            except BaseException:
                self._base.execute("ROLLBACK")
                raise

    def claim(self, address: str = "") -> int:
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            self._epoch = int(self._value("epoch") or 0) + 1
            values = [("epoch", str(self._epoch)), ("address", address)]
            self._base.executemany("INSERT OR REPLACE INTO cluster VALUES (?, ?)", values)
            self._base.execute("COMMIT")
            return self._epoch

    @property
    def epoch(self) -> int:
        return self._epoch

    def check(self) -> None:
        with self._lock:
            if int(self._value("epoch") or 0) != self._epoch:
                raise StaleEpochError("Another job manager has taken over.")

    def leader(self) -> Leader | None:
        with self._lock:
            epoch, address = self._value("epoch"), self._value("address")
        return Leader(int(epoch), address) if epoch and address else None

    # Drivers: those of one machine are watched by their processes

    def assign_driver(self, job_id: str, number: int) -> str:
        return ""

    def driver(self, job_id: str) -> DriverRow | None:
        return None

    def close_driver(self, job_id: str, number: int, force: bool = False) -> bool:
        return True

    def withdraw_driver(self, job_id: str, number: int) -> bool:
        return True

    def ask_driver(self, job_id: str, number: int, request: str, seconds: float) -> str | None:
        return None

    # Jobs

    def jobs(self) -> list[JobRow]:
        with self._lock:
            found = self._base.execute("SELECT known FROM jobs ORDER BY position").fetchall()
        return [job_of(known) for (known,) in found]

    def job(self, job_id: str) -> JobRow | None:
        with self._lock:
            found = self._base.execute("SELECT known, record FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else job_of(*found)

    def add_job(self, row: JobRow) -> None:
        with self._writing() as base:
            (position,) = base.execute("SELECT coalesce(max(position), 0) + 1 FROM jobs").fetchone()
            base.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?)", (row.id, position, text_of(row), json.dumps(row.record))
            )

    def update_job(self, job_id: str, **changes: Any) -> JobRow:
        with self._writing() as base:
            known = base.execute("SELECT known, record FROM jobs WHERE id = ?", (job_id,)).fetchone()
            row = JobRow(**{**vars(job_of(*known)), **changes})
            base.execute("UPDATE jobs SET known = ? WHERE id = ?", (text_of(row), job_id))
            if "record" in changes:
                base.execute("UPDATE jobs SET record = ? WHERE id = ?", (json.dumps(row.record), job_id))
            return row

    def forget_job(self, job_id: str) -> None:
        with self._writing() as base:
            for table, column in (("jobs", "id"), ("attempts", "job"), ("operations", "job")):
                base.execute(f"DELETE FROM {table} WHERE {column} = ?", (job_id,))

    # Attempts and operations

    def put_attempt(self, row: AttemptRow) -> None:
        with self._writing() as base:
            known = (row.job, row.number, text_of(row))
            base.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?)", known)

    def attempts(self, job_id: str) -> list[AttemptRow]:
        with self._lock:
            asked = "SELECT known FROM attempts WHERE job = ? ORDER BY number"
            found = self._base.execute(asked, (job_id,)).fetchall()
        return [attempt_of(known) for (known,) in found]

    def put_operation(self, row: OperationRow) -> None:
        with self._writing() as base:
            known = (row.id, row.job, int(row.done), text_of(row))
            base.execute("INSERT OR REPLACE INTO operations VALUES (?, ?, ?, ?)", known)

    def operation(self, operation_id: str) -> OperationRow | None:
        with self._lock:
            found = self._base.execute("SELECT known FROM operations WHERE id = ?", (operation_id,)).fetchone()
        return None if found is None else operation_of(found[0])

    def open_operations(self) -> list[OperationRow]:
        with self._lock:
            found = self._base.execute("SELECT known FROM operations WHERE done = 0").fetchall()
        return [operation_of(known) for (known,) in found]

    def close(self) -> None:
        with self._lock:
            self._base.close()
