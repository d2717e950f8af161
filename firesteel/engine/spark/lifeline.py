"""The line by which every process that holds tasks of a job learns that the job is over.

Spark tells a Python worker nothing of a query's end: between batches a worker just waits. But what users opened must
be closed when a job is cancelled or fails elsewhere. So the driver listens, each process that holds tasks of the job
has one connection to it, and its end is the job's end:

    driver ── end of stream ──► process: closes its tasks of the job
    driver ◄── what failed, end of stream ── process

1. The driver closes its side once Spark's query has stopped (or has died: then the kernel closes it).
2. Each process closes the users' functions, and says in a line each what went wrong there.
3. It closes its side. The driver waits for that, but not long.

Nothing else ever crosses the line. A process that cannot reach the driver works all the same; its functions are then
closed when it is needed for other jobs, or never.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable

from firesteel.engine.payload import LifelineAddress

__all__ = ["CLOSE_SECONDS", "Lifeline", "hold_line"]

CLOSE_SECONDS = 2.0
"""How long a process may take to close what it holds of a job."""

GREETINGS = 256
"""So many connections may be open that have not yet said the secret: anybody can connect, only the job's can go on."""
GREETING_SECONDS = 2.0


class Lifeline:
    """The driver's end.

    >>> import time
    >>> line = Lifeline("127.0.0.1")
    >>> hold_line(line.address, lambda: ["nothing serious"])
    >>> while not line.holders: time.sleep(0.01)
    >>> line.end()
    ['nothing serious']
    """

    def __init__(self, host: str, bind: str | None = None) -> None:
        self._listener = socket.create_server((bind or host, 0), backlog=128)
        self._connections: list[socket.socket] = []
        self._ended = False
        self._greeting = threading.BoundedSemaphore(GREETINGS)
        self._lock = threading.Lock()
        self.address = LifelineAddress(host, self._listener.getsockname()[1], secrets.token_hex(16))
        threading.Thread(target=self._accept, name="firesteel-lifeline", daemon=True).start()

    @property
    def holders(self) -> int:
        """How many processes hold the line."""
        with self._lock:
            return len(self._connections)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                # end() has closed the listener.
                return
            # Each in a thread of its own: one that connects and says nothing must not keep the others waiting.
            if self._greeting.acquire(blocking=False):
                threading.Thread(target=self._greet, args=(connection,), name="firesteel-greeting", daemon=True).start()
            else:
                connection.close()

    def _greet(self, connection: socket.socket) -> None:
        known = False
        with contextlib.suppress(OSError):
            connection.settimeout(GREETING_SECONDS)
            secret = connection.recv(len(self.address.secret), socket.MSG_WAITALL)
            if hmac.compare_digest(secret, self.address.secret.encode()):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                with self._lock:
                    known = not self._ended
                    if known:
                        self._connections.append(connection)
        if not known:
            connection.close()
        self._greeting.release()

    def end(self, seconds: float = CLOSE_SECONDS + 1) -> list[str]:
        """Lets all processes know, waits until they have closed what they held, and returns what failed there."""
        # Closing alone would not wake the thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._ended = True
            connections, self._connections = self._connections, []
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + seconds
        return [line for connection in connections for line in _closing_failures(connection, deadline)]


def _closing_failures(connection: socket.socket, deadline: float) -> list[str]:
    said = b""
    with connection:
        try:
            while True:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                more = connection.recv(1 << 16)
                if not more:
                    break
                said += more
        except TimeoutError:
            return [*said.decode(errors="replace").splitlines(), "a process did not close its functions in time"]
        except OSError:
            # The process is gone, and what it held with it.
            pass
    return said.decode(errors="replace").splitlines()


def hold_line(address: LifelineAddress, over: Callable[[], list[str]]) -> None:
    """A process's end: calls ``over`` when the job is over, in a thread, and passes on what it has to say."""
    threading.Thread(target=_hold, args=(address, over), name="firesteel-lifeline", daemon=True).start()


def _hold(address: LifelineAddress, over: Callable[[], list[str]]) -> None:
    with contextlib.suppress(OSError), socket.create_connection((address.host, address.port), timeout=5) as line:
        line.sendall(address.secret.encode())
        line.settimeout(None)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # An error is a broken line, not the end of the job; that is an orderly end of the stream.
        line.recv(1)
        said = over()
        line.sendall("".join(f"{text}\n" for text in said).encode())
        # Not only close(): a child that a user's function forked may still have the line open.
        line.shutdown(socket.SHUT_RDWR)
