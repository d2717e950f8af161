"""A RabbitMQ of one's own: in a temporary folder, on loopback, on free ports, gone when it is no longer needed.

Tests use it. From a shell it runs a command with ``FIRESTEEL_RABBITMQ_URI`` set::

    .venv/bin/python tools/rabbitmq_server.py .venv/bin/python program.py
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from local_server import LocalServer, ending_with_its_parent, free_ports

__all__ = ["PASSWORD", "USER", "RabbitMqServer", "why_not"]

USER, PASSWORD = "firesteel", "sup3r-s3cret-word"


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/lib/rabbitmq/bin:/usr/bin")


def _plain_program() -> str | None:
    """The server itself. What Debian has under its name runs it as another user."""
    found = sorted(Path("/usr/lib/rabbitmq").glob("lib/rabbitmq_server-*/sbin/rabbitmq-server"))
    return str(found[-1]) if found else _program("rabbitmq-server")


def why_not() -> str | None:
    """What is missing for a broker, in a line."""
    if _plain_program() is None or _program("epmd") is None:
        return "rabbitmq-server was not found (Debian: apt-get install rabbitmq-server)"
    try:
        import pika  # noqa: F401
    except ImportError as error:
        return f"the package pika cannot be imported ({error})"
    return None


class RabbitMqServer(LocalServer):
    """A broker between ``with`` and its end."""

    name = "RabbitMQ"

    def __init__(self) -> None:
        super().__init__()
        self.port = 0
        self._names: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}

    @property
    def uri(self) -> str:
        return f"amqp://{USER}:{PASSWORD}@127.0.0.1:{self.port}/%2F"

    def _set_up(self) -> None:
        self.port, distribution, names = free_ports(3)
        folder = self.folder
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndefault_user = {USER}\ndefault_pass = {PASSWORD}\n"
            "loopback_users = none\ndisk_free_limit.absolute = 50MB\nlog.console = true\nlog.console.level = warning\n"
        )
        (folder / "plugins").write_text("[].\n")
        cookie = folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(10))
        cookie.chmod(0o400)
        self._environment = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"fs{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
        }
        # The register of names, which the broker would start and leave running.
        epmd = _program("epmd")
        assert epmd is not None
        self._names = self._starter.submit(self._popen, [epmd], self._environment).result()
        self.start()

    def _popen(self, command: list[str], env: Any) -> subprocess.Popen[bytes]:
        # A group of its own: the script starts the virtual machine, which must end with it.
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ending_with_its_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **env},
                start_new_session=True,
            )

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        command = [str(_plain_program())]
        self._process = self._starter.submit(self._popen, command, self._environment).result()
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(Exception):
            self.connection().close()
            return True
        return False

    def connection(self) -> Any:
        import pika

        credentials = pika.PlainCredentials(USER, PASSWORD)
        # Longer than a busy machine holds a broker up: pika gives up after 10 and 15 s.
        patient = {"socket_timeout": 60, "stack_timeout": 120, "credentials": credentials}
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, **patient))

    def kill(self) -> None:
        """``kill -9``, of all that belongs to it."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def __exit__(self, *given: Any) -> None:
        # Also where the script has ended and what it started has not.
        if self._process is not None:
            self.kill()
        if self._names is not None:
            self._names.kill()
            self._names.wait()
        super().__exit__(*given)


def main(command: list[str]) -> int:
    missing = why_not()
    if missing is not None or not command:
        print(missing or __doc__, file=sys.stderr)
        return 1
    with RabbitMqServer() as server:
        return subprocess.call(command, env={**os.environ, "FIRESTEEL_RABBITMQ_URI": server.uri})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
