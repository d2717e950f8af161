"""The line by which every process that holds tasks of a job learns that the job is over.

Spark does not let a Python worker know when a query ends: between batches a worker just waits. But what users opened
must be closed when a job is cancelled or fails elsewhere. So the driver listens, each process that holds tasks of the
job has one connection to it, and its end is the job's end:

    driver ◄── what functions log and print ── process, at any time
    driver ── levels of loggers ──► process, at any time
    driver ── end of stream ──► process: closes its tasks of the job
    driver ◄── what failed, end of stream ── process

1. The driver closes its side once Spark's query has stopped (or has died: then the kernel closes it).
2. Each process closes the users' functions, and says in a line each what went wrong there.
3. It closes its side. The driver waits for that, but not long.

Each message is a JSON object in a line. A process that cannot reach the driver works all the same; its functions are
then closed when it is needed for other jobs, or never, and what they log stays with the process.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from firesteel.engine.payload import LifelineAddress

__all__ = ["CLOSE_SECONDS", "Lifeline", "Listener", "keep_connection"]

CLOSE_SECONDS = 2.0
"""How long a process may take to close what it holds of a job."""

GREETINGS = 256
"""So many connections may be open that have not yet said the secret: anybody can connect, only the job's can go on."""
GREETING_SECONDS = 2.0

Message = Mapping[str, Any]


class Lifeline:
    """The driver's end. ``logged`` is called with what processes log, in threads.

    >>> import time
    >>> line = Lifeline("127.0.0.1")
    >>> keep_connection(line.address, lambda: ["nothing serious"])
    >>> while not line.holders: time.sleep(0.01)
    >>> line.end()
    ['nothing serious']
    """

    def __init__(
        self, host: str, bind: str | None = None, logged: Callable[[dict[str, Any]], None] = lambda entry: None
    ) -> None:
        self._listener = socket.create_server((bind or host, 0), backlog=128)
        self._logged = logged
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._failed: list[str] = []
        self._ended = False
        self._greeting = threading.BoundedSemaphore(GREETINGS)
        self._lock = threading.Lock()
        self._standing: dict[str, Any] = {}
        """What processes that connect later get as well."""
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
                threading.Thread(target=self._greet, args=(connection,), name="firesteel-line", daemon=True).start()
            else:
                connection.close()

    def _greet(self, connection: socket.socket) -> None:
        known = False
        with contextlib.suppress(OSError):
            connection.settimeout(GREETING_SECONDS)
            secret = connection.recv(len(self.address.secret), socket.MSG_WAITALL)
            if hmac.compare_digest(secret, self.address.secret.encode()):
                connection.settimeout(None)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                with self._lock:
                    known = not self._ended
                    if known:
                        self._connections[connection] = threading.current_thread()
                        if self._standing:
                            connection.sendall(_line(self._standing))
        self._greeting.release()
        if known:
            self._listen(connection)
        connection.close()

    def _listen(self, connection: socket.socket) -> None:
        """Until the process has gone."""
        for message in _messages(connection):
            if "log" in message:
                with contextlib.suppress(Exception):
                    self._logged(message["log"])
            elif "failed" in message:
                with self._lock:
                    self._failed.append(str(message["failed"]))
        with self._lock:
            if not self._ended:
                # It has ended before the job did.
                self._connections.pop(connection, None)

    def send(self, **message: Any) -> None:
        """Something that all processes are to know, those that come later, too."""
        with self._lock:
            self._standing.update(message)
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(_line(message))

    def end(self, seconds: float = CLOSE_SECONDS + 1) -> list[str]:
        """Lets all processes know, waits until they have closed what they held, and returns what failed there."""
        # Closing alone would not wake the thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._ended = True
            connections, self._connections = self._connections, {}
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + seconds
        late = []
        for connection, thread in connections.items():
            thread.join(max(0.01, deadline - time.monotonic()))
            if thread.is_alive():
                late.append("a process did not close its functions in time")
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            failed, self._failed = self._failed, []
        return [*failed, *late]


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """What the other end says, until it says no more. A broken line ends it, too; half a message is no message."""
    rest = b""
    with contextlib.suppress(OSError):
        while more := connection.recv(1 << 16):
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message


class Listener(Protocol):
    """What a process does with its line, beyond the job's end."""

    def attach(self, line: socket.socket) -> None:
        """The line is there: it may be written to."""

    def detach(self, line: socket.socket | None) -> None:
        """The line is over, or could not be had."""

    def received(self, message: Message) -> None:
        """The driver has said something."""


def keep_connection(address: LifelineAddress, over: Callable[[], list[str]], listener: Listener | None = None) -> None:
    """A process's end: calls ``over`` when the job is over, in a thread, and passes on what it has to say."""
    threading.Thread(target=_hold, args=(address, over, listener), name="firesteel-lifeline", daemon=True).start()


def _hold(address: LifelineAddress, over: Callable[[], list[str]], listener: Listener | None) -> None:
    line: socket.socket | None = None
    try:
        with socket.create_connection((address.host, address.port), timeout=5) as line:
            line.sendall(address.secret.encode())
            line.settimeout(None)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if listener is not None:
                listener.attach(line)
            _wait_for_end(line, listener)
            said = over()
            if listener is not None:
                listener.detach(line)
            line.sendall(b"".join(_line({"failed": text}) for text in said))
            # Not only close(): a child that a user's function forked may still have the line open.
            line.shutdown(socket.SHUT_RDWR)
    except OSError:
        # A broken line is not the end of the job; that is an orderly end of the stream.
        return
    finally:
        if listener is not None:
            listener.detach(line)


def _wait_for_end(line: socket.socket, listener: Listener | None) -> None:
    """Returns at the end of the stream. Raises OSError if the line breaks."""
    rest = b""
    while more := line.recv(1 << 12):
        *lines, rest = (rest + more).split(b"\n")
        for one in lines:
            if listener is not None:
                with contextlib.suppress(ValueError):
                    listener.received(json.loads(one))
