"""From rows to JSON, to the byte as Jackson writes it."""

from __future__ import annotations

import binascii
import datetime
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.common.type_system.composite import RowTypeInfo
from firesteel.common.type_system.containers import ListTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo
from firesteel.common.type_system.javatext import java_double, java_float, java_instant
from firesteel.common.type_system.temporal import (
    DateTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.formats.compiling import refused

__all__ = ["double_text", "json_writer", "timestamp_fraction", "tree_text"]

_LOWER_HEX = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")
_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def json_writer(type_info: RowTypeInfo) -> Callable[[Any], str]:
    """A function from an element to the text of a JSON object."""
    return _row_writer(type_info, "")


def _row_writer(kind: RowTypeInfo, place: str) -> Callable[[Any], str]:
    """One f-string, with the expressions of all fields in it."""
    scope, names = Scope(), tuple(kind.get_field_names())
    pieces, comma = [], ""
    for position, (field, field_type) in enumerate(zip(names, kind.get_field_types(), strict=True)):
        item = scope.variable()
        value = _field(field_type, f"({item} := r[{position}])", item, scope, f"{place}.{field}" if place else field)
        # Literals of their own: an expression inside an f-string must not hold its quotes.
        pieces.append(f'{f"{comma}{quoted(field)}:"!r} f"{{{value}}}"')
        comma = ","
    row, expected = scope.bind(Row), scope.bind(names)
    values = scope.bind(_values_of(kind))
    source = f"({'{'!r} {' '.join(pieces)} {'}'!r})"
    named = f"(f := v._fields) is None or f == {expected}"
    known = f"v._values if type(v) is {row} and ({named}) and len(v._values) == {len(names)} else {values}(v)"
    return compile_expression(f"{source} if (r := {known}) is not None else None", scope, f"writer of {kind} as JSON")


def _values_of(kind: RowTypeInfo) -> Callable[[Any], Any]:
    count = len(kind.get_field_names())

    def values(element: Any) -> Any:
        found = kind._values_of(element)
        if found is None or len(found) != count:
            raise ValueError
        return found

    return values


def _field(kind: TypeInformation, first: str, name: str, scope: Scope, place: str) -> str:
    """The expression of a field's text."""
    write = _writer(kind, place)
    if isinstance(kind, BasicTypeInfo):
        fast = _fast(kind, first, name, scope)
        if fast is not None:
            return f"({fast} else {scope.bind(_nullable(kind, write))}({name}))"
    return f"{scope.bind(_nullable(kind, write))}({first})"


def _fast(kind: BasicTypeInfo, first: str, name: str, scope: Scope) -> str | None:
    if kind.kind is BasicType.STRING:
        return f"{scope.bind(quoted)}({name}) if type({first}) is str"
    if kind.kind in (BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.BIG_INT):
        return f"{name} if {kind.fast_source(first, name, scope)}"
    if kind.kind is BasicType.DOUBLE:
        return f"{scope.bind(_double)}({name}) if type({first}) is float"
    return None


def _nullable(kind: TypeInformation, write: Callable[[Any], str]) -> Callable[[Any], str]:
    """Any accepted value, and None."""
    if isinstance(kind, RowTypeInfo | ListTypeInfo | MapTypeInfo):
        # Their parts are looked at one by one.
        return lambda value: "null" if value is None else write(value)
    check, convert = kind.checker(), kind.converter()

    def text(value: Any) -> str:
        if value is None:
            return "null"
        if check is not None and not check(value):
            raise ValueError
        return write(value if convert is None else convert(value))

    return text


def _writer(kind: TypeInformation, place: str) -> Callable[[Any], str]:
    """The text of a value that is not None."""
    if isinstance(kind, RowTypeInfo):
        return _row_writer(kind, place)
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:
        return lambda value: f'"{binascii.b2a_base64(value, newline=False).decode()}"'
    if isinstance(kind, ListTypeInfo):
        element = _nullable(kind.elem_type, _writer(kind.elem_type, f"{place}[]"))
        return _of_type(list, lambda value: f"[{','.join(map(element, value))}]")
    if isinstance(kind, MapTypeInfo):
        return _map_writer(kind, place)
    if isinstance(kind, InstantTypeInfo):
        return lambda value: f'"{java_instant(value)}"'
    if isinstance(kind, BasicTypeInfo):
        return _BASIC[kind.kind]
    if isinstance(kind, LocalTimeTypeInfo):
        kinds = LocalTimeTypeInfo.TimeType
        local: dict[Any, Callable[[Any], str]] = {
            kinds.LOCAL_DATE: _date,
            kinds.LOCAL_TIME: _local_time,
            kinds.LOCAL_DATE_TIME: _timestamp,
        }
        return local[kind.time_type]
    if isinstance(kind, DateTypeInfo):
        return _date
    if isinstance(kind, TimeTypeInfo):
        return lambda value: f'"{value:%H:%M:%S}Z"'
    if isinstance(kind, TimestampTypeInfo):
        return _timestamp
    raise refused("JSON", place, kind)


def _of_type(expected: type, write: Callable[[Any], str]) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not isinstance(value, expected):
            raise ValueError
        return write(value)

    return text


def _map_writer(kind: MapTypeInfo, place: str) -> Callable[[Any], str]:
    element = _nullable(kind.get_value_type_info(), _writer(kind.get_value_type_info(), f"{place}{{}}"))
    write_key = _nullable(kind.get_key_type_info(), _writer(kind.get_key_type_info(), f"{place}{{}}"))

    def key_text(key: Any) -> str:
        text = write_key(key)
        return text if text.startswith('"') else f'"{text}"'

    return _of_type(
        dict, lambda value: f"{{{','.join([f'{key_text(key)}:{element(item)}' for key, item in value.items()])}}}"
    )


def quoted(text: str) -> str:
    """A string as Jackson writes it: control characters in upper case, characters beyond 16 bits as two.

    >>> quoted("a\\n\\x1f😀")
    '"a\\\\n\\\\u001F\\\\uD83D\\\\uDE00"'
    """
    plain: str = encode_basestring(text)
    return plain if plain.isascii() and "\\u" not in plain else _as_jackson(plain)


def _as_jackson(plain: str) -> str:
    plain = _LOWER_HEX.sub(lambda found: f"{found[1]}\\u{found[2].upper()}", plain)
    return _BEYOND_16_BITS.sub(_surrogates, plain)


def _surrogates(found: re.Match[str]) -> str:
    number = ord(found[0]) - 0x10000
    return f"\\u{0xD800 + (number >> 10):04X}\\u{0xDC00 + (number & 0x3FF):04X}"


def double_text(value: float) -> str:
    """``Double.toString``, with a short cut for the usual numbers."""
    if 0.001 <= value < 1e7 or -1e7 < value <= -0.001:
        return repr(value)
    return java_double(value)


def _double(value: float) -> str:
    text = double_text(value)
    return text if value - value == 0 else f'"{text}"'


def _float(value: float) -> str:
    text = java_float(value)
    return text if value - value == 0 else f'"{text}"'


def _date(value: datetime.date) -> str:
    return f'"{value.isoformat()}"'


def timestamp_fraction(microsecond: int) -> str:
    """The fraction of a second, without zeros at its end, and without a point if there is none."""
    return f".{microsecond:06d}".rstrip("0") if microsecond else ""


def _timestamp(value: datetime.datetime) -> str:
    moment = value.replace(microsecond=0, tzinfo=None).isoformat()
    return f'"{moment}{timestamp_fraction(value.microsecond)}Z"'


def _local_time(value: datetime.time) -> str:
    return f'"{value:%H:%M:%S}{timestamp_fraction(value.microsecond)}Z"'


def _truth(value: Any) -> str:
    return "true" if value else "false"


def _integer(value: Any) -> str:
    return int.__repr__(int(value))


_BASIC: dict[BasicType, Callable[[Any], str]] = {
    BasicType.STRING: quoted,
    BasicType.CHAR: quoted,
    BasicType.BOOLEAN: _truth,
    BasicType.BYTE: _integer,
    BasicType.SHORT: _integer,
    BasicType.INT: _integer,
    BasicType.LONG: _integer,
    BasicType.BIG_INT: _integer,
    BasicType.FLOAT: _float,
    BasicType.DOUBLE: _double,
    BasicType.BIG_DEC: str,
}


def tree_text(tree: Any) -> str:
    """The text of a value that was read from JSON, as ``JsonNode.toString`` gives it.

    >>> tree_text({"a": [1, 2.50, None, True]})
    '{"a":[1,2.5,null,true]}'
    """
    if tree is None:
        return "null"
    if isinstance(tree, dict):
        return f"{{{','.join([f'{_in_tree(key)}:{tree_text(item)}' for key, item in tree.items()])}}}"
    if isinstance(tree, list):
        return f"[{','.join(map(tree_text, tree))}]"
    if isinstance(tree, str):
        return _in_tree(tree)
    if isinstance(tree, bool):
        return _truth(tree)
    return _double(tree) if isinstance(tree, float) else str(tree)


def _in_tree(text: str) -> str:
    plain: str = encode_basestring(text)
    return plain if "\\u" not in plain else _LOWER_HEX.sub(lambda found: f"{found[1]}\\u{found[2].upper()}", plain)
