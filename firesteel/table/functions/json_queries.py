"""What JSON in text holds: JSON_VALUE, JSON_QUERY, JSON_EXISTS, IS JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.json_paths import json_path
from firesteel.table.functions.json_text import JsonError, read_json, write_json
from firesteel.table.functions.registry import Datum, Function, Kernel, Signature, register
from firesteel.table.functions.text import maybe_string, string_result
from firesteel.table.functions.values import by_value, mapped, row_by_row
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegralType,
    VarCharType,
)

__all__: list[str] = []


def _found(text: str, path: str) -> tuple[Any, bool]:
    """The value at the end of the path, and whether the path is lax. In a strict path NULL is an error."""
    content = read_json(text)
    way = json_path(path)
    value = way.find(content)
    if value is None and not way.lax:
        raise JsonError(f"There is no value at {path!r}.")
    return value, way.lax


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _scalar_text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(value)


def _on_text(function: Callable[[DataType], Callable[..., Any]]) -> Kernel:
    """A kernel of ``function`` for the call's type; NULL where the text or the path is. What comes behind the path says
    what to do where there is no value: it is the same for all rows, but for defaults out of columns."""

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        one = function(call.type)
        text, *others = arguments
        if all(isinstance(other, pa.Scalar) for other in others):
            path, *options = (other.as_py() for other in others)
            kind = arrow_type(call.type)
            if path is None:
                return pa.scalar(None, kind)
            return mapped(text, lambda value: one(value, path, *options), kind)
        return row_by_row(lambda value, path, *options: None if None in (value, path) else one(value, path, *options))(
            call, arguments, context
        )

    return kernel


def _value(kind: DataType) -> Callable[..., Any]:
    convert = functools.partial(_returned, kind)

    def one(text: str, path: str, on_empty: str, empty: Any, on_error: str, error: Any) -> Any:
        try:
            value, lax = _found(text, path)
            if not lax and not _is_scalar(value):
                raise JsonError(f"JSON_VALUE takes one value, not an array or an object: {path!r}.")
        except JsonError:
            if on_error == "ERROR":
                raise
            return error
        if value is None or not _is_scalar(value):
            if on_empty == "ERROR":
                raise JsonError(f"There is no value at {path!r}, and ERROR ON EMPTY is asked for.")
            return empty
        return convert(value)

    return one


def _returned(kind: DataType, value: Any) -> Any:
    """As RETURNING asks for it."""
    if isinstance(kind, VarCharType):
        return _scalar_text(value)[: kind.length]
    if isinstance(kind, BooleanType) and isinstance(value, bool):
        return value
    if not isinstance(value, bool):
        if isinstance(kind, IntegralType) and isinstance(value, int):
            return value
        if isinstance(kind, DoubleType) and isinstance(value, int | Decimal):
            return float(value)
    raise JsonError(
        f"JSON_VALUE: {_scalar_text(value)!r} is not of type {kind.not_null()}; RETURNING STRING takes all values."
    )


def _query(kind: DataType) -> Callable[..., Any]:
    as_array = isinstance(kind, ArrayType)
    instead: dict[str, Any] = {"NULL": None, "EMPTY ARRAY": [] if as_array else "[]", "EMPTY OBJECT": "{}"}

    def one(text: str, path: str, wrapper: str, on_empty: str, on_error: str) -> Any:
        try:
            value, lax = _found(text, path)
            if value is not None and (wrapper == "ALWAYS" or (wrapper == "SCALARS" and not isinstance(value, list))):
                value = [value]
            if (not lax and _is_scalar(value)) or (as_array and value is not None and not isinstance(value, list)):
                raise JsonError(f"JSON_QUERY takes an array or an object, not one value: {path!r}.")
        except JsonError:
            if on_error == "ERROR":
                raise
            return instead[on_error]
        if _is_scalar(value):
            if on_empty == "ERROR":
                raise JsonError(f"There is nothing at {path!r}, and ERROR ON EMPTY is asked for.")
            return instead[on_empty]
        if as_array:
            return [None if item is None else _scalar_text(item) for item in value]
        return write_json(value)

    return one


def _exists(kind: DataType) -> Callable[..., Any]:
    def one(text: str, path: str, on_error: str) -> Any:
        try:
            return _found(text, path)[0] is not None
        except JsonError:
            if on_error == "ERROR":
                raise
            return {"TRUE": True, "FALSE": False, "UNKNOWN": None}[on_error]

    return one


def _no_error(*places: int) -> Callable[[Call], bool]:
    """Calls that cannot fail: none of these arguments is ERROR, and nothing is to be converted."""

    def safe(call: Call) -> bool:
        asked = [call.args[place] for place in places]
        known = all(isinstance(each, Literal) and each.value != "ERROR" for each in asked)
        return known and (call.function != "JSON_VALUE" or isinstance(call.type, VarCharType))

    return safe


def _text_or_given(arguments: Sequence[Expression]) -> DataType:
    return maybe_string(arguments)


_PATH = ("string", "string")
register(
    Function(
        "JSON_VALUE",
        Signature((*_PATH, "symbol", "any", "symbol", "any")),
        _text_or_given,
        _on_text(_value),
        can_fail=True,
        safe=_no_error(2, 4),
    )
)
register(
    Function(
        "JSON_QUERY",
        Signature((*_PATH, "symbol", "symbol", "symbol")),
        _text_or_given,
        _on_text(_query),
        can_fail=True,
        safe=_no_error(3, 4),
    )
)
register(
    Function(
        "JSON_EXISTS",
        Signature((*_PATH, "symbol")),
        lambda arguments: BooleanType(),
        _on_text(_exists),
        can_fail=True,
        safe=_no_error(2),
    )
)


def _is_json(what: str, text: str | None) -> bool:
    if text is None:
        return False
    try:
        value = read_json(text)
    except JsonError:
        return False
    if what == "ARRAY":
        return isinstance(value, list)
    if what == "OBJECT":
        return isinstance(value, dict)
    return what != "SCALAR" or _is_scalar(value)


for _what in ("", "VALUE", "SCALAR", "ARRAY", "OBJECT"):
    for _negated in (False, True):

        def _test(text: str | None, what: str = _what, negated: bool = _negated) -> bool:
            return _is_json(what, text) is not negated

        _name = f"IS {'NOT ' if _negated else ''}JSON {_what}".strip()
        register(
            Function(
                _name,
                Signature(("string",)),
                lambda arguments: BooleanType(is_nullable=False),
                row_by_row(_test),
                syntax=f"a {_name}",
            )
        )


def json_quote(text: str) -> str:
    """A text as JSON, in the signs of ASCII.

    >>> json_quote("ä/b")
    '"\\\\u00e4\\\\/b"'
    """
    return json.dumps(text).replace("/", "\\/")


def json_unquote(text: str) -> str:
    """The text that a text in JSON stands for; itself if it stands for none.

    >>> json_unquote('"a"'), json_unquote("[1]")
    ('a', '[1]')
    """
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


register(Function("JSON_QUOTE", Signature(("string",)), string_result, by_value(json_quote)))
register(Function("JSON_UNQUOTE", Signature(("string",)), string_result, by_value(json_unquote)))
