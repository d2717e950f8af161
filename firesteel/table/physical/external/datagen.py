"""The connector ``datagen``: made-up rows, by the types of columns and options of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from firesteel.common.parsing import parse_duration_ms
from firesteel.connectors.table.datagen import Counting, DatagenSource, Field
from firesteel.connectors.table.generators import (
    Booleans,
    Bytes,
    Decimals,
    Floats,
    Generator,
    Integers,
    Lists,
    Maps,
    Moments,
    Nulls,
    Structs,
    Texts,
    TimesOfDay,
    Today,
)
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ConfigurationError
from firesteel.table.physical.external.connector import Connector, Reading
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.types.arrow import arrow_schema, arrow_type
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = ["DATAGEN", "datagen_source"]

T = TypeVar("T")

_PER_SECOND = 10_000
_HELD_BACK = 10_000_000
"""Rows a second that a machine cannot make anyway."""
_TEXT_LENGTH = 100
_ELEMENTS = 3
_MOST_OF_MULTISETS = 10
_MOST_MONTHS = 120_000
_MOST_MILLISECONDS = 30 * 86_400_000
_COUNTED = (IntegralType, FloatType, DoubleType, DecimalType, CharType, VarCharType, BinaryType, VarBinaryType)


class _Options:
    """The options of the columns of one table. What is not asked for is not known."""

    def __init__(self, options: Mapping[str, str], path: str) -> None:
        self._given = {key: value for key, value in options.items() if key.startswith("fields.")}
        self._path = path
        self._asked: dict[str, list[str]] = {}

    def get(self, column: str, option: str, default: T, parse: Callable[[str], T], wanted: str) -> T:
        """An option of a column."""
        key = f"fields.{column}.{option}"
        self._asked.setdefault(column, []).append(option)
        text = self._given.get(key)
        if text is None:
            return default
        try:
            return parse(text)
        except (ValueError, ArithmeticError, ConfigurationError):
            raise self.refused(f"{key!r} should be {wanted}, got {text!r}.") from None

    def refused(self, what: str) -> SqlValidationError:
        """An error about the table."""
        return SqlValidationError(f"Table {self._path}: {what}")

    def check(self, types: Mapping[str, DataType]) -> None:
        """Refuses options that no column has, once all columns have asked for theirs."""
        for key in self._given:
            column, _, option = key.removeprefix("fields.").rpartition(".")
            known = self._asked.get(column)
            if known is None:
                there = list(self._asked)
                raise self.refused(
                    f"{key!r} is about no column.{near_names(column, there)} There are {', '.join(there)}."
                )
            if option not in known:
                kind = types.get(column)
                which = f"{column} ({kind})" if kind is not None else column
                raise self.refused(
                    f"{which} has no option {option!r} ({key!r}).{near_names(option, known)} It has {', '.join(known)}."
                )


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= 1:
        raise ValueError(text)
    return rate


def _size(text: str) -> int:
    length = int(text)
    if length < 0:
        raise ValueError(text)
    return length


def datagen_source(columns: RowType, options: Mapping[str, str], path: str) -> DatagenSource:
    """The source of a table with these columns and options."""
    given = _Options(options, path)
    types = {field.name: field.data_type for field in columns.fields}
    fields = [_field(name, kind, given) for name, kind in types.items()]
    given.check(types)
    limits = [field.last - field.first + 1 for field in fields if isinstance(field, Counting)]
    rows = _number(options, path, "number-of-rows", None, 0)
    if rows is not None:
        limits.append(rows)
    rate = _number(options, path, "rows-per-second", _PER_SECOND, 1)
    schema = arrow_schema(types, types.values())
    return DatagenSource(
        schema, fields, min(limits, default=None), rate if rate is not None and rate < _HELD_BACK else None
    )


def _number(options: Mapping[str, str], path: str, key: str, default: int | None, least: int) -> int | None:
    text = options.get(key)
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise SqlValidationError(f"Table {path}: {key!r} should be a whole number from {least} on, got {text!r}.")
    return number


def _field(name: str, kind: DataType, options: _Options) -> Field:
    chosen = options.get(name, "kind", "random", str, "")
    if chosen not in ("random", "sequence"):
        near = near_names(chosen, ("random", "sequence"))
        raise options.refused(f"'fields.{name}.kind' should be random or sequence, got {chosen!r}.{near}")
    return _counting(name, kind, options) if chosen == "sequence" else _random(name, kind, options)


def _counting(name: str, kind: DataType, options: _Options) -> Counting:
    if not isinstance(kind, _COUNTED):
        raise options.refused(f"column {name} is {kind}, and sequences have numbers, text or bytes.")
    first, last = (options.get(name, option, None, int, "a whole number") for option in ("start", "end"))
    if first is None or last is None or last < first:
        raise options.refused(f"the sequence {name} needs 'fields.{name}.start' and '.end', start before end.")
    if isinstance(kind, IntegralType):
        largest = (1 << kind.bits - 1) - 1
    elif isinstance(kind, DecimalType):
        largest = int(10 ** (kind.precision - kind.scale)) - 1
    else:
        largest = (1 << 63) - 1
    if max(last, -first - 1) > largest:
        raise options.refused(f"the sequence {name} goes from {first} to {last}, and a {kind} ends at {largest}.")
    return Counting(arrow_type(kind), first, last)


def _random(name: str, kind: DataType, options: _Options) -> Generator:
    made = _made(name, kind, options)
    rate = options.get(name, "null-rate", 0.0, _rate, "a part from 0 to 1")
    if not rate:
        return made
    if not kind.is_nullable:
        raise options.refused(f"'fields.{name}.null-rate' is {rate}, and the column is {kind}.")
    return Nulls(made.type, made, rate)


def _made(name: str, kind: DataType, options: _Options) -> Generator:
    for types, make in _MAKERS:
        if isinstance(kind, types):
            return make(name, kind, options)
    raise options.refused(f"column {name} is {kind}, of which no values can be made up.")


def _bounds(name: str, options: _Options, least: T, most: T, parse: Callable[[str], T], wanted: str) -> tuple[T, T]:
    low = options.get(name, "min", least, parse, wanted)
    high = options.get(name, "max", most, parse, wanted)
    if low > high:  # type: ignore[operator]
        raise options.refused(f"'fields.{name}.min' is {low}, which is more than 'fields.{name}.max': {high}.")
    return low, high


def _integers(name: str, kind: IntegralType, options: _Options) -> Generator:
    least, most = -(1 << kind.bits - 1), (1 << kind.bits - 1) - 1

    def parse(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return Integers(arrow_type(kind), *_bounds(name, options, least, most, parse, f"a whole number of {kind}"))


def _floats(name: str, kind: DataType, options: _Options) -> Generator:
    largest = float(np.finfo(np.float32 if isinstance(kind, FloatType) else np.float64).max)
    return Floats(arrow_type(kind), *_bounds(name, options, 0.0, largest, float, "a number"))


def _decimals(name: str, kind: DecimalType, options: _Options) -> Generator:
    largest = Decimal((0, (9,) * kind.precision, -kind.scale))

    def parse(text: str) -> Decimal:
        number = Decimal(text)
        if abs(number) > largest:
            raise ValueError(text)
        return number

    low, high = _bounds(name, options, Decimal(0), largest, parse, f"a number of {kind}")
    return Decimals(arrow_type(kind), low, high)


def _sized(made: Any, name: str, kind: Any, options: _Options) -> Generator:
    """Text or bytes whose length is that of the type, or chosen up to it."""
    if isinstance(kind, CharType | BinaryType):
        found: Generator = made(arrow_type(kind), kind.length)
        return found
    longest = _TEXT_LENGTH if kind.length == MAX_LENGTH else kind.length
    length = options.get(name, "length", longest, _size, "a number of letters or bytes")
    if length > kind.length:
        raise options.refused(f"'fields.{name}.length' is {length}, and the column is {kind}.")
    varies = options.get(name, "var-len", False, _truth, "true or false")
    sized: Generator = made(arrow_type(kind), length, varies)
    return sized


def _moments(name: str, kind: DataType, options: _Options) -> Generator:
    past = options.get(name, "max-past", 0, parse_duration_ms, "a duration such as '10 s'")
    return Moments(arrow_type(kind), past)


def _elements(name: str, options: _Options) -> int:
    return options.get(name, "length", _ELEMENTS, _size, "a number of elements")


def _array(name: str, kind: ArrayType, options: _Options) -> Generator:
    length = _elements(name, options)
    return Lists(arrow_type(kind), _random(f"{name}.element", kind.element_type, options), length)


def _map(name: str, kind: MapType, options: _Options) -> Generator:
    length = _elements(name, options)
    # A key that is NULL would be one key: Arrow's maps have none.
    keys = _random(f"{name}.key", kind.key_type.not_null(), options)
    return Maps(arrow_type(kind), keys, _random(f"{name}.value", kind.value_type, options), length)


def _multiset(name: str, kind: MultisetType, options: _Options) -> Generator:
    length = _elements(name, options)
    elements = _random(f"{name}.element", kind.element_type.not_null(), options)
    return Maps(arrow_type(kind), elements, Integers(arrow_type(IntType()), 1, _MOST_OF_MULTISETS), length)


def _row(name: str, kind: RowType, options: _Options) -> Generator:
    fields = [_random(f"{name}.{field.name}", field.data_type, options) for field in kind.fields]
    return Structs(arrow_type(kind), tuple(fields))


_MAKERS: tuple[tuple[Any, Callable[..., Generator]], ...] = (
    (BooleanType, lambda name, kind, options: Booleans(arrow_type(kind))),
    (IntegralType, _integers),
    (FloatType | DoubleType, _floats),
    (DecimalType, _decimals),
    (CharType | VarCharType, lambda name, kind, options: _sized(Texts, name, kind, options)),
    (BinaryType | VarBinaryType, lambda name, kind, options: _sized(Bytes, name, kind, options)),
    (TimestampType | LocalZonedTimestampType, _moments),
    (DateType, lambda name, kind, options: Today(arrow_type(kind))),
    (TimeType, lambda name, kind, options: TimesOfDay(arrow_type(kind))),
    (YearMonthIntervalType, lambda name, kind, options: Integers(arrow_type(kind), 0, _MOST_MONTHS)),
    (DayTimeIntervalType, lambda name, kind, options: Integers(arrow_type(kind), 0, _MOST_MILLISECONDS)),
    (ArrayType, _array),
    (MapType, _map),
    (MultisetType, _multiset),
    (RowType, _row),
)


def _read(reading: Reading) -> DataStream:
    reading.metadata({})
    options = reading.table.options
    return reading.stream(datagen_source(reading.table.readable, options, reading.options.path))


DATAGEN = Connector(("number-of-rows", "rows-per-second", "scan.parallelism", "fields.*"), read=_read)
