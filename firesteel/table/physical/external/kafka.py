"""The connectors ``kafka`` and ``upsert-kafka``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.connectors.kafka.enumerator import Subscription
from firesteel.connectors.kafka.offsets import OffsetsSpec, TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.serializing import RecordFunction
from firesteel.connectors.table.expanding import ExpandingSink
from firesteel.connectors.table.formats.message_format import MessageFormat
from firesteel.connectors.table.kafka_batches import READABLE, WRITABLE, BatchDeserializing, BatchSerializing, Layout
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import TRANSACTION_TIMEOUT, KafkaSink, KafkaSource
from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import ChangelogNormalize
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.connector import Changes, Connector, Reading, Writing
from firesteel.table.physical.external.formats import FORMAT_METADATA, format_name, format_options, message_format
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.types.arrow import strict_schema
from firesteel.table.types.data_types import RowType

__all__ = ["KAFKA", "UPSERT_KAFKA"]

_FORMATS = ("json", "csv", "avro", "avro-confluent", "debezium-json", "raw")
_UPSERT_FORMATS = ("json", "csv", "avro", "avro-confluent", "raw")
_COMMON = (
    "topic",
    "properties.*",
    "key.format",
    "value.format",
    "key.fields-prefix",
    "value.fields-include",
    "scan.parallelism",
    "scan.bounded.mode",
    "scan.bounded.specific-offsets",
    "scan.bounded.timestamp-millis",
    "scan.watermark.idle-timeout",
    "sink.parallelism",
    "sink.delivery-guarantee",
    "sink.transactional-id-prefix",
)
_KAFKA_OPTIONS = (
    *_COMMON,
    "topic-pattern",
    "format",
    "key.fields",
    "scan.startup.mode",
    "scan.startup.specific-offsets",
    "scan.startup.timestamp-millis",
    "scan.topic-partition-discovery.interval",
    "sink.partitioner",
    "sink.semantic",
)
_UPSERT_OPTIONS = (
    *_COMMON,
    "sink.buffer-flush.max-rows",
    "sink.buffer-flush.interval",
)
_GUARANTEES = {
    "at-least-once": DeliveryGuarantee.AT_LEAST_ONCE,
    "exactly-once": DeliveryGuarantee.EXACTLY_ONCE,
    "none": DeliveryGuarantee.NONE,
}


def _value_format(options: TableOptions, formats: tuple[str, ...] = _FORMATS) -> tuple[str, str]:
    """The format of values, and what its options begin with."""
    prefix = "" if options.text("value.format") is None and formats is _FORMATS else "value."
    keys = ("value.format",) if formats is not _FORMATS else ("value.format", "format")
    return format_name(options, formats, *keys), prefix


def _gives(table: DeclaredTable, options: TableOptions) -> Changes:
    return Changes.ALL if _value_format(options)[0] == "debezium-json" else Changes.INSERT


# Columns


def _selected(row: RowType, names: tuple[str, ...]) -> pa.Schema:
    kinds = dict(zip(row.field_names(), row.field_types(), strict=True))
    return strict_schema(names, [kinds[name] for name in names])


def _parts(
    table: DeclaredTable, options: TableOptions, keys: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the key and of the value."""
    columns = tuple(table.physical.field_names())
    prefix = options.text("key.fields-prefix", "") or ""
    for name in keys:
        if name not in columns:
            raise SqlValidationError(
                f"Table {options.path}: 'key.fields' names {name!r}, which is not a column.{near_names(name, columns)}"
            )
        if not name.startswith(prefix):
            raise SqlValidationError(
                f"Table {options.path}: 'key.fields-prefix' is {prefix!r}, and column {name!r} of the key does not "
                "begin with it."
            )
    included = options.choice("value.fields-include", ("ALL", "EXCEPT_KEY"), "ALL")
    if prefix and included == "ALL":
        raise SqlValidationError(
            f"Table {options.path}: 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY': "
            "values do not have columns of that name."
        )
    value = columns if included == "ALL" else tuple(name for name in columns if name not in keys)
    return keys, value


def _key_fields(options: TableOptions) -> tuple[str, ...]:
    text = options.text("key.fields") or ""
    keys = tuple(name for part in text.split(";") if (name := part.strip()))
    if "key.format" in options and not keys:
        raise SqlValidationError(f"Table {options.path}: 'key.format' needs 'key.fields': which columns are the key.")
    if keys and "key.format" not in options:
        raise SqlValidationError(f"Table {options.path}: 'key.fields' needs 'key.format'.")
    return keys


class _Prefixed(MessageFormat):
    """Columns of the key, whose names in the table begin with something that they have not in messages."""

    def __init__(self, inner: MessageFormat, names: tuple[str, ...]) -> None:
        self._inner, self._names = inner, names
        self.schema = inner.schema

    def decode(self, messages: Any) -> Any:
        found = self._inner.decode(messages)
        return found._replace(batch=found.batch.rename_columns(list(self._names)))

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        return self._inner.encode(batch.rename_columns(self._inner.schema.names))


