"""Between rows and Avro's binary format: fastavro reads and writes what is stored, here is what rows make of it."""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Callable
from typing import Any

from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.common.type_system.composite import RowTypeInfo
from firesteel.common.types import make_row
from firesteel.connectors.formats.avro_schemas import (
    Definitions,
    actual,
    fastavro,
    is_nullable_union,
    logical_type,
    parsed,
    type_of,
    without_logical,
)
from firesteel.connectors.formats.compiling import converting
from firesteel.errors import ProgramError

__all__ = ["AvroRows"]

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
_MILLISECOND = datetime.timedelta(milliseconds=1)
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class AvroRows:
    """What a schema of a record says about rows: their type, how they are read, and how they are written."""

    def __init__(self, text: str) -> None:
        self.schema, self._definitions = parsed(text)
        kind = type_of(self.schema, self._definitions)
        if not isinstance(kind, RowTypeInfo):
            raise ProgramError(f"Rows need the Avro schema of a record, got {text[:80]!r}.")
        self.type_info = kind
        library = fastavro()
        self.stored = library.parse_schema(without_logical(self.schema))
        self._library = library

    def reader(self) -> Callable[[bytes], Any]:
        """A function from the bytes of a record to a row."""
        convert = self.converter_from_stored()
        load, stored, open_bytes = self._library.schemaless_reader, self.stored, io.BytesIO
        return lambda message: convert(load(open_bytes(message), stored, None))

    def converter_from_stored(self) -> Callable[[Any], Any]:
        """A function from a record as it is stored to a row."""
        scope = Scope()
        source = _Reading(scope, self._definitions).value(self.schema, "v", "")
        return compile_expression(source or "v", scope, "reader of Avro")

    def writer(self) -> Callable[[Any], bytes]:
        """A function from an element to the bytes of a record."""
        convert = self.converter_to_stored()
        dump, stored, open_bytes = self._library.schemaless_writer, self.stored, io.BytesIO

        def write(element: Any) -> bytes:
            out = open_bytes()
            dump(out, stored, convert(element))
            return out.getvalue()

        return write

    def converter_to_stored(self) -> Callable[[Any], Any]:
        """A function from an element to a record as it is stored."""
        scope = Scope()
        source = _Writing(scope, self._definitions).value(self.schema, "v", "")
        store = compile_expression(source or "v", scope, "writer of Avro")
        check, convert = self.type_info.checker(), self.type_info.converter()

        def stored(element: Any) -> Any:
            if element is None or (check is not None and not check(element)):
                raise ValueError("a row is needed")
            return store(element if convert is None else convert(element))

        return stored


class _Conversion:
    """Makes the expression of a value; None where the stored value is the one that is wanted."""

    def __init__(self, scope: Scope, definitions: Definitions) -> None:
        self._scope, self._definitions = scope, definitions

    def value(self, schema: Any, name: str, place: str) -> str | None:
        schema = actual(schema, self._definitions)
        if isinstance(schema, list):
            kind = is_nullable_union(schema)
            inner = None if kind is None else self.value(kind, name, place)
            return None if inner is None else f"(None if {name} is None else {inner})"
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in ("record", "error"):
            return self._record(schema, name, place)
        if kind == "array":
            item = self._scope.variable()
            inner = self.value(schema["items"], item, f"{place}[]")
            return None if inner is None else f"[{inner} for {item} in {name}]"
        if kind == "map":
            key, item = self._scope.variable(), self._scope.variable()
            inner = self.value(schema["values"], item, f"{place}{{}}")
            return None if inner is None else f"{{{key}: {inner} for {key}, {item} in {name}.items()}}"
        convert = self._simple(schema, kind, logical_type(schema))
        if convert is None:
            return None
        return f"{self._scope.bind(converting(convert, place, logical_type(schema)))}({name})"

    def _fields(self, schema: Any, place: str) -> list[tuple[str, str, str]]:
        """For each field its name, a variable, and the expression of its value."""
        found = []
        for field in schema["fields"]:
            item, name = self._scope.variable(), field["name"]
            inner = self.value(field["type"], item, f"{place}.{name}" if place else name)
            found.append((name, item, inner or item))
        return found

    def _record(self, schema: Any, name: str, place: str) -> str:
        raise NotImplementedError

    def _simple(self, schema: Any, kind: str, logical: str | None) -> Callable[[Any], Any] | None:
        raise NotImplementedError


