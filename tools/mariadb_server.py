"""A MariaDB of one's own: in a temporary folder, on loopback, on a free port, gone when it is no longer needed.

Tests use it. From a shell it runs a command with ``FIRESTEEL_MARIADB_URL`` set; the user is ``firesteel``::

    .venv/bin/python tools/mariadb_server.py .venv/bin/python program.py

Nothing of it is safe for data that matters. It survives its own ``kill -9``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local_server import LocalServer, cache, fetched, free_ports

__all__ = ["DATABASE", "PASSWORD", "USER", "MariaDbServer", "why_not"]

USER, PASSWORD, DATABASE = "firesteel", "sup3r s3cret&word", "firesteel"
_PROGRAMS = ("mariadbd", "mariadb-install-db")


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin")


def why_not() -> str | None:
    """What is missing for a server, in a line."""
    missing = [name for name in _PROGRAMS if _program(name) is None]
    if missing:
        return f"MariaDB's program {missing[0]} was not found (Debian: apt-get install mariadb-server)"
    try:
        import pymysql  # noqa: F401
    except ImportError as error:
        return f"PyMySQL cannot be imported ({error})"
    return None


def _template() -> Path:
    """An empty data folder, made once: that takes longer than to start the server."""
    program = _program("mariadb-install-db")
    assert program is not None
    said = subprocess.run([str(_program("mariadbd")), "--version"], capture_output=True, text=True, check=True).stdout
    version = said.split("Ver ")[1].split()[0]

    def make(folder: Path) -> None:
        command = [program, "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db"]
        command += ["--auth-root-authentication-method=normal", "--innodb-log-file-size=4M", *_account()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")

    return fetched(cache(f"mariadb-{version}"), make)


def _account() -> list[str]:
    return [] if os.geteuid() != 0 else ["--user=root"]


class MariaDbServer(LocalServer):
    """A server between ``with`` and its end."""

    name = "MariaDB"

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        """``settings`` are more of the server's own."""
        super().__init__()
        self.port = 0
        self._settings = dict(settings or {})

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{database}"

    def _set_up(self) -> None:
        shutil.copytree(_template() / "data", self.folder / "data")
        self.port = free_ports(1)[0]
        # The path of a socket must be short.
        self._socket = os.path.join(tempfile.gettempdir(), f"fs-{self.port}.sock")
        self.start()
        self.execute(f"CREATE DATABASE {DATABASE}", user="root", password="", database=None)
        self.execute(f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'", user="root", password="", database=None)
        self.execute(f"GRANT ALL ON *.* TO {USER}", user="root", password="", database=None)

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        settings = {
            "datadir": self.folder / "data",
            "bind-address": "127.0.0.1",
            "port": self.port,
            "socket": self._socket,
            "pid-file": self.folder / "pid",
            "innodb-buffer-pool-size": "16M",
            "innodb-log-file-size": "4M",
            # Survives a kill of the process, which is all that the tests do.
            "innodb-flush-log-at-trx-commit": 2,
            "performance-schema": "OFF",
            "skip-name-resolve": 1,
            "character-set-server": "utf8mb4",
            **self._settings,
        }
        command = [str(_program("mariadbd")), "--no-defaults", *_account()]
        command += [f"--{name}={value}" for name, value in settings.items()]
        self._process = self._starter.submit(self._popen, command, {}).result()
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(Exception):
            self.execute("SELECT 1", user="root", password="", database=None)
            return True
        return False

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back, with what it had written."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def prepared(self) -> list[str]:
        """The names of transactions that are prepared and neither committed nor rolled back."""
        names = [row[3] for row in self.execute("XA RECOVER")]
        return sorted(name.decode() if isinstance(name, bytes) else name for name in names)

    def execute(
        self, statement: str, user: str = USER, password: str = PASSWORD, database: str | None = DATABASE
    ) -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows."""
        import pymysql

        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, database=database, autocommit=True
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()


def main(command: list[str]) -> int:
    missing = why_not()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 1
    if not command:
        print(_template())
        return 0
    with MariaDbServer() as server:
        return subprocess.call(command, env={**os.environ, "FIRESTEEL_MARIADB_URL": server.url})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
