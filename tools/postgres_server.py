"""A PostgreSQL of one's own: in a temporary folder, on loopback, on a free port, gone when it is no longer needed.

Tests and the fault suite use it. From a shell it runs a command with ``FIRESTEEL_POSTGRES_URL`` set::

    .venv/bin/python tools/postgres_server.py .venv/bin/python examples/postgres_orders.py

Nothing of it is safe for data that matters: it does not wait for the disk. It survives its own ``kill -9``.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from local_server import ending_with_its_parent, free_ports

USER, PASSWORD, DATABASE = "firesteel", "sup3r s3cret&word", "firesteel"
SECONDS_TO_START = 180


def binaries() -> Path | None:
    """The folder with ``postgres`` and ``initdb``: Debian's newest, or what is on the path."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    newest = max(found, key=lambda path: float(path.split("/")[4]), default=None) or shutil.which("initdb")
    return Path(newest).resolve().parent if newest else None


@dataclass(frozen=True)
class _Account:
    uid: int
    gid: int


def _unprivileged() -> _Account | None:
    """Whom to run it as: PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return _Account(entry.pw_uid, entry.pw_gid)
    raise RuntimeError("run as root, and there is no account 'postgres' or 'nobody' to run PostgreSQL as")


def _children(pid: int) -> list[int]:
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(Path(stat).read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.split("/")[2]))
    return found


class PostgresServer:
    """A server between ``with`` and its end."""

    def __init__(self, max_prepared_transactions: int = 100) -> None:
        folder = binaries()
        if folder is None:
            raise RuntimeError("PostgreSQL's programs were not found (Debian: apt-get install postgresql)")
        self._bin = folder
        self._max_prepared = max_prepared_transactions
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def parameters(self, database: str = DATABASE) -> dict[str, Any]:
        """What ``psycopg.connect`` takes."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": PASSWORD,
            "dbname": database,
            "autocommit": True,
        }

    def __enter__(self) -> PostgresServer:
        account = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="firesteel-postgres-"))
        try:
            self._initialise(account)
            self._start(account)
            self.execute(f'CREATE DATABASE "{DATABASE}"', "postgres")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _run(self, account: _Account | None) -> dict[str, Any]:
        """How its programs are run: by whom, where, and without settings from outside."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        more: dict[str, Any] = {}
        if account is not None:
            more = {"user": account.uid, "group": account.gid, "extra_groups": []}
        return {"env": environment | {"LC_ALL": "C", "TZ": "UTC"}, "cwd": self._folder, **more}

    def _initialise(self, account: _Account | None) -> None:
        assert self._folder is not None
        secret = self._folder / "password"
        secret.write_text(PASSWORD + "\n")
        if account is not None:
            for path in (self._folder, secret):
                os.chown(path, account.uid, account.gid)
        command = [str(self._bin / "initdb"), "--pgdata", str(self._folder / "data"), "--username", USER]
        command += ["--auth", "scram-sha-256", "--pwfile", str(secret), "--encoding", "UTF8", "--no-sync"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._run(account))
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _start(self, account: _Account | None) -> None:
        assert self._folder is not None
        self.port = self.port or free_ports(1)[0]
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self._folder,
            "max_prepared_transactions": self._max_prepared,
            "max_connections": 100,
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
        }
        command = [str(self._bin / "postgres"), "-D", str(self._folder / "data")]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                # After the change of the account, which would undo it.
                ending_with_its_parent(command, signal.SIGINT),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._run(account),
            )
        self._wait()

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9`` for all of its processes; some time later it is back, with what it had written."""
        assert self._process is not None
        family = [self._process.pid, *_children(self._process.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + SECONDS_TO_START
        # A new server refuses to start while one of the old processes is there.
        while any(os.path.exists(f"/proc/{pid}") for pid in family) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(seconds_down)
        self._start(_unprivileged())

    def _wait(self) -> None:
        assert self._process is not None
        assert self._folder is not None
        end = time.monotonic() + SECONDS_TO_START
        while True:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self._folder / 'log').read_text()}")
            with contextlib.suppress(Exception):
                self.execute("SELECT 1", "postgres")
                return
            time.sleep(0.05)

    def execute(self, statement: str, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows."""
        import psycopg

        with psycopg.connect(**self.parameters(database)) as connection, connection.cursor() as cursor:
            cursor.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def database(self, name: str) -> Iterator[str]:
        """A database that exists for a while; yields its address."""
        self.execute(f'CREATE DATABASE "{name}"', "postgres")
        try:
            yield self.url_of(name)
        finally:
            # A database with prepared transactions cannot be dropped.
            for (gid,) in self.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()", name):
                self.execute(f"ROLLBACK PREPARED '{gid}'", name)
            self.execute(f'DROP DATABASE "{name}" WITH (FORCE)', "postgres")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            # The fast way: connections are closed, nobody is waited for.
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with PostgresServer() as server:
        variables = {"FIRESTEEL_POSTGRES_URL": server.url, "PGUSER": USER, "PGPASSWORD": PASSWORD}
        return subprocess.run(command, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
