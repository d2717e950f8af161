"""Functions of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, TypeRule, register
from firesteel.table.functions.values import by_value, direct, mapped, row_by_row
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import MAX_LENGTH, CharType, DataType, IntType, VarCharType
from firesteel.table.types.derivation import any_nullable, common_type

__all__ = ["of_text", "string_result"]

_STRING = VarCharType(MAX_LENGTH)


def string_result(arguments: Sequence[Expression]) -> DataType:
    """STRING, NULL if an argument is."""
    return _STRING.with_nullability(any_nullable([argument.type for argument in arguments]))


def maybe_string(arguments: Sequence[Expression]) -> DataType:
    """STRING that may be NULL whatever the arguments are."""
    return _STRING


def int_result(arguments: Sequence[Expression]) -> DataType:
    """INT, NULL if an argument is."""
    return IntType(is_nullable=any_nullable([argument.type for argument in arguments]))


def of_text(
    name: str,
    parameters: tuple[str, ...],
    function: Callable[..., Any],
    result: TypeRule = string_result,
    optional: int = 0,
    repeated: bool = False,
) -> None:
    """Registers a function that a Python function computes."""
    register(Function(name, Signature(parameters, optional, repeated), result, by_value(function)))


def _upper(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    (values,) = arguments
    if isinstance(values, pa.Scalar) or not _is_ascii(values):
        return mapped(values, str.upper, pa.string())
    return pc.ascii_upper(values)


def _lower(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    (values,) = arguments
    if isinstance(values, pa.Scalar) or not _is_ascii(values):
        return mapped(values, str.lower, pa.string())
    return pc.ascii_lower(values)


def _is_ascii(values: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(values)).as_py() in (True, None))


def _same_text(arguments: Sequence[Expression]) -> DataType:
    return arguments[0].type if isinstance(arguments[0].type, CharType | VarCharType) else string_result(arguments)


def _part_of_text(arguments: Sequence[Expression]) -> DataType:
    """VARCHAR of the length of the text, which may be NULL whatever the arguments are."""
    kind = arguments[0].type
    return VarCharType(kind.length) if isinstance(kind, CharType | VarCharType) else _STRING


def _cut_text(arguments: Sequence[Expression]) -> DataType:
    """VARCHAR of the length of the text, which is the last of TRIM's arguments and the first of the others'."""
    text = arguments[2] if len(arguments) == 3 else arguments[0]
    nullable = any_nullable([argument.type for argument in arguments])
    if isinstance(text.type, CharType | VarCharType):
        return VarCharType(text.type.length, is_nullable=nullable)
    return _STRING.with_nullability(nullable)


register(Function("UPPER", Signature(("string",)), _same_text, _upper))
register(Function("LOWER", Signature(("string",)), _same_text, _lower))
register(Function("CHAR_LENGTH", Signature(("string",)), int_result, direct(pc.utf8_length)))


def _concatenated(arguments: Sequence[Expression]) -> DataType:
    """CHAR(3) of CHAR(1) and CHAR(2)."""
    kinds = [argument.type for argument in arguments]
    nullable = any_nullable(kinds)
    lengths = [kind.length for kind in kinds if isinstance(kind, CharType | VarCharType)]
    if len(lengths) != len(kinds):
        return _STRING.with_nullability(nullable)
    total = min(sum(lengths), MAX_LENGTH)
    if all(isinstance(kind, CharType) for kind in kinds):
        return CharType(total, is_nullable=nullable)
    return VarCharType(total, is_nullable=nullable)


def _joined(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    texts = [each.cast(pa.string()) if pa.types.is_null(each.type) else each for each in arguments]
    return pc.binary_join_element_wise(*texts, pa.scalar(""), null_handling="emit_null")


def _joined_with(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    separator, *texts = arguments
    return pc.binary_join_element_wise(*texts, separator, null_handling="skip")


register(Function("||", Signature(("text", "text")), _concatenated, _joined, syntax="a || b"))
register(Function("CONCAT", Signature(("text",), repeated=True), string_result, _joined))
register(
    Function(
        "CONCAT_WS",
        Signature(("string", "string"), repeated=True),
        string_result,
        _joined_with,
    )
)


def substring(text: str, start: int, length: int | None = None) -> str | None:
    """From a position on, counted from 1, or from the end if it is negative.

    >>> substring("hello", -3), substring("hello", 0, 2), substring("hello", 2, -1)
    ('llo', 'he', None)
    """
    if length is not None and length < 0:
        return None
    size = len(text)
    if start > 0:
        begin = start - 1
    elif start == 0:
        begin = 0
    else:
        begin = size + start
        if begin < 0:
            return ""
    return text[begin:] if length is None else text[begin : begin + length]


_substring_by_row = by_value(substring)


def _substring(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """All texts at once, if the same part is cut out of them, counted from the beginning."""
    texts, *bounds = arguments
    if not isinstance(texts, pa.Scalar) and all(isinstance(bound, pa.Scalar) and bound.is_valid for bound in bounds):
        start, *lengths = (bound.as_py() for bound in bounds)
        begin = max(start - 1, 0)
        if start >= 0 and all(length >= 0 for length in lengths):
            return pc.utf8_slice_codeunits(texts, begin, begin + lengths[0] if lengths else None)
    return _substring_by_row(call, arguments, context)


register(Function("SUBSTRING", Signature(("string", "integer", "integer"), 1), _part_of_text, _substring))


def _trimmed(side: str, characters: str, text: str) -> str:
    if side == "LEADING":
        return text.lstrip(characters)
    return text.rstrip(characters) if side == "TRAILING" else text.strip(characters)


register(Function("TRIM", Signature(("symbol", "string", "string")), _cut_text, by_value(_trimmed)))
of_text("LTRIM", ("string", "string"), lambda text, characters=" ": text.lstrip(characters), _cut_text, 1)
of_text("RTRIM", ("string", "string"), lambda text, characters=" ": text.rstrip(characters), _cut_text, 1)
of_text("BTRIM", ("string", "string"), lambda text, characters=" ": text.strip(characters), optional=1)
of_text("REPLACE", ("string", "string", "string"), lambda text, old, new: text.replace(old, new) if old else text)
of_text("REVERSE", ("string",), lambda text: text[::-1], maybe_string)
of_text("REPEAT", ("string", "integer"), lambda text, times: text * max(times, 0))


def padded(text: str, length: int, pad: str, left: bool) -> str | None:
    """To a length, or cut to it.

    >>> padded("hi", 5, "xy", True), padded("hi", 1, "x", True), padded("hi", -1, "x", True)
    ('xyxhi', 'h', None)
    """
    if length < 0:
        return None
    if length <= len(text):
        return text[:length]
    if not pad:
        return None
    missing = length - len(text)
    fill = (pad * (missing // len(pad) + 1))[:missing]
    return fill + text if left else text + fill


of_text("LPAD", ("string", "integer", "string"), lambda text, length, pad: padded(text, length, pad, True))
of_text("RPAD", ("string", "integer", "string"), lambda text, length, pad: padded(text, length, pad, False))
of_text("LEFT", ("string", "integer"), lambda text, length: text[: max(length, 0)], _part_of_text)
of_text("RIGHT", ("string", "integer"), lambda text, length: text[-length:] if length > 0 else "", _part_of_text)


def initcap(text: str) -> str:
    """Words with a capital first letter.

    >>> initcap("hELLO wor1d-x")
    'Hello Wor1d-X'
    """
    found, inside = [], False
    for letter in text:
        found.append(letter.lower() if inside else letter.upper())
        # Only these letters are parts of words, as in Flink: straße becomes StraßE.
        inside = letter.isascii() and letter.isalnum()
    return "".join(found)


of_text("INITCAP", ("string",), initcap, _same_text)
of_text("POSITION", ("string", "string"), lambda needle, text: text.find(needle) + 1, int_result)
of_text("INSTR", ("string", "string"), lambda text, needle: text.find(needle) + 1, int_result)
of_text(
    "LOCATE",
    ("string", "string", "integer"),
    lambda needle, text, start=1: text.find(needle, max(start - 1, 0)) + 1 if start > 0 else 0,
    int_result,
    optional=1,
)


def overlaid(text: str, new: str, start: int, length: int | None = None) -> str:
    """With another text from a position on.

    >>> overlaid("xxxxxtest", "xxxx", 6), overlaid("xxxxxtest", "xxxx", 6, 2)
    ('xxxxxxxxx', 'xxxxxxxxxst')
    """
    if start <= 0 or start > len(text):
        return text
    count = len(new) if length is None else length
    # As in Flink nothing is kept of the text behind a length of zero or less.
    return text[: start - 1] + new + (text[start - 1 + count :] if count > 0 else "")


def _overlaid_type(arguments: Sequence[Expression]) -> DataType:
    """VARCHAR that holds both texts."""
    both = _concatenated(arguments[:2])
    assert isinstance(both, CharType | VarCharType)
    return VarCharType(both.length, is_nullable=any_nullable([argument.type for argument in arguments]))


of_text("OVERLAY", ("string", "string", "integer", "integer"), overlaid, _overlaid_type, optional=1)


def _first_byte(text: str) -> int:
    """With a sign, as bytes have one in Java."""
    first = text.encode()[0] if text else 0
    return first - 256 if first > 127 else first


of_text("ASCII", ("string",), _first_byte, int_result)


def _chr(number: int) -> str:
    if number < 0:
        return ""
    return chr(number & 0xFF) if number & 0xFF or number == 0 else chr(0)


of_text("CHR", ("integer",), _chr, maybe_string)


def split_index(text: str, separator: str | int, index: int) -> str | None:
    """A part of the text between separators, from 0 on.

    >>> split_index("a,b,c", ",", 1), split_index("a,b", ",", 5)
    ('b', None)
    """
    mark = chr(separator) if isinstance(separator, int) else separator
    if index < 0 or not mark:
        return None
    parts = text.split(mark)
    return parts[index] if index < len(parts) and text else None


_split_by_row = by_value(split_index)


def _split(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """All texts at once, if they are split in the same way."""
    texts, separator, index = arguments
    constant = all(isinstance(each, pa.Scalar) and each.is_valid for each in (separator, index))
    if isinstance(texts, pa.Scalar) or not constant:
        return _split_by_row(call, arguments, context)
    mark, wanted = separator.as_py(), index.as_py()
    mark = chr(mark) if isinstance(mark, int) else mark
    if wanted < 0 or not mark:
        return pa.scalar(None, pa.string())
    lists = pc.split_pattern(texts, mark, max_splits=wanted + 1)
    offsets = lists.offsets.to_numpy()
    places = offsets[:-1] + wanted
    missing = (places >= offsets[1:]) | pc.equal(pc.fill_null(pc.binary_length(texts), 0), 0).to_numpy(False)
    return lists.values.take(pa.array(places, mask=missing))


register(Function("SPLIT_INDEX", Signature(("string", "any", "integer")), maybe_string, _split))


def translated(text: str | None, old: str | None, new: str | None) -> str | None:
    """Characters exchanged one by one; those without a partner go."""
    if text is None or not old:
        return text
    new = new or ""
    table: dict[int, str | None] = {}
    for index, letter in enumerate(old):
        table.setdefault(ord(letter), new[index] if index < len(new) else None)
    return text.translate(table)


def _like_first(arguments: Sequence[Expression]) -> DataType:
    return string_result(arguments[:1])


register(Function("TRANSLATE", Signature(("string", "string", "string")), _like_first, row_by_row(translated)))


def _elt(index: int, *texts: Any) -> Any:
    return texts[index - 1] if index is not None and 1 <= index <= len(texts) else None


def _elt_type(arguments: Sequence[Expression]) -> DataType:
    common = common_type([argument.type for argument in arguments[1:]])
    return (common or _STRING).nullable()


register(Function("ELT", Signature(("integer", "text or bytes"), repeated=True), _elt_type, row_by_row(_elt)))
