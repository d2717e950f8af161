"""LIKE, SIMILAR TO and regular expressions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.errors import FailureKind, ProgramError
from firesteel.table.functions.arrow_regex import arrow_regex, extracted
from firesteel.table.functions.comparison import truth
from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.text import maybe_string, string_result
from firesteel.table.functions.values import by_value, is_mostly_different
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.data_types import MAX_LENGTH, ArrayType, BooleanType, DataType, IntType, VarCharType

__all__ = ["PatternError", "like_regex"]


class PatternError(ProgramError):
    """A pattern that cannot be read."""

    kind = FailureKind.PERMANENT


@functools.lru_cache(maxsize=256)
def like_regex(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    """The regular expression of a LIKE pattern. There is no escape character unless one is given.

    >>> bool(like_regex("a_c%").fullmatch("abcd"))
    True
    """
    # As in Flink an empty text is no escape character.
    escape = escape or None
    if escape is not None and len(escape) != 1:
        raise PatternError(f"ESCAPE takes one character, got {escape!r}.")
    parts, index = [], 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == escape:
            index += 1
            if index == len(pattern) or pattern[index] not in ("%", "_", escape):
                raise PatternError(f"Invalid escape sequence in the pattern {pattern!r}.")
            parts.append(re.escape(pattern[index]))
        else:
            parts.append(".*" if letter == "%" else "." if letter == "_" else re.escape(letter))
        index += 1
    return re.compile("".join(parts), re.DOTALL)


def _like(text: str, pattern: str, escape: str | None = None) -> bool:
    return like_regex(pattern, escape).fullmatch(text) is not None


def _like_kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    text, pattern, *escape = arguments
    constant = isinstance(pattern, pa.Scalar) and pattern.is_valid and not escape
    if constant and not isinstance(text, pa.Scalar):
        written = pattern.as_py()
        inner = written.strip("%")
        if "%" not in inner and "_" not in inner and "\\" not in inner:
            return _simple_like(text, written, inner)
    return by_value(_like)(call, arguments, context)


def _simple_like(text: pa.Array, written: str, inner: str) -> Datum:
    """Arrow finds a piece of text at once."""
    front, back = written.startswith("%"), written.endswith("%")
    if not inner and written:
        return pc.if_else(pc.is_valid(text), pa.scalar(True), pa.scalar(None, pa.bool_()))
    if front and back:
        return pc.match_substring(text, inner)
    if front:
        return pc.ends_with(text, inner)
    return pc.starts_with(text, inner) if back else pc.equal(text, pa.scalar(inner))


@functools.lru_cache(maxsize=256)
def _similar_regex(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    parts, index, inside = [], 0, False
    while index < len(pattern):
        letter = pattern[index]
        if letter == escape and index + 1 < len(pattern):
            index += 1
            parts.append(re.escape(pattern[index]))
        elif inside:
            inside = letter != "]"
            parts.append(letter)
        elif letter in "%_":
            parts.append(".*" if letter == "%" else ".")
        elif letter in ".\\^$":
            parts.append("\\" + letter)
        else:
            inside = letter == "["
            parts.append(letter)
        index += 1
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise PatternError(f"The pattern {pattern!r} cannot be read: {error}.") from None


def _similar(text: str, pattern: str, escape: str | None = None) -> bool:
    return _similar_regex(pattern, escape).fullmatch(text) is not None


_LIKE = Signature(("string", "string", "string"), optional=1)
register(Function("LIKE", _LIKE, truth, _like_kernel, syntax="a LIKE b"))
register(Function("SIMILAR TO", _LIKE, truth, by_value(_similar), syntax="a SIMILAR TO b"))


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A regular expression; None if it is none: then Flink's functions give NULL."""
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _with_regex(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(text: str, pattern: str, *others: Any) -> Any:
        regex = _compiled(pattern)
        return None if regex is None else function(regex, text, *others)

    return call


def _group(regex: re.Pattern[str], text: str, index: int = 0) -> str | None:
    match = regex.search(text)
    if match is None or not 0 <= index <= regex.groups:
        return None
    return match[index]


def _group_of(pattern: str, index: int = 0) -> Callable[[str], str | None]:
    """The same for one pattern."""
    regex = _compiled(pattern)
    if regex is None or not 0 <= index <= regex.groups:
        return lambda text: None
    search = regex.search
    return lambda text: None if (match := search(text)) is None else match[index]


_extracted_by_value = by_value(_with_regex(_group), _group_of)


def _extract_kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    text, pattern, *others = arguments
    constants: list[Any] = [one.as_py() if isinstance(one, pa.Scalar) else None for one in (pattern, *others)]
    if isinstance(text, pa.Array) and None not in constants and is_mostly_different(text):
        regex = arrow_regex(constants[0])
        group = constants[1] if others else 0
        if regex is not None and 0 <= group <= regex.groups:
            return extracted(text, regex, group)
    return _extracted_by_value(call, arguments, context)


def _found(text: str, pattern: str) -> bool:
    # As in Flink nothing matches an empty pattern, or one that cannot be read.
    regex = _compiled(pattern) if pattern else None
    return regex is not None and regex.search(text) is not None


def _replaced(text: str, pattern: str, new: str) -> str:
    regex = _compiled(pattern)
    if regex is None:
        raise PatternError(f"REGEXP_REPLACE: the pattern {pattern!r} cannot be read.")
    # The replacement is taken as it is: $1 is a dollar sign and a one.
    return regex.sub(lambda match: new, text)


def _is_readable(call: Call) -> bool:
    pattern = call.args[1]
    return isinstance(pattern, Literal) and (pattern.value is None or _compiled(pattern.value) is not None)


def _maybe_boolean(arguments: Sequence[Expression]) -> DataType:
    return truth(arguments)


def _maybe_int(arguments: Sequence[Expression]) -> DataType:
    return IntType()


def _texts(arguments: Sequence[Expression]) -> DataType:
    return ArrayType(VarCharType(MAX_LENGTH))


def _all_groups(regex: re.Pattern[str], text: str, index: int = 1) -> list[str | None] | None:
    if not 0 <= index <= regex.groups:
        return None
    return [match[index] for match in regex.finditer(text)]


_PAIR = Signature(("string", "string"))
register(Function("REGEXP", _PAIR, _maybe_boolean, by_value(_found)))
register(
    Function(
        "REGEXP_REPLACE",
        Signature(("string", "string", "string")),
        string_result,
        by_value(_replaced),
        can_fail=True,
        safe=_is_readable,
    )
)
register(
    Function(
        "REGEXP_EXTRACT",
        Signature(("string", "string", "integer"), optional=1),
        maybe_string,
        _extract_kernel,
        costly=True,
    )
)
register(
    Function(
        "REGEXP_EXTRACT_ALL",
        Signature(("string", "string", "integer"), optional=1),
        _texts,
        by_value(_with_regex(_all_groups)),
    )
)
register(Function("REGEXP_SUBSTR", _PAIR, maybe_string, by_value(_with_regex(_group))))
register(
    Function(
        "REGEXP_COUNT",
        _PAIR,
        _maybe_int,
        by_value(_with_regex(lambda regex, text: sum(1 for _ in regex.finditer(text)))),
    )
)


def _place(regex: re.Pattern[str], text: str) -> int:
    match = regex.search(text)
    return match.start() + 1 if match is not None else 0


register(Function("REGEXP_INSTR", _PAIR, _maybe_int, by_value(_with_regex(_place))))
_BOOLEAN = BooleanType(is_nullable=False)


def _simple_test(test: Callable[[str], bool]) -> Callable[..., Any]:
    """NULL is FALSE."""
    inner = by_value(test)

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        return pc.fill_null(inner(call, arguments, context), False)

    return kernel


_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
for _name, _test in {
    "IS_ALPHA": lambda text: text.isalpha(),
    "IS_DIGIT": lambda text: text.isdigit(),
    "IS_DECIMAL": lambda text: _DECIMAL.fullmatch(text.strip()) is not None,
}.items():
    register(Function(_name, Signature(("string or number",)), lambda arguments: _BOOLEAN, _simple_test(_test)))
_AFFIX = Signature(("string or binary", "string or binary"))
register(Function("STARTSWITH", _AFFIX, truth, by_value(lambda text, start: text.startswith(start))))
register(Function("ENDSWITH", _AFFIX, truth, by_value(lambda text, end: text.endswith(end))))
