"""The registry in PostgreSQL, for several job managers.

Every write reads the epoch first, and locks it: a claim waits for writes that are under way, and those that come later
find that their epoch is over. The order of the two is the database's, whoever stood still meanwhile and for how long.

Drivers have leases here, so that a job manager on another machine knows whether they live; see
:mod:`firesteel.cluster.driver_lease` for the other end.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.cluster.postgres import Postgres, PostgresAddress
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

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresRegistry"]

T = TypeVar("T")

SECONDS_TO_START = 60
"""How long a driver may take to its first renewal."""
_POLL = 0.1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cluster (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one), version INTEGER NOT NULL, epoch BIGINT NOT NULL,
    address TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS leadership (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one), holder TEXT NOT NULL, locked BOOLEAN NOT NULL,
    expires TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, position BIGINT GENERATED ALWAYS AS IDENTITY, known TEXT NOT NULL, record TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    job TEXT NOT NULL, number INTEGER NOT NULL, known TEXT NOT NULL, PRIMARY KEY (job, number)
);
CREATE TABLE IF NOT EXISTS operations (
    id TEXT PRIMARY KEY, job TEXT NOT NULL, done BOOLEAN NOT NULL, known TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS operations_of_jobs ON operations (job);
CREATE TABLE IF NOT EXISTS drivers (
    job TEXT PRIMARY KEY, number INTEGER NOT NULL, machine TEXT NOT NULL, pid INTEGER NOT NULL,
    pid_started TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL, closed BOOLEAN NOT NULL
);
CREATE TABLE IF NOT EXISTS commands (
    id TEXT PRIMARY KEY, job TEXT NOT NULL, number INTEGER NOT NULL, request TEXT NOT NULL, answer TEXT
);
CREATE INDEX IF NOT EXISTS commands_of_jobs ON commands (job);
"""


