"""Values of JSON as values of columns, one by one, as Jackson's tree and Flink's converters have it: numbers may stand
in texts, a text takes anything, a truth value is false if it is not "true"."""

from __future__ import annotations

import binascii
import decimal
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.connectors.formats.json_writing import tree_text
from firesteel.connectors.table.formats.text_columns import parser_of, rounded

__all__ = ["FieldProblem", "arrow_column", "exact_tree", "text_of_tree", "value_reader"]

_FAULTS = (ValueError, TypeError, ArithmeticError, binascii.Error, AttributeError)


class FieldProblem(ValueError):
    """A field that cannot be read."""

    def __init__(self, place: str, wanted: Any, value: Any) -> None:
        self.place = place
        super().__init__(f"field {place!r} should be {wanted}, got {json_text(value)[:80]}")


def json_text(value: Any) -> str:
    """A value of a tree as JSON."""
    return tree_text(value) if not isinstance(value, decimal.Decimal) else str(value)


class _Fraction(decimal.Decimal):
    """A number with a fraction, and how it was written: that is what a column of text gets."""

    written: str


def _fraction(text: str) -> _Fraction:
    number = _Fraction(text)
    number.written = text
    return number


_exact = json.JSONDecoder(parse_float=_fraction)


def exact_tree(message: bytes) -> Any:
    """The tree of a message, in which fractions are decimals. What stands behind the value is left alone."""
    text = message.decode("utf-8").lstrip(" \t\r\n")
    if not text:
        raise ValueError("it is empty")
    return _exact.raw_decode(text)[0]


def value_reader(kind: pa.DataType, place: str, iso: bool, ignoring: bool, required: bool) -> Callable[[Any], Any]:
    """A function from a value of a tree to one of a column. ``ignoring``: what cannot be read is NULL."""
    convert = _converter(kind, place, iso, ignoring, required)

    def read(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except FieldProblem:
            raise
        except _FAULTS:
            if ignoring:
                return None
            raise FieldProblem(place, kind, value) from None

    return read


def _converter(kind: pa.DataType, place: str, iso: bool, ignoring: bool, required: bool) -> Callable[[Any], Any]:
    kinds = pa.types
    if kinds.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return _row_reader(fields, f"{place}.", iso, ignoring, required)
    if kinds.is_list(kind):
        element = value_reader(kind.value_type, f"{place}[]", iso, ignoring, required)
        return lambda value: [element(one) for one in _of(list, value)]
    if kinds.is_map(kind):
        key = value_reader(kind.key_type, f"{place}.key", iso, ignoring, required)
        item = value_reader(kind.item_type, f"{place}.value", iso, ignoring, required)
        return lambda value: [(key(name), item(one)) for name, one in _of(dict, value).items()]
    parse = parser_of(kind, iso)
    if kinds.is_string(kind):
        return text_of_tree
    if kinds.is_boolean(kind):
        return lambda value: value if isinstance(value, bool) else parse(text_of_tree(value))
    if kinds.is_integer(kind):
        # Flink cuts off fractions of INT and BIGINT, and refuses them for the smaller ones.
        return _whole_number(parse, kind.bit_width >= 32)
    if kinds.is_floating(kind):
        return lambda value: float(value) if _is_number(value) else parse(text_of_tree(value))
    if kinds.is_decimal(kind):
        return lambda value: rounded(decimal.Decimal(value if _is_exact(value) else text_of_tree(value)), kind)
    return lambda value: parse(text_of_tree(value))


def _row_reader(
    fields: list[pa.Field], prefix: str, iso: bool, ignoring: bool, required: bool
) -> Callable[[Any], dict[str, Any]]:
    readers = [(each.name, value_reader(each.type, f"{prefix}{each.name}", iso, ignoring, required)) for each in fields]

    def row(value: Any) -> dict[str, Any]:
        _of(dict, value)
        found = {}
        for name, read in readers:
            if name not in value and required:
                raise FieldProblem(f"{prefix}{name}", "there", None)
            found[name] = read(value.get(name))
        return found

    return row


def _of(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)


def _is_exact(value: Any) -> bool:
    return isinstance(value, int | decimal.Decimal) and not isinstance(value, bool)


def text_of_tree(value: Any) -> str:
    """A value of a tree as a column of text gets it: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, _Fraction):
        return value.written
    return tree_text(_with_floats(value))


def _with_floats(value: Any) -> Any:
    """A fraction in a text is a double."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list):
        return [_with_floats(one) for one in value]
    return {name: _with_floats(one) for name, one in value.items()} if isinstance(value, dict) else value


def _whole_number(parse: Callable[[str], int], cuts: bool) -> Callable[[Any], int]:
    def number(value: Any) -> int:
        if isinstance(value, bool):
            raise ValueError
        if cuts and isinstance(value, float | decimal.Decimal):
            return parse(str(int(value)))
        return parse(str(value) if isinstance(value, int) else text_of_tree(value))

    return number


def arrow_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as readers give them, as a column: timestamps are numbers there."""
    return pa.array(values, _plain_type(kind)).cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    kinds = pa.types
    if kinds.is_timestamp(kind):
        return pa.int64()
    if kinds.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in fields])
    if kinds.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if kinds.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind
