"""Plans as text, with Flink's names for their parts."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.logical.expressions import AggregateCall, Call, Expression, InputRef, Literal
from firesteel.table.logical.plan import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    RowNumber,
    Scan,
    UnionAll,
    Values,
    WindowTable,
)
from firesteel.table.physical.calcs import merged_calc

__all__ = ["explained"]

_INFIX = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "||"}

_JOINS = {"INNER": "InnerJoin", "LEFT": "LeftOuterJoin", "RIGHT": "RightOuterJoin", "FULL": "FullOuterJoin"}


def explained(plans: Sequence[Plan]) -> str:
    """The plan as it was written and as it runs."""
    trees = "\n".join(_tree(_logical, plan) for plan in plans)
    physical = "\n".join(_tree(_executed, plan) for plan in plans)
    return (
        f"== Abstract Syntax Tree ==\n{trees}\n"
        f"== Optimized Physical Plan ==\n{physical}\n"
        f"== Optimized Execution Plan ==\n{physical}"
    )


def _tree(show: object, plan: Plan, indent: str = "", last: bool = True, top: bool = True) -> str:
    label, inputs = show(plan)  # type: ignore[operator]
    text = f"{label}\n" if top else f"{indent}{'+- ' if last else ':- '}{label}\n"
    below = indent if top else indent + ("   " if last else ":  ")
    for index, each in enumerate(inputs):
        text += _tree(show, each, below, index == len(inputs) - 1, False)
    return text


def _logical(plan: Plan) -> tuple[str, Sequence[Plan]]:
    if isinstance(plan, Scan):
        return f"LogicalTableScan(table=[[{', '.join(plan.path)}]])", ()
    if isinstance(plan, Filter):
        return f"LogicalFilter(condition=[{plan.condition}])", plan.inputs
    if isinstance(plan, Project):
        shown = ", ".join(f"{name}=[{each}]" for name, each in zip(plan.names, plan.expressions, strict=True))
        return f"LogicalProject({shown})", plan.inputs
    if isinstance(plan, Aggregate):
        keys = ", ".join(map(str, plan.keys))
        calls = "".join(
            f", {name}=[{call}]" for name, call in zip(plan.names[len(plan.keys) :], plan.calls, strict=True)
        )
        return f"LogicalAggregate(group=[{{{keys}}}]{calls})", plan.inputs
    if isinstance(plan, Join):
        places = zip(plan.left_keys, plan.right_keys, strict=True)
        equal = [f"=(${a}, ${b + len(plan.left.names)})" for a, b in places]
        parts = [*equal, *([str(plan.condition)] if plan.condition is not None else [])]
        condition = parts[0] if len(parts) == 1 else f"AND({', '.join(parts)})" if parts else "true"
        return f"LogicalJoin(condition=[{condition}], joinType=[{plan.kind.lower()}])", plan.inputs
    if isinstance(plan, RowNumber):
        fields = ", ".join(f"{name}=[${index}]" for index, name in enumerate(plan.input.names))
        return f"LogicalProject({fields}, {plan.names[-1]}=[ROW_NUMBER()])", plan.inputs
    if isinstance(plan, WindowTable):
        return f"LogicalTableFunctionScan(invocation=[{_window(plan)}])", plan.inputs
    if isinstance(plan, UnionAll):
        return "LogicalUnion(all=[true])", plan.inputs
    assert isinstance(plan, Values)
    return f"LogicalValues(tuples=[[{', '.join(_row(row) for row in plan.rows)}]])", ()


def _row(row: Sequence[Expression]) -> str:
    return "{ " + ", ".join(map(str, row)) + " }"


class _Exchange:
    """Stands between an aggregate and its input."""

    def __init__(self, keys: Sequence[str], input: Plan) -> None:
        self.keys = keys
        self.input = input


def _executed(plan: Plan | _Exchange) -> tuple[str, Sequence[object]]:
    if isinstance(plan, _Exchange):
        kind = f"hash[{', '.join(plan.keys)}]" if plan.keys else "single"
        return f"Exchange(distribution=[{kind}])", (plan.input,)
    if isinstance(plan, Scan):
        return f"TableSourceScan(table=[[{', '.join(plan.path)}]], fields=[{', '.join(plan.names)}])", ()
    if isinstance(plan, Project | Filter):
        calc = merged_calc(plan)
        if calc.is_identity:
            return _executed(calc.input)
        names = calc.input.names
        select = ", ".join(
            _selected(each, name, names) for each, name in zip(calc.expressions, calc.names, strict=True)
        )
        where = f", where=[{_shown(calc.condition, names)}]" if calc.condition is not None else ""
        return f"Calc(select=[{select}]{where})", (calc.input,)
    if isinstance(plan, Aggregate):
        names = plan.input.names
        keys = [names[key] for key in plan.keys]
        calls = [
            f"{_call(call, names)} AS {name}"
            for name, call in zip(plan.names[len(plan.keys) :], plan.calls, strict=True)
        ]
        group = f"groupBy=[{', '.join(keys)}], " if keys else ""
        return f"GroupAggregate({group}select=[{', '.join([*keys, *calls])}])", (_Exchange(keys, plan.input),)
    if isinstance(plan, Join):
        sides = [*plan.left.names, *plan.right.names]
        pairs = zip(plan.left_keys, plan.right_keys, strict=True)
        equal = [f"({plan.left.names[a]} = {plan.right.names[b]})" for a, b in pairs]
        checked = [_shown(plan.condition, sides)] if plan.condition is not None else []
        where = " AND ".join([*equal, *checked]) or "true"
        label = (
            f"Join(joinType=[{_JOINS.get(plan.kind, plan.kind)}], where=[{where}], select=[{', '.join(plan.names)}])"
        )
        left = _Exchange([plan.left.names[key] for key in plan.left_keys], plan.left)
        return label, (left, _Exchange([plan.right.names[key] for key in plan.right_keys], plan.right))
    if isinstance(plan, RowNumber):
        keys = [plan.input.names[key] for key in plan.partition]
        order = ", ".join(f"{plan.input.names[o.column]} {'DESC' if o.descending else 'ASC'}" for o in plan.order)
        label = f"Rank(rankType=[ROW_NUMBER], partitionBy=[{', '.join(keys)}], orderBy=[{order}])"
        return label, (_Exchange(keys, plan.input),)
    if isinstance(plan, WindowTable):
        return f"WindowTableFunction(window=[{_window(plan)}])", plan.inputs
    if isinstance(plan, UnionAll):
        return f"Union(all=[true], union=[{', '.join(plan.names)}])", plan.inputs
    assert isinstance(plan, Values)
    return f"Values(tuples=[[{', '.join(_row(row) for row in plan.rows)}]])", ()


def _window(plan: WindowTable) -> str:
    slide = f", slide=[{plan.slide} ms]" if plan.slide else ""
    return f"{plan.kind}(time_col=[{plan.input.names[plan.time]}], size=[{plan.size} ms]{slide})"


def _selected(expression: Expression, name: str, names: Sequence[str]) -> str:
    shown = _shown(expression, names)
    return shown if shown == name else f"{shown} AS {name}"


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    shown = ", ".join(names[index] for index in call.args) or "*"
    inner = f"DISTINCT {shown}" if call.distinct else shown
    return f"{call.function}({inner})" + (f" FILTER {names[call.filter]}" if call.filter is not None else "")


def _shown(expression: Expression | None, names: Sequence[str]) -> str:
    if isinstance(expression, InputRef):
        return names[expression.index]
    if isinstance(expression, Literal):
        return str(expression).rsplit(":", 1)[0] if isinstance(expression.value, str) else str(expression)
    assert isinstance(expression, Call)
    args = [_shown(each, names) for each in expression.args]
    if expression.function in _INFIX and len(args) > 1:
        return f"({f' {expression.function} '.join(args)})"
    if expression.function in ("IS NULL", "IS NOT NULL"):
        return f"{args[0]} {expression.function}"
    if expression.function in ("CAST", "TRY_CAST"):
        return f"{expression.function}({args[0]} AS {expression.type.sql})"
    return f"{expression.function}({', '.join(args)})"
