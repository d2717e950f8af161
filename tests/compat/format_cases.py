"""Messages at the edges of what JSON, CSV and Avro schemas read and write.

``tools/format_facts.py`` evaluates them with PyFlink and keeps the results; ``test_formats.py`` evaluates them with
Firesteel. This module uses neither. A schema is the text that makes it, with the same names on both sides.
"""

# ruff: noqa: E501 - tables of values are easier to read in long lines

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

Fields = dict[str, str]
Case = tuple[str, str, list[str], list[bytes]]
"""A name, a schema that reads, schemas that write what was read, and messages."""


def row(fields: Fields) -> str:
    """A row type, such as ``row({"a": "INT()"})``."""
    types = ", ".join(kind if kind.startswith("Types.") else f"Types.{kind}" for kind in fields.values())
    return f"Types.ROW_NAMED({list(fields)}, [{types}])"


def json_reader(fields: Fields, options: str = "") -> str:
    return f"JsonRowDeserializationSchema.builder().type_info({row(fields)}){options}.build()"


def json_writer(fields: Fields) -> str:
    return f"JsonRowSerializationSchema.builder().with_type_info({row(fields)}).build()"


def csv_reader(fields: Fields, options: str = "") -> str:
    return f"CsvRowDeserializationSchema.Builder({row(fields)}){options}.build()"


def csv_writer(fields: Fields, options: str = "") -> str:
    return f"CsvRowSerializationSchema.Builder({row(fields)}){options}.build()"


def avro_reader(schema: str) -> str:
    return f"AvroRowDeserializationSchema(avro_schema_string={schema!r})"


def avro_writer(schema: str) -> str:
    return f"AvroRowSerializationSchema(avro_schema_string={schema!r})"


