"""A producer that says what it could not deliver."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from firesteel.connectors.kafka.errors import LastError, explained, load_client
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError

__all__ = ["OutgoingRecord", "Producing"]

_FLUSH_SECONDS = 120.0
_FULL_PAUSE = 0.05
_POLL_EVERY = 1000
"""Records between two looks at what came back."""


class OutgoingRecord(NamedTuple):
    """A record on its way to Kafka."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    """-1 leaves it to the client."""
    timestamp: int = 0
    """In milliseconds; 0 is the moment of sending."""
    headers: list[tuple[str, bytes | None]] | None = None


class Producing:
    """A producer of records. After ``flush`` all that were sent are on the broker, or it raises."""

    def __init__(self, properties: KafkaProperties, **settings: Any) -> None:
        self._kafka = load_client()
        self._properties = properties
        self._last = LastError()
        self._failed: Any = None
        self._weight = (False, 0)
        self._sent = 0
        own = {
            "linger_ms": 5,
            "queue_buffering_max_messages": 500_000,
            "enable_idempotence": "true",
            "delivery_report_only_error": True,
            # A topic that is not there is an error, soon.
            "topic_metadata_propagation_max_ms": 10_000,
            **settings,
        }
        given = {name: value for name, value in own.items() if properties.get(name.replace("_", ".")) is None}
        try:
            self.client = self._kafka.Producer(
                {
                    **properties.client(**given),
                    "on_delivery": self._not_delivered,
                    "error_cb": self._last,
                    "log_level": 0,
                }
            )
        except self._kafka.KafkaException as error:
            raise self.explained(error, "the start of a producer") from None

    def _not_delivered(self, error: Any, message: Any) -> None:
        # The broker refuses records together with those that were sent along. Some say so; of the others it is the
        # largest that is too large.
        if error is None:
            return
        size = len(message.value() or b"")
        weight = (error.code() != self._kafka.KafkaError._INVALID_DIFFERENT_RECORD, size)
        if self._failed is None or weight > self._weight:
            self._failed, self._weight = (error, message.topic(), size), weight

    def send(self, record: OutgoingRecord) -> None:
        """Hands a record to the client, which sends it in the background."""
        topic, value, key, partition, timestamp, headers = record
        while True:
            try:
                self.client.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                # The queue is full: this is how a slow broker slows the job down.
                self._poll(_FULL_PAUSE)
            except self._kafka.KafkaException as error:
                raise self._refused(error.args[0], topic, len(value or b"")) from None
        self._sent += 1
        if self._sent % _POLL_EVERY == 0:
            self._poll(0)

    def flush(self) -> None:
        """Waits until all is on the broker."""
        end = time.monotonic() + _FLUSH_SECONDS
        while self._served(lambda: self.client.flush(1.0)):
            if time.monotonic() > end:
                error = self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
                raise self.explained(error, f"sending {len(self.client)} records")

    def _poll(self, seconds: float) -> None:
        self._served(lambda: self.client.poll(seconds))

    def _served(self, call: Callable[[], int]) -> int:
        """A call that may bring bad news. A record that was refused is no longer in the queue: without a look at it, it
        would be missing."""
        try:
            left = call()
        except (self._kafka.KafkaException, SystemError) as error:
            # The latter is about the former, if there is more than one piece of news.
            cause = error.__cause__ if isinstance(error, SystemError) else error
            if not isinstance(cause, self._kafka.KafkaException):
                raise
            raise self.explained(cause, "writing records") from None
        if self._failed is not None:
            raise self._refused(*self._failed)
        return left

    def _refused(self, error: Any, topic: str, size: int) -> ConnectorError:
        return self.explained(error, f"writing a record of {size:,} bytes to topic {topic!r}")

    def explained(self, error: Any, doing: str) -> ConnectorError:
        """An error of the client's in our words."""
        return explained(error, self._properties, doing, self._last.behind)

    def abandon(self) -> None:
        """Drops what was not sent yet."""
        self.client.purge()
        self.client.flush(0)