class _Reading(_Conversion):
    def _record(self, schema: Any, name: str, place: str) -> str:
        fields = self._fields(schema, place)
        names = self._scope.bind(tuple(field for field, _, _ in fields))
        values = [
            f"{name}[{field!r}]" if source == item else f"({source} if [{item} := {name}[{field!r}]] else None)"
            for field, item, source in fields
        ]
        return f"{self._scope.bind(make_row)}({names}, [{', '.join(values)}])"

    def _simple(self, schema: Any, kind: str, logical: str | None) -> Callable[[Any], Any] | None:
        if kind in ("bytes", "fixed") and logical == "decimal":
            scale = schema.get("scale", 0)
            return lambda value: _EXACT.scaleb(decimal.Decimal(int.from_bytes(value, "big", signed=True)), -scale)
        return _FROM_STORED.get((kind, logical or ""))


class _Writing(_Conversion):
    def _record(self, schema: Any, name: str, place: str) -> str:
        values = [
            f"{field!r}: ({source} if [{item} := {name}._values[{position}]] else None)"
            for position, (field, item, source) in enumerate(self._fields(schema, place))
        ]
        return f"{{{', '.join(values)}}}"

    def _simple(self, schema: Any, kind: str, logical: str | None) -> Callable[[Any], Any] | None:
        if kind in ("bytes", "fixed") and logical == "decimal":
            return _decimal_writer(schema.get("scale", 0), schema.get("size"))
        return _TO_STORED.get((kind, logical or ""))


def _time_of_millis(value: int) -> datetime.time:
    return (_EPOCH + datetime.timedelta(milliseconds=value % 86_400_000)).time()


def _timestamp_of_millis(value: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=value)


_FROM_STORED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): lambda value: datetime.date.fromordinal(value + _FIRST_DAY),
    ("int", "time-millis"): _time_of_millis,
    ("long", "time-micros"): lambda value: _time_of_millis(value // 1000),
    ("long", "timestamp-millis"): _timestamp_of_millis,
    # SQL_TIMESTAMP has milliseconds.
    ("long", "timestamp-micros"): lambda value: _timestamp_of_millis(value // 1000),
}


def _millis_of_time(value: datetime.time) -> int:
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000


def _millis_of_timestamp(value: datetime.datetime) -> int:
    return (value - _EPOCH) // _MILLISECOND


_TO_STORED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): lambda value: value.toordinal() - _FIRST_DAY,
    ("int", "time-millis"): _millis_of_time,
    ("long", "time-micros"): lambda value: _millis_of_time(value) * 1000,
    ("long", "timestamp-millis"): _millis_of_timestamp,
    ("long", "timestamp-micros"): lambda value: _millis_of_timestamp(value) * 1000,
}


def _decimal_writer(scale: int, size: int | None) -> Callable[[Any], bytes]:
    """The digits as a number of two's complement: as short as can be, or as long as the type is."""

    def digits(value: decimal.Decimal) -> bytes:
        shifted = _EXACT.scaleb(value, scale)
        number = int(shifted)
        if number != shifted:
            raise ValueError(f"{value} has more than {scale} digits behind the point")
        length = (number if number >= 0 else ~number).bit_length() // 8 + 1
        if size is not None and length > size:
            raise ValueError(f"{value} does not fit into {size} bytes")
        return number.to_bytes(size or length, "big", signed=True)

    return digits
