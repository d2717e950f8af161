"""Queues of RabbitMQ: logged, read, checkpointed, then acknowledged.

1. Messages go to the log of the source, with their correlation ids, and are forced to disk.
2. Batches read them from there.
3. When a checkpoint with a message is complete, the message is acknowledged.
4. A question to the broker on the same channel is answered when it has taken the acknowledgements. Until then the log
   keeps the ids. *Crash before it:* the broker delivers the messages again, and they are recognised by their ids.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.logged import LoggedEnumerator, LoggedReader
from firesteel.connectors.piece_log import PieceLog
from firesteel.connectors.rabbitmq.connecting import AnyRabbitAddress, as_connector_error, load_client
from firesteel.connectors.retrying import retried
from firesteel.connectors.source import Records
from firesteel.errors import ConnectorError, FailureKind, InputError, short_repr

__all__ = ["QueueEnumerator", "QueueReader", "declare_queue"]

T = TypeVar("T")
MOST_AT_ONCE = 5000
PREFETCH = 50_000
"""So many messages may be on their way or waiting for their checkpoint, where the user does not say otherwise."""
RETRY_SECONDS = 60.0
LOOK = 0.05
SETTLED = 600.0
"""So many seconds after a connection was made, the broker has given up the one before, and what was delivered to that
one has come again."""


def declare_queue(connection: Any, queue: str) -> Any:
    """A channel on which the queue exists: as it is, or a durable one as Flink declares it."""
    errors = load_client().exceptions
    channel = connection.channel()
    try:
        channel.queue_declare(queue, passive=True)
        return channel
    except errors.ChannelClosedByBroker as error:
        if error.reply_code != 404:
            raise
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    return channel


class QueueEnumerator(LoggedEnumerator):
    """Consumes, logs, acknowledges."""

    def __init__(self, address: AnyRabbitAddress, queue: str, use_ids: bool, prefetch: int | None) -> None:
        self._address, self._queue, self._use_ids = address, queue, use_ids
        self._prefetch = prefetch or PREFETCH

    def start(self, directory: str) -> None:
        super().start(directory)
        self._live_safe = 0
        """A checkpoint has all records before this position."""

    def committed(self, position: int) -> None:
        # The log lets go of records when the broker has taken their acknowledgement, which is later.
        if hasattr(self, "_live_log"):
            self._live_safe = max(self._live_safe, position)

    def receive(self, log: PieceLog, stopping: threading.Event) -> None:
        known = _Known(log) if self._use_ids else None

        def wait(seconds: float) -> None:
            stopping.wait(seconds)

        while not stopping.is_set():
            connection = retried(self._address.connect, RETRY_SECONDS, "the connection", wait)
            try:
                _Consumer(self, connection, known, stopping).run()
            except (load_client().exceptions.AMQPError, OSError) as error:
                failure = as_connector_error(self._address, error, f"to consume the queue {self._queue!r}")
                if failure.kind is FailureKind.PERMANENT:
                    raise failure from None
                # The next connection is tried for a while; what was not acknowledged comes again.
                wait(LOOK)
            finally:
                if connection.is_open:
                    connection.close()


class _Known:
    """Ids of records whose acknowledgement the broker may not have taken, with the records' positions."""

    def __init__(self, log: PieceLog) -> None:
        self._positions: dict[str, int] = {}
        self._order: deque[tuple[int, str]] = deque()
        """Also what is not known any more, or stands further back, since its id was published again."""
        for position, (_, identity) in enumerate(log.records(log.begin, log.end), log.begin):
            if identity is not None:
                self.add(identity, position)

    def position(self, identity: str) -> int | None:
        return self._positions.get(identity)

    def add(self, identity: str, position: int) -> None:
        self._positions[identity] = position
        self._order.append((position, identity))

    def discard(self, identities: Iterable[str]) -> None:
        for identity in identities:
            self._positions.pop(identity, None)

    def forget_before(self, position: int) -> None:
        while self._order and self._order[0][0] < position:
            before, identity = self._order.popleft()
            if self._positions.get(identity) == before:
                del self._positions[identity]

    def lowest(self) -> int | None:
        """The first position whose record is still known."""
        while self._order and self._positions.get(self._order[0][1]) != self._order[0][0]:
            self._order.popleft()
        return self._order[0][0] if self._order else None


