"""Values whose type the reader of a source vouches for are not checked again; all others are."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.connectors.files.line_reading import Lines
from firesteel.connectors.files.stream_format import TextLineFormat
from firesteel.connectors.sequence import NumberReader
from firesteel.connectors.source import Records
from firesteel.datastream.connectors.file_system import FileSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobExecutionError
from firesteel.testing import run_pipeline

NONE = WatermarkStrategy.no_watermarks()


def named(name: str) -> Any:
    return Types.ROW_NAMED([name], [Types.LONG()])


class Vouching(NumberReader):
    """Says that it gives rows, and gives something else."""

    produces = named("n")

    def read(self, split: None, start: int, end: int) -> Any:
        yield Records(["no row"])


class VouchingSource(NumberSequenceSource):
    def create_reader(self) -> Vouching:
        return Vouching(0)


def values(source: Any, type_info: Any = None) -> list[Any]:
    return run_pipeline(lambda env: env.from_source(source, NONE, "source", type_info))


def test_a_reader_that_vouches_is_believed() -> None:
    assert values(VouchingSource(0, 0), named("n")) == ["no row"]


@pytest.mark.parametrize("declared", [named("m"), Types.LONG(), Types.ROW_NAMED(["n"], [Types.STRING()])])
def test_for_another_type_it_is_not(declared: Any) -> None:
    with pytest.raises(JobExecutionError, match="expected"):
        values(VouchingSource(0, 0), declared)


def test_rows_of_a_table_are_converted_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (f, d, s)")
        connection.execute("INSERT INTO t VALUES (0.1, 3, 7), (NULL, NULL, NULL)")
    row = Types.ROW_NAMED(["f", "d", "s"], [Types.FLOAT(), Types.DOUBLE(), Types.SHORT()])
    first, second = values(JdbcSource.table("t", row, JdbcConnectionOptions(f"jdbc:sqlite:{path}")))
    # A FLOAT has fewer digits.
    assert first == Row(f=0.10000000149011612, d=3.0, s=7)
    assert type(first.d) is float
    assert second == Row(f=None, d=None, s=None)


class Lengths(TextLineFormat):
    """Makes something else of lines."""

    def decode(self, lines: Lines) -> list[Any]:
        return [len(line) for line in super().decode(lines)]


def test_a_format_that_is_made_of_another_one_is_checked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one\n")
    source = FileSource.for_record_stream_format(Lengths(), str(tmp_path / "file")).build()
    with pytest.raises(JobExecutionError, match="expected STRING"):
        values(source)
    assert values(FileSource.for_record_stream_format(TextLineFormat(), str(tmp_path / "file")).build()) == ["one"]
