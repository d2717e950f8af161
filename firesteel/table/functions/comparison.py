"""Comparisons. Both sides have one type when they come here: see :mod:`binding`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import plain_rows
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import BooleanType, DataType
from firesteel.table.types.derivation import any_nullable

__all__ = ["certain", "nested_equality", "truth"]


def truth(arguments: Sequence[Expression]) -> DataType:
    """BOOLEAN, NULL if an argument is."""
    return BooleanType(is_nullable=any_nullable([argument.type for argument in arguments]))


def certain(arguments: Sequence[Expression]) -> DataType:
    """BOOLEAN and never NULL."""
    return BooleanType(is_nullable=False)


def _compared(compute: Callable[..., Any]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        left, right = arguments
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return pa.scalar(None, pa.bool_())
        if pa.types.is_nested(left.type):
            found = nested_equality(left, right, context.rows)
            return found if compute is pc.equal else pc.invert(found)
        return compute(left, right)

    return kernel


def nested_equality(left: Datum, right: Datum, rows: int) -> pa.Array:
    """Arrow compares neither lists nor rows: equality of what Python makes of them."""
    pairs = zip(plain_rows(left, rows), plain_rows(right, rows), strict=True)
    return pa.array([None if a is None or b is None else a == b for a, b in pairs], pa.bool_())


def _distinct(equal: bool) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        left, right = arguments
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        same = pc.or_(both, pc.fill_null(_compared(pc.equal)(call, arguments, context), False))
        return same if equal else pc.invert(same)

    return kernel


_PAIR = Signature(("comparable", "comparable"))
for _name, _compute in {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}.items():
    register(
        Function(_name, Signature(("comparable", "comparable")), truth, _compared(_compute), syntax=f"a {_name} b")
    )

_PAIR = Signature(("comparable", "comparable"))
register(Function("IS DISTINCT FROM", _PAIR, certain, _distinct(False), syntax="a IS DISTINCT FROM b"))
register(Function("IS NOT DISTINCT FROM", _PAIR, certain, _distinct(True), syntax="a IS NOT DISTINCT FROM b"))
