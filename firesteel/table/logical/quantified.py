"""Comparisons with ANY and ALL of a query: of the smallest or the largest value that it gives."""

from __future__ import annotations

from typing import Any

from firesteel.table.functions.aggregates import aggregate_type
from firesteel.table.functions.binding import bind
from firesteel.table.logical.expressions import AggregateCall, Call, Expression, Literal, Subquery
from firesteel.table.logical.plan import Aggregate, Plan
from firesteel.table.types.data_types import BigIntType, BooleanType

__all__ = ["CONTRARY", "compared_with_any"]

CONTRARY = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_EXTREMES = {"<": ("MAX",), "<=": ("MAX",), ">": ("MIN",), ">=": ("MIN",), "<>": ("MIN", "MAX")}
_COUNT = BigIntType(is_nullable=False)
_SURE = BooleanType(is_nullable=False)


def compared_with_any(operand: Expression, operator: str, plan: Plan, span: Any) -> Expression:
    """Whether the comparison holds for a value of the query: FALSE if it has none; unknown if it holds for none but one
    is NULL."""

    def value(function: str, args: tuple[int, ...]) -> Expression:
        kind = _COUNT if function == "COUNT" else aggregate_type(function, [plan.types[0]], False, False)
        whole = Aggregate(plan, (), (AggregateCall(function, args, kind),), ("$value",))
        return Subquery("SCALAR", (), whole, kind.nullable(), span)

    tests = [bind(operator, [operand, value(function, (0,))]) for function in _EXTREMES[operator]]
    holds = tests[0] if len(tests) == 1 else bind("OR", tests)
    rows, known = value("COUNT", ()), value("COUNT", (0,))
    # A stream without rows has no count yet.
    empty = bind("OR", [bind("IS NULL", [rows]), bind("=", [rows, Literal(0, _COUNT)])])
    branches: list[Expression] = [empty, Literal(False, _SURE)]
    branches += [bind("IS TRUE", [holds]), Literal(True, _SURE)]
    branches += [bind("<", [known, rows]), Literal(None, BooleanType())]
    return Call("CASE", (*branches, holds), BooleanType())
