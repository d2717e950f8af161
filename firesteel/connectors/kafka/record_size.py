"""Why a record is too large, and for whom."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from firesteel.connectors.kafka.offsets import Cluster
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind

__all__ = [
    "OVERHEAD",
    "batch_bytes",
    "client_limit",
    "compressed_size",
    "too_large",
    "topic_limit",
    "why_too_large",
]

_CLIENTS_LIMIT = 1_000_000
_BATCH_BYTES = 1_000_000
OVERHEAD = 128
"""What a record takes beside its key, value and headers, and what a batch of one record takes."""


def client_limit(properties: KafkaProperties) -> int:
    """Bytes of a record that the client takes."""
    return int(properties.get("message.max.bytes") or _CLIENTS_LIMIT)


def topic_limit(settings: Mapping[str, str]) -> int | None:
    """Bytes that a topic takes at once, where its settings are known."""
    return int(settings["max.message.bytes"]) if "max.message.bytes" in settings else None


def compressed_size(codec: str, *parts: bytes) -> int:
    """About what a record takes that is compressed and sent alone. The client sends it as it is where that is less.

    >>> compressed_size("gzip", b"a" * 10_000) < 100, compressed_size("none", b"a" * 10_000)
    (True, 10000)
    """
    content = b"".join(parts)
    if codec == "gzip":
        return min(len(content), len(zlib.compress(content)))
    if codec in ("snappy", "lz4", "zstd"):
        # A record of that size is rare; most programs need not wait for Arrow.
        import pyarrow

        return min(len(content), len(pyarrow.compress(content, codec=codec, asbytes=True)))
    return len(content)


def batch_bytes(properties: KafkaProperties) -> int:
    """Bytes of several records that the client sends together."""
    return int(properties.get("batch.size") or _BATCH_BYTES)


def too_large(properties: KafkaProperties, cluster: Cluster, topic: str, size: int) -> ConnectorError:
    """The error for a record of so many bytes, the largest of those that were refused together."""
    try:
        limit = topic_limit(cluster.topic_settings(topic))
    except ConnectorError:
        limit = None
    return ConnectorError(
        f"Kafka at {properties.servers}: writing a record of {size:,} bytes to topic {topic!r} failed: it is too "
        f"large. {why_too_large(size, limit, client_limit(properties), batch_bytes(properties))}",
        kind=FailureKind.PERMANENT,
    )


def why_too_large(size: int, limit: int | None, takes: int, together: int) -> str:
    """What it is too large for: the client, the topic, or the topic together with others.

    >>> print(why_too_large(size=2_000_000, limit=1_048_588, takes=1_000_000, together=1_000_000))
    The client takes 1,000,000 bytes. Raise the sink's max.request.size and the topic's max.message.bytes.
    >>> print(why_too_large(size=2_000, limit=1_500, takes=1_000_000, together=1_000_000))
    The topic takes 1,500 bytes. Raise its max.message.bytes.
    >>> print(why_too_large(size=100, limit=1_500, takes=1_000_000, together=9_000))
    The topic takes 1,500 bytes at once, and the client sends up to 9,000 of several records. Set the sink's \
batch.size below the topic's max.message.bytes, or raise that.
    """
    if size > takes - OVERHEAD:
        return f"The client takes {takes:,} bytes. Raise the sink's max.request.size and the topic's max.message.bytes."
    if limit is None:
        return "Raise the topic's max.message.bytes, or set the sink's batch.size below it."
    if size > limit - OVERHEAD:
        return f"The topic takes {limit:,} bytes. Raise its max.message.bytes."
    return (
        f"The topic takes {limit:,} bytes at once, and the client sends up to {together:,} of several records. Set the "
        "sink's batch.size below the topic's max.message.bytes, or raise that."
    )
