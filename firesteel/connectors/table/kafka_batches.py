"""Messages of Kafka as batches of columns, and batches as records for Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.kafka.serializing import OutgoingRecord
from firesteel.connectors.source import Records, SideRecords
from firesteel.connectors.table.formats.message_format import BadMessage, Decoded, MessageFormat, kept_rows
from firesteel.errors import InputError
from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_BEFORE, data_of, has_kinds, kinds_of, with_kinds
from firesteel.runtime.columns.types import ColumnsType

__all__ = ["READABLE", "WRITABLE", "BatchDeserializing", "BatchSerializing", "Layout"]

_value, _key = methodcaller("value"), methodcaller("key")
_HEADERS = pa.map_(pa.string(), pa.binary())
_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

READABLE: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "topic": (pa.string(), methodcaller("topic")),
    "partition": (pa.int32(), methodcaller("partition")),
    "offset": (pa.int64(), methodcaller("offset")),
    "timestamp": (pa.timestamp("ms", "UTC"), lambda message: message.timestamp()[1]),
    "timestamp-type": (pa.string(), lambda message: _TIMESTAMP_TYPES[message.timestamp()[0]]),
    "headers": (_HEADERS, lambda message: list(dict(message.headers() or ()).items())),
    "leader-epoch": (pa.int32(), methodcaller("leader_epoch")),
}
"""What is known of a message, by its name as a metadata column."""
WRITABLE: dict[str, pa.DataType] = {
    "timestamp": pa.timestamp("ms", "UTC"),
    "headers": _HEADERS,
    "topic": pa.string(),
}


@dataclass(frozen=True)
class Layout:
    """Which part of a message each column comes from, and goes to."""

    schema: pa.Schema
    key: tuple[str, ...] = ()
    """Columns of the key."""
    value: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    """By column: what the connector calls it."""


class BatchDeserializing:
    """Stands in a reader of Kafka for what makes elements of messages: there it makes batches.

    With ``upsert`` a message without a value deletes its key.
    """

    def __init__(self, layout: Layout, key: MessageFormat | None, value: MessageFormat, upsert: bool = False) -> None:
        self._layout, self._key, self._value, self._upsert = layout, key, value, upsert

    @property
    def produced_type(self) -> TypeInformation:
        return ColumnsType(self._layout.schema)

    def open(self, context: Any) -> None:
        """Nothing is needed."""

    def records(self, messages: list[Any]) -> list[Records[Any] | SideRecords]:
        """All messages as one batch."""
        batch = self._batch(messages)
        return [Records([batch])] if batch.num_rows else []

    def _batch(self, messages: list[Any]) -> pa.RecordBatch:
        contents: list[bytes | None] = list(map(_value, messages))
        deletions = self._upsert and None in contents
        given, places = kept_rows(contents) if deletions else (contents, None)
        there = messages if places is None else [messages[at] for at in places.tolist()]
        rows, origins = _decoded(self._value, "value", given, there)
        kinds = kinds_of(rows)
        if places is not None:
            origins = places if origins is None else places[origins]
            rows, origins, kinds = self._with_deletions(rows, origins, contents)
        columns = dict(zip(data_of(rows).schema.names, data_of(rows).columns, strict=True))
        if origins is not None:
            messages = [messages[at] for at in origins.tolist()]
        if self._key is not None:
            found = _decoded(self._key, "key", list(map(_key, messages)), messages)
            if found.origins is not None:
                # As in Flink: a message whose key has no row has none either.
                chosen = pa.array(found.origins)
                columns = {name: column.take(chosen) for name, column in columns.items()}
                kinds = None if kinds is None else kinds[found.origins]
                messages = [messages[at] for at in found.origins.tolist()]
            for name, column in zip(found.batch.schema.names, found.batch.columns, strict=True):
                columns[name] = _of_key_or_value(column, columns.get(name), kinds if self._upsert else None)
        for name, what in self._layout.metadata.items():
            kind, known = READABLE[what]
            columns[name] = pa.array(list(map(known, messages)), kind).cast(self._layout.schema.field(name).type)
        arrays = [columns[each.name].cast(each.type) for each in self._layout.schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._layout.schema)
        return with_kinds(batch, kinds)

    @staticmethod
    def _with_deletions(rows: pa.RecordBatch, origins: Any, contents: Sequence[bytes | None]) -> tuple[Any, Any, Any]:
        """NULLs where a message has no value; the key says what is deleted."""
        empty = np.array([content is None for content in contents])
        places = np.concatenate((origins, np.flatnonzero(empty)))
        order = np.argsort(places, kind="stable")
        nulls = pa.RecordBatch.from_arrays(
            [pa.nulls(int(empty.sum()), each.type) for each in rows.schema], schema=rows.schema
        )
        whole = pa.Table.from_batches([rows, nulls]).take(pa.array(order)).combine_chunks().to_batches()
        kinds = np.where(empty[places[order]], DELETE, INSERT).astype(np.int8)
        batch = whole[0] if whole else rows
        return batch, places[order], kinds


def _decoded(form: MessageFormat, part: str, contents: Sequence[bytes | None], messages: Sequence[Any]) -> Decoded:
    """The rows of keys or values. A message that cannot be read is named by its offset."""
    try:
        return form.decode(contents)
    except BadMessage as error:
        there = [message for message, content in zip(messages, contents, strict=True) if content is not None]
        bad = there[error.index]
        shown = bad.value() if part == "value" else bad.key()
        where = f"offset {bad.offset()} of {bad.topic()}-{bad.partition()}"
        raise InputError(f"Kafka, {where}: {error.reason}. The {part} is {shown!r:.200}.") from None


def _of_key_or_value(key: pa.Array, value: pa.Array | None, kinds: Any) -> pa.Array:
    """A column that the key has, and perhaps the value, too: then the value's counts, where there is one."""
    if value is None:
        return key
    return value if kinds is None else pc.if_else(pa.array(kinds == DELETE), key.cast(value.type), value)


