"""Parquet and ORC: columns as rows, in the declared types, from any row group or stripe on."""

from __future__ import annotations

import datetime
import io
import json
import pickle
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from sourcekit import read, read_all

from firesteel.common import Configuration, Instant, Row, Types
from firesteel.connectors.files import enumerator as enumerator_module
from firesteel.connectors.files.avro_parquet import AvroParquetWriterFactory
from firesteel.datastream.connectors.file_system import BulkFormat, FileSource
from firesteel.datastream.formats.avro import AvroSchema
from firesteel.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from firesteel.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from firesteel.errors import InputError, ProgramError

NUMBERS = Types.ROW_NAMED(["number", "text"], [Types.LONG(), Types.STRING()])
FORMATS: dict[str, Any] = {"parquet": ParquetColumnarRowInputFormat, "orc": OrcColumnarRowInputFormat}
FEW_ROWS = 50


@pytest.fixture(params=["parquet", "orc"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator_module, "SMALL_FILE", 0)


def write(path: Path, table: pa.Table, rows: int = 10**6, **options: Any) -> None:
    """A file, in Parquet with row groups of so many rows."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=rows, **options)
    else:
        pa.orc.write_table(table, path)


def write_numbers(path: Path, first: int, last: int) -> None:
    """A file of several row groups, or stripes."""
    table = pa.table({"text": [f"row {n}" * 20 for n in range(first, last)], "number": range(first, last)})
    if path.suffix == ".parquet":
        write(path, table, FEW_ROWS)
        return
    # A stripe ends at the first thousand rows that fill it.
    with pa.orc.ORCWriter(str(path), stripe_size=65536, compression="uncompressed") as writer:
        writer.write(table)


def source(form: BulkFormat[Any], path: Path) -> FileSource:
    return FileSource.for_bulk_file_format(form, path).build()


def rows_of(form: BulkFormat[Any], path: Path, **how: Any) -> list[Any]:
    made = source(form, path)
    return read_all(made.create_enumerator(), made.create_reader(), **how)


@pytest.mark.parametrize("batch", [1, 120, 10**9])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_row_once_in_order(tmp_path: Path, kind: str, batch: int, parallelism: int) -> None:
    write_numbers(tmp_path / f"a.{kind}", 0, 4000)
    write_numbers(tmp_path / f"b.{kind}", 4000, 4001)
    found = rows_of(FORMATS[kind](NUMBERS, batch_size=64), tmp_path, batch=batch, parallelism=parallelism)
    assert [row.number for row in found] == list(range(4001))
    assert found[7] == Row(number=7, text="row 7" * 20)


def test_a_batch_has_the_row_groups_that_it_has_room_for(tmp_path: Path) -> None:
    write_numbers(tmp_path / "a.parquet", 0, 1000)
    planner = source(ParquetColumnarRowInputFormat(NUMBERS), tmp_path).create_enumerator()
    first = planner.latest(None, 120)
    assert planner.count(None, first) == 100
    assert first["open"][-1] == 2
    second = planner.latest(first, 7)
    assert planner.count(first, second) == 50
    assert planner.size(first, second) > 5000


def test_it_goes_on_at_the_row_group_or_stripe(tmp_path: Path, kind: str) -> None:
    write_numbers(tmp_path / f"a.{kind}", 0, 6000)
    position, found, steps = None, [], 0
    while True:
        made = source(FORMATS[kind](NUMBERS), tmp_path)
        planner = made.create_enumerator()
        if planner.ended(position):
            break
        end = json.loads(json.dumps(planner.latest(position, 1)))
        found += [row.number for row in read(made.create_reader(), planner.plan(position, end, 2))]
        position, steps = end, steps + 1
    assert found == list(range(6000))
    assert steps > 3


def test_columns_are_found_by_name(tmp_path: Path, kind: str) -> None:
    write(tmp_path / f"a.{kind}", pa.table({"Number": [1], "more": [2.0], "TEXT": ["x"]}))
    found = rows_of(FORMATS[kind](NUMBERS), tmp_path)
    assert found == [Row(number=None, text=None)]
    assert rows_of(FORMATS[kind](NUMBERS, is_case_sensitive=False), tmp_path) == [Row(number=1, text="x")]
    write(tmp_path / f"b.{kind}", pa.table({"number": [1], "NUMBER": [2]}))
    with pytest.raises(InputError, match=r"/b\.\w+ has the columns number, NUMBER, which are the same"):
        rows_of(FORMATS[kind](NUMBERS, is_case_sensitive=False), tmp_path / f"b.{kind}")


def test_narrow_types_become_wide_ones_and_others_are_an_error(tmp_path: Path, kind: str) -> None:
    write(tmp_path / f"a.{kind}", pa.table({"number": pa.array([1, None], pa.int16()), "text": ["x", None]}))
    assert rows_of(FORMATS[kind](NUMBERS), tmp_path) == [Row(number=1, text="x"), Row(number=None, text=None)]
    write(tmp_path / f"b.{kind}", pa.table({"number": ["seven"], "text": ["x"]}))
    with pytest.raises(InputError, match=r"/b\.\w+: the column 'number' is of the type string and cannot"):
        rows_of(FORMATS[kind](NUMBERS), tmp_path)


def test_no_such_file_format(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_text("this is text\n" * 10)
    with pytest.raises(InputError, match=r"/a is not an? (Parquet|ORC) file: "):
        rows_of(FORMATS[kind](NUMBERS), tmp_path)


def test_what_is_written_is_read(tmp_path: Path, kind: str) -> None:
    nested = Types.ROW_NAMED(["a", "at"], [Types.INT(), Types.INSTANT()])
    row_type = Types.ROW_NAMED(
        ["text", "flag", "small", "real", "price", "day", "at", "moment", "raw", "many", "inner"],
        [
            *[Types.STRING(), Types.BOOLEAN(), Types.SHORT(), Types.DOUBLE(), Types.BIG_DEC(), Types.SQL_DATE()],
            *[Types.SQL_TIMESTAMP(), Types.INSTANT(), Types.PRIMITIVE_ARRAY(Types.BYTE())],
            *[Types.OBJECT_ARRAY(Types.LONG()), nested],
        ],
    )
    rows = [
        [
            *["é", True, -3, 1.5, Decimal("12.500000000000000000"), datetime.date(2024, 2, 29)],
            *[datetime.datetime(2024, 2, 29, 12, 30, 0, 123456), Instant(1_700_000_000, 123_456_000), b"\x00\xff"],
            *[[1, 2, 3], Row(a=1, at=Instant(-1, 500_000_000))],
        ],
        [None] * 11,
    ]
    writers: dict[str, Any] = {"parquet": ParquetBulkWriters, "orc": OrcBulkWriters}
    with (tmp_path / f"a.{kind}").open("wb") as out:
        writer = writers[kind].for_row_type(row_type).create(out)
        for row in rows:
            writer.add_element(Row(*row))
        writer.finish()
    found = rows_of(FORMATS[kind](row_type), tmp_path)
    assert [row._values for row in found] == rows
    assert found[0].inner.at == Instant(-1, 500_000_000)


def test_tuples_and_schemas(tmp_path: Path, kind: str) -> None:
    write(tmp_path / f"a.{kind}", pa.table({"f0": [1, 2], "f1": ["x", "y"]}))
    assert rows_of(FORMATS[kind](Types.TUPLE([Types.LONG(), Types.STRING()])), tmp_path) == [(1, "x"), (2, "y")]
    assert rows_of(FORMATS[kind](pa.schema({"f1": pa.string()})), tmp_path) == [Row(f1="x"), Row(f1="y")]
    with pytest.raises(ProgramError, match="batch_size is a number of rows"):
        FORMATS[kind](NUMBERS, batch_size=0)


@pytest.mark.parametrize("int96", [True, False])
def test_moments_on_the_clock_of_the_machine_or_of_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, int96: bool
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        moments = pa.array([1_700_000_000_123_456], pa.timestamp("us", None if int96 else "UTC"))
        write(tmp_path / "a.parquet", pa.table({"at": moments}), use_deprecated_int96_timestamps=int96)
        clock = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
        (here,) = rows_of(ParquetColumnarRowInputFormat(clock), tmp_path)
        (utc,) = rows_of(ParquetColumnarRowInputFormat(clock, is_utc_timestamp=True), tmp_path)
        (moment,) = rows_of(ParquetColumnarRowInputFormat(Types.ROW_NAMED(["at"], [Types.INSTANT()])), tmp_path)
        assert here.at == datetime.datetime(2023, 11, 15, 7, 13, 20, 123456)
        assert utc.at == datetime.datetime(2023, 11, 14, 22, 13, 20, 123456)
        assert moment.at == Instant(1_700_000_000, 123_456_000)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_settings_of_orc() -> None:
    row_type = Types.ROW_NAMED(["a"], [Types.STRING()])
    settings = Configuration().set_string("orc.compress", "ZSTD")
    out = io.BytesIO()
    writer = OrcBulkWriters.for_row_type(row_type, settings).create(out)
    writer.add_element(("x",))
    writer.finish()
    assert pa.orc.ORCFile(io.BytesIO(out.getvalue())).compression == "ZSTD"
    with pytest.raises(ProgramError, match=r"orc\.compress is 'LZO'"):
        OrcBulkWriters.for_row_type(row_type, Configuration().set_string("orc.compress", "LZO"))
    with pytest.raises(ProgramError, match="An ORC file cannot have these columns: "):
        OrcBulkWriters.for_row_type(Types.ROW_NAMED(["a"], [Types.SQL_TIME()]))


EVENT = """{"type": "record", "name": "Event", "fields": [
    {"name": "id", "type": "long"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["VIEW", "BUY"]}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": ["null", "string"]},
    {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    {"name": "who", "type": {"type": "record", "name": "Who", "fields": [
        {"name": "name", "type": "string"}, {"name": "ranks", "type": {"type": "map", "values": "int"}}]}}
]}"""


def event(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "kind": "BUY" if number % 2 else "VIEW",
        "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=number),
        "note": None if number % 3 else f"note {number}",
        "tags": {"a": [number, 2], "b": []},
        "who": {"name": "Ada", "ranks": {"x": number}},
    }


@pytest.mark.parametrize("batch", [1, 10**9])
def test_generic_records_of_avro_in_parquet(tmp_path: Path, batch: int) -> None:
    schema = AvroSchema.parse_string(EVENT)
    with (tmp_path / "a.parquet").open("wb") as out:
        writer = AvroParquetWriterFactory(schema, group_size=10).create(out)
        for number in range(50):
            writer.add_element(event(number))
        writer.finish()
    made = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(schema), tmp_path).build()
    planner = made.create_enumerator()
    assert read_all(planner, pickle.loads(pickle.dumps(made)).create_reader(), batch) == list(map(event, range(50)))
    assert planner.count(None, planner.latest(None, 1)) == 10, "it goes on at a row group"
    assert repr(made.get_produced_type()) == "AVRO<Event>"
    with (tmp_path / "a.parquet").open("rb") as stream:
        found = list(AvroParquetReaders.for_generic_record(schema).read_records(stream, "a.parquet"))
    assert found == list(map(event, range(50)))


def test_what_avro_has_and_parquet_has_not() -> None:
    union = """{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}"""
    with pytest.raises(ProgramError, match="has one type, or none; got the union"):
        AvroParquetWriters.for_generic_record(union)
    tree = """{"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}"""
    with pytest.raises(ProgramError, match="The Avro record T holds itself"):
        AvroParquetWriters.for_generic_record(tree)
    with pytest.raises(ProgramError, match="has the fields of an Avro record for columns"):
        AvroParquetReaders.for_generic_record('"string"')
