"""A connection to the PostgreSQL that keeps the registry: made anew when it breaks, used by one thread at a time."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.cluster.registry import RegistryUnreachableError
from firesteel.common.secret import url_secret_spans
from firesteel.errors import ConfigurationError, SetupError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Postgres", "PostgresAddress"]

T = TypeVar("T")

SECONDS_TO_CONNECT = 3
SECONDS_OF_STATEMENT = 5.0
"""A statement that takes longer is given up by the server: a lease must not run out while one waits for a lock."""
SECONDS_TO_ANSWER = SECONDS_OF_STATEMENT + 1
"""After that the connection is cut on this side: if the network drops all packets, no error arrives."""
READ_ONLY = "25006"
"""What a server answers that may not be written to."""
_PAUSE = 0.1


@dataclass(frozen=True)
class PostgresAddress:
    """Where the registry is, and how to get in.

    >>> one = PostgresAddress.of("postgresql://firesteel@db1,db2/jobs?sslmode=require", "hunter2")
    >>> one
    PostgresAddress(url='postgresql://firesteel@db1,db2/jobs?sslmode=require', schema='firesteel')
    >>> PostgresAddress.of("postgresql://me:hunter2@db1/jobs")
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: The address of the registry holds a password, which everybody on this machine \
could read on a command line. Leave it out, and set FIRESTEEL_REGISTRY_PASSWORD or --registry-password-file.
    """

    url: str
    password: str = field(default="", repr=False)
    schema: str = "firesteel"
    """The tables of one cluster: several may share a database."""

    @staticmethod
    def of(url: str, password: str = "", schema: str = "firesteel") -> PostgresAddress:
        # Before anything of it is shown. libpq itself would take some passwords for a port.
        if url_secret_spans(url):
            raise ConfigurationError(
                "The address of the registry holds a password, which everybody on this machine could read on a "
                "command line. Leave it out, and set FIRESTEEL_REGISTRY_PASSWORD or --registry-password-file."
            )
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigurationError(f"The registry is a database: postgresql://user@host/database, got {url!r}.")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise ConfigurationError(
                "Setting 'high-availability.cluster-id' names a schema of the database: lower-case letters, digits "
                f"and underscores, got {schema!r}."
            )
        return PostgresAddress(url, password, schema)

    def known(self) -> dict[str, str]:
        """As plain data, password and all."""
        return asdict(self)


def load_psycopg() -> Any:
    """The module ``psycopg``."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise SetupError(
            f"A registry in PostgreSQL needs the package psycopg, which cannot be imported here ({error}): "
            "pip install 'firesteel[ha]'."
        ) from error


class Postgres:
    """One connection, and a lock around it."""

    def __init__(self, address: PostgresAddress, name: str) -> None:
        self.address = address
        self._name = name
        self._driver = load_psycopg()
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = threading.Event()
        self._answer_due: float | None = None
        threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True).start()

    def run(
        self, work: Callable[[psycopg.Cursor[Any]], T], until: Callable[[], float] | None = None, seconds: float = 5.0
    ) -> T:
        """Runs statements in a transaction, and again over a new connection if the old one breaks: for so many seconds,
        or until a moment of the monotonic clock that may move. So ``work`` is idempotent."""
        began = time.monotonic()
        # Not tenacity's: whether an error may pass depends on the connection that it broke, and the end may move.
        while True:
            connection: psycopg.Connection[Any] | None = None
            try:
                with self._lock:
                    self._answer_due = time.monotonic() + SECONDS_TO_ANSWER
                    try:
                        connection = self._connected()
                        with connection.transaction(), connection.cursor() as cursor:
                            return work(cursor)
                    finally:
                        self._answer_due = None
            except self._driver.Error as error:
                # A session that the server has ended says so in many ways.
                broken = connection is None or connection.closed
                # A server that became a standby of another one reads only: the address may lead to that one now.
                passing = self._driver.OperationalError | self._driver.InterfaceError
                if not broken and error.sqlstate != READ_ONLY and not isinstance(error, passing):
                    raise
                self._drop(connection)
                end = began + seconds if until is None else until()
                if self._closed.is_set() or time.monotonic() + _PAUSE > end:
                    text = str(error).strip().splitlines()
                    raise RegistryUnreachableError(
                        f"The registry does not answer: {text[0] if text else type(error).__name__}."
                    ) from error
                time.sleep(_PAUSE)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._closed.is_set():
            raise RegistryUnreachableError("This job manager has closed its connection to the registry.")
        if self._connection is None or self._connection.closed:
            limits = [
                f"-c statement_timeout={SECONDS_OF_STATEMENT * 1000:.0f}",
                # A process that stands still in a transaction would hold its locks, and nobody could take over.
                f"-c idle_in_transaction_session_timeout={SECONDS_OF_STATEMENT * 1000:.0f}",
            ]
            made = self._driver.connect(
                self.address.url,
                **({"password": self.address.password} if self.address.password else {}),
                # Of several servers the one that can be written to.
                target_session_attrs="read-write",
                autocommit=True,
                connect_timeout=SECONDS_TO_CONNECT,
                application_name=self._name,
                options=" ".join(limits),
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=int(SECONDS_OF_STATEMENT * 1000),
            )
            try:
                made.execute(f'SET search_path TO "{self.address.schema}"'.encode())
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection

    def _watch(self) -> None:
        while not self._closed.wait(0.5):
            due = self._answer_due
            if due is not None and time.monotonic() > due:
                self._cut()

    def _cut(self) -> None:
        """Whoever waits for an answer gets an error. A connection cannot be closed while another thread uses it."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    def disconnect(self) -> None:
        """Gives the connection up. Whoever uses it at this moment comes to its end first."""
        with self._lock:
            self._drop(self._connection)

    def _drop(self, connection: psycopg.Connection[Any] | None) -> None:
        if connection is not None:
            with self._lock:
                # Another thread may have made the next one already.
                if self._connection is connection:
                    self._connection = None
                connection.close()

    def close(self) -> None:
        self._closed.set()
        if not self._lock.acquire(timeout=1.0):
            self._cut()
            self._lock.acquire()
        try:
            self.disconnect()
        finally:
            self._lock.release()
