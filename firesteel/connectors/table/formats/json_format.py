"""The format ``json``: by Arrow's reader where messages are as the columns say, else value by value."""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from firesteel.connectors.formats.json_writing import quoted
from firesteel.connectors.table.formats.json_values import FieldProblem, arrow_column, exact_tree, value_reader
from firesteel.connectors.table.formats.message_format import (
    BadMessage,
    Decoded,
    MessageFormat,
    NarrowFormat,
    kept_rows,
)
from firesteel.connectors.table.formats.text_columns import UnreadableText, column_of_texts, texts_of_column

__all__ = ["JsonFormat", "JsonOptions"]

_SPECIAL = '[\\x00-\\x1f"\\\\\\x7f]'


@dataclass(frozen=True)
class JsonOptions:
    """The options of the format."""

    fail_on_missing_field: bool = False
    ignore_parse_errors: bool = False
    iso: bool = False
    """Whether timestamps are written as ISO-8601 has it, with a T."""
    map_null_key: str = "FAIL"
    map_null_key_literal: str = "null"
    plain_decimals: bool = False
    ignore_null_fields: bool = False


class JsonFormat(MessageFormat):
    """Objects of JSON.

    >>> form = JsonFormat(pa.schema([("id", pa.int64()), ("at", pa.timestamp("ms"))]))
    >>> rows = form.decode([b'{"id": 1, "at": "2024-01-01 10:00:00.5"}', b'{"id": "2"}']).batch
    >>> form.encode(rows)
    [b'{"id":1,"at":"2024-01-01 10:00:00.5"}', b'{"id":2,"at":null}']
    """

    def __init__(self, schema: pa.Schema, options: JsonOptions | None = None) -> None:
        self.schema, self._options = schema, options or JsonOptions()
        given = self._options
        self._wire = _wire_schema(schema)
        self._readers = [
            value_reader(column.type, column.name, given.iso, given.ignore_parse_errors, given.fail_on_missing_field)
            for column in schema
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonFormat, (self.schema, self._options)

    # Reading

    def narrowed(self, asked: Collection[str]) -> MessageFormat:
        # Without any column there would be no rows either.
        chosen = [column for column in self.schema if column.name in asked] or [self.schema.field(0)]
        if len(chosen) == len(self.schema):
            return self
        return NarrowFormat(JsonFormat(pa.schema(chosen), self._options), self.schema)

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        kept, origins = kept_rows(messages)
        batch = self._by_arrow(kept)
        if batch is not None:
            return Decoded(batch, origins)
        batch, places = self._one_by_one(kept)
        if places is not None:
            origins = places if origins is None else origins[places]
        return Decoded(batch, origins)

    def _by_arrow(self, messages: list[bytes]) -> pa.RecordBatch | None:
        """All at once; None where a message is not as plain as the schema says."""
        if self._wire is None or self._options.fail_on_missing_field:
            return None
        if not messages:
            return pa.RecordBatch.from_pylist([], self.schema)
        # Lines of files have their ends, messages not. No message may have one inside.
        joined = (b"" if messages[0].endswith(b"\n") else b"\n").join(messages)
        if joined.count(b"\n") + (not joined.endswith(b"\n")) != len(messages):
            return None
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(joined),
                pyarrow.json.ReadOptions(use_threads=False, block_size=len(joined) + 1),
                pyarrow.json.ParseOptions(explicit_schema=self._wire, unexpected_field_behavior="ignore"),
            )
            if table.num_rows != len(messages):
                return None
            arrays = []
            for column in self.schema:
                found = _whole(table.column(column.name))
                if found.type != column.type:
                    found = column_of_texts(found, column.type, self._options.iso)
                arrays.append(found)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnreadableText):
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _one_by_one(self, messages: list[bytes]) -> tuple[pa.RecordBatch, Any]:
        rows, kept = [], []
        for index, message in enumerate(messages):
            if not message:
                # As in Flink: a message without a byte is no row, and no mistake.
                continue
            try:
                tree = exact_tree(message)
                # An array of objects is several rows.
                found = [self.row(each) for each in (tree if isinstance(tree, list) else [tree])]
            except FieldProblem as problem:
                raise BadMessage(index, str(problem), message) from None
            except (ValueError, TypeError) as error:
                if self._options.ignore_parse_errors:
                    continue
                raise BadMessage(index, f"JSON cannot read it: {error}", message) from None
            rows += found
            kept += [index] * len(found)
        places = None if kept == list(range(len(messages))) else np.array(kept, np.int64)
        return self.batch_of(rows), places

    def row(self, tree: Any) -> list[Any]:
        """The values of an object, for :meth:`batch_of`."""
        if not isinstance(tree, dict):
            raise TypeError("it is not an object")
        if self._options.fail_on_missing_field:
            for name in self.schema.names:
                if name not in tree:
                    raise FieldProblem(name, "there", None)
        return [read(tree.get(name)) for name, read in zip(self.schema.names, self._readers, strict=True)]

    def batch_of(self, rows: list[list[Any]]) -> pa.RecordBatch:
        """Rows as a batch."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.schema)
        arrays = [arrow_column(list(values), column.type) for values, column in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # Writing

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        return [text.encode() for text in self.texts(batch)]

    def texts(self, batch: pa.RecordBatch) -> list[str]:
        """The objects of all rows as texts."""
        columns = [self._texts(batch.column(index), column.type) for index, column in enumerate(self.schema)]
        names = [f"{quoted(name)}:" for name in self.schema.names]
        if self._options.ignore_null_fields:
            return [
                "{" + ",".join(name + text for name, text in zip(names, row, strict=True) if text != "null") + "}"
                for row in zip(*columns, strict=True)
            ]
        if not columns:
            return ["{}"] * batch.num_rows
        pattern = "{{" + ",".join(f"{name.replace('{', '{{').replace('}', '}}')}{{}}" for name in names) + "}}"
        return [pattern.format(*row) for row in zip(*columns, strict=True)]

    def _texts(self, column: pa.Array, kind: pa.DataType) -> list[str]:
        """The values of a column as JSON."""
        kinds = pa.types
        if kinds.is_nested(kind):
            write = self._writer(kind)
            return ["null" if value is None else write(value) for value in column.to_pylist()]
        if kinds.is_integer(kind) or kinds.is_boolean(kind):
            return pc.fill_null(column.cast(pa.string()), "null").to_pylist()  # type: ignore[no-any-return]
        if kinds.is_decimal(kind):
            return ["null" if value is None else self._decimal(value) for value in column.to_pylist()]
        shown = texts_of_column(column, self._options.iso)
        if kinds.is_floating(kind):
            # What is no number stands in quotes.
            texts = shown.to_pylist()
            return ["null" if one is None else f'"{one}"' if one[-1] in "Ny" else one for one in texts]
        if kinds.is_string(kind) and pc.any(pc.match_substring_regex(shown, _SPECIAL)).as_py():
            return ["null" if one is None else quoted(one) for one in shown.to_pylist()]
        return ["null" if one is None else f'"{one}"' for one in shown.to_pylist()]

    def _decimal(self, value: decimal.Decimal) -> str:
        if self._options.plain_decimals:
            return f"{value:f}"
        return texts_of_column(pa.array([value]))[0].as_py()  # type: ignore[no-any-return]

    def _writer(self, kind: pa.DataType) -> Callable[[Any], str]:
        kinds = pa.types
        if kinds.is_struct(kind):
            fields = [kind.field(index) for index in range(kind.num_fields)]
            writers = [(quoted(each.name), self._nullable(each.type), each.name) for each in fields]
            return lambda value: "{" + ",".join(f"{shown}:{write(value[name])}" for shown, write, name in writers) + "}"
        if kinds.is_list(kind):
            element = self._nullable(kind.value_type)
            return lambda value: f"[{','.join(map(element, value))}]"
        if kinds.is_map(kind):
            item = self._nullable(kind.item_type)
            return lambda value: self._map(dict(value), item)
        return lambda value: self._texts(pa.array([value], kind), kind)[0]

    def _nullable(self, kind: pa.DataType) -> Callable[[Any], str]:
        write = self._writer(kind)
        return lambda value: "null" if value is None else write(value)

    def _map(self, entries: dict[Any, Any], item: Callable[[Any], str]) -> str:
        given = self._options
        if None in entries:
            if given.map_null_key == "FAIL":
                raise BadMessage(0, "a map has NULL as a key. Set json.map-null-key.mode to DROP or LITERAL", entries)
            value = entries.pop(None)
            if given.map_null_key == "LITERAL":
                entries[given.map_null_key_literal] = value
        return "{" + ",".join(f"{json.dumps(str(key))}:{item(value)}" for key, value in entries.items()) + "}"


def _wire_schema(schema: pa.Schema) -> pa.Schema | None:
    """The columns as Arrow's reader is to read them; None where it cannot."""
    fields = []
    for column in schema:
        kind = column.type
        if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
            kind = pa.string()
        elif not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_string(kind)
        ):
            # Decimals would lose digits; what is nested has rules of its own.
            return None
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
