"""From JSON to rows.

Values are converted as Jackson's tree model and Flink's converters do it: numbers may stand in strings, a string takes
anything, a truth value is false if it is not "true". The common case of each type is an expression; what is not of that
case goes to a function.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.common.type_system.composite import RowTypeInfo
from firesteel.common.type_system.containers import ListTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo
from firesteel.common.type_system.javatext import java_double, to_float32
from firesteel.common.type_system.temporal import (
    DateTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import make_row
from firesteel.connectors.formats import texts
from firesteel.connectors.formats.compiling import MISSING, converting, refused
from firesteel.connectors.formats.json_writing import tree_text

__all__ = ["json_reader"]

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def json_reader(type_info: RowTypeInfo, required: bool = False, ignoring: bool = False) -> Callable[[bytes], Any]:
    """A function from the bytes of a JSON object to a row. ``required``: a missing field is an error."""
    convert = _converter(type_info, required, ignoring, exact=True)
    # Whatever stands behind the value is left alone, as Jackson leaves it.
    decoder: Any = json.JSONDecoder(
        parse_constant=_no_constant, parse_float=_decimal if _has(type_info, BasicType.BIG_DEC) else None
    )
    scan = decoder.scan_once

    def read(message: bytes) -> Any:
        try:
            tree = scan(str(message, "utf-8"), 0)[0]
        except (ValueError, StopIteration) as error:
            tree = _tree(message, scan, error)
        return convert(tree)

    loads = _quick_loads()
    if loads is None or _needs_digits(type_info):
        return read
    convert_quickly = _converter(type_info, required, ignoring, exact=False)

    def read_quickly(message: bytes) -> Any:
        try:
            tree = loads(message)
        except ValueError:
            # orjson is stricter: about what follows, and about encodings.
            return read(message)
        try:
            return convert_quickly(tree)
        except _DigitsNeeded:
            return read(message)

    return read_quickly


def _converter(type_info: RowTypeInfo, required: bool, ignoring: bool, exact: bool) -> Callable[[Any], Any]:
    scope = Scope()
    source = _Compiler(scope, required, ignoring, exact).row(type_info, "v", "v", "")
    return compile_expression(source, scope, f"reader of JSON as {type_info}")


def _quick_loads() -> Callable[[bytes], Any] | None:
    """orjson's, where it is installed: rows are read in little more than half the time."""
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads


class _DigitsNeeded(Exception):
    """orjson makes floating-point numbers of integers beyond 64 bits, and here their digits are asked for."""


def _needs_digits(kind: TypeInformation) -> bool:
    """Whether numbers are wanted that orjson does not give."""
    return _has(kind, BasicType.BIG_DEC) or _has(kind, BasicType.BIG_INT)