SIMPLE = {
    "BOOLEAN()": ["true", "false", '"true"', '"TRUE "', '"yes"', "1", "0", "{}", "[]", "null", '"null"', '""'],
    "STRING()": ['"x"', "1", "1.0", "1e3", "100.0", "12345678901234567890", "true", "null", '{"a": [1, 2.50]}', "[]",
                 '"\\u00e9\\ud83d\\ude00"', '"\\n\\u0001\\u001f\\u007f\\u2028/\\\\"', '""'],
    "BYTE()": ["1", "-128", "127", "128", '" 5 "', '"+5"', "3.0", "true", "null", '""'],
    "SHORT()": ["32767", "32768", '"7"', "7.5", "null"],
    "INT()": ["1", "2147483647", "2147483648", "-2147483648", '"12"', '" 12\\t"', '"+12"', '"1_000"', '"1.0"', "3.7", "-3.7", "1e3", "1e10",
              "true", "null", '""', "{}", '"\\u0661"', "12345678901234567890"],
    "LONG()": ["9223372036854775807", "9223372036854775808", '"9223372036854775807"', "3.7", "1e18", "1e19", "true", "null"],
    "FLOAT()": ["0.1", "1", '"0.1"', '"NaN"', '"Infinity"', '"inf"', '"1.5f"', "3.4028236e38", "1e39", "16777217", "true", "null"],
    "DOUBLE()": ["0.1", "1", "1e400", "-0.0", '"NaN"', '"-Infinity"', '"inf"', '"1_0"', '"1e3"', '" 2.5 "', '"1.5d"', "12345678901234567890", "true",
                 "null", '""', "1e7", "9999999.5", "0.001", "0.00099", "1e22", "{}"],
    "BIG_INT()": ["1", "123456789012345678901234567890", '"123456789012345678901234567890"', "3.0", '" 5 "', "null", '"x"'],
    "BIG_DEC()": ["1", "1.50", "100.0", "0.0", "1e3", "1.5e-7", '"1.50"', '"1e5"', '" .5 "', '"1."', '"NaN"', '"1_0"', "123456789.123456789123456789", "true", "null",
                  "0.00", "-0.0", '"0.00"', '"1E+400"'],
    "SQL_DATE()": ['"2020-02-29"', '"2021-02-29"', '"2020-1-1"', '"20200101"', '"2020-01-01T00:00:00Z"', '" 2020-01-01"', "18262", "null", '""',
                   '"0001-01-01"', '"9999-12-31"', '"+10000-01-01"'],
    "SQL_TIME()": ['"12:30:15Z"', '"12:30:15"', '"12:30:15.000Z"', '"12:30:15.5Z"', '"12:30Z"', '"24:00:00Z"', '"12:30:15+00:00"', '"12:30:60Z"', "null"],
    "SQL_TIMESTAMP()": ['"2020-02-29T12:30:15Z"', '"2020-02-29T12:30:15.123456789Z"', '"2020-02-29T12:30:15.1Z"', '"2020-02-29T12:30:15.Z"',
                        '"2020-02-29 12:30:15Z"', '"2020-02-29T12:30:15"', '"2020-02-29T12:30:15+01:00"', '"2020-02-29t12:30:15z"',
                        '"2021-02-30T12:30:15Z"', '"2020-02-29T24:00:00Z"', '"2020-02-29T12:30Z"', '"1969-12-31T23:59:59.999Z"', "1582979415", "null",
                        '"0001-01-01T00:00:00Z"'],
    "PRIMITIVE_ARRAY(Types.BYTE())": ['"AP8="', '"AP8"', '"A P8="', '"*"', '""', "1", "[1]", "null", '"-_8="'],
    "INSTANT()": ['"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00.123456789Z"', '"2020-01-01T01:00:00+01:00"', "1.5", "1", '"x"', "null"],
    "CHAR()": ['"a"', '"ab"', "97", '""', "null"],
    "BASIC_ARRAY(Types.INT())": ["[1, null, 3]", "[]", '["1", 2.5]', '["x"]', "{}", "1", "null"],
    "BASIC_ARRAY(Types.STRING())": ['["a", null, 1.5]', "[]", "null"],
    "OBJECT_ARRAY(Types.ROW_NAMED(['x', 'y'], [Types.INT(), Types.STRING()]))": ['[{"x": 1, "y": "b"}, null, {}]', '[{"x": "q"}]', "[1]", "{}"],
    "OBJECT_ARRAY(Types.BASIC_ARRAY(Types.INT()))": ["[[1, 2], [], null]"],
    "OBJECT_ARRAY(Types.SQL_DATE())": ['["2020-01-01", null]'],
    "ROW_NAMED(['x', 'y'], [Types.INT(), Types.SQL_DATE()])": ['{"x": 1, "y": "2020-01-01"}', "{}", "null", '{"x": 1, "y": "q"}', "[1]", '"s"'],
    "MAP(Types.STRING(), Types.INT())": ['{"a": 1, "b": null}', "{}", "null", "[]", "1", '{"a": "x"}', '{"a": 1, "a": 2}'],
    "MAP(Types.INT(), Types.STRING())": ['{"1": "x"}', '{"q": "x"}'],
    "LIST(Types.STRING())": ['["a", "b"]', "[]", "null"],
    "PRIMITIVE_ARRAY(Types.INT())": ["[1, 2]", "[]", "null", "[null]"],
    "PRIMITIVE_ARRAY(Types.DOUBLE())": ["[1, 2.5]"],
}  # fmt: skip
"""Values for each type, as a field of a JSON object has them."""

WHOLE = [
    b'{"a": 1, "b": "x"}', b' \n{"a": 1}', b"\xef\xbb\xbf" + b'{"a": 1}', '{"a": 1, "b": "é"}'.encode("utf-16"), '{"a": 1, "b": "é"}'.encode("utf-16-le"),
    b'{"a": 1, "b": "\xff"}', b"", b"  ", b"null", b"[]", b"1", b'"x"', b"{", b'{"a": 1}}', b'{"a": 1} {"a": 2}', b'{"a": 1} garbage', b"{'a': 1}", b"{a: 1}", b'{"a": 1,}',
    b'{"a": NaN}', b'{"a": 01}', b'{"a": +1}', b'{"a": 1.}', b'{"a": .5}', b'{"b": "\t"}', b'{"b": "\\x"}', b'{"A": 1}', b'{"a": 1, "a": 2}', b'{"a": 1, "z": {"deep": [1]}}',
    b'{"a": "q", "b": "x"}', b'{"a": null}', b"{}", b'/* c */ {"a": 1}', b'{"a": Infinity}',
]  # fmt: skip


