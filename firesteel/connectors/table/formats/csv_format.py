"""The format ``csv``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from firesteel.connectors.formats.csv_lines import Dialect, csv_text, quoting, splitting
from firesteel.connectors.table.formats.message_format import BadMessage, Decoded, MessageFormat, Places, kept_rows
from firesteel.connectors.table.formats.text_columns import UnreadableText, column_of_texts, texts_of_column
from firesteel.errors import ConfigurationError

__all__ = ["CsvFormat", "CsvOptions"]

_UNLIMITED = (1 << 31) - 1


@dataclass(frozen=True)
class CsvOptions:
    """The options of the format."""

    dialect: Dialect = field(default_factory=Dialect)
    ignore_parse_errors: bool = False
    scientific: bool = True
    """Whether decimals may be written as 1E+2."""


class CsvFormat(MessageFormat):
    """Lines of CSV.

    >>> form = CsvFormat(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    >>> form.decode([b"1,pen", b'2,"a, b"']).batch.to_pydict()
    {'id': [1, 2], 'name': ['pen', 'a, b']}
    >>> form.encode(pa.record_batch({"id": [1], "name": ["a b"]}))
    [b'1,"a b"']
    """

    def __init__(
        self, schema: pa.Schema, options: CsvOptions | None = None, asked: Collection[str] | None = None
    ) -> None:
        """``asked``: the columns that are read, all of them if it is None. The others are NULL."""
        self.schema, self._options = schema, options or CsvOptions()
        self._asked = asked
        self._read = [name for name in schema.names if asked is None or name in asked] or schema.names[:1]
        for column in schema:
            if pa.types.is_map(column.type) or (
                pa.types.is_nested(column.type) and any(pa.types.is_nested(each.type) for each in _inner(column.type))
            ):
                raise ConfigurationError(f"CSV has nothing for column {column.name!r} of the type {column.type}.")
        self._split = splitting(self._options.dialect)
        self._quote = quoting(self._options.dialect)

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvFormat, (self.schema, self._options, self._asked)

    # Reading

    def narrowed(self, asked: Collection[str]) -> MessageFormat:
        return CsvFormat(self.schema, self._options, frozenset(asked))

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        lines, origins = kept_rows(messages)
        columns = self._split_by_arrow(lines)
        if columns is None:
            columns, kept = self._split_one_by_one(lines)
            if kept is not None:
                origins = kept if origins is None else origins[kept]
                lines = [lines[index] for index in kept]
        count = len(columns[0]) if columns else 0
        texts = dict(zip(self._read, columns, strict=True))
        arrays = [
            self._column(texts[column.name], column, lines) if column.name in texts else pa.nulls(count, column.type)
            for column in self.schema
        ]
        return Decoded(pa.RecordBatch.from_arrays(arrays, schema=self.schema), origins)

    def _split_by_arrow(self, lines: list[bytes]) -> list[pa.Array] | None:
        """All lines at once; None where they are not as plain as that."""
        dialect = self._options.dialect
        if dialect.escape is not None or dialect.comments or not dialect.delimiter.isascii():
            return None
        if not lines:
            return [pa.array([], pa.string()) for _ in self._read]
        # Lines of files have their ends, those of messages not. Should there be both, the number of rows tells.
        joined = (b"" if lines[0].endswith(b"\n") else b"\n").join(lines)
        null = dialect.null_literal
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(joined),
                pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=min(_UNLIMITED, len(joined) + 1), column_names=self.schema.names
                ),
                pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, quote_char=dialect.quote or False),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(self._read, pa.string()),
                    include_columns=self._read,
                    strings_can_be_null=null is not None,
                    null_values=[] if null is None else [null],
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(lines):
            return None
        return [_whole(column) for column in table.columns]

    def _split_one_by_one(self, lines: list[bytes]) -> tuple[list[pa.Array], Places | None]:
        null, ignoring, width = self._options.dialect.null_literal, self._options.ignore_parse_errors, len(self.schema)
        rows, kept = [], []
        for index, line in enumerate(lines):
            if self._options.dialect.comments and line.lstrip().startswith(b"#"):
                continue
            try:
                # Nothing is an empty text where there is one column.
                split = self._split(csv_text(line)) if line.strip() else [""] * (width == 1)
                values = self._fitted(split, width, ignoring)
            except ValueError as error:
                if not ignoring:
                    raise BadMessage(index, f"CSV cannot read it: {error}", line) from None
                continue
            rows.append([None if value == null else value for value in values] if null is not None else values)
            kept.append(index)
        columns = list(zip(*rows, strict=True)) if rows else [()] * width
        places = None if len(kept) == len(lines) else np.array(kept, np.int64)
        read = [columns[self.schema.get_field_index(name)] for name in self._read]
        return [pa.array(column, pa.string()) for column in read], places

    def _fitted(self, values: list[Any], width: int, ignoring: bool) -> list[Any]:
        if len(values) == width:
            return values
        if len(values) == width + 1 and not values[-1]:
            return values[:-1]
        if len(values) > width or not ignoring:
            raise ValueError(f"it has {len(values)} values for {width} columns")
        return [*values, *[None] * (width - len(values))]

    def _column(self, texts: pa.Array, column: pa.Field, lines: list[bytes]) -> pa.Array:
        ignoring = self._options.ignore_parse_errors
        if pa.types.is_nested(column.type):
            return self._nested(texts, column, lines)
        try:
            return column_of_texts(texts, column.type, ignoring=ignoring)
        except UnreadableText as error:
            raise self._bad(error, column, lines) from None

    def _nested(self, texts: pa.Array, column: pa.Field, lines: list[bytes]) -> pa.Array:
        """Arrays and rows: values with another delimiter between them."""
        between = self._options.dialect.array_delimiter
        found: list[Any] = []
        fields = _inner(column.type)
        for index, text in enumerate(texts.to_pylist()):
            if text is None or (not text and pa.types.is_struct(column.type)):
                found.append(None)
                continue
            parts = ([text] if not between else text.split(between)) if text else []
            kinds = fields * len(parts) if pa.types.is_list(column.type) else fields
            try:
                values = [
                    column_of_texts(pa.array([part]), each.type, ignoring=self._options.ignore_parse_errors)[0].as_py()
                    for part, each in zip(parts, kinds, strict=False)
                ]
            except UnreadableText as error:
                raise self._bad(UnreadableText(index, error.text), column, lines) from None
            names = [each.name for each in fields]
            found.append(values if pa.types.is_list(column.type) else dict(zip(names, values, strict=False)))
        return pa.array(found, column.type)

    def _bad(self, error: UnreadableText, column: pa.Field, lines: list[bytes]) -> BadMessage:
        reason = f"column {column.name!r} should be {column.type}, got {error.text!r}"
        return BadMessage(error.index, reason, lines[error.index])

    # Writing

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        dialect = self._options.dialect
        null = dialect.null_literal if dialect.null_literal is not None else ""
        columns = [
            [null if text is None else text for text in self._texts(batch.column(index), column)]
            for index, column in enumerate(self.schema)
        ]
        join = dialect.delimiter.join
        return [join(values).encode() for values in zip(*columns, strict=True)]

    def _texts(self, column: pa.Array, declared: pa.Field) -> list[str | None]:
        if pa.types.is_nested(declared.type):
            return self._nested_texts(column, declared)
        shown: list[str | None] = self._shown(column)
        if _plain(declared.type):
            return shown
        quote = self._quote
        return [None if text is None else quote(text) for text in shown]

    def _shown(self, column: pa.Array) -> list[str | None]:
        if pa.types.is_decimal(column.type) and not self._options.scientific:
            return [None if value is None else f"{value.normalize():f}" for value in column.to_pylist()]
        texts: list[str | None] = texts_of_column(column).to_pylist()
        return texts

    def _nested_texts(self, column: pa.Array, declared: pa.Field) -> list[str | None]:
        between, fields = self._options.dialect.array_delimiter, _inner(declared.type)
        null = self._options.dialect.null_literal or ""
        shown: list[str | None] = []
        for value in column.to_pylist():
            if value is None:
                shown.append(None)
                continue
            parts = list(value.values()) if isinstance(value, dict) else value
            kinds = fields * len(parts) if pa.types.is_list(declared.type) else fields
            texts = [self._shown(pa.array([part], each.type))[0] for part, each in zip(parts, kinds, strict=True)]
            shown.append(self._quote(between.join(null if text is None else text for text in texts)))
        return shown


def _inner(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    return [kind.value_field]


def _plain(kind: pa.DataType) -> bool:
    """Whether a value's text never has anything that needs quotes."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
