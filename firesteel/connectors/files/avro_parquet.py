"""Generic records of Avro in Parquet files: dicts with the fields of a schema, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, BinaryIO

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.column_writing import GROUP
from firesteel.connectors.files.file_format import FormatPlanner, FormatReader, InputFile
from firesteel.connectors.files.parquet import ParquetWriterFactory, parquet_blocks, parquet_file
from firesteel.connectors.files.stream_format import StreamFormat
from firesteel.connectors.formats.avro_records import AvroSchema, GenericRecordAvroTypeInfo, plain_record
from firesteel.connectors.formats.avro_schemas import Definitions, actual, is_nullable_union
from firesteel.errors import InputError, ProgramError

__all__ = ["AvroParquetFormat", "AvroParquetWriterFactory", "arrow_schema_of"]

Record = dict[str, Any]
Convert = Callable[[Any], Any]
_BATCH_ROWS = 2048


def arrow_schema_of(schema: AvroSchema) -> Any:
    """The ``pyarrow.Schema`` of a record's schema.

    >>> fields = '[{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}]'
    >>> arrow_schema_of(AvroSchema.parse_string('{"type": "record", "name": "R", "fields": %s}' % fields))
    a: int32 not null
    b: string
    """
    import pyarrow

    if not isinstance(schema.parsed, dict) or schema.parsed["type"] != "record":
        raise ProgramError(f"A Parquet file has the fields of an Avro record for columns; got the schema {schema}.")
    return pyarrow.schema(_fields(schema.parsed, schema.definitions, ()))


def _fields(record: Any, definitions: Definitions, inside: tuple[str, ...]) -> list[Any]:
    import pyarrow

    if record["name"] in inside:
        raise ProgramError(f"The Avro record {record['name']} holds itself, which a Parquet file cannot.")
    found = []
    for field in record["fields"]:
        kind = actual(field["type"], definitions)
        nullable = isinstance(kind, list) or kind == "null"
        arrow = _arrow_type(kind, definitions, (*inside, record["name"]))
        found.append(pyarrow.field(field["name"], arrow, nullable))
    return found


def _arrow_type(schema: Any, definitions: Definitions, inside: tuple[str, ...]) -> Any:
    import pyarrow as pa

    schema = actual(schema, definitions)
    if isinstance(schema, list):
        only = is_nullable_union(schema)
        if only is None:
            raise ProgramError(f"A column of a Parquet file has one type, or none; got the union {schema}.")
        return _arrow_type(only, definitions, inside)
    described = schema if isinstance(schema, dict) else {"type": schema}
    kind, logical = described["type"], described.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(described["precision"], described.get("scale", 0))
    times: dict[tuple[Any, Any], Any] = {
        ("int", "date"): pa.date32(),
        ("int", "time-millis"): pa.time32("ms"),
        ("long", "time-micros"): pa.time64("us"),
        ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
        ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms"),
        ("long", "local-timestamp-micros"): pa.timestamp("us"),
    }
    if (kind, logical) in times:
        return times[kind, logical]
    if kind == "record":
        return pa.struct(_fields(described, definitions, inside))
    if kind == "array":
        return pa.list_(_arrow_type(described["items"], definitions, inside))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(described["values"], definitions, inside))
    if kind == "fixed":
        return pa.binary(described["size"])
    simple = {"null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32()}
    simple |= {"double": pa.float64(), "bytes": pa.binary(), "string": pa.string(), "enum": pa.string()}
    return simple[kind]


def _converter(arrow: Any) -> Convert | None:
    """Arrow's maps are lists of pairs: a function that makes dicts of them, wherever they are; None if nowhere."""
    import pyarrow

    kinds = pyarrow.types
    if kinds.is_map(arrow):
        item = _converter(arrow.item_type)
        return lambda pairs: {key: _converted(item, value) for key, value in pairs}
    if kinds.is_list(arrow):
        element = _converter(arrow.value_type)
        return None if element is None else lambda values: [_converted(element, value) for value in values]
    if kinds.is_struct(arrow):
        inner = {field.name: convert for field in arrow if (convert := _converter(field.type)) is not None}
        if inner:
            return lambda record: {name: _converted(inner.get(name), value) for name, value in record.items()}
    return None


def _converted(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


class AvroParquetFormat(BulkFormat[Record], StreamFormat[Record]):
    """Reads records as dicts. A stream format by its name, as in Flink; its blocks are row groups all the same."""

    bytes_per_record = 16

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._columns = arrow_schema_of(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroParquetFormat, (self._schema,)

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def create_planner(self) -> FormatPlanner:
        return BulkFormat.create_planner(self)

    def create_reader(self) -> FormatReader[Record]:
        return BulkFormat.create_reader(self)

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return parquet_blocks(file)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[Record]]:
        with parquet_file(file.open_arrow(), file.path) as opened:
            yield from self._records(opened, range(first, last), file.path)

    def read_records(self, stream: IO[bytes], path: str) -> Iterator[Record]:
        with parquet_file(stream, path) as opened:
            for records in self._records(opened, range(opened.num_row_groups), path):
                yield from records

    def _records(self, opened: Any, groups: range, path: str) -> Iterator[list[Record]]:
        import pyarrow

        names = list(self._columns.names)
        there = [name for name in names if name in opened.schema_arrow.names]
        converters = [_converter(field.type) for field in self._columns]
        for batch in opened.iter_batches(_BATCH_ROWS, groups, there, use_threads=False):
            columns: list[list[Any]] = []
            for field, convert in zip(self._columns, converters, strict=True):
                if field.name not in there:
                    columns.append([None] * batch.num_rows)
                    continue
                column = batch.column(field.name)
                try:
                    values = (column if column.type == field.type else column.cast(field.type)).to_pylist()
                except (pyarrow.ArrowException, NotImplementedError) as error:
                    raise InputError(
                        f"{path}: the column {field.name!r} is of the type {column.type} and cannot be read as "
                        f"{field.type}: {str(error).splitlines()[0]}."
                    ) from error
                columns.append(values if convert is None else [_converted(convert, value) for value in values])
            yield [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


class AvroParquetWriterFactory(BulkWriterFactory):
    """Writes dicts, rows with names and dataclasses."""

    def __init__(self, schema: AvroSchema, group_size: int = GROUP) -> None:
        self._inner = ParquetWriterFactory(arrow_schema_of(schema), group_size=group_size)

    def create(self, out: BinaryIO) -> BulkWriter:
        return _RecordWriter(self._inner.create(out))


class _RecordWriter(BulkWriter):
    def __init__(self, inner: BulkWriter) -> None:
        self._inner = inner

    def add_element(self, element: Any) -> None:
        record = plain_record(element)
        self._inner.add_element(record if isinstance(record, Mapping) else element)

    def flush(self) -> None:
        self._inner.flush()

    def finish(self) -> None:
        self._inner.finish()