class _Consumer:
    """One connection's worth of consuming."""

    def __init__(self, source: QueueEnumerator, connection: Any, known: _Known | None, stopping: Any) -> None:
        self._source, self._connection, self._known, self._stopping = source, connection, known, stopping
        self._channel = declare_queue(connection, source._queue)
        self._arrived: deque[Any] = deque()
        self._unacknowledged: list[tuple[int, int, str | None]] = []
        """Delivery tags in their order, with the positions and the ids of their records."""
        self._acknowledged = -1
        """The position up to which that was done."""
        self._late = False
        """Whether something came since whose record is in a checkpoint already."""
        self._since = time.monotonic()
        self._cancelled = False

    def run(self) -> None:
        channel, source = self._channel, self._source
        channel.basic_qos(prefetch_count=min(source._prefetch, 65535))
        channel.add_on_cancel_callback(self._on_cancel)
        channel.basic_consume(source._queue, lambda *message: self._arrived.append(message))
        while not self._stopping.is_set():
            self._connection.process_data_events(LOOK if not self._arrived else 0)
            if self._cancelled:
                raise ConnectorError(
                    f"The queue {source._queue!r} of RabbitMQ at {source._address} was deleted while it was consumed."
                )
            if self._arrived and not self._keep():
                return
            self._acknowledge()

    def _on_cancel(self, frame: Any) -> None:
        self._cancelled = True

    def _keep(self) -> bool:
        """Logs what has arrived and is not there yet; False if the source was stopped before."""
        source, known = self._source, self._known
        log: PieceLog = source._live_log
        new: list[Any] = []
        tags: list[tuple[int, int, str | None]] = []
        fresh: dict[str, int] = {}
        while self._arrived and len(new) < MOST_AT_ONCE:
            _, method, properties, body = self._arrived.popleft()
            identity = properties.correlation_id if known is not None else None
            if known is not None:
                if identity is None:
                    raise InputError(
                        f"A message of the queue {source._queue!r} has no correlation id, by which it would be "
                        f"recognised if it came again: {short_repr(body, 80)}. Publish it with one, or set "
                        "use_correlation_id=False, which is at least once."
                    )
                before = known.position(identity)
                before = fresh.get(identity) if before is None else before
                if before is not None:
                    tags.append((method.delivery_tag, before, identity))
                    self._late = True
                    continue
                fresh[identity] = log.end + len(new)
            tags.append((method.delivery_tag, log.end + len(new), identity))
            new.append((body, identity))
        if new and not source.keep(new, None):
            return False
        for identity, position in fresh.items():
            assert known is not None
            known.add(identity, position)
        self._unacknowledged.extend(tags)
        return True

    def _acknowledge(self) -> None:
        """What a checkpoint has. Messages that come again may come behind newer ones, so the order is looked at."""
        source, safe, known = self._source, self._source._live_safe, self._known
        if safe <= self._acknowledged and not self._late:
            return
        done = [one for one in self._unacknowledged if one[1] < safe]
        left = [one for one in self._unacknowledged if one[1] >= safe]
        if done and (not left or done[-1][0] < left[0][0]):
            self._channel.basic_ack(done[-1][0], multiple=True)
        else:
            for tag, _, _ in done:
                self._channel.basic_ack(tag)
        if done:
            # Answered in order: when this is, the acknowledgements were taken.
            self._channel.queue_declare(source._queue, passive=True)
        self._unacknowledged, self._acknowledged, self._late = left, safe, False
        lowest = None
        if known is not None:
            # Others were delivered to a connection that is lost, and will come again.
            known.discard(identity for _, _, identity in done if identity is not None)
            if time.monotonic() - self._since > SETTLED:
                known.forget_before(safe)
            lowest = known.lowest()
        kept_from = safe if lowest is None else min(safe, lowest)
        source._live_checkpointed = max(source._live_checkpointed, kept_from)


class QueueReader(LoggedReader[T]):
    """Makes elements of what was logged."""

    def __init__(self, schema: DeserializationSchema) -> None:
        self._schema = schema

    def records(self, logged: list[Any]) -> Records[T]:
        return Records(decoded(self._schema.deserialize, (body for body, _ in logged)))


def decoded(deserialize: Callable[[bytes], Any], bodies: Iterator[bytes]) -> list[Any]:
    """Elements; a schema that gives nothing leaves the message out."""
    values = []
    for body in bodies:
        try:
            value = deserialize(body)
        except ConnectorError:
            raise
        except Exception as error:
            raise InputError(
                f"A message cannot be decoded ({type(error).__name__}: {error}): {short_repr(body, 200)}."
            ) from error
        if value is not None:
            values.append(value)
    return values
