"""Python's operations on texts, for columns. Texts that are not ASCII go through Python's own methods, for Arrow's
upper and lower case are other ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.column_functions.column_values import (
    ARROW_TYPES,
    GivenUpError,
    Value,
    as_integers,
    given,
)
from firesteel.table.functions.column_functions.expression_nodes import Plain

__all__ = ["TEXT", "concatenated", "read"]

_WHITESPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f "
"""What ``strip`` takes away of ASCII: more than Arrow does by itself."""

Kernel = Callable[[Sequence[Value], Sequence[Plain], int], Value]


def _texts(value: Value, rows: int) -> pa.Array:
    given(value)
    if value.kind is not str:
        raise GivenUpError(f"{value.kind.__name__} where a text is expected")
    return value.array(rows)


def _is_ascii(texts: pa.Array) -> bool:
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return True
    places = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    used = np.frombuffer(data, np.uint8)[places[0] : places[-1]]
    return not len(used) or int(used.max()) < 128


def _method(name: str, of_ascii: Callable[[pa.Array], pa.Array]) -> Kernel:
    own = getattr(str, name)

    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        texts = _texts(values[0], rows)
        if _is_ascii(texts):
            return Value(str, of_ascii(texts))
        return Value(str, _array(list(map(own, texts.to_numpy(zero_copy_only=False).tolist()))))

    return compute


def _array(values: list[str]) -> pa.Array:
    made = pa.array(values, pa.string())
    if not isinstance(made, pa.Array):
        raise GivenUpError("more text than a column has room for")
    return made


def _trimmed(name: str, trim: Callable[..., Any]) -> Kernel:
    plain = _method(name, lambda texts: trim(texts, _WHITESPACE))

    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        if options and options[0] is not None:
            return Value(str, trim(_texts(values[0], rows), options[0]))
        return plain(values, options, rows)

    return compute


def _any_of(match: Callable[..., Any]) -> Kernel:
    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        texts = _texts(values[0], rows)
        found = pa.repeat(False, rows)
        for each in options:
            found = pc.or_(found, match(texts, pattern=each))
        return Value(bool, found)

    return compute


def _replaced(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    old, new = options
    return Value(str, pc.replace_substring(_texts(values[0], rows), pattern=old, replacement=new))


def _length(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return Value(int, pc.cast(pc.utf8_length(_texts(values[0], rows)), pa.int64()))


def _sliced(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    start, stop = options
    return Value(str, pc.utf8_slice_codeunits(_texts(values[0], rows), 0 if start is None else start, stop))


def _character(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    texts = _texts(values[0], rows)
    (place,) = options
    assert isinstance(place, int)
    shortest = pc.min(pc.utf8_length(texts)).as_py()
    if shortest < (place + 1 if place >= 0 else -place):
        raise GivenUpError("a text that is too short")
    return Value(str, pc.utf8_slice_codeunits(texts, place, None if place == -1 else place + 1))


def concatenated(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    """The texts one after the other."""
    parts = [_texts(each, rows) if each.column is not None else _constant(each) for each in values]
    if not any(isinstance(each, pa.Array) for each in parts):
        parts[0] = values[0].array(rows)
    return Value(str, pc.binary_join_element_wise(*parts, pa.scalar("")))


def _constant(value: Value) -> Any:
    if value.kind is not str:
        raise GivenUpError(f"{value.kind.__name__} where a text is expected")
    return value.datum()


def read(value: Value, kind: type, rows: int) -> Value:
    """``int()`` or ``float()`` of texts: Python's own, which knows more ways to write a number than Arrow."""
    texts = _texts(value, rows)
    try:
        numbers = list(map(kind, texts.to_numpy(zero_copy_only=False).tolist()))
        return Value(kind, pa.array(numbers, ARROW_TYPES[kind]))
    except (ValueError, OverflowError):
        raise GivenUpError("a text that is no number") from None


def _printed(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    """``str()``. That of floats is Python's own: Arrow writes them otherwise."""
    (value,) = values
    given(value)
    if value.kind is str:
        return value
    if value.column is None:
        return Value(str, None, str(value.constant))
    if value.kind is float:
        return Value(str, _array(list(map(str, value.column.to_numpy().tolist()))))
    if value.kind is bool:
        return Value(str, pc.if_else(value.column, pa.scalar("True"), pa.scalar("False")))
    return Value(str, pc.cast(as_integers(value).column, pa.string()))


TEXT: dict[str, Kernel] = {
    "upper": _method("upper", pc.ascii_upper),
    "lower": _method("lower", pc.ascii_lower),
    "strip": _trimmed("strip", pc.ascii_trim),
    "lstrip": _trimmed("lstrip", pc.ascii_ltrim),
    "rstrip": _trimmed("rstrip", pc.ascii_rtrim),
    "startswith": _any_of(pc.starts_with),
    "endswith": _any_of(pc.ends_with),
    "contains": _any_of(pc.match_substring),
    "replace": _replaced,
    "len": _length,
    "slice": _sliced,
    "character": _character,
    "concat": concatenated,
    "str": _printed,
}
