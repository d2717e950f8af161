"""Expressions of the Table API as text, as PyFlink shows them: ``plus(id, 1)``."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from firesteel.table.sql import syntax
from firesteel.table.sql.syntax import Node

__all__ = ["expression_text"]

_OPERATORS = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "%": "mod",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
    "=": "equals",
    "<>": "notEquals",
    "AND": "and",
    "OR": "or",
    "OVERLAPS": "temporalOverlaps",
}
_FUNCTIONS = {
    "IFNULL": "IFNULL",
    "LISTAGG": "listAgg",
    "TIMESTAMPDIFF": "timestampDiff",
    "WINDOW_START": "start",
    "WINDOW_END": "end",
    "WINDOW_ROWTIME": "rowtime",
    "WINDOW_PROCTIME": "proctime",
    "LN": "ln",
    "INITCAP": "initCap",
    "LOCALTIME": "localTime",
    "LOCALTIMESTAMP": "localTimestamp",
    "FIRST_VALUE": "first_value",
    "LAST_VALUE": "last_value",
    "CONCAT_WS": "concat_ws",
}
_AS_IN_SQL = frozenset(
    [
        *("ARRAY_AGG", "PERCENTILE", "ELT", "PRINTF", "STARTSWITH", "ENDSWITH", "UNHEX", "INET_ATON", "INET_NTOA"),
        *("REGEXP_COUNT", "REGEXP_EXTRACT_ALL", "REGEXP_INSTR", "REGEXP_SUBSTR"),
        *("TO_TIMESTAMP_LTZ", "SOURCE_WATERMARK"),
    ]
)


def expression_text(node: Node) -> str:
    """The text of what an expression holds.

    >>> from firesteel.table.expressions import col
    >>> print((col("a") + 1).alias("next"))
    as(plus(a, 1), 'next')
    """
    if isinstance(node, syntax.Name | syntax.Star):
        return str(node) if isinstance(node, syntax.Name) else "*"
    if isinstance(node, syntax.Constant):
        return _constant(node)
    if isinstance(node, syntax.Symbol):
        return node.word
    if isinstance(node, syntax.FunctionCall):
        return _function(node)
    parts = _parts(node)
    if parts is None:
        return type(node).__name__
    name, operands = parts
    return f"{name}({', '.join(each if isinstance(each, str) else expression_text(each) for each in operands)})"


def _parts(node: Node) -> tuple[str, Sequence[Node | str]] | None:
    """The function that PyFlink has for it, and its arguments."""
    match node:
        case syntax.SelectItem():
            return "as", (node.expression, *(f"'{name}'" for name in (node.alias, *node.more)))
        case syntax.Binary(
            operator="OVERLAPS", left=syntax.RowConstructor() as left, right=syntax.RowConstructor() as right
        ):
            return "temporalOverlaps", (*left.items, *right.items)
        case syntax.Binary(operator="AND" | "OR"):
            return _OPERATORS[node.operator], _flat(node, node.operator)
        case syntax.Binary():
            return _OPERATORS.get(node.operator, node.operator), (node.left, node.right)
        case syntax.Unary():
            return {"NOT": "not", "-": "minusPrefix"}.get(node.operator, node.operator), (node.operand,)
        case syntax.Cast():
            return "TRY_CAST" if node.safe else "cast", (node.operand, str(node.type.nullable()))
        case syntax.IsTest():
            return f"is{'Not' if node.negated else ''}{node.what.title()}", (node.operand,)
        case syntax.Between():
            return "notBetween" if node.negated else "between", (node.operand, node.low, node.high)
        case syntax.InList():
            return "in", (node.operand, *node.items)
        case syntax.Like():
            name = "LIKE" if node.operator == "LIKE" else "similar"
            return name, (node.operand, node.pattern, *([node.escape] if node.escape is not None else []))
        case syntax.Case() if node.otherwise is not None:
            return "ifThenElse", (*node.branches[0], node.otherwise)
        case syntax.OrderItem():
            return "desc" if node.descending else "asc", (node.expression,)
        case syntax.ItemAccess():
            return "at", (node.operand, node.index)
        case syntax.FieldAccess():
            field = node.field_name
            return "get", (node.operand, str(field) if isinstance(field, int) else f"'{field}'")
        case syntax.ArrayConstructor() | syntax.RowConstructor() | syntax.MapConstructor():
            return type(node).__name__.removesuffix("Constructor").lower(), node.items
    return None


def _flat(node: Node, operator: str) -> list[Node]:
    if isinstance(node, syntax.Binary) and node.operator == operator:
        return [*_flat(node.left, operator), node.right]
    return [node]


def _constant(node: syntax.Constant) -> str:
    value = getattr(node.value, "value", node.value)
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.timedelta):
        return str(value // datetime.timedelta(milliseconds=1))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _function(node: syntax.FunctionCall) -> str:
    name = node.name.parts[-1]
    if node.user is None:
        first, *others = name.split("_")
        if name not in _AS_IN_SQL:
            name = _FUNCTIONS.get(name) or first.lower() + "".join(map(str.title, others))
    text = f"{name}({', '.join(map(expression_text, node.args))})"
    if node.distinct:
        text = f"distinct({text})"
    return text if node.over is None else f"over({text}, {node.over.name})"