class PostgresRegistry:
    """Rows are JSON in a column, as in the SQLite file."""

    def __init__(self, address: PostgresAddress, driver_seconds: float = 15.0, patience: float = 5.0) -> None:
        """``driver_seconds``: how long the lease of a driver is. ``patience``: for how many seconds a connection that
        broke is tried anew before the registry counts as unreachable."""
        self._base = Postgres(address, "firesteel-registry")
        self._driver_seconds, self._patience = driver_seconds, patience
        self._epoch, self._address = 0, ""
        try:
            self._run(self._prepare)
        except BaseException:
            # Or its connection, and the thread that watches it, would stay.
            self._base.close()
            raise

    def _run(self, work: Callable[[psycopg.Cursor[Any]], T]) -> T:
        return self._base.run(work, seconds=self._patience)

    def _prepare(self, cursor: psycopg.Cursor[Any]) -> None:
        schema = self._base.address.schema
        # Two job managers may be started at the same moment.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"firesteel {schema}",))
        cursor.execute("SELECT to_regclass('cluster')")
        if cursor.fetchone() == (None,):
            cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
            cursor.execute(_SCHEMA)
            cursor.execute("INSERT INTO cluster (version, epoch, address) VALUES (%s, 0, '')", (REGISTRY.version,))
            cursor.execute("INSERT INTO leadership (holder, locked, expires) VALUES ('', FALSE, clock_timestamp())")
        cursor.execute("SELECT version FROM cluster")
        (known,) = cursor.fetchone() or (0,)
        check_registry_version(known, f"schema {schema}")

    def _write(self, work: Callable[[psycopg.Cursor[Any]], T]) -> T:
        """A transaction of this epoch."""

        def checked(cursor: psycopg.Cursor[Any]) -> T:
            cursor.execute("SELECT epoch, address FROM cluster FOR SHARE")
            # The address, too: a database that was restored from a copy gives numbers a second time.
            if cursor.fetchone() != (self._epoch, self._address):
                raise StaleEpochError("Another job manager has taken over.")
            return work(cursor)

        return self._run(checked)

    def _read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._run(lambda cursor: cursor.execute(statement, values).fetchall())

    def _change(self, statement: str, *values: Any) -> None:
        self._write(lambda cursor: cursor.execute(statement, values))

    # Epochs

    def claim(self, address: str = "") -> int:
        raised = "UPDATE cluster SET epoch = epoch + 1, address = %s RETURNING epoch"
        ((self._epoch,),) = self._read(raised, address)
        self._address = address
        return self._epoch

    @property
    def epoch(self) -> int:
        return self._epoch

    def check(self) -> None:
        self._write(lambda cursor: None)

    def leader(self) -> Leader | None:
        ((epoch, address),) = self._read("SELECT epoch, address FROM cluster")
        return Leader(epoch, address) if address else None

    # Jobs

    def jobs(self) -> list[JobRow]:
        return [job_of(known) for (known,) in self._read("SELECT known FROM jobs ORDER BY position")]

    def job(self, job_id: str) -> JobRow | None:
        found = self._read("SELECT known, record FROM jobs WHERE id = %s", job_id)
        return job_of(*found[0]) if found else None

    def add_job(self, row: JobRow) -> None:
        # Nothing, if the connection broke after the row was written and before that was known here.
        statement = "INSERT INTO jobs (id, known, record) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
        self._change(statement, row.id, text_of(row), json.dumps(row.record))

    def update_job(self, job_id: str, **changes: Any) -> JobRow:
        def update(cursor: psycopg.Cursor[Any]) -> JobRow:
            cursor.execute("SELECT known, record FROM jobs WHERE id = %s", (job_id,))
            row = JobRow(**{**vars(job_of(*(cursor.fetchone() or ()))), **changes})
            cursor.execute("UPDATE jobs SET known = %s WHERE id = %s", (text_of(row), job_id))
            if "record" in changes:
                cursor.execute("UPDATE jobs SET record = %s WHERE id = %s", (json.dumps(row.record), job_id))
            return row

        return self._write(update)

    def forget_job(self, job_id: str) -> None:
        def forget(cursor: psycopg.Cursor[Any]) -> None:
            owned = ("attempts", "operations", "drivers", "commands")
            for table, column in (("jobs", "id"), *((table, "job") for table in owned)):
                cursor.execute(f"DELETE FROM {table} WHERE {column} = %s".encode(), (job_id,))

        self._write(forget)

    # Attempts and operations

    def put_attempt(self, row: AttemptRow) -> None:
        statement = """INSERT INTO attempts VALUES (%s, %s, %s)
            ON CONFLICT (job, number) DO UPDATE SET known = EXCLUDED.known"""
        self._change(statement, row.job, row.number, text_of(row))

    def attempts(self, job_id: str) -> list[AttemptRow]:
        found = self._read("SELECT known FROM attempts WHERE job = %s ORDER BY number", job_id)
        return [attempt_of(known) for (known,) in found]

    def put_operation(self, row: OperationRow) -> None:
        statement = """INSERT INTO operations VALUES (%s, %s, %s, %s)
            ON CONFLICT (id) DO UPDATE SET done = EXCLUDED.done, known = EXCLUDED.known"""
        self._change(statement, row.id, row.job, row.done, text_of(row))

    def operation(self, operation_id: str) -> OperationRow | None:
        found = self._read("SELECT known FROM operations WHERE id = %s", operation_id)
        return operation_of(found[0][0]) if found else None

    def open_operations(self) -> list[OperationRow]:
        return [operation_of(known) for (known,) in self._read("SELECT known FROM operations WHERE NOT done")]

    # Drivers

    def assign_driver(self, job_id: str, number: int) -> str:
        statement = """INSERT INTO drivers VALUES (%s, %s, '', 0, '', clock_timestamp() + %s * INTERVAL '1 s', FALSE)
            ON CONFLICT (job) DO UPDATE SET number = EXCLUDED.number, machine = '', pid = 0, pid_started = '',
                expires = EXCLUDED.expires, closed = FALSE
            WHERE drivers.number < EXCLUDED.number
                OR (drivers.number = EXCLUDED.number AND drivers.machine = '' AND NOT drivers.closed)"""
        self._change(statement, job_id, number, SECONDS_TO_START)
        known = {"job": job_id, "number": number, "seconds": self._driver_seconds}
        return json.dumps({**known, "address": self._base.address.known()})

    def driver(self, job_id: str) -> DriverRow | None:
        statement = """SELECT job, number, machine, pid, pid_started, NOT closed AND expires > clock_timestamp()
            FROM drivers WHERE job = %s"""
        found = self._read(statement, job_id)
        return DriverRow(*found[0]) if found else None

    def close_driver(self, job_id: str, number: int, force: bool = False) -> bool:
        return self._close_driver(job_id, number, "TRUE" if force else "(closed OR expires < clock_timestamp())")

    def withdraw_driver(self, job_id: str, number: int) -> bool:
        return self._close_driver(job_id, number, "(closed OR machine = '')")

    def _close_driver(self, job_id: str, number: int, condition: str) -> bool:
        def close(cursor: psycopg.Cursor[Any]) -> bool:
            statement = f"UPDATE drivers SET closed = TRUE WHERE job = %s AND number = %s AND {condition}"
            return bool(cursor.execute(statement.encode(), (job_id, number)).rowcount)

        return self._write(close)

    def ask_driver(self, job_id: str, number: int, request: str, seconds: float) -> str | None:
        name = uuid.uuid4().hex
        # Nothing, if the connection broke after the row was written and before that was known here.
        statement = "INSERT INTO commands VALUES (%s, %s, %s, %s, NULL) ON CONFLICT (id) DO NOTHING"
        deadline = time.monotonic() + seconds
        try:
            self._change(statement, name, job_id, number, request)
            while time.monotonic() < deadline:
                time.sleep(_POLL)
                ((answer,),) = self._read("SELECT answer FROM commands WHERE id = %s", name) or [("",)]
                if answer is not None:
                    return str(answer) or None
            return None
        finally:
            self._change("DELETE FROM commands WHERE id = %s", name)

    def close(self) -> None:
        self._base.close()
