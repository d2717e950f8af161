"""Schemas: errors, travelling, odd inputs. ``tests/compat/test_formats.py`` compares what they do with PyFlink's."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
import random
import sys
from dataclasses import dataclass
from typing import Any

import cloudpickle
import pytest

from firesteel.common import Row, Types
from firesteel.common.serialization import PickledBytesSchema
from firesteel.common.typeinfo import LocalTimeTypeInfo
from firesteel.connectors.formats.csv_lines import Dialect, record_at, splitting
from firesteel.connectors.undecodable import Undecodable, UndecodableRecord, UndecodableRecords
from firesteel.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from firesteel.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from firesteel.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from firesteel.errors import ConfigurationError, InputError, ProgramError, SerializationError, TypeMismatchError

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
ORDER = Types.ROW_NAMED(
    ["id", "by", "items"],
    [
        Types.LONG(),
        PERSON,
        Types.OBJECT_ARRAY(Types.ROW_NAMED(["price", "when"], [Types.BIG_DEC(), Types.SQL_DATE()])),
    ],
)
AVRO_PERSON = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "namespace": "shop",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}],
    }
)


def json_reader(type_info: Any = PERSON) -> JsonRowDeserializationSchema:
    return JsonRowDeserializationSchema.builder().type_info(type_info).build()


def json_writer(type_info: Any = PERSON) -> JsonRowSerializationSchema:
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


SCHEMAS = {
    "json": (json_reader(), json_writer(), b'{"name":"Ada","age":36}'),
    "csv": (
        CsvRowDeserializationSchema.Builder(PERSON).build(),
        CsvRowSerializationSchema.Builder(PERSON).build(),
        b"Ada,36\n",
    ),
    "avro": (
        AvroRowDeserializationSchema(avro_schema_string=AVRO_PERSON),
        AvroRowSerializationSchema(avro_schema_string=AVRO_PERSON),
        b"\x06Ada\x02\x48",
    ),
}


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_schemas_travel_to_workers(kind: str, dumps: Any) -> None:
    reader, writer, message = pickle.loads(dumps(SCHEMAS[kind]))
    row = reader.deserialize(message)
    assert row == Row(name="Ada", age=36)
    assert writer.serialize(row) == message
    assert reader.get_produced_type() == PERSON


@dataclass
class Person:
    name: str
    age: int | None


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize(
    "element",
    [Row("Ada", 36), Row(age=36, name="Ada"), ("Ada", 36), ["Ada", 36], {"age": 36, "name": "Ada"}, Person("Ada", 36)],
)
def test_rows_may_be_given_as_tuples_dicts_and_objects(kind: str, element: Any) -> None:
    _, writer, message = SCHEMAS[kind]
    assert writer.serialize(element) == message


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (Row("Ada", "old"), "field 'age' of ROW<name STRING, age INT>: expected INT, got str 'old'"),
        (Row("Ada", 2**31), "which is outside -2147483648 to 2147483647"),
        (Row("Ada", True), "expected INT, got bool True"),
        (Row(1, 36), "field 'name' of ROW<name STRING, age INT>: expected STRING, got int 1"),
        (Row("Ada"), "with 2 fields, got Row <Row('Ada')> with 1"),
        ("Ada", "expected ROW<name STRING, age INT>, got str 'Ada'"),
    ],
)
def test_an_element_that_does_not_fit_is_explained(kind: str, element: Any, reason: str) -> None:
    _, writer, _ = SCHEMAS[kind]
    with pytest.raises(TypeMismatchError, match="cannot write") as failure:
        writer.serialize(element)
    assert reason in str(failure.value)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b'{"id": "x"}', "field 'id' should be LONG, got 'x'"),
        (b'{"by": {"age": 1.5e10}}', "field 'by.age' should be INT, got Decimal('1.5E+10')"),
        (b'{"items": [{}, {"price": "much"}]}', "field 'items[].price' should be BIG_DEC, got 'much'"),
        (b'{"items": [{"when": "tomorrow"}]}', "field 'items[].when' should be SQL_DATE, got 'tomorrow'"),
        (b'{"by": 7}', "field 'by' should be ROW<name STRING, age INT>, got 7"),
        (b"[1]", "field 'the message' should be an object, got [1]"),
        (b"", "it is empty"),
        (b"{oops", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff", "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_message_that_cannot_be_read_is_named(message: bytes, reason: str) -> None:
    with pytest.raises(InputError) as failure:
        json_reader(ORDER).deserialize(message)
    assert reason in str(failure.value)
    assert f"has {len(message)} bytes and begins with {message!r}" in str(failure.value)


def test_only_the_first_bytes_are_shown() -> None:
    with pytest.raises(InputError) as failure:
        json_reader().deserialize(b'{"age": "' + b"x" * 10_000)
    assert "10,009 bytes" in str(failure.value)
    assert len(str(failure.value)) < 400


def test_what_is_no_message_is_named() -> None:
    for reader, _, _ in SCHEMAS.values():
        with pytest.raises(InputError, match="reads bytes, got None"):
            reader.deserialize(None)  # type: ignore[attr-defined]


def test_a_missing_field() -> None:
    strict = JsonRowDeserializationSchema.builder().type_info(ORDER).fail_on_missing_field().build()
    with pytest.raises(InputError, match=r"field 'by\.age' \(INT\) is missing"):
        strict.deserialize(b'{"id": 1, "by": {"name": "Ada"}, "items": []}')


def test_csv_with_another_number_of_values() -> None:
    reader, _, _ = SCHEMAS["csv"]
    with pytest.raises(InputError, match="it has 1 values for 2 fields, there is none for field 'age'"):
        reader.deserialize(b"Ada")  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="it has 3 values for 2 fields"):
        reader.deserialize(b"Ada,1,2")  # type: ignore[attr-defined]


def test_avro_that_ends_too_early() -> None:
    reader, _, _ = SCHEMAS["avro"]
    with pytest.raises(InputError, match=r"Avro cannot read a message: .*begins with b'.x10abc'"):
        reader.deserialize(b"\x10abc")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "build",
    [
        lambda kind: json_reader(kind),
        lambda kind: json_writer(kind),
        lambda kind: CsvRowDeserializationSchema.Builder(kind).build(),
        lambda kind: CsvRowSerializationSchema.Builder(kind).build(),
    ],
)
def test_types_that_a_format_has_nothing_for_are_refused_when_it_is_built(build: Any) -> None:
    with pytest.raises(ProgramError, match="needs a row type such as"):
        build(Types.STRING())
    nested = Types.ROW_NAMED(["pair"], [Types.TUPLE([Types.INT()])])
    with pytest.raises(ProgramError, match="has nothing for TUPLE<INT>, the type of field 'pair'"):
        build(nested)


def test_settings_that_make_no_sense() -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(PERSON)
    with pytest.raises(ProgramError, match="cannot both be asked for"):
        builder.fail_on_missing_field().ignore_parse_errors().build()
    with pytest.raises(ConfigurationError, match="a single character, got 'ab'"):
        CsvRowDeserializationSchema.Builder(PERSON).set_field_delimiter("ab")
    with pytest.raises(ProgramError, match="name of a Java class"):
        AvroRowDeserializationSchema(record_class="shop.Person")
    with pytest.raises(TypeError, match="needs a schema: avro_schema_string"):
        AvroRowSerializationSchema()
    recursive = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'
    with pytest.raises(ProgramError, match="'N' holds itself"):
        AvroRowDeserializationSchema(avro_schema_string=recursive)


def test_types_beyond_those_of_pyflink() -> None:
    kinds = LocalTimeTypeInfo.TimeType
    local = Types.ROW_NAMED(["d", "t", "m"], [LocalTimeTypeInfo(kind) for kind in kinds])
    row = Row(datetime.date(2020, 2, 29), datetime.time(1, 2, 3), datetime.datetime(2020, 2, 29, 1, 2, 3, 456789))
    message = json_writer(local).serialize(row)
    assert message == b'{"d":"2020-02-29","t":"01:02:03Z","m":"2020-02-29T01:02:03.456789Z"}'
    assert list(json_reader(local).deserialize(message)) == list(row)
    line = CsvRowSerializationSchema.Builder(local).build().serialize(row)
    assert line == b'2020-02-29,01:02:03,"2020-02-29 01:02:03.456789"\n'
    assert list(CsvRowDeserializationSchema.Builder(local).build().deserialize(line)) == list(row)


def test_elements_of_lists_and_maps_are_of_their_types() -> None:
    # PyFlink gives what Jackson makes of them, and fails later where that is of another class.
    kind = Types.ROW_NAMED(
        ["l", "m"], [Types.LIST(Types.LONG()), Types.MAP(Types.STRING(), Types.LIST(Types.SQL_DATE()))]
    )
    row = json_reader(kind).deserialize(b'{"l": [1, "2", null], "m": {"a": ["2020-01-01"]}}')
    assert row == Row(l=[1, 2, None], m={"a": [datetime.date(2020, 1, 1)]})
    assert json_writer(kind).serialize(row) == b'{"l":[1,2,null],"m":{"a":["2020-01-01"]}}'


@pytest.mark.parametrize(
    ("scale", "size", "value", "stored"),
    [
        (2, None, "5", b"\x04\x01\xf4"),
        (2, None, "-1.28", b"\x02\x80"),
        (2, None, "1E+3", b"\x06\x01\x86\xa0"),
        (2, 4, "5", b"\x00\x00\x01\xf4"),
    ],
)
def test_decimals_of_avro_are_rescaled(scale: int, size: int | None, value: str, stored: bytes) -> None:
    # Flink stores the digits as they are, so that 5 becomes 0.05.
    kind: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": scale}
    if size is not None:
        kind.update(type="fixed", name="D", size=size)
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]})
    written = AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(decimal.Decimal(value)))
    assert written == stored
    (read,) = AvroRowDeserializationSchema(avro_schema_string=text).deserialize(written)
    assert read == decimal.Decimal(value)


def test_a_decimal_that_would_lose_digits() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 1}
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]})
    with pytest.raises(TypeMismatchError, match=r"field 'v' should be decimal, got Decimal\('1\.25'\)"):
        AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(decimal.Decimal("1.25")))


def test_json_schemas() -> None:
    text = json.dumps(
        {
            "type": "object",
            "definitions": {"address": {"type": "object", "properties": {"zip": {"type": "string"}}}},
            "properties": {
                "home": {"$ref": "#/definitions/address"},
                "work": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/address"}]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "raw": {"type": "string", "contentEncoding": "base64"},
                "at": {"type": ["string", "null"], "format": "date-time"},
                "size": {"type": "number"},
                "on": {"type": "boolean"},
            },
        }
    )
    schema = JsonRowDeserializationSchema.builder().json_schema(text).build()
    assert repr(schema.get_produced_type()) == (
        "ROW<home ROW<zip STRING>, work ROW<zip STRING>, tags BASIC_ARRAY<STRING>, raw PRIMITIVE_ARRAY<BYTE>, "
        "at SQL_TIMESTAMP, size BIG_DEC, on BOOLEAN>"
    )
    assert schema.deserialize(b'{"home": {"zip": 1}, "raw": "AP8="}').as_dict(recursive=True)["home"] == {"zip": "1"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "not a JSON schema"),
        ('{"type": "object", "properties": {"a": {}}}', "names no type at <root>/a"),
        ('{"type": "object", "properties": {"a": {"type": ["string", "number"]}}}', "several types at <root>/a"),
        ('{"type": "object", "additionalProperties": true}', "additional properties"),
        ('{"type": "object", "properties": {"a": {"type": "array"}}}', "without 'items' at <root>/a"),
        ('{"type": "object", "properties": {"a": {"$ref": "#/b"}}}', "There is no '#/b'"),
        ('{"type": "object", "properties": {"a": {"$ref": "x.json#/b"}}}', "in another document"),
        ('{"type": "what"}', "the type 'what' at <root>"),
        ('{"anyOf": [], "type": "string"}', "'anyOf' at <root>"),
        ('{"type": "string"}', "needs a row type"),
    ],
)
def test_json_schemas_that_have_no_row_type(schema: str, reason: str) -> None:
    with pytest.raises(ProgramError, match=reason):
        JsonRowDeserializationSchema.builder().json_schema(schema).build()


@pytest.mark.parametrize("library", ["orjson", "json"])
def test_digits_of_large_numbers_stay(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "json":
        monkeypatch.setitem(sys.modules, "orjson", None)
    kind = Types.ROW_NAMED(["s", "d"], [Types.STRING(), Types.DOUBLE()])
    reader = json_reader(kind)
    large = 123456789012345678901234567890
    for text, read in (
        (str(large), str(large)),
        (f'{{"a": [{large}]}}', f'{{"a":[{large}]}}'),
        ("1e300", "1.0E300"),
        ("18446744073709551615", "18446744073709551615"),
    ):
        assert reader.deserialize(f'{{"s": {text}, "d": {large}}}'.encode()) == Row(s=read, d=float(large))
    strings = Types.ROW_NAMED(["l"], [Types.LIST(Types.STRING())])
    assert json_reader(strings).deserialize(f'{{"l": [1, {large}]}}'.encode()) == Row(l=["1", str(large)])


def test_pickled_bytes() -> None:
    schema = PickledBytesSchema()
    with pytest.raises(InputError, match=r"not a pickle.*begins with b'no pickle'"):
        schema.deserialize(b"no pickle")
    with pytest.raises(SerializationError, match="cannot be pickled"):
        schema.serialize(lambda: 1)


@pytest.mark.parametrize("dialect", [Dialect(), Dialect(delimiter="\t"), Dialect(quote="'"), Dialect(delimiter="|")])
def test_the_short_ways_through_a_line_of_csv_give_what_the_long_one_gives(dialect: Dialect) -> None:
    chance = random.Random(5)
    split = splitting(dialect)

    def outcome(read: Any) -> Any:
        try:
            return read()
        except ValueError:
            return "an error"

    for _ in range(5000):
        text = "".join(chance.choices("ab,\"'|\t \n\r", k=chance.randint(1, 10)))
        quick, slow = outcome(lambda: split(text)), outcome(lambda: record_at(text, 0, dialect)[0])  # noqa: B023
        assert quick == slow, text


def test_what_a_schema_says_of_a_record_is_not_said_twice() -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(PERSON).build()
    content = b"no JSON, and more than sixty-four bytes, so that only the first of them are shown"
    with pytest.raises(InputError) as wrong:
        schema.deserialize(content)
    for error in (f"InputError: {wrong.value}", "ValueError: what a schema of the user's says."):
        found = UndecodableRecord("offset 1 of t-0", content, error)
        with pytest.raises(InputError) as told:
            UndecodableRecords(Undecodable.FAIL).take(found, wrong.value)
        text = str(told.value)
        assert text.startswith(f"The record at offset 1 of t-0 cannot be read: {error}")
        assert text.count("bytes and begins with b'no JSON, and more") == 1
        assert ".." not in text
