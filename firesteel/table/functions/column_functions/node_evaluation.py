"""Computes the expression of a user's function for a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.column_functions.column_values import GivenUpError, Value, value_of
from firesteel.table.functions.column_functions.declared_results import declared_result
from firesteel.table.functions.column_functions.expression_nodes import (
    Argument,
    Bound,
    Choice,
    Constant,
    Let,
    Node,
    OneOf,
    Operation,
    Outer,
    Raises,
)
from firesteel.table.functions.column_functions.python_arithmetic import ARITHMETIC
from firesteel.table.functions.column_functions.python_comparison import COMPARISON, members, one_of, truth
from firesteel.table.functions.column_functions.python_text import TEXT
from firesteel.table.types.data_types import DataType

__all__ = ["NodeEvaluation"]

_OPERATIONS = {**ARITHMETIC, **COMPARISON, **TEXT}

Finish = Callable[[Node, "_Rows"], Value]


class _Rows:
    """The rows that an expression is computed for: those of the batch, or those of them that choose it."""

    def __init__(
        self, count: int, outer: Mapping[str, Any], arguments: Sequence[Value] = (), above: _Rows | None = None
    ) -> None:
        self.count = count
        self.outer = outer
        self._arguments = dict(enumerate(arguments))
        self._bound: dict[int, Value] = {}
        self._above = above
        self._mask: pa.Array | None = None

    def argument(self, index: int) -> Value:
        if index not in self._arguments:
            assert self._above is not None
            self._arguments[index] = self._filtered(self._above.argument(index))
        return self._arguments[index]

    def bound(self, slot: int) -> Value:
        if slot not in self._bound:
            assert self._above is not None
            self._bound[slot] = self._filtered(self._above.bound(slot))
        return self._bound[slot]

    def bind(self, slot: int, value: Value) -> None:
        self._bound[slot] = value

    def chosen(self, mask: pa.Array, count: int) -> _Rows:
        """Of these rows those where the mask holds."""
        rows = _Rows(count, self.outer, (), self)
        rows._mask = mask
        return rows

    def _filtered(self, value: Value) -> Value:
        return value if value.column is None else Value(value.kind, value.column.filter(self._mask))


class NodeEvaluation:
    """Computes one expression again and again. It raises :class:`GivenUpError`, or an error of Arrow's, where Python
    may have another result; what it gives is what Python has.

    >>> from firesteel.table.types import DataTypes
    >>> doubled = NodeEvaluation(Operation("*", (Argument(0), Constant(2))), DataTypes.BIGINT())
    >>> doubled.column([Value(int, pa.array([1, 4]))], 2, {}).to_pylist()
    [2, 8]
    """

    def __init__(self, body: Node, result_type: DataType) -> None:
        self._body = body
        self._result_type = result_type
        self._guarded: set[int] = set()
        """Choices with an operand that fails for rows that do not choose it, by their identity: the next batch will
        hardly be another one."""

    def column(self, arguments: Sequence[Value], rows: int, outer: Mapping[str, Any]) -> pa.Array:
        """The results. ``outer`` has the values of names from outside of the function."""
        found = self._result(self._body, _Rows(rows, outer, arguments)).column
        assert found is not None
        return found

    def _result(self, node: Node, rows: _Rows) -> Value:
        """As the declared type. Each side of a choice becomes it for itself, for they may be of several types."""
        if isinstance(node, Choice):
            return self._choice(node, rows, self._result)
        if isinstance(node, Let):
            rows.bind(node.slot, self._value(node.value, rows))
            return self._result(node.body, rows)
        column = declared_result(self._value(node, rows), self._result_type, rows.count)
        return Value(object, column)

    def _value(self, node: Node, rows: _Rows) -> Value:
        match node:
            case Operation(name, operands, options):
                values = [self._value(each, rows) for each in operands]
                return _OPERATIONS[name](values, options, rows.count)
            case Argument(index):
                return rows.argument(index)
            case Constant(value):
                return value_of(value)
            case Bound(slot):
                return rows.bound(slot)
            case Choice():
                return self._choice(node, rows, self._value)
            case Let(slot, value, body):
                rows.bind(slot, self._value(value, rows))
                return self._value(body, rows)
            case Outer(name):
                if name not in rows.outer:
                    raise GivenUpError(f"{name} is not there")
                return value_of(rows.outer[name])
            case OneOf(value, name):
                return one_of(self._value(value, rows), members(rows.outer.get(name), rows.count), rows.count)
            case Raises():
                raise GivenUpError("an exception")
        raise AssertionError(node)

    def _choice(self, node: Choice, rows: _Rows, compute: Finish) -> Value:
        test = truth(self._value(node.test, rows), rows.count)
        mask = test.column
        if mask is None:
            return compute(node.chosen if test.constant else node.otherwise, rows)
        count = mask.true_count
        if count in (0, rows.count):
            return compute(node.chosen if count else node.otherwise, rows)
        if id(node) not in self._guarded:
            # Faster than to choose rows, if it goes for all of them.
            try:
                return _merged(mask, compute(node.chosen, rows), compute(node.otherwise, rows))
            except (GivenUpError, pa.ArrowException):
                self._guarded.add(id(node))
        chosen = compute(node.chosen, rows.chosen(mask, count))
        rest = rows.count - count
        otherwise = compute(node.otherwise, rows.chosen(pc.invert(mask), rest))
        kind, first, second = _alike(chosen, otherwise)
        spread = pc.replace_with_mask(pa.nulls(rows.count, first.type), mask, _long(first, count))
        return Value(kind, pc.replace_with_mask(spread, pc.invert(mask), _long(second, rest)))


def _merged(mask: pa.Array, chosen: Value, otherwise: Value) -> Value:
    kind, first, second = _alike(chosen, otherwise)
    return Value(kind, pc.if_else(mask, first, second))


def _alike(chosen: Value, otherwise: Value) -> tuple[type, Any, Any]:
    """Both as Arrow's data of one type; None is of every type."""
    none = type(None)
    kind = otherwise.kind if chosen.kind is none else chosen.kind
    if kind is none or any(each.kind not in (kind, none) for each in (chosen, otherwise)):
        raise GivenUpError("values of several types")
    data = [None if each.kind is none else each.datum() for each in (chosen, otherwise)]
    known = next(each for each in data if each is not None)
    first, second = (pa.scalar(None, known.type) if each is None else each for each in data)
    return kind, first, second


def _long(datum: Any, rows: int) -> pa.Array:
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, rows) if datum.is_valid else pa.nulls(rows, datum.type)
