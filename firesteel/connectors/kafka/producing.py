"""A producer that says what it could not deliver."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from firesteel.connectors.kafka.errors import LastError, explained, load_client
from firesteel.connectors.kafka.offsets import Cluster
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.record_size import too_large
from firesteel.connectors.kafka.serializing import OutgoingRecord, RecordParts, Serializer
from firesteel.errors import ConnectorError

__all__ = ["Producing"]

_FLUSH_SECONDS = 120.0
"""For so long a queue may stay as long as it is."""
_FULL_PAUSE = 0.05
_CONNECT_SECONDS = 0.5


class _Patience:
    """With brokers that take nothing: a queue that gets shorter is a slow one's, whatever time it needs."""

    def __init__(self) -> None:
        self._shortest, self._since = sys.maxsize, time.monotonic()

    def is_over(self, left: int) -> bool:
        now = time.monotonic()
        if left < self._shortest:
            self._shortest, self._since = left, now
        return now - self._since > _FLUSH_SECONDS


class Producing:
    """A producer of records. After ``flush`` all that were sent are on the broker, or it raises."""

    def __init__(self, properties: KafkaProperties, **settings: Any) -> None:
        self.kafka = load_client()
        self._properties = properties
        self._last = LastError()
        self._failed: Any = None
        self._transactional = "transactional_id" in settings
        self._weight = (False, 0)
        self.sent = 0
        """Records that were handed to the client."""
        own = {
            "linger_ms": 5,
            "queue_buffering_max_messages": 500_000,
            "enable_idempotence": "true",
            "delivery_report_only_error": True,
            # A key goes to the partition that the Java client has for it: others rely on that.
            "partitioner": "murmur2_random",
            # A topic that is not there is an error, soon.
            "topic_metadata_propagation_max_ms": 10_000,
            **settings,
        }
        given = {name: value for name, value in own.items() if properties.get(name.replace("_", ".")) is None}
        try:
            self.client = self.kafka.Producer(
                {
                    **properties.client(**given),
                    "on_delivery": self._not_delivered,
                    "error_cb": self._last,
                    "log_level": 0,
                }
            )
        except self.kafka.KafkaException as error:
            raise self.explained(error, "the start of a producer") from None

    def _not_delivered(self, error: Any, message: Any) -> None:
        # The broker refuses records together with those that were sent along. Some say so; of the others it is the
        # largest that is too large.
        if error is None:
            return
        size = len(message.value() or b"")
        weight = (error.code() != self.kafka.KafkaError._INVALID_DIFFERENT_RECORD, size)
        if self._failed is None or weight > self._weight:
            self._failed, self._weight = (error, message.topic(), size), weight

    def send_all(self, values: Iterator[Any], timestamps: Iterable[int] | None, serializer: Serializer) -> int:
        """Sends the records of elements. Returns how many there were."""
        before = self.sent
        if isinstance(serializer, RecordParts) and serializer.is_simple:
            self._send_simple(values, timestamps, serializer)
        else:
            moments: Iterable[int | None] = repeat(None) if timestamps is None else timestamps
            for element, moment in zip(values, moments):  # noqa: B905 - one may be endless
                record = serializer(element, moment)
                if record is not None:
                    self.send(record)
        self._poll(0)
        return self.sent - before

    def _send_simple(self, values: Iterator[Any], timestamps: Iterable[int] | None, parts: RecordParts) -> None:
        topic, to_value, to_key, produce = parts.topic, parts.value, parts.key, self.client.produce
        sent = 0
        for element, moment in zip(values, repeat(0) if timestamps is None else timestamps):  # noqa: B905 - one may be endless
            value, key = to_value(element), None if to_key is None else to_key(element)
            timestamp = moment if moment > 0 else 0
            try:
                produce(topic, value, key, -1, timestamp=timestamp)
                sent += 1
            except (BufferError, self.kafka.KafkaException):
                assert isinstance(topic, str)
                self.send(OutgoingRecord(topic, value, key, -1, timestamp))
        self.sent += sent

    def send(self, record: OutgoingRecord) -> None:
        """Hands a record to the client, which sends it in the background."""
        topic, value, key, partition, timestamp, headers = record
        patience: _Patience | None = None
        while True:
            try:
                self.client.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                # The queue is full: this is how a slow broker slows the job down.
                patience = patience or _Patience()
                self._poll(_FULL_PAUSE)
                self._check(patience)
            except self.kafka.KafkaException as error:
                raise self._refused(error.args[0], topic, len(value or b"")) from None
        self.sent += 1

    def flush(self) -> None:
        """Waits until all is on the broker."""
        patience = _Patience()
        while self._served(lambda: self.client.flush(1.0)):
            self._check(patience)
        self._last.forget()

    def _check(self, patience: _Patience) -> None:
        left = len(self.client)
        if patience.is_over(left):
            error = self.kafka.KafkaError(self.kafka.KafkaError._TIMED_OUT)
            raise self.explained(error, f"sending {left} records")

    def _poll(self, seconds: float) -> None:
        self._served(lambda: self.client.poll(seconds))

    def _served(self, call: Callable[[], int]) -> int:
        """A call that may bring bad news. A record that was refused is no longer in the queue: without a look at it, it
        would be missing."""
        try:
            left = call()
        except (self.kafka.KafkaException, SystemError) as error:
            raise self.explained(self._behind(error), "writing records") from None
        if self._failed is not None:
            refused, topic, size = self._failed
            raise self._refused(self._fatal() or refused, topic, size)
        return left

    def _behind(self, error: BaseException) -> Any:
        """What a failed call is about. A SystemError comes from a delivery report that was handed over while the
        client had another error to raise: it says nothing itself, and may have lost that error."""
        fatal = self._fatal()
        if fatal is not None:
            return fatal
        if not isinstance(error, SystemError):
            return error
        if isinstance(error.__cause__, self.kafka.KafkaException):
            return error.__cause__
        return self._failed[0] if self._failed is not None else self._last.error or error

    def _fatal(self) -> Any:
        """Why a transactional producer can do nothing any more; None if it can. Its records are reported as purged
        then, or with an error that only follows from this one."""
        if not self._transactional:
            return None
        try:
            # Within a transaction this does nothing but to look at the producer's state.
            self.client.begin_transaction()
        except self.kafka.KafkaException as error:
            return error.args[0] if error.args[0].fatal() else None
        return None

    def _refused(self, error: Any, topic: str, size: int) -> ConnectorError:
        if error.code() == self.kafka.KafkaError.MSG_SIZE_TOO_LARGE:
            cluster = Cluster(self._properties)
            try:
                return too_large(self._properties, cluster, topic, size)
            finally:
                cluster.close()
        return self.explained(error, f"writing a record of {size:,} bytes to topic {topic!r}")

    def start_transactions(self, seconds: float) -> None:
        """Before the first transaction; fences those who had the transactional id before."""
        # A client that looks for its coordinator before it has a connection looks again half a second later. So it gets
        # a connection first. What is wrong, the start of transactions says better.
        with contextlib.suppress(self.kafka.KafkaException):
            self.client.list_topics("__transaction_state", _CONNECT_SECONDS)
        self.attempt("the start of transactions", self.client.init_transactions, seconds)

    def attempt(self, doing: str, call: Callable[..., Any], *given: Any) -> Any:
        """A call of the client, such as one about transactions, whose errors are explained."""
        try:
            return call(*given)
        except self.kafka.KafkaException as error:
            raise self.explained(error, doing) from None

    def explained(self, error: Any, doing: str) -> ConnectorError:
        """An error of the client's as a ConnectorError."""
        return explained(error, self._properties, doing, self._last.behind)

    def abandon(self) -> None:
        """Drops what was not sent yet."""
        self.client.purge()
        self.client.flush(0)
