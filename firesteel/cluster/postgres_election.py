"""The election by a row of the registry's database: its holder renews it, and its clock is the only one that counts.

A lock of the database (advisory lock) would be held as long as the connection is, and so by a process that was stopped
and not killed. A row with a time runs out. The lock is only asked whether the holder's connection is gone: then nobody
waits for the time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from firesteel.cluster.postgres import Postgres, PostgresAddress
from firesteel.cluster.registry import RegistryUnreachableError
from firesteel.common.lease_clock import lease_clock
from firesteel.errors import FiresteelError, in_a_line

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresElection"]

logger = logging.getLogger("firesteel.cluster")

_POLL = 0.5
_MARGIN = 0.8
"""The share of the lease that is used: clocks do not run equally fast."""


class PostgresElection:
    """One candidate. The tables are made by the registry."""

    def __init__(self, address: PostgresAddress, seconds: float) -> None:
        """``seconds``: the length of the lease."""
        self._base = Postgres(address, "firesteel-election")
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._valid_until = 0.0
        self._elected = threading.Event()

    def stand(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            # A database that cannot be reached elects nobody; it may come back.
            with contextlib.suppress(RegistryUnreachableError):
                if self._try():
                    # One of its own for each term: whoever renewed the one before ends with that.
                    self._elected = elected = threading.Event()
                    elected.set()
                    threading.Thread(target=self._keep, args=(elected,), name="firesteel-election", daemon=True).start()
                    return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(min(_POLL, max(0.0, deadline - time.monotonic())))

    def holds(self) -> bool:
        return self._elected.is_set() and lease_clock() < self._valid_until

    def resign(self) -> None:
        self._elected.clear()
        self._valid_until = 0.0
        statement = "UPDATE leadership SET expires = clock_timestamp() WHERE holder = %s"
        with contextlib.suppress(FiresteelError):
            self._base.run(lambda cursor: cursor.execute(statement, (self._holder,)), seconds=1.0)
        # The lock goes with the connection.
        self._base.disconnect()

    def close(self) -> None:
        self._base.close()

    def _try(self) -> bool:
        def claim(cursor: psycopg.Cursor[Any]) -> bool:
            lock = (self._lock_name,)
            (locked,) = cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", lock).fetchone() or (False,)
            # That the lock is free says something of a holder that had it. One that took over from a process that
            # stands still has not.
            statement = """UPDATE leadership SET holder = %s, locked = %s,
                    expires = clock_timestamp() + %s * INTERVAL '1 s'
                WHERE expires < clock_timestamp() OR (locked AND %s)"""
            taken = cursor.execute(statement, (self._holder, locked, self._seconds, locked)).rowcount
            if locked and not taken:
                cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", lock)
            return bool(taken)

        return self._renewed_by(claim)

    @property
    def _lock_name(self) -> str:
        return f"firesteel leader {self._base.address.schema}"

    def _keep(self, elected: threading.Event) -> None:
        pause = self._seconds / 5
        while elected.is_set():
            time.sleep(pause)
            try:
                if elected.is_set() and not self._renew():
                    elected.clear()
            except Exception as error:
                logger.warning("the leadership could not be renewed: %s", in_a_line(error))
                if lease_clock() >= self._valid_until:
                    elected.clear()

    def _renew(self) -> bool:
        def renew(cursor: psycopg.Cursor[Any]) -> bool:
            # Over a new connection the lock has to be taken anew, and after a process that stood still at all.
            held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()"
            locked = cursor.execute(held).fetchone() is not None
            if not locked:
                lock = "SELECT pg_try_advisory_lock(hashtext(%s))"
                (locked,) = cursor.execute(lock, (self._lock_name,)).fetchone() or (False,)
            statement = """UPDATE leadership SET locked = %s, expires = clock_timestamp() + %s * INTERVAL '1 s'
                WHERE holder = %s"""
            return bool(cursor.execute(statement, (locked, self._seconds, self._holder)).rowcount)

        return self._renewed_by(renew)

    def _renewed_by(self, work: Any) -> bool:
        began = 0.0

        def timed(cursor: psycopg.Cursor[Any]) -> bool:
            nonlocal began
            began = lease_clock()
            return bool(work(cursor))

        if not self._base.run(timed, seconds=max(1.0, self._seconds / 2)):
            return False
        self._valid_until = began + self._seconds * _MARGIN
        return True
