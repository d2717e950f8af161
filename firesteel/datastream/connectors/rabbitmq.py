"""RabbitMQ: queues and streams as sources, queues as a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from firesteel.common.secret import Secret
from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.rabbitmq.connecting import AnyRabbitAddress, RabbitAddress, RabbitReference, load_client
from firesteel.connectors.rabbitmq.publishing import Publisher
from firesteel.connectors.rabbitmq.queues import QueueEnumerator, QueueReader
from firesteel.connectors.rabbitmq.streams import StreamEnumerator, StreamReader
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ProgramError, TypeMismatchError, short_repr

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource", "RMQStreamSource"]

Text = str | Secret | Callable[[], str]


class RMQConnectionConfig:
    """Where a RabbitMQ is, and who asks. Made by its ``Builder``; its text never has the password.

    >>> config = RMQConnectionConfig.Builder().set_host("broker").set_port(5673).set_user_name("ada")
    >>> config.set_password("secret").build()
    RMQConnectionConfig(broker:5673)
    """

    def __init__(self, address: AnyRabbitAddress, prefetch: int | None, given: dict[str, Any]) -> None:
        self._address, self._prefetch, self._given = address, prefetch, given

    def __repr__(self) -> str:
        # What is to be found elsewhere is looked up where it is used, not here.
        where = repr(self._address.uri) if isinstance(self._address, RabbitReference) else self._address
        return f"RMQConnectionConfig({where})"

    def get_host(self) -> str:
        return self._address.resolve().host

    def get_port(self) -> int:
        return self._address.resolve().port

    def get_virtual_host(self) -> str:
        return self._address.resolve().virtual_host

    def get_user_name(self) -> str:
        return self._address.resolve().user

    def get_password(self) -> str:
        return self._address.resolve().password.reveal()

    def get_uri(self) -> str | None:
        found = self._given.get("uri")
        return found.reveal() if isinstance(found, Secret) else found

    def get_network_recovery_interval(self) -> int | None:
        return self._given.get("network_recovery_interval")

    def is_automatic_recovery(self) -> bool:
        return bool(self._given.get("automatic_recovery", True))

    def is_topology_recovery(self) -> bool:
        return bool(self._given.get("topology_recovery_enabled", True))

    def get_connection_timeout(self) -> int:
        return int(self._address.resolve().connection_timeout * 1000)

    def get_requested_channel_max(self) -> int | None:
        return self._address.resolve().channel_max

    def get_requested_frame_max(self) -> int | None:
        return self._address.resolve().frame_max

    def get_requested_heartbeat(self) -> int | None:
        return self._address.resolve().heartbeat

    class Builder:
        """Takes what PyFlink's takes. ``set_password`` also takes a :class:`~firesteel.common.Secret`."""

        def __init__(self) -> None:
            self._given: dict[str, Any] = {}

        def _set(self, name: str, value: Any) -> RMQConnectionConfig.Builder:
            self._given[name] = value
            return self

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            return self._set("host", host)

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            return self._set("port", port)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            return self._set("virtual_host", vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            return self._set("user", user_name)

        def set_password(self, password: Text) -> RMQConnectionConfig.Builder:
            return self._set("password", Secret.of(password))

        def set_uri(self, uri: Text) -> RMQConnectionConfig.Builder:
            """``amqp://user:password@host:port/virtual-host``, in place of all of these; ``amqps://`` for TLS. One that
            is to be found elsewhere (a :class:`~firesteel.common.Secret`) is understood where the job connects."""
            return self._set("uri", Secret.of(uri))

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> RMQConnectionConfig.Builder:
            """Connections are always made anew, with all that they had. The setting is kept for its getter."""
            return self._set("topology_recovery_enabled", topology_recovery_enabled)

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Connections are always made anew. The setting is kept for its getter."""
            return self._set("automatic_recovery", automatic_recovery)

        def set_network_recovery_interval(self, network_recovery_interval: int) -> RMQConnectionConfig.Builder:
            """Retries have pauses that grow. The setting is kept for its getter."""
            return self._set("network_recovery_interval", network_recovery_interval)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """In seconds."""
            return self._set("heartbeat", requested_heartbeat)

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """In bytes."""
            return self._set("frame_max", requested_frame_max)

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            return self._set("channel_max", requested_channel_max)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """In milliseconds."""
            return self._set("connection_timeout", connection_timeout / 1000)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """How many messages may wait for the checkpoint with which they are acknowledged, 50,000 by default."""
            return self._set("prefetch", prefetch_count)

        def build(self) -> RMQConnectionConfig:
            load_client()
            given = dict(self._given)
            uri, prefetch = given.pop("uri", None), given.pop("prefetch", None)
            kept = {"uri": uri}
            for name in ("automatic_recovery", "topology_recovery_enabled", "network_recovery_interval"):
                if name in given:
                    kept[name] = given.pop(name)
            if uri is None and not given.get("host"):
                raise ProgramError("A RabbitMQ needs an address: set_host(…) and set_port(…), or set_uri(…).")
            if uri is not None and uri.is_reference:
                return RMQConnectionConfig(RabbitReference(uri, given), prefetch, kept)
            address = RabbitAddress(given["host"]) if uri is None else RabbitAddress.of_uri(uri.reveal())
            return RMQConnectionConfig(replace(address, **given), prefetch, kept)


class RMQSource(Source[Any, Any]):
    """Messages of a queue. They are written to the job's checkpoint folder, and acknowledged when a checkpoint has
    them.

    With ``use_correlation_id`` a message that comes again is recognised by its correlation id, which the publisher must
    give it: each counts exactly once. Without it, at least once. A queue that does not exist is declared durable, as
    Flink does it. :class:`RMQStreamSource` reads streams.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
    ) -> None:
        _check(connection_config, queue_name)
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise ProgramError(
                f"deserialization_schema must be a DeserializationSchema, got {short_repr(deserialization_schema, 80)}."
            )
        self._config, self._queue = connection_config, queue_name
        self._use_ids, self._schema = use_correlation_id, deserialization_schema

    def create_enumerator(self) -> SplitEnumerator[Any]:
        return QueueEnumerator(self._config._address, self._queue, self._use_ids, self._config._prefetch)

    def create_reader(self) -> SourceReader[Any, Any]:
        return QueueReader(self._schema)

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()


