"""ORC files, by pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.connectors.files.arrow import arrow_schema
from firesteel.connectors.files.bulk_format import Block
from firesteel.connectors.files.column_writing import GROUP, ColumnWriter
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.files.row_format import ColumnarRowFormat
from firesteel.errors import InputError, ProgramError

__all__ = ["OrcRowFormat", "OrcWriterFactory", "orc_blocks", "orc_file", "orc_options"]

_NUMBERS = {
    "orc.stripe.size": "stripe_size",
    "orc.compress.size": "compression_block_size",
    "orc.row.index.stride": "row_index_stride",
}
_CODECS = {"NONE": "uncompressed", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4", "ZSTD": "zstd"}


def orc_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """What Arrow's writer takes, from the settings of ORC's own. Others have no meaning here.

    >>> orc_options({"orc.compress": "SNAPPY", "orc.stripe.size": "1048576", "orc.encoding.strategy": "SPEED"})
    {'compression': 'snappy', 'stripe_size': 1048576}
    """
    codec = properties.get("orc.compress", "ZLIB").upper()
    if codec not in _CODECS:
        raise ProgramError(f"orc.compress is {codec!r}; Arrow writes ORC with {', '.join(_CODECS)}.")
    found: dict[str, Any] = {"compression": _CODECS[codec]}
    for key, name in _NUMBERS.items():
        if key in properties:
            try:
                found[name] = int(properties[key])
            except ValueError:
                raise ProgramError(f"{key} is a number, got {properties[key]!r}.") from None
    return found


class OrcWriterFactory(BulkWriterFactory):
    """Makes writers of ORC files with the columns of a row type or a ``pyarrow.Schema``."""

    def __init__(self, row_type: Any, options: Mapping[str, Any], group_size: int = GROUP) -> None:
        import pyarrow

        self.schema = arrow_schema(row_type)
        self.options, self.group_size = dict(options), group_size
        try:
            # ORC has fewer types than Arrow: better said now than by a task.
            writer = _OrcWriter(io.BytesIO(), self)
            writer.write_table(self.schema.empty_table())
            writer.close()
        except (pyarrow.ArrowException, NotImplementedError) as error:
            raise ProgramError(f"An ORC file cannot have these columns: {str(error).splitlines()[0]}.") from None

    def create(self, out: BinaryIO) -> BulkWriter:
        return _OrcWriter(out, self)


class _OrcWriter(ColumnWriter):
    def __init__(self, out: BinaryIO, factory: OrcWriterFactory) -> None:
        import pyarrow.orc

        super().__init__(factory.schema, factory.group_size, "An ORC")
        self._writer = pyarrow.orc.ORCWriter(out, **factory.options)
        self._empty = True

    def write_table(self, table: Any) -> None:
        self._empty = False
        self._writer.write(table)

    def close(self) -> None:
        if self._empty:
            # Its schema is written with the first rows.
            self._writer.write(self._schema.empty_table())
        self._writer.close()


class OrcRowFormat(ColumnarRowFormat):
    """Reads ORC files as rows. Its blocks are stripes."""

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return orc_blocks(file)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[Any]]:
        with file.open_arrow() as source:
            opened = orc_file(source, file.path)
            found = self._columns.found_in(opened.schema.names, file.path)
            # Without any column there would be no rows either.
            wanted = [name for name in found if name is not None] or opened.schema.names[:1]
            for number in range(first, last):
                stripe = opened.read_stripe(number, wanted)
                for start in range(0, stripe.num_rows, self._batch_size):
                    yield self._columns.rows(stripe.slice(start, self._batch_size), found, file.path)


def orc_blocks(file: InputFile) -> Sequence[Block]:
    """The stripes of a file."""
    with file.open_arrow() as source:
        found = orc_file(source, file.path)
        stripes = found.nstripes
        # The footer has the numbers of each stripe, but Arrow tells their sums only.
        return [Block(-(-found.nrows // stripes), -(-found.content_length // stripes))] * stripes


def orc_file(source: Any, path: str) -> Any:
    """An ORC file that was opened, as Arrow's reader has it."""
    import pyarrow.orc

    try:
        return pyarrow.orc.ORCFile(source)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not an ORC file: {str(error).splitlines()[0]}") from error
