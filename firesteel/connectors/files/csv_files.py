"""Files of CSV: what their columns are, how they are read, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.common.types import Row
from firesteel.connectors.files.line_reading import Lines
from firesteel.connectors.files.stream_format import LineFormat, StreamFormat
from firesteel.connectors.formats.compiling import unwritable
from firesteel.connectors.formats.csv_lines import Dialect, quoting, records_of, splitting
from firesteel.connectors.formats.csv_rows import row_reader, row_writer
from firesteel.errors import InputError, short_repr

__all__ = ["CsvColumn", "CsvFileSchema", "CsvLines", "CsvRecords", "CsvWriterFactory"]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class CsvColumn:
    """A column: its name, the type of its values, and for arrays what stands between their elements."""

    name: str
    kind: TypeInformation
    separator: str | None = None

    @property
    def produced(self) -> TypeInformation:
        """The type of a row's field: PyFlink has lists for arrays."""
        return Types.LIST(self.kind) if self.separator is not None else self.kind

    @property
    def read_as(self) -> TypeInformation:
        return Types.OBJECT_ARRAY(self.kind) if self.separator is not None else self.kind


@dataclass(frozen=True)
class CsvFileSchema:
    """What a file of CSV is made of."""

    columns: tuple[CsvColumn, ...] = ()
    dialect: Dialect = field(default_factory=Dialect)
    header: bool = False
    """Whether files begin with a line of names."""
    strict_header: bool = False
    """Whether these names have to be those of the columns."""
    skips_first: bool = False
    """Whether the first line of data is left out."""
    takes_more: bool = False
    """Whether lines may have more values than there are columns."""

    @property
    def lines_before(self) -> int:
        return int(self.header) + int(self.skips_first)

    @property
    def produced_type(self) -> RowTypeInfo:
        return Types.ROW_NAMED([column.name for column in self.columns], [column.produced for column in self.columns])

    @property
    def read_type(self) -> RowTypeInfo:
        return Types.ROW_NAMED([column.name for column in self.columns], [column.read_as for column in self.columns])

    @property
    def separators(self) -> list[str | None]:
        return [column.separator for column in self.columns]

    def row_of(self) -> Any:
        """A function from the values of a line to a row."""
        read = row_reader(self.read_type, self.dialect, delimiters=self.separators)
        if not self.takes_more:
            return read
        count = len(self.columns)
        return lambda values: read(values[:count])

    def check_header(self, values: Sequence[str], path: str) -> None:
        """Fails if a strict header has other names."""
        names = [column.name for column in self.columns]
        if self.strict_header and list(values) != names:
            raise InputError(
                f"{path} begins with the names {short_repr(list(values))}, the schema has {short_repr(names)}."
            )


class CsvLines(LineFormat[Row]):
    """Rows of which each is a line: no value holds the end of one. Large files are read by many subtasks."""

    def __init__(self, schema: CsvFileSchema) -> None:
        self._schema = schema
        self.header_lines = schema.lines_before
        self._split = splitting(schema.dialect)
        self._row = schema.row_of()
        self._checked: str | None = None

    def decode(self, lines: Lines) -> list[Row]:
        schema = self._schema
        if schema.strict_header and self._checked != lines.file.path and lines.header:
            schema.check_header(self._split(_text(lines.header[0])), lines.file.path)
            self._checked = lines.file.path
        split, row = self._split, self._row
        try:
            text = _text(b"".join(lines.lines)).replace("\r\n", "\n")
            quote = schema.dialect.quote
            if not schema.dialect.comments and "\r" not in text and (quote is None or quote not in text):
                return [row(split(line)) for line in text.removesuffix("\n").split("\n")]
        except Exception:
            # One by one: which of them is it?
            pass
        rows: list[Row] = []
        for index, line in enumerate(lines.lines):
            try:
                rows += map(row, records_of(_text(line), schema.dialect))
            except Exception as error:
                raise lines.failed(index, f"CSV cannot read it: {error}") from None
        return rows

    def get_produced_type(self) -> TypeInformation:
        return self._schema.produced_type

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvLines, (self._schema,)


def _text(line: bytes) -> str:
    return line.decode().removeprefix("\ufeff")


class CsvRecords(StreamFormat[Row]):
    """Rows of which a value in quotes may hold the end of a line. A file is read by one subtask, from its beginning."""

    def __init__(self, schema: CsvFileSchema) -> None:
        self._schema = schema

    def read_records(self, stream: IO[bytes], path: str) -> Iterator[Row]:
        schema = self._schema
        row = schema.row_of()
        for number, values in enumerate(_records(stream, path, schema.dialect)):
            if number < schema.lines_before:
                if number == 0 and schema.header:
                    schema.check_header(values, path)
                continue
            try:
                yield row(values)
            except Exception as error:
                shown = short_repr(values, 120)
                raise InputError(f"{path}, record {number + 1}: CSV cannot read it: {error}. It is {shown}.") from None

    def get_produced_type(self) -> TypeInformation:
        return self._schema.produced_type


def _records(stream: IO[bytes], path: str, dialect: Dialect) -> Iterator[list[str]]:
    """The values of each record of a stream."""
    quote, split = dialect.quote, splitting(dialect)
    pending, number = "", 0
    for line in _lines(stream, path):
        number += 1
        if pending and quote is not None and quote not in line:
            # Nothing in it can end the value: to look at it again from its beginning would be in vain.
            pending += line
            continue
        pending += line
        try:
            # Most records are one line.
            simple = not dialect.comments and _is_one_line(pending)
            found = [split(pending)] if simple else list(records_of(pending, dialect))
        except ValueError as error:
            if "closing quote is missing" in str(error):
                continue  # The value goes on in the next line.
            raise InputError(f"{path}, line {number}: CSV cannot read it: {error}.") from None
        pending = ""
        yield from found
    if pending:
        raise InputError(
            f"{path} ends inside of quotes: a closing quote is missing. They hold {short_repr(pending, 80)}."
        )


def _is_one_line(text: str) -> bool:
    bare = text.removesuffix("\n").removesuffix("\r")
    return "\n" not in bare and "\r" not in bare


def _lines(stream: IO[bytes], path: str) -> Iterator[str]:
    first = True
    for number, line in enumerate(stream):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}, line {number + 1}: this is not UTF-8 ({error}): {short_repr(line, 120)}."
            ) from None
        if first:
            text, first = text.removeprefix("\ufeff"), False
        yield text


class CsvWriterFactory(BulkWriterFactory):
    """Makes writers of files of CSV."""

    def __init__(self, schema: CsvFileSchema) -> None:
        self.schema = schema

    def create(self, out: BinaryIO) -> BulkWriter:
        return _CsvWriter(out, self.schema)


class _CsvWriter(BulkWriter):
    def __init__(self, out: BinaryIO, schema: CsvFileSchema) -> None:
        self._out, self._type = out, schema.read_type
        self._write = row_writer(self._type, schema.dialect, schema.separators)
        self._lines: list[str] = []
        self._size = 0
        if schema.header:
            names = map(quoting(schema.dialect), self._type.get_field_names())
            self._lines.append(schema.dialect.delimiter.join(names) + schema.dialect.line_delimiter)

    def add_element(self, element: Any) -> None:
        try:
            line = self._write(element)
        except Exception as error:
            raise unwritable("CsvBulkWriters", self._type, element, error) from None
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            self._out.write("".join(self._lines).encode())
            self._lines, self._size = [], 0

    def finish(self) -> None:
        self.flush()