def _key_format(
    table: DeclaredTable, options: TableOptions, keys: tuple[str, ...], formats: tuple[str, ...]
) -> MessageFormat | None:
    if not keys:
        return None
    name = format_name(options, formats, "key.format")
    prefix = options.text("key.fields-prefix", "") or ""
    schema = _selected(table.physical, keys)
    bare = pa.schema([field.with_name(field.name.removeprefix(prefix)) for field in schema])
    form = message_format(name, bare, options, "key.")
    if form.changelog:
        raise SqlValidationError(f"Table {options.path}: {name!r} is not a format for keys.")
    return _Prefixed(form, keys) if prefix else form


# Reading


def _properties(options: TableOptions) -> KafkaProperties:
    given = options.below("properties.")
    if not given.get("bootstrap.servers"):
        options.required("properties.bootstrap.servers")
    return KafkaProperties().having(given)


def _subscription(options: TableOptions) -> Subscription:
    topics, pattern = options.text("topic"), options.text("topic-pattern")
    if (topics is None) == (pattern is None):
        raise SqlValidationError(f"Table {options.path}: either 'topic' or 'topic-pattern' says what is read.")
    if pattern is not None:
        return Subscription(pattern=pattern)
    assert topics is not None
    return Subscription(topics=[name.strip() for name in topics.split(";")])


_OFFSETS = re.compile(r"partition:(\d+),offset:(\d+)")


def _offsets(options: TableOptions, prefix: str, topics: Subscription) -> OffsetsSpec:
    key = f"{prefix}.specific-offsets"
    text = options.required(key)
    found = []
    for part in text.split(";"):
        pair = _OFFSETS.fullmatch(part.replace(" ", ""))
        if pair is None:
            raise options.refused(key, "such as 'partition:0,offset:42;partition:1,offset:300'")
        found.append((int(pair[1]), int(pair[2])))
    if topics.topics is None or len(topics.topics) != 1:
        raise SqlValidationError(f"Table {options.path}: {key!r} is for a table of one topic.")
    places = tuple((TopicPartition(topics.topics[0], number), offset) for number, offset in found)
    return OffsetsSpec("offsets", offsets=places, reset="earliest")


def _moment(options: TableOptions, key: str) -> OffsetsSpec:
    options.required(key)
    return OffsetsSpec("timestamp", timestamp=options.integer(key) or 0)


def _start(options: TableOptions, topics: Subscription) -> OffsetsSpec:
    modes = ("group-offsets", "earliest-offset", "latest-offset", "timestamp", "specific-offsets")
    mode = options.choice("scan.startup.mode", modes, "group-offsets")
    if mode == "timestamp":
        return _moment(options, "scan.startup.timestamp-millis")
    if mode == "specific-offsets":
        return _offsets(options, "scan.startup", topics)
    if mode == "group-offsets":
        reset = options.below("properties.").get("auto.offset.reset", "none")
        if "properties.group.id" not in options:
            raise SqlValidationError(
                f"Table {options.path}: 'scan.startup.mode' is 'group-offsets' by default, which needs "
                "'properties.group.id'. Or set 'scan.startup.mode' = 'earliest-offset'."
            )
        return OffsetsSpec("committed", reset=reset)
    return OffsetsSpec(mode.removesuffix("-offset"))


def _stop(options: TableOptions, topics: Subscription) -> OffsetsSpec | None:
    modes = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
    mode = options.choice("scan.bounded.mode", modes, "unbounded")
    if mode == "unbounded":
        return None
    if mode == "timestamp":
        return _moment(options, "scan.bounded.timestamp-millis")
    if mode == "specific-offsets":
        return _offsets(options, "scan.bounded", topics)
    return OffsetsSpec("latest" if mode == "latest-offset" else "committed")


def _stream(
    reading: Reading, layout: Layout, key: MessageFormat | None, value: MessageFormat, start: Any, upsert: bool
) -> DataStream:
    options = reading.options
    properties = _properties(options)
    interval = options.duration("scan.topic-partition-discovery.interval")
    if interval is not None:
        properties = properties.having({"partition.discovery.interval.ms": str(interval)})
    topics = _subscription(options)
    stop = _stop(options, topics)
    decoding: Any = BatchDeserializing(layout, key, value, upsert)
    source = KafkaSource(properties, topics, decoding, start(topics), stop, stop is not None)
    strategy = reading.strategy
    idle = options.duration("scan.watermark.idle-timeout")
    if idle:
        strategy = strategy.with_idleness(_duration(idle))
    return reading.stream(source, strategy)


def _duration(milliseconds: int) -> Any:
    from firesteel.common.time import Duration

    return Duration.of_millis(milliseconds)


def _read(reading: Reading) -> DataStream:
    options, table = reading.options, reading.table
    keys, values = _parts(table, options, _key_fields(options))
    name, prefix = _value_format(options)
    metadata, of_value = _readable(reading, name)
    value = message_format(name, _selected(table.physical, values), options, prefix, of_value)
    key = _key_format(table, options, keys, _FORMATS)
    if reading.asked is not None:
        value = value.narrowed(reading.asked)
    layout = Layout(reading.schema, keys, values, metadata)
    return _stream(reading, layout, key, value, lambda topics: _start(options, topics), upsert=False)