def json_cases() -> Iterator[Case]:
    for kind, values in SIMPLE.items():
        fields = {"v": kind}
        yield f"json {kind}", json_reader(fields), [json_writer(fields)], [f'{{"v": {v}}}'.encode() for v in values]
    both = {"a": "INT()", "b": "STRING()"}
    for options in ("", ".ignore_parse_errors()", ".fail_on_missing_field()"):
        yield f"json whole{options}", json_reader(both, options), [json_writer(both)], WHOLE
    deep = {
        "r": row({"x": "INT()", "l": "BASIC_ARRAY(Types.INT())"}),
        "d": "BIG_DEC()",
        "f": "DOUBLE()",
        "s": "STRING()",
    }
    messages = [
        b'{"r": {"x": "q", "l": [1, "w"]}, "d": 1.10, "f": 1.10, "s": 1.10}',
        b'{"r": {"l": 5}, "d": 100.0, "f": 100.0, "s": 100.0}',
        b'{"r": 3, "s": 0.0}',
    ]
    for options in ("", ".ignore_parse_errors()", ".fail_on_missing_field()"):
        yield f"json deep{options}", json_reader(deep, options), [json_writer(deep)], messages


COLUMNS = {
    "BOOLEAN()": ["true", "TRUE", " true ", "yes", "1", "", "null"],
    "STRING()": ["x", " x ", '"x"', '" x "', '""', "", "null", "é", '"a,b"', '"a""b"', 'a"b', '"a\nb"', "#x", "'x'", "a b", "a-b", "a+b", "a!b", "x" * 23, "x" * 24, "x" * 25, "a;b", "\ta",
                 '"a\rb"', '"#x"', "a'b", '"x" ', ' "x"', '"x"y', '"x', "a\\b", "123", "-1", "1.0"],
    "BYTE()": ["1", "128", " 1 ", "", "x"],
    "SHORT()": ["1", "32768"],
    "INT()": ["1", " 1 ", "+1", "1_0", "1.0", "", "null", "2147483648", '"1"', "-1"],
    "LONG()": ["9223372036854775807", "9223372036854775808"],
    "FLOAT()": ["0.1", "1", "NaN", "Infinity", "1e10", "1.5f"],
    "DOUBLE()": ["0.1", "1", "NaN", "1e10", "inf", "-Infinity", "", "0x1p3"],
    "BIG_DEC()": ["1.50", "100", "1e5", "0.00", "1E+3", "x"],
    "BIG_INT()": ["123456789012345678901234567890", "1.0"],
    "SQL_DATE()": ["2020-02-29", "2020-2-9", "2021-02-29", "2020-13-01", " 2020-01-01", "20200101", ""],
    "SQL_TIME()": ["12:30:15", "1:2:3", "12:30:15.5", "12:30", "24:00:00", "12:60:00", "25:00:00"],
    "SQL_TIMESTAMP()": ["2020-02-29 12:30:15", "2020-02-29 12:30:15.123456789", "2020-02-29 12:30:15.1", "2020-02-29T12:30:15", "2020-2-9 1:2:3", " 2020-02-29 12:30:15 ", "2021-02-29 12:30:15",
                        "2020-02-29 12:30", "2020-02-29 24:00:00"],
    "INSTANT()": ["2020-01-01 00:00:00Z", "2020-01-01 00:00:00.123456789Z", "2020-01-01T00:00:00Z", "2020-01-01 00:00:00"],
    "PRIMITIVE_ARRAY(Types.BYTE())": ["AP8=", "AP8", "*", "", '"AP8="', "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"],
    "BASIC_ARRAY(Types.INT())": ["1;2;3", "1", "", "1;;3", "1; 2", "x;1", '"1;2"', "1;"],
    "BASIC_ARRAY(Types.STRING())": ["a;b", "a", "", "a;;b", " a ; b ", '"a;b,c"', "a;null", '"a""b;c"'],
    "ROW_NAMED(['x', 'y'], [Types.INT(), Types.STRING()])": ["1;a", "1", "1;a;b", "", "x;a", "1;"],
    "OBJECT_ARRAY(Types.SQL_DATE())": ["2020-01-01;2020-01-02"],
    "OBJECT_ARRAY(Types.BASIC_ARRAY(Types.INT()))": ["1"],
    "MAP(Types.STRING(), Types.INT())": ["1"],
    "LIST(Types.STRING())": ["1"],
    "CHAR()": ["a"],
}  # fmt: skip
"""Values for each type, as a line of CSV has them."""

