"""A Redis of one's own: in a temporary folder, on loopback, on a free port, gone when it is no longer needed.

Tests use it. From a shell it runs a command with ``FIRESTEEL_REDIS_URL`` set::

    .venv/bin/python tools/redis_server.py .venv/bin/python program.py

It keeps a log of what it was told, so that it survives its own ``kill -9``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from typing import Any

from local_server import LocalServer, free_ports

__all__ = ["PASSWORD", "RedisServer", "why_not"]

PASSWORD = "sup3r-s3cret&word"


def why_not() -> str | None:
    """What is missing for a server, in a line."""
    if shutil.which("redis-server") is None:
        return "redis-server was not found (Debian: apt-get install redis-server)"
    try:
        import redis  # noqa: F401
    except ImportError as error:
        return f"the package redis cannot be imported ({error})"
    return None


class RedisServer(LocalServer):
    """A server between ``with`` and its end."""

    name = "Redis"

    def __init__(self) -> None:
        super().__init__()
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _set_up(self) -> None:
        self.port = free_ports(1)[0]
        # Not on the command line, where everybody could read the password.
        (self.folder / "redis.conf").write_text(
            f'port {self.port}\nbind 127.0.0.1\nsave ""\nappendonly yes\nappendfsync always\n'
            f'requirepass "{PASSWORD}"\ndir {self.folder}\n'
        )
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        command = ["redis-server", str(self.folder / "redis.conf")]
        self._process = self._starter.submit(self._popen, command, {}).result()
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(Exception):
            return bool(self.client().ping())
        return False

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def client(self, number: int = 0) -> Any:
        import redis

        return redis.Redis(port=self.port, password=PASSWORD, db=number, decode_responses=True)


def main(command: list[str]) -> int:
    missing = why_not()
    if missing is not None or not command:
        print(missing or __doc__, file=sys.stderr)
        return 1
    with RedisServer() as server:
        variables = {"FIRESTEEL_REDIS_URL": server.url, "FIRESTEEL_REDIS_PASSWORD": PASSWORD}
        return subprocess.call(command, env={**os.environ, **variables})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
