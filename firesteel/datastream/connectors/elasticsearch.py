"""Elasticsearch and OpenSearch as a sink."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from firesteel.common.secret import Secret
from firesteel.common.types import Row
from firesteel.connectors.batch_versions import BatchVersions
from firesteel.connectors.elasticsearch.bulk import Action, Cluster, Connection, checked_host, read_answers
from firesteel.connectors.jdbc.rows import as_json
from firesteel.datastream.connectors.base import CommitterContext, DeliveryGuarantee, WriterContext
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.errors import ConnectorError, FailureKind, ProgramError, TypeMismatchError, short_repr

__all__ = ["Elasticsearch7SinkBuilder", "ElasticsearchEmitter", "ElasticsearchSink", "FlushBackoffType"]

Text = str | Secret | Callable[[], str]
VERSIONS_PER_MILLISECOND = 1 << 21
ORDINALS = ("first", "second", "third")
"""So many of the documents that are refused are shown."""


class FlushBackoffType(enum.Enum):
    """How long the sink waits before it sends documents again that the cluster could not take now."""

    CONSTANT = 0
    EXPONENTIAL = 1
    NONE = 2


class ElasticsearchEmitter:
    """Makes documents of records: maps, dicts or rows with names.

    >>> emitter = ElasticsearchEmitter.static_index("words", key_field="word")
    >>> emitter({"word": "to", "count": 2})
    Action(index='words', id='to', document=b'{"word": "to", "count": 2}', version=None)
    """

    def __init__(self, function: Callable[[Any], Action]) -> None:
        self._function = function

    def __call__(self, element: Any) -> Action:
        return self._function(element)

    @staticmethod
    def static_index(
        index: str, key_field: str | None = None, doc_type: str | None = None, *, version_field: str | None = None
    ) -> ElasticsearchEmitter:
        """All records into one index. ``key_field`` has the document's id: then a record that comes again changes
        nothing. ``version_field`` has its version; by default it follows from the micro-batch. There are no document
        types any more."""

        def emit(element: Any) -> Action:
            fields = _fields(element)
            return Action(index, _key(fields, key_field), _document(fields), _version(fields, version_field))

        return ElasticsearchEmitter(emit)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None, *, version_field: str | None = None
    ) -> ElasticsearchEmitter:
        """The same, and ``index_field`` has the name of the index."""

        def emit(element: Any) -> Action:
            fields = _fields(element)
            index = fields.get(index_field)
            if not isinstance(index, str) or not index:
                raise TypeMismatchError(f"The field {index_field!r} must have the name of an index, got {index!r}.")
            return Action(index, _key(fields, key_field), _document(fields), _version(fields, version_field))

        return ElasticsearchEmitter(emit)

    @staticmethod
    def of(
        index: Callable[[Any], str], key: Callable[[Any], str], document: Callable[[Any], Mapping[str, Any] | None]
    ) -> ElasticsearchEmitter:
        """By functions of a record; a document of None deletes the one with the key."""

        def emit(element: Any) -> Action:
            made = document(element)
            identity = _identity(key(element), "The function key")
            return Action(index(element), identity, None if made is None else _document(made))

        return ElasticsearchEmitter(emit)


def _fields(element: Any) -> Mapping[str, Any]:
    if isinstance(element, Mapping):
        return element
    if isinstance(element, Row) and element._fields is not None:
        found: dict[str, Any] = element.as_dict()
        return found
    raise TypeMismatchError(f"A document is made of a map, a dict or a row with names, got {short_repr(element, 80)}.")


def _key(fields: Mapping[str, Any], key_field: str | None) -> str | None:
    if key_field is None:
        return None
    return _identity(fields.get(key_field), f"The field {key_field!r}")


def _identity(key: Any, origin: str) -> str:
    if key is None or len(str(key).encode()) > 512:
        raise TypeMismatchError(
            f"{origin} must have the document's id, of at most 512 bytes, got {short_repr(key, 80)}."
        )
    return str(key)


def _version(fields: Mapping[str, Any], version_field: str | None) -> int | None:
    if version_field is None:
        return None
    version = fields.get(version_field)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise TypeMismatchError(f"The field {version_field!r} must have a version, from 0 on, got {version!r}.")
    return version


def _document(fields: Mapping[str, Any]) -> bytes:
    try:
        return as_json(dict(fields)).encode()
    except (ValueError, TypeError) as error:
        raise TypeMismatchError(f"A document cannot be written as JSON: {error}.") from None


class ElasticsearchSink(BatchSink):
    """Documents in bulk requests, by the tasks. Made by :class:`Elasticsearch7SinkBuilder`.

    A document has its id from the record and a version from the micro-batch. The cluster takes a version only if it has
    none that is newer: a batch that comes again changes nothing, and an older one undoes nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        emitter: ElasticsearchEmitter,
        max_actions: int,
        max_bytes: int,
        backoff: tuple[FlushBackoffType, int, int],
    ) -> None:
        self._cluster, self._emitter, self._max_bytes, self._backoff = cluster, emitter, max_bytes, backoff
        self.max_records = max_actions
        self._connection: Connection | None = None
        self._versions: BatchVersions | None = None
        self._sleep: Callable[[float], None] = time.sleep

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None, "_versions": None}

    def open(self, context: CommitterContext) -> None:
        assert isinstance(context, WriterContext)
        self._versions = BatchVersions(context.current_processing_time, VERSIONS_PER_MILLISECOND)

    def convert(self, value: Any) -> tuple[bytes, Any]:
        # Here, and not when it is sent: what is sent a second time keeps its version.
        assert self._versions is not None
        return self._emitter(value).lines(self._versions.take(1)), value

    def write(self, batch: SinkBatch) -> None:
        bodies = [body for body, _ in batch.values]
        start = 0
        while start < len(bodies):
            end, size = start, 0
            while end < len(bodies) and (end == start or size + len(bodies[end]) <= self._max_bytes):
                size += len(bodies[end])
                end += 1
            self._send(bodies[start:end], [record for _, record in batch.values[start:end]])
            start = end

    def _send(self, bodies: list[bytes], records: list[Any]) -> None:
        """Sends documents, and those again that the cluster may take later."""
        if self._connection is None:
            self._connection = Connection(self._cluster)
        kind, retries, delay = self._backoff
        waiting = list(range(len(bodies)))
        refused: dict[int, str] = {}
        tries = 0
        while True:
            body = b"".join(bodies[number] for number in waiting)
            answers = read_answers(self._connection.bulk(body, len(waiting)))
            refused |= {waiting[number]: answers.texts[number] for number in answers.refused}
            busy = [answers.texts[number] for number in answers.again]
            waiting = [waiting[number] for number in answers.again]
            # Those that are refused end the job, but not before the others are written.
            if waiting and kind is not FlushBackoffType.NONE and tries < retries:
                self._sleep(delay / 1000 * (2**tries if kind is FlushBackoffType.EXPONENTIAL else 1))
                tries += 1
                continue
            if refused:
                raise self._refusal(refused, records, len(waiting))
            if not waiting:
                return
            raise ConnectorError(
                f"Elasticsearch at {self._cluster} could not take {len(waiting)} of {len(bodies)} documents, sent "
                f"{tries + 1} times: {busy[0].rstrip('.')}."
            )

    def _refusal(self, refused: dict[int, str], records: list[Any], busy: int) -> ConnectorError:
        text = f"Elasticsearch at {self._cluster} refused {len(refused)} of {len(records)} documents."
        if busy:
            text += f" It was too busy for {busy} others."
        for ordinal, number in zip(ORDINALS, sorted(refused), strict=False):
            text += (
                f" The {ordinal} one: {refused[number].rstrip('.')}. Its record is {short_repr(records[number], 200)}."
            )
        return ConnectorError(text, kind=FailureKind.PERMANENT)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Elasticsearch7SinkBuilder:
    """Takes what PyFlink's takes, for Elasticsearch 7 and 8 and for OpenSearch.

    >>> emitter = ElasticsearchEmitter.static_index("words", key_field="word")
    >>> sink = Elasticsearch7SinkBuilder().set_hosts(["localhost:9200"]).set_emitter(emitter).build()
    """

    def __init__(self) -> None:
        self._emitter: ElasticsearchEmitter | None = None
        self._cluster = Cluster(())
        self._max_actions, self._max_bytes = 1000, 5 << 20
        self._backoff = (FlushBackoffType.EXPONENTIAL, 8, 50)

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Elasticsearch7SinkBuilder:
        """What makes documents of records."""
        if not isinstance(emitter, ElasticsearchEmitter):
            raise ProgramError(f"emitter must be an ElasticsearchEmitter, got {short_repr(emitter, 80)}.")
        self._emitter = emitter
        return self

    def set_hosts(self, hosts: str | list[str]) -> Elasticsearch7SinkBuilder:
        """Nodes, as ``host:port`` or ``https://host:port``. One that cannot be reached is left out in favour of the
        next."""
        found = [hosts] if isinstance(hosts, str) else list(hosts)
        if not found:
            raise ProgramError("hosts must have at least one node.")
        self._cluster = replace(self._cluster, hosts=tuple(checked_host(host) for host in found))
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Elasticsearch7SinkBuilder:
        """AT_LEAST_ONCE, which is also the default. With ids a repetition changes nothing."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ProgramError(
                "delivery_guarantee must be a DeliveryGuarantee, such as DeliveryGuarantee.AT_LEAST_ONCE, got "
                f"{short_repr(delivery_guarantee, 80)}."
            )
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise ProgramError(
                "Elasticsearch has no transactions, so documents are visible before their checkpoint is complete. With "
                "AT_LEAST_ONCE and a key_field a document that comes again changes nothing."
            )
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Elasticsearch7SinkBuilder:
        """Documents of a request, 1000 by default; -1: as many as there are."""
        self._max_actions = num_max_actions if num_max_actions > 0 else 1 << 30
        return self

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Elasticsearch7SinkBuilder:
        """Megabytes of a request, 5 by default; -1: no limit."""
        self._max_bytes = max_size_mb << 20 if max_size_mb > 0 else 1 << 62
        return self

    def set_bulk_flush_interval(self, interval_millis: int) -> Elasticsearch7SinkBuilder:
        """Documents never wait beyond the end of their micro-batch."""
        return self

    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Elasticsearch7SinkBuilder:
        """How often, and after how long, documents are sent again that the cluster could not take now; by default 8
        times, after 50 ms and then twice as long each time."""
        if not isinstance(flush_backoff_type, FlushBackoffType):
            raise ProgramError(
                "flush_backoff_type must be a FlushBackoffType, such as FlushBackoffType.EXPONENTIAL, got "
                f"{short_repr(flush_backoff_type, 80)}."
            )
        for name, number in (("max_retries", max_retries), ("delay_millis", delay_millis)):
            if not isinstance(number, int) or number < 0:
                raise ProgramError(f"{name} must be a whole number from 0 on, got {short_repr(number, 80)}.")
        self._backoff = (flush_backoff_type, max_retries, delay_millis)
        return self

    def set_connection_username(self, username: str) -> Elasticsearch7SinkBuilder:
        self._cluster = replace(self._cluster, user=username)
        return self

    def set_connection_password(self, password: Text) -> Elasticsearch7SinkBuilder:
        """A text, or better a :class:`~firesteel.common.Secret`."""
        self._cluster = replace(self._cluster, password=Secret.of(password))
        return self

    def set_connection_path_prefix(self, prefix: str) -> Elasticsearch7SinkBuilder:
        """The path before those of the cluster, behind a proxy."""
        self._cluster = replace(self._cluster, prefix=f"/{prefix.strip('/')}")
        return self

    def set_connection_request_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """Accepted, without effect: how long to wait for a connection of a pool. Each subtask has one of its own."""
        return self

    def set_connection_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """How long a connection may take, in milliseconds."""
        self._cluster = replace(self._cluster, connect_seconds=timeout / 1000)
        return self

    def set_socket_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """How long an answer may take, in milliseconds."""
        self._cluster = replace(self._cluster, read_seconds=timeout / 1000)
        return self

    def build(self) -> ElasticsearchSink:
        if self._emitter is None or not self._cluster.hosts:
            raise ProgramError("An Elasticsearch sink needs set_hosts(…) and set_emitter(…).")
        return ElasticsearchSink(self._cluster, self._emitter, self._max_actions, self._max_bytes, self._backoff)
