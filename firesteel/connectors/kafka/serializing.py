"""From a stream's elements to records for Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Headers", "OutgoingRecord", "RecordFunction", "RecordParts", "Serializer"]

Headers = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]
"""By name; pairs where a name may stand twice."""


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


class RecordFunction:
    """A record of whatever a function makes of an element."""

    def __init__(self, function: Callable[[Any], OutgoingRecord | None]) -> None:
        self._function = function

    def __call__(self, element: Any, timestamp: int | None) -> OutgoingRecord | None:
        return self._function(element)


class RecordParts:
    """A record of a topic, a key, a value, headers and a partition."""

    def __init__(
        self,
        topic: str | Callable[[Any], str],
        value: Callable[[Any], bytes],
        key: Callable[[Any], bytes] | None = None,
        headers: Callable[[Any], Headers] | None = None,
        partition: Callable[[Any], int] | None = None,
    ) -> None:
        self.topic, self.value, self.key, self.headers, self.partition = topic, value, key, headers, partition

    @property
    def only_topic(self) -> str | None:
        """Where all records go, if that is one."""
        return self.topic if isinstance(self.topic, str) else None

    @property
    def is_simple(self) -> bool:
        """Whether there is one topic, and neither headers nor a partitioner: most often it is so."""
        return isinstance(self.topic, str) and self.headers is None and self.partition is None

    def __call__(self, element: Any, timestamp: int | None) -> OutgoingRecord:
        headers = None if self.headers is None else self.headers(element)
        return OutgoingRecord(
            self.topic if isinstance(self.topic, str) else self.topic(element),
            self.value(element),
            None if self.key is None else self.key(element),
            -1 if self.partition is None else self.partition(element),
            # As Flink does it: the record's event time, where it has one.
            timestamp if timestamp is not None and timestamp > 0 else 0,
            None if headers is None else list(headers.items() if isinstance(headers, Mapping) else headers),
        )


Serializer = RecordFunction | RecordParts
"""Of an element and its timestamp: the record, or None if there is none to write."""
