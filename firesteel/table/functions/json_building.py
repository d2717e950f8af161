"""JSON out of values: JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.table.functions.binding import FunctionError
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.json_text import json_value_of, read_json, write_json
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.text import string_result
from firesteel.table.functions.values import by_value
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import MAX_LENGTH, VarCharType
from firesteel.table.types.derivation import is_text

__all__: list[str] = []

_MAKES_JSON = ("JSON", "JSON_OBJECT", "JSON_ARRAY")
_STRING = VarCharType(MAX_LENGTH, is_nullable=False)


def _json_of(expression: Expression) -> Callable[[Any], Any]:
    """What JSON has for values of the expression: those that are JSON already are no text in it."""
    inner = expression
    while isinstance(inner, Call) and inner.function == "CAST" and is_text(inner.type):
        inner = inner.args[0]
    if isinstance(inner, Call) and inner.function in _MAKES_JSON:
        # Blanks are no value, as in Flink.
        return lambda text: None if text is None or not text.strip() else read_json(text)
    return json_value_of(expression.type)


def _values(call: Call, arguments: list[Datum], rows: int, start: int, step: int) -> list[list[Any]]:
    """The values of each row, of every so many-th argument."""
    columns = []
    for expression, argument in zip(call.args[start::step], arguments[start::step], strict=True):
        convert = _json_of(expression)
        columns.append([convert(value) for value in as_array(argument, rows).to_pylist()])
    return [list(values) for values in zip(*columns, strict=True)] if columns else [[]] * rows


def _object(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """Of (what to do with NULL, key, value, ...)."""
    absent = arguments[0].as_py() == "ABSENT"
    keys = _values(call, arguments, context.rows, 1, 2)
    values = _values(call, arguments, context.rows, 2, 2)
    made = []
    for names, row in zip(keys, values, strict=True):
        pairs = zip(names, row, strict=True)
        made.append(write_json({name: value for name, value in pairs if not (absent and value is None)}))
    return pa.array(made, pa.string())


def _array(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """Of (what to do with NULL, value, ...)."""
    absent = arguments[0].as_py() == "ABSENT"
    rows = _values(call, arguments, context.rows, 1, 1)
    made = [write_json([value for value in row if not (absent and value is None)]) for row in rows]
    return pa.array(made, pa.string())


def _object_type(arguments: list[Expression]) -> VarCharType:
    for key in arguments[1::2]:
        if not is_text(key.type) or key.type.is_nullable:
            raise FunctionError(f"A key of JSON_OBJECT is a text that cannot be NULL, got {key.type}.")
    return _STRING


def _json_string(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    convert = _json_of(call.args[0])
    values = as_array(arguments[0], context.rows).to_pylist()
    return pa.array([None if value is None else write_json(convert(value)) for value in values], pa.string())


def _checked(text: str) -> str:
    return write_json(read_json(text)) if text.strip() else ""


register(
    Function(
        "JSON_OBJECT",
        Signature(("symbol", "any"), repeated=True, optional=1),
        lambda args: _object_type(list(args)),
        _object,
    )
)
register(Function("JSON_ARRAY", Signature(("symbol", "any"), repeated=True, optional=1), lambda args: _STRING, _array))
register(Function("JSON_STRING", Signature(("any",)), string_result, _json_string))
register(Function("JSON", Signature(("string",)), string_result, by_value(_checked), can_fail=True))
