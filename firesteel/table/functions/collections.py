"""Arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.type_system.keys import plain, unique_pairs
from firesteel.errors import FailureKind, ProgramError
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import with_plain_rows
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
    RowField,
    RowType,
    VarCharType,
)
from firesteel.table.types.derivation import any_nullable, common_type

__all__ = ["CollectionError"]


class CollectionError(ProgramError):
    """An array or a map that a function cannot take."""

    kind = FailureKind.PERMANENT


def _given(arguments: Sequence[Expression]) -> DataType:
    """Constructors are built by the resolver, which knows their type."""
    raise AssertionError


def _array(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    return pa.array([list(items) for items in zip(*columns, strict=True)], arrow_type(call.type))


def _map(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    if any(None in keys for keys in columns[::2]):
        raise CollectionError(
            "A key of MAP[...] is NULL, and a map has no such key. Leave such rows out, or COALESCE it."
        )
    rows = [unique_pairs(zip(items[::2], items[1::2], strict=True)) for items in zip(*columns, strict=True)]
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
    return _of_key(collection, index)


def _of_key(pairs: Any, key: Any) -> Any:
    wanted = plain(key)
    return next((value for known, value in pairs if plain(known) == wanted), None)


def _item_of(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
    if isinstance(call.args[0].type, MapType):
        values = [
            None if pairs is None or key is None else _of_key(pairs, key) for pairs, key in zip(*columns, strict=True)
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


def _only_type(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    assert isinstance(kind, ArrayType)
    return kind.element_type.with_nullability(kind.is_nullable or kind.element_type.is_nullable)


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
        raise CollectionError(f"ELEMENT takes an array of one element, got one of {len(items)}.")
    return items[0] if items else None


def _or_null(function: Any) -> Any:
    return with_plain_rows(lambda first, *others: None if first is None else function(first, *others))


_ARRAY = Signature(("array",))
register(Function("CARDINALITY", Signature(("collection",)), _int, _or_null(len)))
register(Function("ELEMENT", _ARRAY, _only_type, with_plain_rows(_only), can_fail=True))
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
        with_plain_rows(
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
    return ArrayType(element, is_nullable=array.is_nullable or added.is_nullable)


def _array_or_null(arguments: Sequence[Expression]) -> DataType:
    """The type of the array, NULL if an argument is."""
    return arguments[0].type.with_nullability(any_nullable([argument.type for argument in arguments]))


def _text(arguments: Sequence[Expression]) -> DataType:
    return VarCharType(MAX_LENGTH, is_nullable=any_nullable([argument.type for argument in arguments]))


def _array_joined(items: Any, separator: Any, *null_text: Any) -> Any:
    if items is None or separator is None or None in null_text:
        return None
    null = null_text[0] if null_text else None
    shown = [null if item is None else item for item in items]
    return separator.join(item for item in shown if item is not None)


def _sliced(items: Any, start: Any, *until: Any) -> Any:
    if items is None or start is None or None in until:
        return None
    end = until[0] if until else None
    size = len(items)
    first = start - 1 if start > 0 else size + start if start < 0 else 0
    last = size if end is None else end if end > 0 else size + end + 1 if end < 0 else 1
    return items[max(first, 0) : max(last, 0)] if max(first, 0) < size else []


def _concatenated(*arrays: Any) -> Any:
    return None if any(array is None for array in arrays) else [item for array in arrays for item in array]


def _union(first: Any, second: Any) -> Any:
    return None if first is None or second is None else _distinct([*first, *second])


_WITH_ITEM = Signature(("array", "any"))
register(Function("ARRAY_APPEND", _WITH_ITEM, _widened, _or_null(lambda items, item: [*items, item])))
register(Function("ARRAY_PREPEND", _WITH_ITEM, _widened, _or_null(lambda items, item: [item, *items])))
register(
    Function("ARRAY_REMOVE", _WITH_ITEM, _same, _or_null(lambda items, item: [each for each in items if each != item]))
)
register(Function("ARRAY_CONCAT", Signature(("array",), repeated=True), _joined_type, with_plain_rows(_concatenated)))
register(Function("ARRAY_UNION", Signature(("array", "array")), _joined_type, with_plain_rows(_union)))
register(
    Function(
        "ARRAY_SLICE", Signature(("array", "integer", "integer"), optional=1), _array_or_null, with_plain_rows(_sliced)
    )
)
register(
    Function("ARRAY_JOIN", Signature(("array", "string", "string"), optional=1), _text, with_plain_rows(_array_joined))
)


def _excepted(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return None
    return _distinct([item for item in first if item not in second])


def _intersected(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return None
    return _distinct([item for item in first if item in second])


def _order(item: Any) -> tuple[bool, Any]:
    """NaN is the greatest number, as in Java; text is in the order of its bytes."""
    if isinstance(item, float) and item != item:
        return True, 0.0
    return False, item.encode() if isinstance(item, str) else item


def _sorted(items: Any, *options: Any) -> Any:
    if items is None or None in options:
        return None
    ascending = options[0] if options else True
    nulls_first = options[1] if len(options) > 1 else ascending
    nulls = [None] * items.count(None)
    known = sorted((item for item in items if item is not None), key=_order, reverse=not ascending)
    return [*nulls, *known] if nulls_first else [*known, *nulls]


register(Function("ARRAY_EXCEPT", Signature(("array", "array")), _joined_type, with_plain_rows(_excepted)))
register(Function("ARRAY_INTERSECT", Signature(("array", "array")), _joined_type, with_plain_rows(_intersected)))
register(
    Function(
        "ARRAY_SORT", Signature(("array", "boolean", "boolean"), optional=2), _array_or_null, with_plain_rows(_sorted)
    )
)


def _entries_type(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    assert isinstance(kind, MapType)
    entry = RowType((RowField("key", kind.key_type), RowField("value", kind.value_type)))
    return ArrayType(entry, is_nullable=kind.is_nullable)


def _entries(pairs: Any) -> Any:
    return [{"key": key, "value": value} for key, value in pairs]


def _map_of_arrays_type(arguments: Sequence[Expression]) -> DataType:
    keys, values = (argument.type for argument in arguments)
    assert isinstance(keys, ArrayType)
    assert isinstance(values, ArrayType)
    return MapType(keys.element_type, values.element_type, is_nullable=any_nullable([keys, values]))


def _map_of_arrays(keys: Any, values: Any) -> Any:
    if keys is None or values is None:
        return None
    if len(keys) != len(values):
        raise CollectionError(f"MAP_FROM_ARRAYS takes as many keys as values, got {len(keys)} and {len(values)}.")
    return unique_pairs(zip(keys, values, strict=True))


def _map_union(*maps: Any) -> Any:
    """The last one counts where a key is in several; its keys come first, as in Flink."""
    if any(pairs is None for pairs in maps):
        return None
    found: dict[Any, tuple[Any, Any]] = {}
    for pairs in reversed(maps):
        for key, value in pairs:
            found.setdefault(plain(key), (key, value))
    return list(found.values())


register(Function("MAP_ENTRIES", Signature(("map",)), _entries_type, _or_null(_entries)))
register(
    Function(
        "MAP_FROM_ARRAYS",
        Signature(("array", "array")),
        _map_of_arrays_type,
        with_plain_rows(_map_of_arrays),
        can_fail=True,
    )
)
register(Function("MAP_UNION", Signature(("map",), repeated=True), _joined_type, with_plain_rows(_map_union)))
