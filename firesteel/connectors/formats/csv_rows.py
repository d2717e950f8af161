"""Between rows and lines of CSV."""

from __future__ import annotations

import binascii
import datetime
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.common.type_system.composite import RowTypeInfo
from firesteel.common.type_system.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from firesteel.common.type_system.javatext import java_boolean, java_float, java_time, java_timestamp, to_float32
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
from firesteel.connectors.formats.compiling import FieldError, converting, refused
from firesteel.connectors.formats.csv_lines import Dialect, quoting
from firesteel.connectors.formats.json_writing import double_text, timestamp_fraction
from firesteel.errors import ProgramError

__all__ = ["row_reader", "row_writer"]

_NESTED = (BasicArrayTypeInfo, ObjectArrayTypeInfo, RowTypeInfo)
_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}


# -- reading --------------------------------------------------------------------------------------------------------


def row_reader(
    type_info: RowTypeInfo,
    dialect: Dialect,
    ignoring: bool = False,
    delimiters: Sequence[str | None] = (),
) -> Callable[[list[str]], Any]:
    """A function from the values of a line to a row. ``delimiters``: those of arrays, where a column has its own."""
    names, kinds = tuple(type_info.get_field_names()), type_info.get_field_types()
    own = list(delimiters) or [None] * len(names)
    columns = []
    for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        delimiter = own[position]
        delimiter = dialect.array_delimiter if delimiter is None else delimiter
        columns.append(_column_reader(kind, name, dialect, ignoring, delimiter))
    convert_all = _row_maker(names, columns, type_info)
    # Without null literals values need no second look, unless one of them turns out to be wrong.
    plain = dialect.null_literal is None
    parsers = [
        _parser(kind, name) if plain and not isinstance(kind, _NESTED) else column
        for name, kind, column in zip(names, kinds, columns, strict=True)
    ]
    convert_quickly = _row_maker(names, parsers, type_info)
    count = len(names)

    def read(values: list[str]) -> Any:
        if len(values) != count:
            values = _adjusted(values, names, ignoring)
        try:
            return convert_quickly(values)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            return convert_all(values)

    return read


def _row_maker(
    names: tuple[str, ...], columns: Sequence[Callable[[str], Any] | None], type_info: RowTypeInfo
) -> Callable[[list[str]], Any]:
    scope = Scope()
    items = [
        f"v[{position}]" if convert is None else f"{scope.bind(convert)}(v[{position}])"
        for position, convert in enumerate(columns)
    ]
    source = f"{scope.bind(make_row)}({scope.bind(names)}, [{', '.join(items)}])"
    return compile_expression(source, scope, f"reader of CSV as {type_info}")


def _adjusted(values: list[str], names: Sequence[str], ignoring: bool) -> list[Any]:
    """A line with another number of values: as Jackson allows one empty value behind the last, and no more."""
    count = len(names)
    if len(values) == count + 1 and not values[-1]:
        return values[:-1]
    if len(values) > count:
        raise ValueError(f"it has {len(values)} values for {count} fields")
    if not ignoring:
        raise ValueError(
            f"it has {len(values)} values for {count} fields, there is none for field '{names[len(values)]}'"
        )
    return [*values, *[None] * (count - len(values))]


def _column_reader(
    kind: TypeInformation, place: str, dialect: Dialect, ignoring: bool, delimiter: str
) -> Callable[[str], Any] | None:
    """From a value to what the type makes of it; None if that is the value itself."""
    if isinstance(kind, _NESTED):
        return _nested_reader(kind, place, dialect, ignoring, delimiter)
    parse = _parser(kind, place)
    null = dialect.null_literal
    if parse is None:
        return None if null is None else lambda value: None if value == null else value
    checked = converting(parse, place, kind, ignoring)
    return checked if null is None else lambda value: None if value == null else checked(value)


