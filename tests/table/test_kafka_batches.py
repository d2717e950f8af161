"""Messages of Kafka as batches and back, without a broker."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from firesteel.connectors.table.formats.csv_format import CsvFormat
from firesteel.connectors.table.formats.json_format import JsonFormat
from firesteel.connectors.table.kafka_batches import BatchDeserializing, BatchSerializing, Layout
from firesteel.errors import InputError
from firesteel.runtime.columns.kinds import with_kinds

KEY, VALUE = pa.schema([("id", pa.int64())]), pa.schema([("name", pa.string())])
COLUMNS = pa.schema([("name", pa.string()), ("at", pa.timestamp("ms", "UTC")), ("id", pa.int64()), ("n", pa.string())])
LAYOUT = Layout(COLUMNS, ("id",), ("name",), {"at": "timestamp", "n": "offset"})


class Message(NamedTuple):
    """As the client gives it."""

    k: bytes | None
    v: bytes | None
    at: int = 0

    def key(self) -> bytes | None:
        return self.k

    def value(self) -> bytes | None:
        return self.v

    def offset(self) -> int:
        return self.at

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 + self.at


def read(messages: list[Message], upsert: bool = False, value: Any = None) -> list[dict[str, Any]]:
    reading = BatchDeserializing(LAYOUT, JsonFormat(KEY), value or CsvFormat(VALUE), upsert)
    return [row for found in reading.records(messages) for row in found.values[0].to_pylist()]


def test_keys_values_and_metadata_are_columns() -> None:
    rows = read([Message(b'{"id": 1}', b'"a b"', 5), Message(b'{"id": 2}', b"", 6), Message(b'{"id": 3}', None, 7)])
    assert [(row["id"], row["name"], row["n"], row["at"].microsecond) for row in rows] == [
        (1, "a b", "5", 5000),
        (2, "", "6", 6000),
    ]


def test_a_message_without_a_value_deletes_its_key() -> None:
    messages = [Message(b'{"id": 1}', b"a", 0), Message(b'{"id": 1}', None, 1), Message(b'{"id": 2}', b"b", 2)]
    rows = read(messages, upsert=True)
    assert [(row["$kind"], row["id"], row["name"]) for row in rows] == [(0, 1, "a"), (3, 1, None), (0, 2, "b")]
    assert [row["n"] for row in rows] == ["0", "1", "2"]


def test_a_message_that_cannot_be_read_is_named() -> None:
    form = JsonFormat(VALUE)
    with pytest.raises(InputError, match="offset 8 of orders-0: JSON cannot read it"):
        read([Message(b'{"id": 1}', b'{"name": "x"}', 7), Message(b'{"id": 1}', b"{", 8)], value=form)


def test_records_of_a_batch() -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("ms", "UTC"))])
    layout = Layout(schema, ("id",), ("id", "name"), {"at": "timestamp"})
    value = JsonFormat(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    batch = with_kinds(
        pa.RecordBatch.from_arrays(
            [pa.array([1, 1, 1, 2]), pa.array(["a", "a", "b", "c"]), pa.array([5, 6, 7, None], schema.field(2).type)],
            schema=schema,
        ),
        [0, 1, 2, 3],
    )
    records = list(BatchSerializing(layout, "orders", JsonFormat(KEY), value, upsert=True)(batch))
    assert [(record.key, record.value, record.timestamp) for record in records] == [
        (b'{"id":1}', b'{"id":1,"name":"a"}', 5),
        (b'{"id":1}', b'{"id":1,"name":"b"}', 7),
        (b'{"id":2}', None, 0),
    ]
    assert {record.topic for record in records} == {"orders"}