class RMQStreamSource(Source[str, Any]):
    """Messages of streams (queues of the type ``stream``), each exactly once: they are read by offset, and a batch that
    is repeated reads the same offsets. Nothing is removed by it.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        streams: Sequence[str],
        deserialization_schema: DeserializationSchema,
        *,
        start: int | str = "first",
        bounded: bool = False,
    ) -> None:
        """``start`` is an offset, ``"first"``, or ``"next"`` for what is published after the job began. ``bounded``:
        what there is when the job begins."""
        if isinstance(streams, str) or not streams:
            raise ProgramError(f"streams must be a list of names, got {short_repr(streams, 80)}.")
        for stream in streams:
            _check(connection_config, stream)
        if start not in ("first", "next") and (isinstance(start, str | bool) or start < 0):
            raise ProgramError(f"start must be an offset, 'first' or 'next', got {start!r}.")
        self._config, self._streams, self._schema = connection_config, list(streams), deserialization_schema
        self._start, self._bounded = start, bounded

    def create_enumerator(self) -> SplitEnumerator[str]:
        return StreamEnumerator(self._config._address, self._streams, self._start, self._bounded)

    def create_reader(self) -> SourceReader[str, Any]:
        return StreamReader(self._config._address, self._schema)

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()


class RMQSink(BatchSink, SinkFunction):  # type: ignore[misc]
    """A message for each record, at least once: persistent, and a batch is done when the broker has confirmed all of
    it. A queue that does not exist is declared durable, as Flink does it.

    ``correlation_id`` makes an id of a record, by which a receiver such as :class:`RMQSource` recognises messages that
    come again.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        serialization_schema: SerializationSchema,
        *,
        correlation_id: Callable[[Any], str] | None = None,
    ) -> None:
        _check(connection_config, queue_name)
        if not isinstance(serialization_schema, SerializationSchema):
            raise ProgramError(
                f"serialization_schema must be a SerializationSchema, got {short_repr(serialization_schema, 80)}."
            )
        self._config, self._queue, self._schema = connection_config, queue_name, serialization_schema
        self._correlation_id = correlation_id
        self._publisher: Publisher | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_publisher": None}

    def convert(self, value: Any) -> tuple[bytes, str | None]:
        body = self._schema.serialize(value)
        if not isinstance(body, bytes | bytearray):
            raise TypeMismatchError(f"A message is bytes; the schema gave {short_repr(body, 80)}.")
        if self._correlation_id is None:
            return bytes(body), None
        identity = self._correlation_id(value)
        if not isinstance(identity, str) or not 0 < len(identity.encode()) <= 255:
            raise TypeMismatchError(f"A correlation id is a text of 1 to 255 bytes, got {short_repr(identity, 80)}.")
        return bytes(body), identity

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """``add_sink`` takes it for a sink, as ``sink_to`` does: it writes whole batches."""
        raise ProgramError("RMQSink is given to sink_to() or add_sink(); it is not called record by record.")

    def write(self, batch: SinkBatch) -> None:
        if self._publisher is None:
            self._publisher = Publisher(self._config._address, self._queue, self.retry_seconds)
        try:
            self._publisher.publish(batch.values)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def close(self) -> None:
        self._drop()


def _check(config: Any, queue: Any) -> None:
    if not isinstance(config, RMQConnectionConfig):
        raise ProgramError(f"connection_config must be an RMQConnectionConfig, got {short_repr(config, 80)}.")
    if not isinstance(queue, str) or not queue:
        raise ProgramError(f"The name of a queue must be a text, got {short_repr(queue, 80)}.")
