"""The feed of the group ``latency``: a server socket that sends lines at a steady rate to the program that connects.

A line is a user's name and the moment of its making: ``user-000042,1700000000.123456``. Until the program has said that
it works there is a trickle only, or it would find a backlog and be measured by that.
"""

import contextlib
import json
import socket
import subprocess
import threading
import time
from typing import Any

KEYS = 1_000
STARTING_RATE = 10
PAUSE = 0.002
WORKING = "# working"
"""What a program prints when it has its first result."""


class Feed:
    """Sends ``rate`` lines a second from the moment on that :attr:`working` is set."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._server = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.working = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def variables(self) -> dict[str, str]:
        """By which a program finds it."""
        return {"BENCH_SOCKET": str(self._server.getsockname()[1])}

    def close(self) -> None:
        self._over.set()
        # Accepting would go on otherwise.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        number, due, last = 0, 1.0, time.monotonic()
        while not self._over.is_set():
            now = time.monotonic()
            due += (now - last) * (self._rate if self.working.is_set() else STARTING_RATE)
            last = now
            if number < int(due):
                moment = time.time()
                lines = [f"user-{n * 2654435761 % KEYS:06},{moment:.6f}\n" for n in range(number, int(due))]
                connection.sendall("".join(lines).encode())
                number = int(due)
            time.sleep(PAUSE)


def watch(process: subprocess.Popen[str], feed: Feed) -> dict[str, Any]:
    """What the program has measured: its first line of JSON."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(WORKING):
            feed.working.set()
        elif line.startswith("{"):
            result: dict[str, Any] = json.loads(line)
            return result
    raise RuntimeError("the program ended without a result")