def _tree(message: bytes, scan: Callable[[str, int], Any], error: Exception) -> Any:
    """Once more, for messages that begin with spaces or are not of UTF-8."""
    text = message.decode(json.detect_encoding(message))
    begin = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        return scan(text, begin)[0]
    except StopIteration as stop:
        if begin == len(text):
            raise ValueError("it is empty") from None
        raise ValueError(f"no JSON at character {stop.value}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _decimal(digits: str) -> decimal.Decimal:
    """Where a row has decimals, Flink reads all fractions as such, without zeros at their end."""
    number = _EXACT.normalize(decimal.Decimal(digits))
    return number if number else number.copy_abs()


def _has(kind: TypeInformation, wanted: BasicType) -> bool:
    """Whether a type is or holds another one."""
    if isinstance(kind, RowTypeInfo):
        return any(_has(field, wanted) for field in kind.get_field_types())
    if isinstance(kind, ListTypeInfo):
        return _has(kind.elem_type, wanted)
    if isinstance(kind, MapTypeInfo):
        return _has(kind.get_key_type_info(), wanted) or _has(kind.get_value_type_info(), wanted)
    return isinstance(kind, BasicTypeInfo) and kind.kind is wanted


class _Compiler:
    """Makes expressions. ``first`` is the one to use where a value is looked at first; it may bind ``name``."""

    def __init__(self, scope: Scope, required: bool, ignoring: bool, exact: bool) -> None:
        self._scope, self._required, self._ignoring, self._exact = scope, required, ignoring, exact
        self._make, self._missing = scope.bind(make_row), scope.bind(MISSING)

    def value(self, kind: TypeInformation, first: str, name: str, place: str) -> str:
        if isinstance(kind, RowTypeInfo):
            return self.row(kind, first, name, place)
        if isinstance(kind, MapTypeInfo):
            return self._map(kind, first, name, place)
        if isinstance(kind, ListTypeInfo) and not (isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes):
            return self._list(kind, first, name, place)
        convert = _conversion(kind, place)
        if convert is _string and not self._exact:
            convert = _string_without_digits
        test = _fast_test(kind, first, name)
        if test is None:
            return f"{self._slow(convert, place, kind)}({first})"
        return f"({name} if {test} else {self._slow(convert, place, kind)}({name}))"

    def _slow(self, convert: Callable[[Any], Any], place: str, kind: object) -> str:
        return self._scope.bind(converting(convert, place, kind, self._ignoring, self._required))

    def row(self, kind: RowTypeInfo, first: str, name: str, place: str) -> str:
        scope, names = self._scope, kind.get_field_names()
        slow = self._slow(_no_value, place or "the message", "an object" if not place else kind)
        get = scope.variable()
        absent = f", {self._missing}" if self._required else ""
        fields = []
        for field, field_type in zip(names, kind.get_field_types(), strict=True):
            item = scope.variable()
            value = f"({item} := {get}({field!r}{absent}))"
            fields.append(self.value(field_type, value, item, f"{place}.{field}" if place else field))
        make = f"{self._make}({scope.bind(tuple(names))}, [{', '.join(fields)}])"
        return f"({make} if type({first}) is dict and ({get} := {name}.get) else {slow}({name}))"

    def _list(self, kind: ListTypeInfo, first: str, name: str, place: str) -> str:
        item = self._scope.variable()
        element = self.value(kind.elem_type, item, item, f"{place}[]")
        if isinstance(kind, PrimitiveArrayTypeInfo):
            element = f"{self._scope.bind(_primitive(kind.elem_type))}({element})"
        slow = self._slow(_no_value, place, kind)
        return f"([{element} for {item} in {name}] if type({first}) is list else {slow}({name}))"

    def _map(self, kind: MapTypeInfo, first: str, name: str, place: str) -> str:
        scope = self._scope
        key, item = scope.variable(), scope.variable()
        make_key = self.value(kind.get_key_type_info(), key, key, f"{place}{{}}")
        make_item = self.value(kind.get_value_type_info(), item, item, f"{place}{{}}")
        made = f"{{{make_key}: {make_item} for {key}, {item} in {name}.items()}}"
        # As in Flink: what is no object has no entries.
        slow = self._slow(lambda value: {}, place, kind)
        return f"({made} if type({first}) is dict else {slow}({name}))"


def _no_value(value: Any) -> Any:
    raise ValueError


def _primitive(kind: TypeInformation) -> Callable[[Any], Any]:
    """Java's arrays of primitive values have no place for null."""
    assert isinstance(kind, BasicTypeInfo)
    if kind.kind is BasicType.BOOLEAN:
        return lambda value: False if value is None else value
    zero = 0.0 if kind.kind in (BasicType.FLOAT, BasicType.DOUBLE) else 0
    return lambda value: zero if value is None else value


_BOUNDS = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind, bits in ((BasicType.BYTE, 8), (BasicType.SHORT, 16), (BasicType.INT, 32), (BasicType.LONG, 64))
}


def _fast_test(kind: TypeInformation, first: str, name: str) -> str | None:
    """The test that a value needs no conversion, if there is a quick one."""
    if not isinstance(kind, BasicTypeInfo):
        return None
    if kind.kind is BasicType.STRING:
        return f"type({first}) is str"
    if kind.kind is BasicType.BOOLEAN:
        return f"({first}) is True or {name} is False"
    if kind.kind is BasicType.DOUBLE:
        return f"type({first}) is float"
    if kind.kind is BasicType.BIG_INT:
        return f"type({first}) is int"
    if kind.kind in _BOUNDS:
        low, high = _BOUNDS[kind.kind]
        return f"type({first}) is int and {low} <= {name} <= {high}"
    return None


