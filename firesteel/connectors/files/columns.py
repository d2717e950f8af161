"""Columns of files as rows: by name, in the declared types."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import TupleTypeInfo, TypeInformation
from firesteel.common.types import Row, make_row
from firesteel.connectors.files.arrow import arrow_schema
from firesteel.errors import InputError

__all__ = ["RowColumns"]

Convert = Callable[[Any], Any]
_EPOCH = datetime.datetime(1970, 1, 1)
_MICRO = datetime.timedelta(microseconds=1)


class RowColumns:
    """Which columns are read, and how rows are made of them. It is pickled.

    ``row_type`` is ``Types.ROW_NAMED(…)``, ``Types.TUPLE(…)`` or a ``pyarrow.Schema``. A column that a file does not
    have is None in all its rows.
    """

    def __init__(self, row_type: Any, utc_timestamps: bool = False, case_sensitive: bool = True) -> None:
        self._schema = arrow_schema(row_type)
        self._case_sensitive, self._utc = case_sensitive, utc_timestamps
        self.declared: TypeInformation | None = row_type if isinstance(row_type, TypeInformation) else None
        self._names = tuple(self._schema.names)
        types = row_type.get_field_types() if self.declared is not None else [None] * len(self._names)
        self._declared = list(types)
        self._tuples = isinstance(row_type, TupleTypeInfo)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return self._names

    def found_in(self, names: Sequence[str], path: str) -> list[str | None]:
        """For each column, what it is called in a file with these columns."""
        if self._case_sensitive:
            return [name if name in names else None for name in self._names]
        by_lower: dict[str, list[str]] = {}
        for name in names:
            by_lower.setdefault(name.lower(), []).append(name)
        found: list[str | None] = []
        for name in self._names:
            alike = by_lower.get(name.lower(), [])
            if len(alike) > 1:
                raise InputError(
                    f"{path} has the columns {', '.join(alike)}, which are the same where case does not matter. Read "
                    "it with is_case_sensitive=True."
                )
            found.append(alike[0] if alike else None)
        return found

    def rows(
        self, batch: Any, found: Sequence[str | None], path: str, adjusted: frozenset[str] = frozenset()
    ) -> list[Any]:
        """The rows of a ``pyarrow.RecordBatch``. ``adjusted`` are columns whose timestamps are moments, although their
        type does not say so."""
        columns = []
        for field, declared, name in zip(self._schema, self._declared, found, strict=True):
            if name is None:
                columns.append([None] * batch.num_rows)
                continue
            column = batch.column(name)
            try:
                columns.append(self._values(column, field.type, declared, name in adjusted))
            except (ValueError, TypeError, NotImplementedError) as error:
                reason = str(error).splitlines()[0]
                raise InputError(
                    f"{path}: the column {name!r} is of the type {column.type} and cannot be read as {field.type}: "
                    f"{reason}."
                ) from error
        if self._tuples:
            return list(zip(*columns, strict=True))
        names = self._names
        return [make_row(names, list(values)) for values in zip(*columns, strict=True)]

    def _values(self, column: Any, wanted: Any, declared: TypeInformation | None, adjusted: bool) -> list[Any]:
        import pyarrow

        kinds = pyarrow.types
        there = column.type
        moments = kinds.is_timestamp(there) and kinds.is_timestamp(wanted)
        if moments:
            # Python's own times have microseconds.
            column = column.cast(pyarrow.timestamp("us", there.tz), safe=False)
            if wanted.tz is None and (there.tz is not None or adjusted):
                return list(map(_local(self._utc), column.cast(pyarrow.int64()).to_pylist()))
        elif there != wanted and not (kinds.is_decimal(there) and kinds.is_decimal(wanted)):
            column = column.cast(wanted)
        convert = _converter(declared)
        if convert is not None and moments:
            return [None if value is None else _instant(value) for value in column.cast(pyarrow.int64()).to_pylist()]
        values: list[Any] = column.to_pylist()
        if convert is not None:
            return [None if value is None else convert(value) for value in values]
        return values


def _local(utc: bool) -> Convert:
    """What a number of microseconds since 1970 in UTC is on the clock: that of UTC, or this machine's."""
    if utc or (time.timezone == 0 and not time.daylight):
        return lambda micros: None if micros is None else _EPOCH + micros * _MICRO

    def on_the_wall(micros: int | None) -> datetime.datetime | None:
        if micros is None:
            return None
        seconds, rest = divmod(micros, 1_000_000)
        return datetime.datetime.fromtimestamp(seconds) + rest * _MICRO

    return on_the_wall


def _instant(micros: int) -> Instant:
    seconds, rest = divmod(micros, 1_000_000)
    return Instant(seconds, rest * 1000)


def _converter(declared: TypeInformation | None) -> Convert | None:
    """What makes a value of a declared type of what Arrow gives; None where that is the same."""
    if declared is None:
        return None
    if repr(declared) == "INSTANT":
        return _instant_of
    names = getattr(declared, "get_field_names", None)
    if names is not None:
        inner = [_converter(one) for one in declared.get_field_types()]  # type: ignore[attr-defined]
        if isinstance(declared, TupleTypeInfo):
            return lambda value: tuple(_each(inner, value.values()))
        return partial(_row, Row(*names()), inner)
    if hasattr(declared, "elem_type"):
        element = _converter(declared.elem_type)
        return None if element is None else lambda values: [None if one is None else element(one) for one in values]
    if hasattr(declared, "get_key_type_info") and hasattr(declared, "get_value_type_info"):
        both = [_converter(declared.get_key_type_info()), _converter(declared.get_value_type_info())]
        return lambda pairs: dict(tuple(_each(both, pair)) for pair in pairs)
    return None


def _each(converters: list[Convert | None], values: Any) -> list[Any]:
    pairs = zip(converters, values, strict=True)
    return [value if convert is None or value is None else convert(value) for convert, value in pairs]


def _row(template: Row, converters: list[Convert | None], value: dict[str, Any]) -> Row:
    return template(*_each(converters, value.values()))


def _instant_of(value: datetime.datetime) -> Instant:
    moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    return _instant((moment - _EPOCH.replace(tzinfo=datetime.UTC)) // _MICRO)