THREE = {"a": "INT()", "b": "STRING()", "c": "BASIC_ARRAY(Types.STRING())"}
LINES = [
    b"1,x,p;q", b"1,x,p;q\n", b"1,x,p;q\r\n", b"1,x,p;q\n2,y,r", b"1,x", b"1", b"1,x,p,extra", b"1,x,p,", b"", b"\n", b"  ", b",,", b"q,x,p", b"#1,x,p", b"# comment\n1,x,p", b" #1,x,p",
    b"1|x|p", b"1,'x,y',p", b"1,\\,x,p", b"1,x\\,y,p", b'1,"x\\"y",p', b"1,x\\ny,p", b"1,NIL,p;NIL", b"NIL,x,NIL", b"1,x,p:q", b"1\tx\tp", b"\xff,\xff,p", b"\xef\xbb\xbf1,x,p",
    '1,é,p'.encode("utf-16"), b'1,"NIL",p', b'1,"",p', b"1, x ,p", b'1,"x, y" ,p', b'"1","x","p;q"', b"1,x,\n", b"1;2,x,p", b"\n1,x,p", b'1,"x\ny",p\n',
]  # fmt: skip


def csv_cases() -> Iterator[Case]:
    for kind, values in COLUMNS.items():
        fields = {"v": kind}
        writers = [csv_writer(fields), json_writer(fields), csv_writer(fields, ".set_field_delimiter('|')")]
        yield f"csv {kind}", csv_reader(fields), writers, [value.encode() for value in values]
        yield (
            f"csv {kind} ignoring errors",
            csv_reader(fields, ".set_ignore_parse_errors(True)"),
            [],
            [value.encode() for value in values],
        )
    writers = ["", ".set_line_delimiter('')", ".set_line_delimiter('\\r\\n')", ".disable_quote_character()", ".set_quote_character(\"'\")", ".set_escape_character('\\\\')", ".set_null_literal('NIL')",
               ".set_array_element_delimiter(':')", ".set_field_delimiter('\\t')", ".set_field_delimiter(';')"]  # fmt: skip
    yield "csv lines", csv_reader(THREE), [csv_writer(THREE, given) for given in writers], LINES
    nulls = [b"1,NIL,p;NIL", b"NIL,x,NIL", b'1,"NIL",p', b"1,,", b"1,x,NIL;"]
    with_nulls = csv_reader(THREE, ".set_null_literal('NIL')")
    yield "csv null literal", with_nulls, [csv_writer(THREE, given) for given in writers], nulls
    for options, lines in OPTIONS.items():
        yield f"csv {options}", csv_reader(THREE, options), [csv_writer(THREE)], lines
    yield "csv refused", csv_reader(THREE), [csv_writer(THREE, ".set_line_delimiter('x')")], [b"1,x,p"]


OPTIONS = {
    ".set_ignore_parse_errors(True)": LINES,
    ".set_allow_comments(True)": [b"1,x,p", b"\n", b"  ", b"", b"#1,x,p", b"# comment\n1,x,p", b" #1,x,p", b"\n1,x,p", b"#a\n#b\n1,x,p", b'1,"#x",p', b"1,#x,p"],
    ".set_field_delimiter('|')": [b"1|x|p", b"1,x,p", b"1|x,y|p", b'1|"x|y"|p'],
    ".set_quote_character(\"'\")": [b"1,'x,y',p", b'1,"x",p', b"1,'x''y',p", b'1,"x, y" ,p', b'1,"",p'],
    ".set_escape_character('\\\\')": [b"1,\\,x,p", b"1,x\\,y,p", b'1,"x\\"y",p', b"1,x\\ny,p", b"1,x\\ty\\rz,p", b"1,x\\0y,p", b"1,x\\\\y,p", b"1,x\\qy,p", b"1,x\\", b'1,"x\\ny",p'],
    ".set_array_element_delimiter(':')": [b"1,x,p:q", b"1,x,p;q", b"1,x,p::q"],
    ".set_array_element_delimiter('::')": [b"1,x,p:q", b"1,x,p::q"],
    ".set_field_delimiter('\\t')": [b"1\tx\tp", b"1,x,p", b'1\t"x"\tp', b'1\t"x" \tp'],
}  # fmt: skip


