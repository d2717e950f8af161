"""Streams of RabbitMQ, read by offset.

The position of a stream is the offset of its next message; in a bounded source also the offset with which it ends, so
that a restart does not move the end. A batch that is repeated asks for the same offsets. Messages that were removed
before they were read (by age or size) are noticed: offsets have no gaps. So is a stream that ends before a position: it
was deleted and declared anew, and its offsets began again.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeVar

from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.connectors.rabbitmq.connecting import AnyRabbitAddress, as_connector_error, load_client
from firesteel.connectors.rabbitmq.queues import RETRY_SECONDS, decoded
from firesteel.connectors.retrying import retried
from firesteel.connectors.source import CHUNK_RECORDS, Position, Records, SourceReader
from firesteel.errors import ConnectorError, InputError

__all__ = ["StreamEnumerator", "StreamReader"]

T = TypeVar("T")
OFFSET = "x-stream-offset"
QUIET = 0.05
"""How long nothing must come, after the first message, before a stream counts as read to its end."""
CERTAIN = 1.0
"""The same for where reading begins or ends for good, which is looked for once."""
POLL = 0.1
"""Seconds from one look at the end of a stream to the next."""
LONGEST_LOOK = 0.3
"""So many seconds a look may take, and the first message of it. A stream whose message takes longer is looked at
again."""
SILENT = 5.0
"""So many seconds a message that is there may take to arrive."""
PREFETCH = 2000


class _Reading:
    """A connection that reads streams."""

    def __init__(self, address: AnyRabbitAddress) -> None:
        self._address = address
        self._live: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}

    def _channel(self) -> Any:
        if self._live is None or not self._live.is_open:
            self._live = self._address.connect()
        return self._live.channel()

    def count(self, stream: str) -> int:
        """How many messages a stream has. The broker counts them every five seconds."""
        channel = self._channel()
        found = int(channel.queue_declare(stream, passive=True).method.message_count)
        channel.close()
        return found

    def messages(self, stream: str, offset: int | str, wait: float) -> Generator[tuple[int, bytes] | None, None, None]:
        """Messages from an offset on; None where nothing has come for ``wait`` seconds."""
        channel = self._channel()
        try:
            channel.queue_declare(stream, passive=True)
            channel.basic_qos(prefetch_count=PREFETCH)
            count = 0
            for method, properties, body in channel.consume(
                stream, arguments={OFFSET: offset}, inactivity_timeout=wait
            ):
                if method is None:
                    yield None
                    continue
                found = (properties.headers or {}).get(OFFSET)
                if found is None:
                    raise InputError(f"{stream!r} is a queue, not a stream: read it with RMQSource(…).")
                count += 1
                if count % (PREFETCH // 4) == 0:
                    # That is what more are sent for. It removes nothing.
                    channel.basic_ack(method.delivery_tag, multiple=True)
                yield int(found), body
        finally:
            with contextlib.suppress(load_client().exceptions.AMQPError):
                if channel.is_open:
                    # Unlike cancel(), which would hand back thousands of messages one by one.
                    channel.close()

    def run(self, action: Callable[[], T], doing: str) -> T:
        try:
            return action()
        except (load_client().exceptions.AMQPError, OSError) as error:
            self.close()
            raise as_connector_error(self._address, error, doing) from None

    def close(self) -> None:
        live, self._live = self._live, None
        with contextlib.suppress(load_client().exceptions.AMQPError, OSError):
            if live is not None and live.is_open:
                live.close()


class StreamEnumerator(PartitionEnumerator[str]):
    """A stream is a split."""

    def __init__(self, address: AnyRabbitAddress, streams: list[str], start: int | str, bounded: bool) -> None:
        self._address, self._streams, self._start = address, streams, start
        self.bounded = bounded
        self._reading = _Reading(address)
        self._stops: dict[str, int] = {}
        self._looked: dict[str, tuple[float, int]] = {}
        self._short: dict[str, float] = {}
        """Since when streams have seemed to end before their positions."""

    def stop(self) -> None:
        self._reading.close()

    def _first(self, stream: str, offset: str) -> int | None:
        """The offset of the first message that comes; None if the stream is empty."""
        doing = f"to read the stream {stream!r}"

        def ask() -> int | None:
            began = time.monotonic()
            with contextlib.closing(self._reading.messages(stream, offset, QUIET)) as messages:
                for found in messages:
                    if found is not None:
                        return found[0]
                    if time.monotonic() - began > SILENT:
                        break
            self._check_empty(stream)
            return None

        return retried(lambda: self._reading.run(ask, doing), RETRY_SECONDS, doing)

    def _check_empty(self, stream: str) -> None:
        """Nothing came for so long that all that is there was counted. A stream that has messages must not count as
        empty for good."""
        count = self._reading.count(stream)
        if count:
            raise ConnectorError(
                f"RabbitMQ at {self._address} has {count} messages of the stream {stream!r}, and has sent none of them "
                f"for {SILENT:g} s."
            )

    def _last(self, stream: str) -> int:
        """The offset behind the newest message, where something begins or ends for good."""
        return self._end(stream, CERTAIN, SILENT, certain=True)

    def _end(self, stream: str, quiet: float = QUIET, longest: float = LONGEST_LOOK, certain: bool = False) -> int:
        """The offset behind the newest message that was there for certain. The first one may take as long as all."""
        doing = f"to read the stream {stream!r}"

        def ask() -> int:
            end, began, came = 0, math.inf, math.inf
            with contextlib.closing(self._reading.messages(stream, "last", QUIET)) as messages:
                for found in messages:
                    now = time.monotonic()
                    # Not before the server serves: to connect may take longer than to look.
                    began = min(began, now)
                    if found is not None:
                        end, came = found[0] + 1, now
                    elif end and now - came >= quiet:
                        break
                    if now - began > longest:
                        # More come as fast as they are read: these are enough for a batch. Or nothing came at all.
                        break
            if certain and not end:
                self._check_empty(stream)
            return end

        return retried(lambda: self._reading.run(ask, doing), RETRY_SECONDS, doing)

    def discover(self) -> Mapping[str, str]:
        return {name: name for name in self._streams}

    def starts(self, splits: Mapping[str, str], initial: bool) -> Mapping[str, Position]:
        begins = {name: self._begin(name) for name in splits}
        return {name: [begin, self._stop_now(name)] if self.bounded else begin for name, begin in begins.items()}

    def _begin(self, name: str) -> int:
        if isinstance(self._start, int):
            return self._start
        return self._last(name) if self._start == "next" else self._first(name, "first") or 0

    def _stop_now(self, name: str) -> int:
        if name not in self._stops:
            self._stops[name] = self._last(name)
        return self._stops[name]

    def _stop(self, name: str, position: Position) -> int:
        """Where a bounded source ends. Positions of former versions do not say it."""
        return position[1] if isinstance(position, list) else self._stop_now(name)

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, Position]) -> Mapping[str, Position]:
        found: dict[str, Position] = {}
        for name in splits:
            at = _offset(positions[name])
            looked, end = self._looked.get(name, (0.0, 0))
            if end <= at and time.monotonic() - looked >= POLL:
                end = self._end(name)
                self._looked[name] = (time.monotonic(), end)
                self._check_position(name, at, end)
            if self.bounded:
                stop = self._stop(name, positions[name])
                if min(end, stop) > at:
                    found[name] = [min(end, stop), stop]
            elif end > at:
                found[name] = end
        return found

    def _check_position(self, name: str, at: int, end: int) -> None:
        """A single look may have ended too early, where a message took its time: many of them do not."""
        if end >= at or at == self._start:
            # An offset that the user asks for may lie in the future.
            self._short.pop(name, None)
        elif end and time.monotonic() - self._short.setdefault(name, time.monotonic()) > SILENT:
            end = self._last(name)
            if end >= at:
                del self._short[name]
                return
            raise InputError(
                f"Stream {name!r} of RabbitMQ at {self._address} ends before the offset {end}, and messages up to "
                f"{at - 1} were read: it was deleted and declared anew, or the broker has lost its end. What has the "
                "same offsets now would be left out. Start the job without its checkpoint or savepoint, or give the "
                "source another uid."
            )

    def limit(self, split: str, start: Position, end: Position, records: int) -> Position:
        offset = min(_offset(end), _offset(start) + records)
        return [offset, end[1]] if isinstance(end, list) else offset

    def record_count(self, start: Position, end: Position) -> int:
        return _offset(end) - _offset(start)

    def finished(self, split: str, position: Position) -> bool:
        return self.bounded and _offset(position) >= self._stop(split, position)


def _offset(position: Position) -> int:
    return int(position[0] if isinstance(position, list) else position)


class StreamReader(SourceReader[str, T]):
    """Elements of the messages between two offsets."""

    def __init__(self, address: AnyRabbitAddress, schema: DeserializationSchema) -> None:
        self._address, self._schema = address, schema
        self._reading = _Reading(address)

    def read(self, split: str, start: Position, end: Position) -> Iterator[Records[T]]:
        doing = f"to read the stream {split!r}"
        at, last = _offset(start), _offset(end)
        while at < last:
            chunk_end = min(last, at + CHUNK_RECORDS * 4)
            first = at

            def fetch(first: int = first, chunk_end: int = chunk_end) -> list[bytes]:
                return self._reading.run(lambda: self._fetch(split, first, chunk_end), doing)

            bodies = retried(fetch, RETRY_SECONDS, doing)
            for index in range(0, len(bodies), CHUNK_RECORDS):
                yield Records(decoded(self._schema.deserialize, iter(bodies[index : index + CHUNK_RECORDS])))
            at = chunk_end

    def _fetch(self, stream: str, start: int, end: int) -> list[bytes]:
        bodies: list[bytes] = []
        at = start
        with contextlib.closing(self._reading.messages(stream, start, SILENT)) as messages:
            for found in messages:
                if found is None:
                    raise ConnectorError(
                        f"RabbitMQ at {self._address} has not sent the message {at} of the stream {stream!r} for "
                        f"{SILENT:g} s, although it was there."
                    )
                offset, body = found
                if offset < at:
                    continue
                if offset > at:
                    raise InputError(
                        f"Stream {stream!r} of RabbitMQ at {self._address}: the messages from {at} to {offset - 1} "
                        "were removed before they were read. Keep more of them (x-max-age, x-max-length-bytes)."
                    )
                bodies.append(body)
                at += 1
                if at == end:
                    break
        return bodies

    def close(self) -> None:
        self._reading.close()