class BatchSerializing:
    """Makes records of batches. With ``upsert`` a deletion is a record without a value, and -U is left out."""

    def __init__(
        self,
        layout: Layout,
        topic: str | None,
        key: MessageFormat | None,
        value: MessageFormat,
        upsert: bool = False,
        partition: Callable[[int], int] | None = None,
    ) -> None:
        self._layout, self._topic, self._upsert = layout, topic, upsert
        self._key, self._value, self._partition = key, value, partition

    def __call__(self, batch: pa.RecordBatch) -> Iterator[OutgoingRecord]:
        kinds = kinds_of(batch)
        if self._upsert and kinds is not None and (kinds == UPDATE_BEFORE).any():
            kept = np.flatnonzero(kinds != UPDATE_BEFORE)
            batch, kinds = batch.take(pa.array(kept)), kinds[kept]
        data = data_of(batch)
        keys: Sequence[bytes | None] = [None] * batch.num_rows
        if self._key is not None:
            keys = self._key.encode(data.select(list(self._layout.key)))
        chosen = data.select(list(self._layout.value))
        values: list[bytes | None] = list(
            self._value.encode(with_kinds(chosen, kinds) if has_kinds(batch.schema) else chosen)
        )
        if self._upsert and kinds is not None:
            values = [None if gone else value for value, gone in zip(values, (kinds == DELETE).tolist(), strict=True)]
        return self._records(data, keys, values)

    def _records(
        self, data: pa.RecordBatch, keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> Iterator[OutgoingRecord]:
        extra = {what: self._metadata(data, name, what) for name, what in self._layout.metadata.items()}
        topics = extra.get("topic") or [self._topic] * data.num_rows
        times = extra.get("timestamp") or [0] * data.num_rows
        headers = extra.get("headers") or [None] * data.num_rows
        for key, value, topic, moment, header in zip(keys, values, topics, times, headers, strict=True):
            yield OutgoingRecord(
                topic or self._topic or "", value, key, -1, moment or 0, list(header) if header else None
            )

    @staticmethod
    def _metadata(data: pa.RecordBatch, name: str, what: str) -> list[Any]:
        column = data.column(name).cast(WRITABLE[what])
        if what == "timestamp":
            column = column.cast(pa.int64())
        found: list[Any] = column.to_pylist()
        return found
