"""Stands between Kafka's clients and a broker, and cuts their connections: at any moment, or at a request of a kind.

A broker tells its clients where to connect to, so they come by here only if it says so:
:class:`~kafka_server.KafkaServer` has a listener whose advertised address is that of such a proxy.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

END_TRANSACTION = 26
"""The protocol's number for the request EndTxn."""


@dataclass(frozen=True)
class Cut:
    """A connection is cut at a request: before the broker has it, or when it has answered and nobody knows."""

    request: int
    number: int = 1
    """The first such request, the second, …"""
    answered: bool = False
    then: Callable[[], object] = lambda: None
    """What happens at that moment, while the client waits."""


@dataclass
class _Connection:
    client: socket.socket
    broker: socket.socket
    doomed: dict[int, Cut] = field(default_factory=dict)
    """What happens when these requests are answered, by their correlation ids."""

    def close(self) -> None:
        for one in (self.client, self.broker):
            with contextlib.suppress(OSError):
                # Others may be waiting in recv; closing alone does not wake them.
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class KafkaProxy:
    """Passes on what it gets, between ``with`` and its end."""

    def __init__(self, port: int, broker_port: int, *cuts: Cut) -> None:
        self._port, self._broker_port, self._cuts = port, broker_port, cuts
        self._seen: Counter[int] = Counter()
        self._connections: list[_Connection] = []
        self._lock = threading.Lock()
        self.done: list[Cut] = []
        """The cuts that were made at requests."""

    @property
    def servers(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    def cut_all(self) -> int:
        """Cuts all connections. Returns how many there were."""
        with self._lock:
            several, self._connections = self._connections, []
        for one in several:
            one.close()
        return len(several)

    def __enter__(self) -> KafkaProxy:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
            except OSError:
                # The broker is down, and so are we.
                client.close()
                continue
            for one in (client, broker):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(client, broker)
            with self._lock:
                self._connections.append(connection)
            for pump in (self._requests, self._answers):
                threading.Thread(target=self._pump, args=(pump, connection), daemon=True).start()

    def _pump(self, pump: Callable[[_Connection], None], connection: _Connection) -> None:
        try:
            pump(connection)
        except OSError:
            pass
        finally:
            connection.close()

    def _requests(self, connection: _Connection) -> None:
        while (frame := _frame(connection.client)) is not None:
            request, _, correlation = struct.unpack_from(">hhi", frame, 4)
            cut = self._rule(request)
            if cut is not None and not cut.answered:
                self._apply(cut)
                return
            if cut is not None:
                connection.doomed[correlation] = cut
            connection.broker.sendall(frame)

    def _answers(self, connection: _Connection) -> None:
        while (frame := _frame(connection.broker)) is not None:
            cut = connection.doomed.get(struct.unpack_from(">i", frame, 4)[0])
            if cut is not None:
                self._apply(cut)
                return
            connection.client.sendall(frame)

    def _rule(self, request: int) -> Cut | None:
        with self._lock:
            self._seen[request] += 1
            number = self._seen[request]
        return next((cut for cut in self._cuts if (cut.request, cut.number) == (request, number)), None)

    def _apply(self, cut: Cut) -> None:
        cut.then()
        self.done.append(cut)


def _frame(source: socket.socket) -> bytes | None:
    """A request or an answer with the length before it; None at the end."""
    length = _exactly(source, 4)
    body = _exactly(source, struct.unpack(">i", length)[0]) if length is not None else None
    return None if length is None or body is None else length + body


def _exactly(source: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = source.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