def _nested_reader(
    kind: ListTypeInfo | RowTypeInfo, place: str, dialect: Dialect, ignoring: bool, delimiter: str
) -> Callable[[str], Any]:
    names = tuple(kind.get_field_names()) if isinstance(kind, RowTypeInfo) else ()
    kinds = kind.get_field_types() if isinstance(kind, RowTypeInfo) else [kind.elem_type]
    for inner in kinds:
        if isinstance(inner, ListTypeInfo | RowTypeInfo):
            raise ProgramError(f"CSV has nothing for {inner} inside of {kind}, the type of field '{place}'.")
    readers = [
        _column_reader(inner, f"{place}.{name}" if names else f"{place}[]", dialect, ignoring, "")
        for inner, name in zip(kinds, names or [""], strict=True)
    ]
    readings = [make if make is not None else _same for make in readers]

    def elements(value: str | None) -> list[Any] | None:
        if value is None:
            return None
        parts = ([value] if not delimiter else value.split(delimiter)) if value else []
        return [readings[0](part) for part in parts]

    def row(value: str | None) -> Any:
        if not value:
            return None
        parts = [value] if not delimiter else value.split(delimiter)
        if len(parts) != len(names) and not ignoring:
            raise FieldError(place, kind, value)
        made = [make(part) for make, part in zip(readings, parts, strict=False)]
        return make_row(names, [*made, *[None] * (len(names) - len(made))])

    return row if names else elements


def _same(value: Any) -> Any:
    return value


def _parser(kind: TypeInformation, place: str) -> Callable[[str], Any] | None:
    """The value of a text; None if that is the text itself."""
    if isinstance(kind, InstantTypeInfo):
        return texts.sql_instant
    if isinstance(kind, BasicTypeInfo):
        if kind.kind is BasicType.STRING:
            return None
        if kind.kind in _BITS:
            return _integer_of(_BITS[kind.kind])
        if kind.kind in _PARSERS:
            return _PARSERS[kind.kind]
    elif isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:
        return texts.java_base64
    elif isinstance(kind, LocalTimeTypeInfo):
        kinds = LocalTimeTypeInfo.TimeType
        local: dict[Any, Callable[[str], Any]] = {
            kinds.LOCAL_DATE: texts.sql_date,
            kinds.LOCAL_TIME: texts.sql_time,
            kinds.LOCAL_DATE_TIME: texts.sql_timestamp,
        }
        return local[kind.time_type]
    elif isinstance(kind, DateTypeInfo):
        return texts.sql_date
    elif isinstance(kind, TimeTypeInfo):
        return texts.sql_time
    elif isinstance(kind, TimestampTypeInfo):
        return _timestamp
    raise refused("CSV", place, kind)


