"""Files of CSV, JSON lines and Avro as sources and sinks: in pieces, with headers, damaged, as others write them."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import pickle
from pathlib import Path
from typing import Any

import fastavro
import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from firesteel.datastream.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroReaderFormat,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from firesteel.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.errors import ConfigurationError, JobExecutionError, ProgramError
from firesteel.testing import memory_environment, run_pipeline

NO_TIME = WatermarkStrategy.no_watermarks()
SMALL_BATCHES = {"firesteel.batch.max-records": "7", "firesteel.batch.initial-records": "7"}
PEOPLE = CsvSchema.builder().add_number_column("id").add_string_column("name")
ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "on", "type": {"type": "int", "logicalType": "date"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)


def read(form: Any, *paths: Path, bulk: bool = False, parallelism: int = 1, small: bool = False) -> list[Any]:
    make = FileSource.for_bulk_file_format if bulk else FileSource.for_record_stream_format
    source = make(form, *map(str, paths)).build()
    found: list[Any] = run_pipeline(
        lambda env: env.from_source(source, NO_TIME, "files").map(lambda value: value),
        parallelism=parallelism,
        config=SMALL_BATCHES if small else {},
    )
    return found


def write(folder: Path, elements: list[Any], writers: Any) -> list[Path]:
    env = memory_environment()
    sink = FileSink.for_bulk_format(str(folder), writers)
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    env.from_collection(elements).sink_to(sink.build())
    env.execute()
    return [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]


class TestCsv:
    def test_values_with_lines_and_quotes_in_them(self, tmp_path: Path) -> None:
        expected = [(number, f'line "{number}"\nand, more') for number in range(50)]
        with (tmp_path / "a.csv").open("w", newline="") as file:
            csv.writer(file).writerows(expected)
        found = read(CsvReaderFormat.for_schema(PEOPLE.build()), tmp_path, small=True)
        assert found == [Row(id=number, name=name) for number, name in expected]

    @pytest.mark.parametrize("multi_line", [True, False])
    @pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
    def test_large_files_in_pieces(self, tmp_path: Path, multi_line: bool, ending: str) -> None:
        text = "id,name\n" + "".join(f"{number},n{number}\n" for number in range(3000))
        (tmp_path / f"a{ending}").write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
        schema = CsvSchema.builder().add_columns_from(PEOPLE.build()).set_use_header().set_strict_headers().build()
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema, multi_line), str(tmp_path))
        found = run_pipeline(
            lambda env: env.from_source(source.build(), NO_TIME, "files").map(lambda row: row.id),
            parallelism=3,
            config={"firesteel.batch.max-records": "200"},
        )
        assert sorted(found) == list(range(3000))

    def test_all_that_a_schema_may_say(self, tmp_path: Path) -> None:
        schema = (
            CsvSchema.builder()
            .add_number_column("i", Types.INT())
            .add_number_column("d", Types.DOUBLE())
            .add_boolean_column("b")
            .add_array_column("l", ",", Types.INT())
            .add_column("on", Types.SQL_DATE())
            .set_column_separator("|")
            .set_quote_char("'")
            .set_escape_char("\\")
            .set_null_value("-")
            .set_allow_comments()
            .set_use_header()
            .set_skip_first_data_row()
            .set_any_property_name("more")
            .build()
        )
        text = (
            "a|b|c\nunits|go|here\n# nothing\n\n1|2.5|true|1,2|2020-01-02\n-|-|-||-|more|values\n'3'|1|x|7|2020-01-02\n"
        )
        (tmp_path / "a.csv").write_text(text)
        for multi_line in (True, False):
            assert [list(row) for row in read(CsvReaderFormat.for_schema(schema, multi_line), tmp_path)] == [
                [1, 2.5, True, [1, 2], datetime.date(2020, 1, 2)],
                [None, None, None, [], None],
                [3, 1.0, False, [7], datetime.date(2020, 1, 2)],
            ]
        produced = CsvReaderFormat.for_schema(schema).get_produced_type()
        assert repr(produced) == "ROW<i INT, d DOUBLE, b BOOLEAN, l LIST<INT>, on SQL_DATE>"

    @pytest.mark.parametrize("multi_line", [True, False])
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("1,a\nx,b\n", "field 'id' should be LONG, got 'x'"),
            ("1,a\n2\n", "it has 1 values for 2 fields"),
            ("1,a\n2,b,c\n", "it has 3 values for 2 fields"),
            ('1,a\n2,"b"c\n', "behind a closing quote"),
            ('1,a\n2,"b\n', "closing quote is missing"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, tmp_path: Path, multi_line: bool, text: str, reason: str) -> None:
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(JobExecutionError, match=reason) as failure:
            read(CsvReaderFormat.for_schema(PEOPLE.build(), multi_line), tmp_path)
        assert str(tmp_path / "a.csv") in str(failure.value)

    @pytest.mark.parametrize("multi_line", [True, False])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("last", [True, False])
    def test_all_kinds_of_line_ends(self, tmp_path: Path, multi_line: bool, end: str, last: bool) -> None:
        (tmp_path / "a.csv").write_bytes(
            ("\ufeff" + end.join(["1,a", '2,"b"', "3,c"]) + (end if last else "")).encode()
        )
        found = read(CsvReaderFormat.for_schema(PEOPLE.build(), multi_line), tmp_path)
        assert [(row.id, row.name) for row in found] == [(1, "a"), (2, "b"), (3, "c")]

    def test_another_header(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("name,id\nAda,1\n")
        schema = CsvSchema.builder().add_columns_from(PEOPLE.build()).set_use_header().set_strict_headers().build()
        for multi_line in (True, False):
            with pytest.raises(JobExecutionError, match=r"begins with the names \['name', 'id'\], the schema has"):
                read(CsvReaderFormat.for_schema(schema, multi_line), tmp_path)

    def test_written_files_can_be_read_by_others_and_by_us(self, tmp_path: Path) -> None:
        schema = CsvSchema.builder().add_columns_from(PEOPLE.build()).add_array_column("l").set_use_header().build()
        people = [Row(1, "Lovelace, Ada", ["x", "y"]), (2, 'say "x"\n', []), {"id": 3, "name": None, "l": None}]
        (file,) = write(tmp_path, people, CsvBulkWriters.for_schema(schema))
        with file.open(newline="") as opened:
            assert list(csv.reader(opened)) == [
                ["id", "name", "l"],
                ["1", "Lovelace, Ada", "x;y"],
                ["2", 'say "x"\n', ""],
                ["3", "", ""],
            ]
        assert [list(row) for row in read(CsvReaderFormat.for_schema(schema), file)] == [
            [1, "Lovelace, Ada", ["x", "y"]],
            [2, 'say "x"\n', []],
            [3, "", []],
        ]

    def test_an_element_that_does_not_fit(self, tmp_path: Path) -> None:
        with pytest.raises(
            JobExecutionError, match="field 'id' of ROW<id LONG, name STRING>: expected LONG, got str 'x'"
        ):
            write(tmp_path, [("x", "Ada")], CsvBulkWriters.for_schema(PEOPLE.build()))

    def test_schemas_that_make_no_sense(self) -> None:
        with pytest.raises(ProgramError, match="needs a column"):
            CsvSchema.builder().build()
        with pytest.raises(ProgramError, match="two columns with the name 'id'"):
            CsvSchema.builder().add_number_column("id").add_string_column("id")
        with pytest.raises(ProgramError, match=r"such as Types\.INT\(\), got STRING"):
            CsvSchema.builder().add_number_column("id", Types.STRING())
        with pytest.raises(ProgramError, match="a simple type"):
            CsvSchema.builder().add_array_column("l", ";", Types.LIST(Types.INT()))


class TestJson:
    def test_large_files_in_pieces(self, tmp_path: Path) -> None:
        text = "".join(f'{{"id": {number}, "name": "n{number}"}}\n\n' for number in range(3000))
        (tmp_path / "a.jsonl").write_text(text)
        source = FileSource.for_record_stream_format(JsonReaderFormat.for_type(ROWS), str(tmp_path)).build()
        found = run_pipeline(
            lambda env: env.from_source(source, NO_TIME, "files").map(lambda row: (row.id, row.name)),
            parallelism=3,
            config={"firesteel.batch.max-records": "200"},
        )
        assert sorted(found) == [(number, f"n{number}") for number in range(3000)]

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"id": 1}\noops\n{"id": "x"}\n')
        with pytest.raises(JobExecutionError, match=r"a\.jsonl, line 2: JSON cannot read it: no JSON at character 0"):
            read(JsonReaderFormat.for_type(ROWS), tmp_path)
        assert [row.id for row in read(JsonReaderFormat.for_type(ROWS, ignore_parse_errors=True), tmp_path)] == [
            1,
            None,
        ]


def avro_file(path: Path, count: int, codec: str = "null", **more: Any) -> None:
    records = [{"id": number, "on": datetime.date(2020, 1, 1), "tags": [str(number)]} for number in range(count)]
    with path.open("wb") as file:
        fastavro.writer(
            file, fastavro.parse_schema(json.loads(SCHEMA)), records, codec=codec, sync_interval=100, **more
        )


class TestAvro:
    @pytest.mark.parametrize("codec", ["null", "deflate"])
    def test_large_files_in_pieces(self, tmp_path: Path, codec: str) -> None:
        avro_file(tmp_path / "a.avro", 2000, codec)
        form = AvroReaderFormat.for_generic(SCHEMA)
        found = read(form, tmp_path, bulk=True, parallelism=3, small=True)
        assert sorted(record["id"] for record in found) == list(range(2000))
        assert found[0] == {"id": 0, "on": datetime.date(2020, 1, 1), "tags": ["0"]}

    def test_rows(self, tmp_path: Path) -> None:
        avro_file(tmp_path / "a.avro", 3)
        form = AvroReaderFormat.for_row(SCHEMA)
        assert repr(form.get_produced_type()) == "ROW<id INT, on SQL_DATE, tags BASIC_ARRAY<STRING>>"
        assert read(form, tmp_path, bulk=True)[2] == Row(id=2, on=datetime.date(2020, 1, 1), tags=["2"])

    def test_a_schema_that_has_moved_on(self, tmp_path: Path) -> None:
        avro_file(tmp_path / "a.avro", 1)
        fields = [{"name": "id", "type": "long"}, {"name": "by", "type": "string", "default": "-"}]
        newer = json.dumps({"type": "record", "name": "Order", "fields": fields})
        assert read(AvroReaderFormat.for_generic(newer), tmp_path, bulk=True) == [{"id": 0, "by": "-"}]
        assert read(AvroReaderFormat.for_row(newer), tmp_path, bulk=True) == [Row(id=0, by="-")]

    def test_create_input(self, tmp_path: Path) -> None:
        avro_file(tmp_path / "a.avro", 3)
        schema = AvroSchema.parse_string(SCHEMA)
        form = AvroInputFormat(str(tmp_path / "a.avro"), schema)
        assert form.get_produced_type() == GenericRecordAvroTypeInfo(schema)
        assert run_pipeline(lambda env: env.create_input(form).map(lambda record: record["id"])) == [0, 1, 2]
        with pytest.raises(ProgramError, match="takes an AvroInputFormat, got 'x'"):
            memory_environment().create_input("x")  # type: ignore[arg-type]

    def test_written_files_can_be_read_by_others(self, tmp_path: Path) -> None:
        records = [{"id": number, "on": datetime.date(2020, 1, 1), "tags": []} for number in range(1000)]
        schema = AvroSchema.parse_string(SCHEMA)
        (file,) = write(tmp_path, records, AvroBulkWriters.for_generic_record(schema, codec="deflate"))
        with file.open("rb") as opened:
            assert list(fastavro.reader(opened)) == records
        with pytest.raises(JobExecutionError, match="field 'id' should be an int of 32 bits, got 2147483648"):
            write(tmp_path, [{"id": 2**31, "on": None, "tags": []}], AvroBulkWriters.for_generic_record(schema))
        with pytest.raises(ConfigurationError, match=r"codecs .*deflate.*, got 'rar'"):
            AvroBulkWriters.for_generic_record(schema, codec="rar")

    def test_damaged_files(self, tmp_path: Path) -> None:
        avro_file(tmp_path / "a.avro", 100)
        whole = (tmp_path / "a.avro").read_bytes()
        (tmp_path / "a.avro").unlink()
        for name, content, reason in (
            ("text", b"hello, this is text", r"is not an Avro file: it begins with b'hello, this is t'"),
            ("short", whole[:-3], "ends inside of the block that begins at byte"),
            ("marker", whole[:-1] + b"?", "is damaged: the block that begins at byte .* has no marker"),
            ("block", whole[:-40] + b"\xff" * 20 + whole[-20:], "Avro cannot read it"),
        ):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(JobExecutionError, match=reason):
                read(AvroReaderFormat.for_generic(SCHEMA), tmp_path / name, bulk=True)

    def test_the_schema_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "order.avsc").write_text(SCHEMA)
        schema = AvroSchema.parse_file(str(tmp_path / "order.avsc"))
        assert json.loads(str(schema)) == json.loads(SCHEMA)
        assert pickle.loads(pickle.dumps(schema)) == schema
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema.parsed, {"id": 1, "on": datetime.date(1970, 1, 1), "tags": []})
        assert out.getvalue() == b"\x02\x00\x00"


@pytest.mark.parametrize(
    "form",
    [
        CsvReaderFormat.for_schema(PEOPLE.build()),
        CsvReaderFormat.for_schema(PEOPLE.build(), multi_line=False),
        JsonReaderFormat.for_type(ROWS),
        AvroReaderFormat.for_generic(SCHEMA),
        AvroReaderFormat.for_row(SCHEMA),
    ],
)
def test_formats_travel_to_workers(form: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(form)).get_produced_type()) == repr(form.get_produced_type())
