"""Rows that are made up, with the options of Flink's ``datagen`` connector. An index always gives the same row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.connectors.table.generating import BatchGeneratorSource
from firesteel.errors import ConfigurationError

__all__ = ["OPTIONS", "GeneratedField", "datagen_source", "sequences"]

OPTIONS = ("number-of-rows", "rows-per-second", "scan.parallelism", "fields.*")
"""Of the connector; each field has those of ``_FIELD_OPTIONS``."""

_FIELD_OPTIONS = ("kind", "min", "max", "length", "start", "end", "null-rate", "max-past", "var-len")
_PER_SECOND = "10000"
_DAY = 86_400_000

Words = npt.NDArray[np.uint64]


def _mixed(numbers: Words) -> Words:
    """A number of 64 bits for each number, all of them equally likely (splitmix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class GeneratedField:
    """One column, made of the indexes of rows."""

    number: int
    type: pa.DataType
    sequence: bool
    first: Any
    """The least value, or the first one of a sequence."""
    last: Any
    length: int
    null_rate: float

    def column(self, start: int, end: int) -> pa.Array:
        indexes = np.arange(start, end)
        if self.sequence:
            values = indexes + int(self.first)
            return pa.array(values).cast(pa.string() if _is_text(self.type) else self.type)
        words = _mixed(_mixed(indexes.astype(np.uint64)) + np.uint64(self.number))
        column = self._random(words)
        if self.null_rate:
            nulls = _fractions(_mixed(words + np.uint64(1))) < self.null_rate
            column = pc.if_else(pa.array(nulls), pa.scalar(None, self.type), column)
        return column

    def _random(self, words: Words) -> pa.Array:
        kind = self.type
        if pa.types.is_boolean(kind):
            return pa.array((words & np.uint64(1)).astype(bool))
        if _is_text(kind):
            return self._texts(words).cast(kind)
        if pa.types.is_floating(kind):
            low, high = float(self.first), float(self.last)
            return pa.array(low + _fractions(words) * (high - low)).cast(kind)
        if pa.types.is_decimal(kind):
            scale = 10**kind.scale
            low, span = int(self.first * scale), max(1, int((self.last - self.first) * scale))
            unscaled = [Decimal(low + int(word) % span).scaleb(-kind.scale) for word in words.tolist()]
            return pa.array(unscaled, kind)
        low, span = int(self.first), int(self.last) - int(self.first) + 1
        offsets = words if span >= 1 << 64 else words % np.uint64(span)
        # Adding wraps around, and comes out right.
        numbers = (offsets + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
        if pa.types.is_date(kind):
            return pa.array((numbers // _DAY).astype(np.int32)).cast(kind)
        if pa.types.is_timestamp(kind):
            return pa.array(numbers, pa.timestamp("ms", kind.tz)).cast(kind)
        return pa.array(numbers).cast(kind)

    def _texts(self, words: Words) -> pa.Array:
        """Hexadecimal digits."""
        rows, length = len(words), self.length
        digits = np.empty((rows, length), np.uint8)
        for block in range(0, length, 16):
            part = _mixed(words + np.uint64(block))
            for place in range(block, min(block + 16, length)):
                digits[:, place] = (part >> np.uint64(4 * (place - block))) & np.uint64(15)
        letters = np.frombuffer(b"0123456789abcdef", np.uint8)[digits]
        offsets = (
            np.arange(0, rows * length + 1, max(1, length), dtype=np.int32) if length else np.zeros(rows + 1, np.int32)
        )
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def _fractions(words: Words) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return found


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def sequences(source: BatchGeneratorSource) -> list[GeneratedField] | None:
    """The columns of a source, if all of them count: then a row's number is all that is needed to make it."""
    fields: list[GeneratedField] | None = getattr(source.generate, "fields", None)
    if fields is None or not all(field.sequence and pa.types.is_integer(field.type) for field in fields):
        return None
    return fields


class _Generate:
    """What the reader calls for each batch."""

    def __init__(self, schema: pa.Schema, fields: list[GeneratedField]) -> None:
        self._schema, self.fields = schema, fields

    def __call__(self, start: int, end: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([field.column(start, end) for field in self.fields], schema=self._schema)


def datagen_source(schema: pa.Schema, options: Mapping[str, str]) -> BatchGeneratorSource:
    """The source of a table with these columns and options.

    >>> schema = pa.schema([("n", pa.int64()), ("word", pa.string())])
    >>> options = {"fields.n.kind": "sequence", "fields.n.start": "5", "fields.n.end": "7", "fields.word.length": "3"}
    >>> source = datagen_source(schema, options)
    >>> [records.values[0].column(0).to_pylist() for records in source.create_reader().read(None, 0, 3)]
    [[5, 6, 7]]
    """
    _check(schema, options)
    fields = [_field(number, field, options) for number, field in enumerate(schema)]
    limits = [int(field.last) - int(field.first) + 1 for field in fields if field.sequence]
    if "number-of-rows" in options:
        limits.append(_number(options, "number-of-rows", None, int))
    rate = _number(options, "rows-per-second", _PER_SECOND, float)
    # As many as a machine can make are not held back.
    return BatchGeneratorSource(
        _Generate(schema, fields), schema, min(limits) if limits else None, rate if rate < 10_000_000 else None
    )


def _check(schema: pa.Schema, options: Mapping[str, str]) -> None:
    for key in options:
        if key.startswith("fields."):
            name, _, option = key.removeprefix("fields.").rpartition(".")
            if name not in schema.names:
                raise ConfigurationError(
                    f"datagen: {key!r} is about a column {name!r}; there are {', '.join(schema.names)}."
                )
            if option not in _FIELD_OPTIONS:
                raise ConfigurationError(
                    f"datagen: a field has no option {option!r} ({key!r}). There are {', '.join(_FIELD_OPTIONS)}."
                )


def _field(number: int, field: pa.Field, options: Mapping[str, str]) -> GeneratedField:
    def option(name: str, default: str | None, kind: Any) -> Any:
        return _number(options, f"fields.{field.name}.{name}", default, kind)

    kind = options.get(f"fields.{field.name}.kind", "random")
    if kind not in ("random", "sequence"):
        raise ConfigurationError(f"datagen: fields.{field.name}.kind is random or sequence, got {kind!r}.")
    if kind == "sequence":
        first, last = option("start", None, int), option("end", None, int)
        if first is None or last is None or last < first:
            raise ConfigurationError(
                f"datagen: the sequence {field.name!r} needs fields.{field.name}.start and .end, start before end."
            )
        return GeneratedField(number, field.type, True, first, last, 0, 0.0)
    least, most, parsed = _bounds(field)
    return GeneratedField(
        number,
        field.type,
        False,
        least if parsed is None else option("min", str(least), parsed),
        most if parsed is None else option("max", str(most), parsed),
        option("length", "100", int),
        option("null-rate", "0", float),
    )


def _bounds(field: pa.Field) -> tuple[Any, Any, Any]:
    """The least and the largest value of a type, and how options are read; None where they say nothing."""
    kind = field.type
    if pa.types.is_integer(kind):
        return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1, int
    if pa.types.is_floating(kind):
        largest = float(np.finfo(kind.to_pandas_dtype()).max)
        return -largest / 2, largest / 2, float
    if pa.types.is_decimal(kind):
        most = Decimal(10) ** (kind.precision - kind.scale) - 1
        return -most, most, Decimal
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Some days of 2024: a moment that passes would not come again in a replay.
        return 1_704_067_200_000, 1_704_067_200_000 + 30 * _DAY, None
    if pa.types.is_boolean(kind) or _is_text(kind):
        return 0, 0, None
    raise ConfigurationError(f"datagen: columns of type {kind} cannot be made up ({field.name!r}).")


def _number(options: Mapping[str, str], key: str, default: str | None, kind: Any) -> Any:
    text = options.get(key, default)
    if text is None:
        return None
    try:
        return kind(text)
    except (ValueError, ArithmeticError):
        raise ConfigurationError(f"datagen: {key} is a number, got {text!r}.") from None
