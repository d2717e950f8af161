"""Formats of tables: messages as columns and back, the quick way beside the one for each value."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from firesteel.connectors.formats.csv_lines import Dialect
from firesteel.connectors.table.formats.avro_format import AvroFormat
from firesteel.connectors.table.formats.csv_format import CsvFormat, CsvOptions
from firesteel.connectors.table.formats.debezium_json import DebeziumJsonFormat, DebeziumOptions
from firesteel.connectors.table.formats.json_format import JsonFormat, JsonOptions
from firesteel.connectors.table.formats.message_format import BadMessage
from firesteel.connectors.table.formats.raw_format import RawFormat
from firesteel.errors import ConfigurationError
from firesteel.runtime.columns.kinds import with_kinds

EVERYTHING = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("clock", pa.time32("ms")),
        ("at", pa.timestamp("ms")),
        ("moment", pa.timestamp("us", "UTC")),
    ]
)
ROW = {
    "i": 7,
    "l": -1,
    "d": 1.5,
    "b": True,
    "s": "a b",
    "day": datetime.date(2024, 2, 29),
    "clock": datetime.time(10, 30, 5, 120_000),
    "at": datetime.datetime(2024, 1, 1, 10, 0, 0, 500_000),
    "moment": datetime.datetime(2024, 1, 1, 10, 0, 0, 120, tzinfo=datetime.UTC),
}
WITH_DECIMALS = EVERYTHING.append(pa.field("price", pa.decimal128(10, 2)))
NESTED = WITH_DECIMALS.append(pa.field("list", pa.list_(pa.int32()))).append(
    pa.field("row", pa.struct([("x", pa.int64()), ("y", pa.timestamp("ms"))]))
)
FULL = {**ROW, "price": Decimal("12.50"), "list": [1, None], "row": {"x": 3, "y": ROW["at"]}}


def batch_of(schema: pa.Schema, *rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema)


@pytest.mark.parametrize("schema", [EVERYTHING, WITH_DECIMALS, NESTED], ids=["plain", "decimals", "nested"])
@pytest.mark.parametrize("make", [JsonFormat, AvroFormat], ids=["json", "avro"])
def test_what_is_written_is_read_again(make: Any, schema: pa.Schema) -> None:
    form = pickle.loads(pickle.dumps(make(schema)))
    rows = batch_of(schema, {name: FULL[name] for name in schema.names}, dict.fromkeys(schema.names))
    assert form.decode(form.encode(rows)).batch.equals(rows)


def test_json_is_written_as_flink_writes_it() -> None:
    (line,) = JsonFormat(NESTED).encode(batch_of(NESTED, FULL))
    assert line.decode() == (
        '{"i":7,"l":-1,"d":1.5,"b":true,"s":"a b","day":"2024-02-29","clock":"10:30:05.12",'
        '"at":"2024-01-01 10:00:00.5","moment":"2024-01-01 10:00:00.00012Z","price":12.5,"list":[1,null],'
        '"row":{"x":3,"y":"2024-01-01 10:00:00.5"}}'
    )
    iso = JsonFormat(pa.schema([("at", pa.timestamp("ms"))]), JsonOptions(iso=True, ignore_null_fields=True))
    assert iso.encode(batch_of(iso.schema, {"at": ROW["at"]}, {"at": None})) == [
        b'{"at":"2024-01-01T10:00:00.5"}',
        b"{}",
    ]


def test_json_strings_are_escaped() -> None:
    form = JsonFormat(pa.schema([("s", pa.string())]))
    rows = batch_of(form.schema, {"s": 'q"\\\n\x01é'})
    assert form.decode(form.encode(rows)).batch.equals(rows)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"i": "12", "l": 3.9}', (12, 3, None)),
        ('{"i": 1, "s": 2.50}', (1, None, "2.50")),
        ('{"s": {"a": [1, true]}}', (None, None, '{"a":[1,true]}')),
        ('{"s": true, "more": 1}', (None, None, "true")),
        ('{"i": null} behind', (None, None, None)),
    ],
)
def test_json_takes_values_as_jackson_does(text: str, found: tuple[Any, ...]) -> None:
    form = JsonFormat(pa.schema([("i", pa.int32()), ("l", pa.int64()), ("s", pa.string())]))
    # One message that is as plain as can be, and one that is not: all of them are read again.
    batch = form.decode([b'{"i": 5}', text.encode()]).batch
    assert tuple(batch.to_pylist()[1].values()) == found
    assert batch.column(0)[0].as_py() == 5


def test_bad_json_is_named_or_passed_over() -> None:
    schema = pa.schema([("i", pa.int32()), ("at", pa.timestamp("ms"))])
    messages = [b'{"i": 1}', b"no json", b'{"i": "x", "at": "2024-01-01T00:00:00"}', None]
    with pytest.raises(BadMessage, match="message 2 of a batch: JSON cannot read it"):
        JsonFormat(schema).decode(messages)
    with pytest.raises(BadMessage, match="'i' should be int32, got \"x\""):
        JsonFormat(schema).decode(messages[2:])
    kept = JsonFormat(schema, JsonOptions(ignore_parse_errors=True)).decode(messages)
    # A line that is no JSON is left out; a field that cannot be read is NULL.
    assert [tuple(row.values()) for row in kept.batch.to_pylist()] == [(1, None), (None, None)]
    assert kept.origins is not None
    assert kept.origins.tolist() == [0, 2]
    several = JsonFormat(schema).decode([b'[{"i": 1}, {"i": 2}]', b'{"i": 3}'])
    assert several.origins is not None
    assert (several.batch.column(0).to_pylist(), several.origins.tolist()) == ([1, 2, 3], [0, 0, 1])
    with pytest.raises(BadMessage, match="'at' should be there"):
        JsonFormat(schema, JsonOptions(fail_on_missing_field=True)).decode([b'{"i": 1}'])


def test_csv_both_ways() -> None:
    form = pickle.loads(pickle.dumps(CsvFormat(WITH_DECIMALS)))
    rows = batch_of(WITH_DECIMALS, {name: FULL[name] for name in WITH_DECIMALS.names})
    (line,) = form.encode(rows)
    assert line == (
        b'7,-1,1.5,true,"a b",2024-02-29,10:30:05.12,"2024-01-01 10:00:00.5","2024-01-01 10:00:00.00012Z",12.5'
    )
    assert form.decode([line]).batch.equals(rows)


def test_csv_lines_that_are_not_plain() -> None:
    schema = pa.schema([("i", pa.int32()), ("s", pa.string()), ("list", pa.list_(pa.int64()))])
    dialect = Dialect(delimiter=";", quote="'", escape="\\", null_literal="n/a", array_delimiter="|")
    form = CsvFormat(schema, CsvOptions(dialect))
    rows = form.decode([b"1;'a;b';1|2", b"n/a;n/a;", b" 3 ;x\\;y;5"]).batch.to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, "a;b", [1, 2]), (None, None, []), (3, "x;y", [5])]
    assert form.encode(form.decode([b"1;'a;b';1|2"]).batch) == [b"1;'a;b';'1|2'"]


def test_bad_csv_is_named_or_passed_over() -> None:
    schema = pa.schema([("i", pa.int32()), ("n", pa.int32())])
    with pytest.raises(BadMessage, match="column 'n' should be int32, got 'x'"):
        CsvFormat(schema).decode([b"1,2", b"2,x"])
    with pytest.raises(BadMessage, match="it has 1 values for 2 columns"):
        CsvFormat(schema).decode([b"1"])
    lines = [b"1,2", b"2,x", b"3", b"4,5,6", b"", b"# 7,8"]
    kept = CsvFormat(schema, CsvOptions(ignore_parse_errors=True)).decode(lines[:-1])
    assert [tuple(row.values()) for row in kept.batch.to_pylist()] == [(1, 2), (2, None), (3, None), (None, None)]
    commented = CsvFormat(schema, CsvOptions(Dialect(comments=True))).decode([lines[0], lines[-1]])
    assert commented.batch.num_rows == 1


def test_raw_values() -> None:
    numbers = RawFormat(pa.schema([("n", pa.int32())]))
    assert numbers.decode([b"\0\0\1\0", None]).batch.to_pydict() == {"n": [256, None]}
    assert RawFormat(pa.schema([("n", pa.int32())]), endianness="little-endian").encode(
        batch_of(numbers.schema, {"n": 256})
    ) == [b"\0\1\0\0"]
    texts = RawFormat(pa.schema([("s", pa.string())]), charset="latin-1")
    assert texts.decode(["é".encode("latin-1")]).batch.to_pydict() == {"s": ["é"]}
    with pytest.raises(ConfigurationError, match="raw is for one column"):
        RawFormat(EVERYTHING)
    with pytest.raises(BadMessage, match="has 4 bytes, the message 1"):
        numbers.decode([b"\0"])


def test_debezium_changes() -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    form = DebeziumJsonFormat(schema)
    messages = [
        b'{"before": null, "after": {"id": 1, "name": "a"}, "op": "c"}',
        b'{"before": {"id": 1, "name": "a"}, "after": {"id": 1, "name": "b"}, "op": "u"}',
        b'{"before": {"id": 1, "name": "b"}, "after": null, "op": "d"}',
        None,
    ]
    found = form.decode(messages)
    assert found.batch.to_pydict() == {"id": [1, 1, 1, 1], "name": ["a", "a", "b", "b"], "$kind": [0, 1, 2, 3]}
    assert found.origins is not None
    assert found.origins.tolist() == [0, 1, 1, 2]
    written = form.encode(with_kinds(batch_of(schema, {"id": 1, "name": "a"}), [3]))
    assert written == [b'{"before":{"id":1,"name":"a"},"after":null,"op":"d"}']
    with pytest.raises(BadMessage, match="REPLICA IDENTITY FULL"):
        form.decode([b'{"before": null, "after": {"id": 1}, "op": "u"}'])
    included = DebeziumJsonFormat(schema, DebeziumOptions(schema_include=True))
    assert included.decode([b'{"schema": {}, "payload": {"after": {"id": 2}, "op": "r"}}']).batch.num_rows == 1
