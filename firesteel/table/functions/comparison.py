"""Comparisons. Both sides have one type when they come here: see :mod:`binding`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import BooleanType, DataType
from firesteel.table.types.derivation import any_nullable

__all__: list[str] = []


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
            return _nested(compute, left, right, context.rows)
        return compute(left, right)

    return kernel


def _nested(compute: Callable[..., Any], left: Datum, right: Datum, rows: int) -> Datum:
    """Arrow compares neither lists nor rows: equality of what Python makes of them."""
    wanted = compute is pc.equal
    pairs = zip(as_array(left, rows).to_pylist(), as_array(right, rows).to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else (a == b) == wanted for a, b in pairs], pa.bool_())


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