def _readable(reading: Reading, value_format: str) -> tuple[dict[str, str], dict[str, str]]:
    """Columns of what the connector knows of a message, and of what the value's format does."""
    known = {key: kind for key, (kind, _) in READABLE.items()}
    known |= {f"value.{key}": kind for key, kind in FORMAT_METADATA.get(value_format, {}).items()}
    found = reading.metadata(known)
    of_value = {name: key.removeprefix("value.") for name, key in found.items() if key.startswith("value.")}
    return {name: key for name, key in found.items() if name not in of_value}, of_value


def _upsert_keys(table: DeclaredTable, options: TableOptions) -> tuple[str, ...]:
    if not table.primary_key:
        raise SqlValidationError(
            f"Table {options.path}: connector 'upsert-kafka' needs a key: PRIMARY KEY (...) NOT ENFORCED."
        )
    return table.primary_key


def _upsert_read(reading: Reading) -> DataStream:
    options, table = reading.options, reading.table
    keys, values = _parts(table, options, _upsert_keys(table, options))
    name, prefix = _value_format(options, _UPSERT_FORMATS)
    value = message_format(name, _selected(table.physical, values), options, prefix)
    key = _key_format(table, options, keys, _UPSERT_FORMATS)
    layout = Layout(reading.schema, keys, values, _readable(reading, name)[0])
    stream = _stream(reading, layout, key, value, lambda topics: OffsetsSpec("earliest"), upsert=True)
    places = tuple(reading.schema.get_field_index(name) for name in keys)
    spec = ChangelogNormalize(places, reading.schema)
    normalized = stream.key_by(KeyColumns(places)).transform("ChangelogNormalize", spec, ColumnsType(reading.schema))
    return reading.identified(normalized)


# Writing


def _write_records(
    writing: Writing, layout: Layout, key: MessageFormat | None, value: MessageFormat, upsert: bool, default: str
) -> None:
    options = writing.options
    guarantee = _GUARANTEES[options.choice("sink.delivery-guarantee", tuple(_GUARANTEES), default)]
    topic = options.text("topic")
    if topic is not None and ";" in topic and "topic" not in layout.metadata.values():
        raise SqlValidationError(
            f"Table {options.path}: a table of several topics is written by a column 'topic' of metadata."
        )
    prefix = options.text("sink.transactional-id-prefix")
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE and prefix is None:
        raise SqlValidationError(
            f"Table {options.path}: 'sink.delivery-guarantee' = 'exactly-once' needs 'sink.transactional-id-prefix', "
            "one that no other application uses."
        )
    properties = KafkaProperties().having({"transaction.timeout.ms": TRANSACTION_TIMEOUT})
    properties = properties.having(dict(_properties(options).items))
    sink = KafkaSink(properties, RecordFunction(_same), guarantee, prefix or "firesteel")
    serializing = BatchSerializing(layout, None if topic and ";" in topic else topic, key, value, upsert)
    writing.add(ExpandingSink(sink, serializing))


def _same(element: Any) -> Any:
    return element


def _write(writing: Writing) -> None:
    options, table = writing.options, writing.table
    if options.text("sink.partitioner", "default") not in ("default", "round-robin"):
        raise NotSupportedError(
            f"Not supported yet: 'sink.partitioner' = {options.text('sink.partitioner')!r} (table {options.path})."
        )
    keys, values = _parts(table, options, _key_fields(options))
    name, prefix = _value_format(options)
    value = message_format(name, _selected(table.physical, values), options, prefix)
    key = _key_format(table, options, keys, _FORMATS)
    layout = Layout(writing.schema, keys, values, writing.metadata(WRITABLE))
    _write_records(writing, layout, key, value, False, "at-least-once")


def _upsert_write(writing: Writing) -> None:
    options, table = writing.options, writing.table
    keys, values = _parts(table, options, _upsert_keys(table, options))
    name, prefix = _value_format(options, _UPSERT_FORMATS)
    value = message_format(name, _selected(table.physical, values), options, prefix)
    key = _key_format(table, options, keys, _UPSERT_FORMATS)
    layout = Layout(writing.schema, keys, values, writing.metadata(WRITABLE))
    _write_records(writing, layout, key, value, True, "at-least-once")


KAFKA = Connector(
    _KAFKA_OPTIONS,
    _read,
    _write,
    gives=_gives,
    takes=_gives,
    format_options=tuple(option for prefix in ("", "key.", "value.") for option in format_options(_FORMATS, prefix)),
)
UPSERT_KAFKA = Connector(
    _UPSERT_OPTIONS,
    _upsert_read,
    _upsert_write,
    gives=lambda table, options: Changes.ALL,
    takes=lambda table, options: Changes.UPSERT,
    format_options=tuple(option for prefix in ("key.", "value.") for option in format_options(_UPSERT_FORMATS, prefix)),
)