def _integer_of(bits: int) -> Callable[[str], int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    # Most numbers are short and have no sign: isdecimal() is all that needs to be asked.
    short = len(str(high)) - 1
    java_integer = texts.java_integer

    def integer(text: str) -> int:
        if len(text) <= short and text.isdecimal():
            return int(text)
        number = java_integer(text)
        if not low <= number <= high:
            raise ValueError
        return number

    return integer


def _boolean(text: str) -> bool:
    if text == "true" or text == "false":
        return text == "true"
    return texts.java_trimmed(text).lower() == "true"


def _float(text: str) -> float:
    return to_float32(texts.java_float(text))


def _timestamp(text: str) -> Any:
    moment = texts.sql_timestamp(text)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_PARSERS: dict[BasicType, Callable[[str], Any]] = {
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: _float,
    BasicType.DOUBLE: texts.java_float,
    BasicType.BIG_DEC: texts.java_decimal,
    BasicType.BIG_INT: texts.java_integer,
}


# -- writing --------------------------------------------------------------------------------------------------------


def row_writer(type_info: RowTypeInfo, dialect: Dialect, delimiters: Sequence[str | None] = ()) -> Callable[[Any], str]:
    """A function from an element to a line, with its end."""
    names, kinds = type_info.get_field_names(), type_info.get_field_types()
    own = list(delimiters) or [None] * len(names)
    scope, quote = Scope(), quoting(dialect)
    items = []
    for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        delimiter = own[position]
        write = _column_writer(kind, name, dialect, quote, dialect.array_delimiter if delimiter is None else delimiter)
        items.append(f"{scope.bind(write)}(v[{position}])")
    source = f"{scope.bind(dialect.delimiter)}.join([{', '.join(items)}]) + {scope.bind(dialect.line_delimiter)}"
    write_all = compile_expression(source, scope, f"writer of {type_info} as CSV")
    values_of, count = type_info._values_of, len(names)

    def write_row(element: Any) -> str:
        values = values_of(element)
        if values is None or len(values) != count:
            raise ValueError
        line: str = write_all(values)
        return line

    return write_row


def _column_writer(
    kind: TypeInformation, place: str, dialect: Dialect, quote: Callable[[str], str], delimiter: str
) -> Callable[[Any], str]:
    null = dialect.null_literal or ""
    if isinstance(kind, _NESTED):
        return _nested_writer(kind, place, null, quote, delimiter)
    text = _text_writer(kind, place)
    if _needs_no_quotes(kind):
        return lambda value: null if value is None else text(value)
    return lambda value: null if value is None else quote(text(value))


def _nested_writer(
    kind: ListTypeInfo | RowTypeInfo, place: str, null: str, quote: Callable[[str], str], delimiter: str
) -> Callable[[Any], str]:
    """Arrays and rows are one value, whose parts have a delimiter of their own."""
    kinds = kind.get_field_types() if isinstance(kind, RowTypeInfo) else [kind.elem_type]
    for inner in kinds:
        if isinstance(inner, ListTypeInfo | RowTypeInfo):
            raise ProgramError(f"CSV has nothing for {inner} inside of {kind}, the type of field '{place}'.")
    writers = [_text_writer(inner, place) for inner in kinds]

    def array(value: Any) -> str:
        if value is None:
            return null
        if not isinstance(value, list | tuple):
            raise ValueError
        return quote(delimiter.join([null if item is None else writers[0](item) for item in value]))

    def row(value: Any) -> str:
        if value is None:
            return null
        assert isinstance(kind, RowTypeInfo)
        values = kind._values_of(value)
        if values is None or len(values) != len(writers):
            raise ValueError
        pairs = zip(writers, values, strict=True)
        return quote(delimiter.join([null if item is None else write(item) for write, item in pairs]))

    return row if isinstance(kind, RowTypeInfo) else array


def _needs_no_quotes(kind: TypeInformation) -> bool:
    return isinstance(kind, BasicTypeInfo) and kind.kind not in (BasicType.STRING, BasicType.INSTANT)


def _text_writer(kind: TypeInformation, place: str) -> Callable[[Any], str]:
    """The text of a value that is not None, without quotes."""
    write = _writer(kind, place)
    if isinstance(kind, BasicTypeInfo) and kind.kind is BasicType.STRING:
        return _string
    check, convert = kind.checker(), kind.converter()

    def text(value: Any) -> str:
        if check is not None and not check(value):
            raise ValueError
        return write(value if convert is None else convert(value))

    return text


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _writer(kind: TypeInformation, place: str) -> Callable[[Any], str]:
    if isinstance(kind, InstantTypeInfo):
        return _instant_text
    if isinstance(kind, BasicTypeInfo) and kind.kind in _WRITERS:
        return _WRITERS[kind.kind]
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:
        return lambda value: binascii.b2a_base64(value, newline=False).decode()
    if isinstance(kind, LocalTimeTypeInfo):
        kinds = LocalTimeTypeInfo.TimeType
        local: dict[Any, Callable[[Any], str]] = {
            kinds.LOCAL_DATE: lambda value: value.isoformat(),
            kinds.LOCAL_TIME: lambda value: value.isoformat(),
            kinds.LOCAL_DATE_TIME: lambda value: f"{value:%Y-%m-%d %H:%M:%S}{timestamp_fraction(value.microsecond)}",
        }
        return local[kind.time_type]
    if isinstance(kind, DateTypeInfo):
        return lambda value: str(value.isoformat())
    if isinstance(kind, TimeTypeInfo):
        return java_time
    if isinstance(kind, TimestampTypeInfo):
        return java_timestamp
    raise refused("CSV", place, kind)


def _instant_text(value: Any) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    fraction = f".{value.nanos:09d}".rstrip("0") if value.nanos else ""
    return f"{moment.isoformat(' ')}{fraction}Z"


def _integer(value: Any) -> str:
    return int.__repr__(int(value))


_WRITERS: dict[BasicType, Callable[[Any], str]] = {
    BasicType.STRING: str,
    BasicType.BOOLEAN: java_boolean,
    BasicType.BYTE: _integer,
    BasicType.SHORT: _integer,
    BasicType.INT: _integer,
    BasicType.LONG: _integer,
    BasicType.BIG_INT: _integer,
    BasicType.FLOAT: java_float,
    BasicType.DOUBLE: double_text,
    BasicType.BIG_DEC: str,
}
