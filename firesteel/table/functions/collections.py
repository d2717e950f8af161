"""Arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import row_by_row
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BooleanType,
    DataType,
    IntType,
    MapType,
    NullType,
    VarCharType,
)
from firesteel.table.types.derivation import any_nullable, common_type

__all__: list[str] = []


def _given(arguments: Sequence[Expression]) -> DataType:
    """Constructors are built by the resolver, which knows their type."""
    raise AssertionError


def _array(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    return pa.array([list(items) for items in zip(*columns, strict=True)], arrow_type(call.type))


def _map(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    rows = [list(dict(zip(items[::2], items[1::2], strict=True)).items()) for items in zip(*columns, strict=True)]
    return pa.array(rows, arrow_type(call.type))


def _row(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = arrow_type(call.type)
    columns = [as_array(argument, context.rows) for argument in arguments]
    return pa.StructArray.from_arrays(columns, fields=[kind.field(index) for index in range(kind.num_fields)])


def _field(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    index = call.args[1]
    assert isinstance(index, Literal)
    row = as_array(arguments[0], context.rows)
    # Not row.field(): that would forget which rows are NULL.
    return row.flatten()[index.value]


def _item(collection: Any, index: Any) -> Any:
    if collection is None or index is None:
        return None
    if isinstance(index, int) and not (collection and isinstance(collection[0], tuple)):
        return collection[index - 1] if 0 < index <= len(collection) else None
    return dict(collection).get(index)


def _item_of(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    if isinstance(call.args[0].type, MapType):
        values = [
            None if pairs is None or key is None else dict(pairs).get(key) for pairs, key in zip(*columns, strict=True)
        ]
    else:
        values = [_item(items, index) for items, index in zip(*columns, strict=True)]
    return pa.array(values, arrow_type(call.type))


_MANY = Signature(("any",), repeated=True)
register(Function("ARRAY", _MANY, _given, _array, syntax="ARRAY[a, b]"))
register(Function("MAP", _MANY, _given, _map, syntax="MAP[a, b]"))
register(Function("ROW", _MANY, _given, _row, syntax="ROW(a, b)"))
register(Function("FIELD", Signature(("row", "integer")), _given, _field, syntax="a.b"))
register(Function("ITEM", Signature(("collection", "any")), _given, _item_of, syntax="a[b]"))


def _int(arguments: Sequence[Expression]) -> DataType:
    return IntType(is_nullable=any_nullable([argument.type for argument in arguments]))


def _element_type(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    return kind.element_type.nullable() if isinstance(kind, ArrayType) else NullType()


def _same(arguments: Sequence[Expression]) -> DataType:
    return arguments[0].type


def _keys(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    assert isinstance(kind, MapType)
    return ArrayType(kind.key_type, is_nullable=kind.is_nullable)


def _values(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    assert isinstance(kind, MapType)
    return ArrayType(kind.value_type, is_nullable=kind.is_nullable)


def _only(items: Any) -> Any:
    if items is not None and len(items) > 1:
        raise ValueError("ELEMENT takes an array of one element.")
    return items[0] if items else None


def _or_null(function: Any) -> Any:
    return row_by_row(lambda first, *others: None if first is None else function(first, *others))


_ARRAY = Signature(("array",))
register(Function("CARDINALITY", Signature(("collection",)), _int, _or_null(len)))
register(Function("ELEMENT", _ARRAY, _element_type, row_by_row(_only), can_fail=True))
register(Function("MAP_KEYS", Signature(("map",)), _keys, _or_null(lambda pairs: [key for key, _ in pairs])))
register(Function("MAP_VALUES", Signature(("map",)), _values, _or_null(lambda pairs: [value for _, value in pairs])))
register(Function("ARRAY_REVERSE", _ARRAY, _same, _or_null(lambda items: items[::-1])))
register(Function("ARRAY_DISTINCT", _ARRAY, _same, _or_null(lambda items: _distinct(items))))
register(
    Function(
        "ARRAY_CONTAINS",
        Signature(("array", "any")),
        lambda arguments: BooleanType(is_nullable=arguments[0].type.is_nullable),
        _or_null(lambda items, needle: needle in items),
    )
)
register(
    Function(
        "ARRAY_POSITION",
        Signature(("array", "any")),
        _int,
        row_by_row(
            lambda items, needle: (
                None if items is None or needle is None else (items.index(needle) + 1 if needle in items else 0)
            )
        ),
    )
)
register(
    Function(
        "ARRAY_MAX",
        _ARRAY,
        _element_type,
        _or_null(lambda items: max((each for each in items if each is not None), default=None)),
    )
)
register(
    Function(
        "ARRAY_MIN",
        _ARRAY,
        _element_type,
        _or_null(lambda items: min((each for each in items if each is not None), default=None)),
    )
)


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _joined_type(arguments: Sequence[Expression]) -> DataType:
    kinds = [argument.type for argument in arguments]
    common = common_type(kinds)
    return (common or NullType()).with_nullability(any_nullable(kinds))


def _widened(arguments: Sequence[Expression]) -> DataType:
    """An array that holds the second argument, too."""
    array, added = arguments[0].type, arguments[1].type
    assert isinstance(array, ArrayType)
    element = common_type([array.element_type, added]) or array.element_type
    return ArrayType(element, is_nullable=array.is_nullable)


def _text(arguments: Sequence[Expression]) -> DataType:
    return VarCharType(MAX_LENGTH, is_nullable=any_nullable([argument.type for argument in arguments]))


def _array_joined(items: Any, separator: Any, null: Any = None) -> Any:
    if items is None or separator is None:
        return None
    shown = [null if item is None else item for item in items]
    return separator.join(item for item in shown if item is not None)


def _sliced(items: Any, start: Any, end: Any = None) -> Any:
    if items is None or start is None:
        return None
    size = len(items)
    first = start - 1 if start > 0 else size + start if start < 0 else 0
    last = size if end is None else end if end > 0 else size + end + 1 if end < 0 else 1
    return items[max(first, 0) : max(last, 0)] if max(first, 0) < size else []


def _concatenated(*arrays: Any) -> Any:
    return None if any(array is None for array in arrays) else [item for array in arrays for item in array]


def _united(first: Any, second: Any) -> Any:
    return None if first is None or second is None else _distinct([*first, *second])


_WITH_ITEM = Signature(("array", "any"))
register(Function("ARRAY_APPEND", _WITH_ITEM, _widened, _or_null(lambda items, item: [*items, item])))
register(Function("ARRAY_PREPEND", _WITH_ITEM, _widened, _or_null(lambda items, item: [item, *items])))
register(
    Function("ARRAY_REMOVE", _WITH_ITEM, _same, _or_null(lambda items, item: [each for each in items if each != item]))
)
register(Function("ARRAY_CONCAT", Signature(("array",), repeated=True), _joined_type, row_by_row(_concatenated)))
register(Function("ARRAY_UNION", Signature(("array", "array")), _joined_type, row_by_row(_united)))
register(Function("ARRAY_SLICE", Signature(("array", "integer", "integer"), optional=1), _same, row_by_row(_sliced)))
register(Function("ARRAY_JOIN", Signature(("array", "string", "string"), optional=1), _text, row_by_row(_array_joined)))