AVRO: dict[str, tuple[Any, list[Any]]] = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -1, 2**31 - 1, -(2**31)]),
    "long": ("long", [0, 2**63 - 1, -(2**63)]),
    "float": ("float", [0.5, 1.0, float("inf")]),
    "double": ("double", [0.1, 1e300, float("nan")]),
    "string": ("string", ["", "é😀"]),
    "bytes": ("bytes", [b"", b"\x00\xff"]),
    "nullable": (["null", "string"], [None, "x"]),
    "nullable last": (["string", "null"], [None, "x"]),
    "union of one": (["int"], [1]),
    "union of three": (["null", "int", "string"], [None, 1, "x"]),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A", "B"]),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, [b"ab"]),
    "array": ({"type": "array", "items": "int"}, [[], [1, 2]]),
    "array of strings": ({"type": "array", "items": "string"}, [["a", "b"]]),
    "array of nullable": ({"type": "array", "items": ["null", "long"]}, [[1, None]]),
    "array of records": (
        {"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}},
        [[{"x": 1}, {"x": 2}], []],
    ),
    "map": ({"type": "map", "values": "int"}, [{}, {"a": 1}]),
    "map of nullable": ({"type": "map", "values": ["null", "string"]}, [{"a": None}]),
    "record": ({"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}]}, [{"a": 1, "b": None}]),
    "date": ({"type": "int", "logicalType": "date"}, [0, 18262, -1, -719162]),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, [0, 45015123]),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, [0, 45015123456]),
    "timestamp-millis": ({"type": "long", "logicalType": "timestamp-millis"}, [0, -1, 1582979415123]),
    "timestamp-micros": ({"type": "long", "logicalType": "timestamp-micros"}, [0, -1, 1582979415123456, -1582979415123456]),
    "local-timestamp-millis": ({"type": "long", "logicalType": "local-timestamp-millis"}, [1]),
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, [b"\x00", b"\x01\xf4", b"\xff", b"\x80"]),
    "fixed decimal": ({"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 2}, [b"\x00\x00\x01\xf4", b"\xff\xff\xff\xff"]),
    "nullable date": (["null", {"type": "int", "logicalType": "date"}], [None, 18262]),
    "array of dates": ({"type": "array", "items": {"type": "int", "logicalType": "date"}}, [[18262]]),
    "uuid": ({"type": "string", "logicalType": "uuid"}, ["x"]),
    "null": ("null", [None]),
}  # fmt: skip


def avro_cases() -> Iterator[Case]:
    for name, (kind, values) in AVRO.items():
        schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
        text = json.dumps(schema)
        messages = [avro_message(schema, {"v": value}) for value in values]
        yield f"avro {name}", avro_reader(text), [avro_writer(text)], messages
    broken = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})
    yield "avro broken", avro_reader(broken), [], [b"", b"\x10abc", b"\x02ab"]
    yield "avro no record", avro_reader('"int"'), [], [b"\x02"]
    yield "avro no schema", avro_reader("{"), [], [b"\x02"]


def avro_message(schema: Any, value: Any) -> bytes:
    """A message with values as they are stored."""
    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(without_logical_types(schema)), value)
    return out.getvalue()


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    if isinstance(schema, dict):
        return {key: without_logical_types(part) for key, part in schema.items() if key != "logicalType"}
    return schema


def all_cases() -> Iterator[Case]:
    yield from json_cases()
    yield from csv_cases()
    yield from avro_cases()


def evaluate(engine: Any) -> list[dict[str, Any]]:
    """What an engine makes of every case."""
    return [result(engine, *case) for case in all_cases()]


def result(engine: Any, name: str, reader: str, writers: list[str], messages: list[bytes]) -> dict[str, Any]:
    """What an engine makes of the messages of a case."""
    rows: list[dict[str, Any]] = []
    try:
        read = engine.reader(reader)
    except Exception as error:
        return {"case": name, "refused": refusal(engine, error)}
    for message in messages:
        found: dict[str, Any] = {"message": message.decode("latin-1")}
        rows.append(found)
        try:
            value = engine.read(read, message)
            found["read"] = engine.text(value)
        except Exception as error:
            found["fails"] = refusal(engine, error)
            continue
        if value is None:
            continue
        found["written"] = [written(engine, writer, value) for writer in writers]
    return {"case": name, "messages": rows}


def written(engine: Any, writer: str, value: Any) -> str:
    """The bytes of a value, or why there are none."""
    try:
        return str(engine.write(engine.writer(writer), value).decode("latin-1"))
    except Exception as error:
        return f"fails: {refusal(engine, error)}"


def refusal(engine: Any, error: Exception) -> str:
    text = engine.failure(error)
    if text is None:
        raise error
    return str(text)