def _conversion(kind: TypeInformation, place: str) -> Callable[[Any], Any]:
    """From a value of JSON that is not None to what the type makes of it."""
    if isinstance(kind, InstantTypeInfo):
        return _instant
    if isinstance(kind, BasicTypeInfo):
        if kind.kind in _BOUNDS:
            return _integer_within(*_BOUNDS[kind.kind], truncated=kind.kind in (BasicType.INT, BasicType.LONG))
        return _BASIC[kind.kind]
    if isinstance(kind, PrimitiveArrayTypeInfo):
        return _bytes
    if isinstance(kind, LocalTimeTypeInfo):
        kinds = LocalTimeTypeInfo.TimeType
        parse: Callable[[str], Any] = {
            kinds.LOCAL_DATE: texts.iso_date,
            kinds.LOCAL_TIME: texts.utc_time,
            kinds.LOCAL_DATE_TIME: texts.utc_timestamp,
        }[kind.time_type]
        return lambda value: parse(_text(value))
    if isinstance(kind, DateTypeInfo):
        return lambda value: texts.iso_date(_text(value))
    if isinstance(kind, TimeTypeInfo):
        return lambda value: texts.utc_time(_text(value))
    if isinstance(kind, TimestampTypeInfo):
        return _timestamp
    raise refused("JSON", place, kind)


def _text(value: Any) -> str:
    """``JsonNode.asText``: nothing for objects and arrays."""
    if type(value) is str:
        return value
    return "" if isinstance(value, dict | list) else _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return java_double(value) if type(value) is float else str(value)


def _string(value: Any) -> str:
    return tree_text(value) if isinstance(value, dict | list) else _text(value)


def _string_without_digits(value: Any) -> str:
    """For what orjson has read."""
    if isinstance(value, dict | list) or (type(value) is float and abs(value) >= 2**63):
        raise _DigitsNeeded
    return _text(value)


def _boolean(value: Any) -> bool:
    return texts.java_trimmed(_text(value)).lower() == "true"


def _integer_within(low: int, high: int, truncated: bool) -> Callable[[Any], int]:
    def integer(value: Any) -> int:
        if truncated and isinstance(value, float | decimal.Decimal) and low <= value <= high:
            return min(int(value), high)
        number = texts.java_integer(_text(value))
        if not low <= number <= high:
            raise ValueError
        return number

    return integer


def _float(value: Any) -> float:
    return to_float32(texts.java_float(_text(value)))


def _double(value: Any) -> float:
    return texts.java_float(_text(value))


def _big_decimal(value: Any) -> decimal.Decimal:
    return value if type(value) is decimal.Decimal else texts.java_decimal(_text(value))


def _big_integer(value: Any) -> int:
    return texts.java_integer(_text(value))


def _character(value: Any) -> str | None:
    if type(value) is int:
        return chr(value)
    if type(value) is not str or len(value) > 1:
        raise ValueError
    return value or None


def _bytes(value: Any) -> bytes | None:
    return texts.java_base64(value) if type(value) is str else None


def _timestamp(value: Any) -> Any:
    moment = texts.utc_timestamp(_text(value))
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _instant(value: Any) -> Instant:
    """Jackson's rules: a text of ISO 8601, or a number of seconds."""
    if type(value) is str:
        return texts.zoned_instant(value)
    if type(value) is bool or not isinstance(value, int | float | decimal.Decimal):
        raise ValueError
    nanos = int(decimal.Decimal(str(value)) * 1_000_000_000)
    return Instant(*divmod(nanos, 1_000_000_000))


_BASIC: dict[BasicType, Callable[[Any], Any]] = {
    BasicType.STRING: _string,
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: _float,
    BasicType.DOUBLE: _double,
    BasicType.BIG_DEC: _big_decimal,
    BasicType.BIG_INT: _big_integer,
    BasicType.CHAR: _character,
}
