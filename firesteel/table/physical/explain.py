"""Plans as text, with Flink's names for their parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.table.logical.analytic_windows import AnalyticWindow
from firesteel.table.logical.expressions import (
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Literal,
    UserCall,
    has_user_calls,
)
from firesteel.table.logical.first_rows import first_rows
from firesteel.table.logical.patterns import MatchRecognize
from firesteel.table.logical.plan import (
    Aggregate,
    Correlate,
    Expand,
    Filter,
    FromChangelog,
    Join,
    LookupJoin,
    OverWindow,
    Plan,
    Project,
    Replicate,
    RowNumber,
    Scan,
    Sort,
    SortedWindow,
    SortOrder,
    TableAggregate,
    TemporalJoin,
    ToChangelog,
    UnionAll,
    Values,
    WindowTable,
    unique_names,
)
from firesteel.table.logical.pruning import pruned
from firesteel.table.logical.time_attributes import interval_of
from firesteel.table.logical.window_columns import is_window_join, is_windowed, window_columns
from firesteel.table.physical.calcs import merged_calc

__all__ = [
    "JOINS",
    "Exchange",
    "Step",
    "Steps",
    "call_text",
    "executed",
    "explained",
    "expression_text",
    "join_condition",
    "order_text",
]

_INFIX = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "||"}

JOINS = {"INNER": "InnerJoin", "LEFT": "LeftOuterJoin", "RIGHT": "RightOuterJoin", "FULL": "FullOuterJoin"}
JOINS |= {"SEMI": "LeftSemiJoin", "ANTI": "LeftAntiJoin"}


@dataclass(frozen=True)
class Step:
    """A part of the plan that runs, which is no relation of its own."""

    label: str
    inputs: tuple[Plan | Step, ...]


Steps = tuple[str, Sequence[object]]
"""What is shown of a part, and the parts below it."""


def explained(
    plans: Sequence[Plan],
    targets: Sequence[str] = (),
    show: Callable[[Any], Steps] | None = None,
    conflicts: Sequence[str] = (),
    noted: Callable[[Callable[[Any], Steps]], Callable[[Any], Steps]] | None = None,
) -> str:
    """The plan as it was written and as it runs. ``targets`` are the tables that the rows of each go to, if they go to
    any, and ``conflicts`` what ON CONFLICT says of them. ``show`` knows the parts that run, those of a stream by
    default; ``noted`` adds details to them."""
    sinks = [
        _sink(plan, target, conflict) if target else ""
        for plan, target, conflict in itertools.zip_longest(plans, targets, conflicts)
    ]
    trees = "\n".join(
        _tree(_logical, Step(f"Logical{sink}", (plan,)) if sink else plan)
        for plan, sink in zip(plans, sinks, strict=True)
    )
    roots = [Step(sink, (pruned(plan),)) if sink else pruned(plan) for plan, sink in zip(plans, sinks, strict=True)]
    plain = show or executed
    physical = "\n".join(_tree(plain if noted is None else noted(plain), root) for root in roots)
    executes = physical if noted is None else "\n".join(_tree(plain, root) for root in roots)
    return (
        f"== Abstract Syntax Tree ==\n{trees}\n"
        f"== Optimized Physical Plan ==\n{physical}\n"
        f"== Optimized Execution Plan ==\n{executes}"
    )


def _sink(plan: Plan, target: str, conflict: str) -> str:
    strategy = f", conflictStrategy=[{conflict}]" if conflict else ""
    return f"Sink(table=[{target}], fields=[{', '.join(plan.names)}]{strategy})"


def _tree(show: object, plan: Plan | Step, indent: str = "", last: bool = True, top: bool = True) -> str:
    label, inputs = show(plan)  # type: ignore[operator]
    text = f"{label}\n" if top else f"{indent}{'+- ' if last else ':- '}{label}\n"
    below = indent if top else indent + ("   " if last else ":  ")
    for index, each in enumerate(inputs):
        text += _tree(show, each, below, index == len(inputs) - 1, False)
    return text


def _logical(plan: Plan | Step) -> tuple[str, Sequence[object]]:
    if isinstance(plan, Step):
        return plan.label, plan.inputs
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
    if isinstance(plan, TableAggregate):
        keys = ", ".join(map(str, plan.keys))
        return f"LogicalTableAggregate(group=[{{{keys}}}], tableAggregate=[[{plan.call}]])", plan.inputs
    if isinstance(plan, Join):
        places = zip(plan.left_keys, plan.right_keys, strict=True)
        equal = [f"=(${a}, ${b + len(plan.left.names)})" for a, b in places]
        parts = [*equal, *([str(plan.condition)] if plan.condition is not None else [])]
        condition = parts[0] if len(parts) == 1 else f"AND({', '.join(parts)})" if parts else "true"
        return f"LogicalJoin(condition=[{condition}], joinType=[{plan.kind.lower()}])", plan.inputs
    if isinstance(plan, TemporalJoin | LookupJoin):
        return f"LogicalCorrelate(joinType=[{plan.kind.lower()}])", (plan.left, plan.right)
    if isinstance(plan, Correlate):
        join = "left" if plan.kind == "LEFT" else "inner"
        return f"LogicalCorrelate(invocation=[{plan.call}], joinType=[{join}])", plan.inputs
    if isinstance(plan, RowNumber):
        fields = ", ".join(f"{name}=[${index}]" for index, name in enumerate(plan.input.names))
        return f"LogicalProject({fields}, {plan.names[-1]}=[ROW_NUMBER()])", plan.inputs
    if isinstance(plan, Sort):
        return f"LogicalSort({_sort_text(plan)})", plan.inputs
    if isinstance(plan, WindowTable):
        return f"LogicalTableFunctionScan(invocation=[{_window(plan)}])", plan.inputs
    if isinstance(plan, ToChangelog | FromChangelog):
        return f"LogicalTableFunctionScan(invocation=[{_changelog(plan)}])", plan.inputs
    if isinstance(plan, Replicate):
        return "LogicalTableFunctionScan(invocation=[$REPLICATE_ROWS$1])", plan.inputs
    if isinstance(plan, MatchRecognize):
        return f"LogicalMatch(partition=[{list(plan.partition)}], outputFields=[{list(plan.names)}])", plan.inputs
    if isinstance(plan, OverWindow):
        columns = [f"{name}=[${index}]" for index, name in enumerate(plan.input.names)]
        partition = f"PARTITION BY {', '.join(f'${key}' for key in plan.partition)} " if plan.partition else ""
        frame = f"OVER ({partition}ORDER BY ${plan.time} {_frame(plan)})"
        results = zip(plan.names[len(columns) :], plan.calls, strict=True)
        columns += [f"{name}=[{call} {frame}]" for name, call in results]
        return f"LogicalProject({', '.join(columns)})", plan.inputs
    if isinstance(plan, AnalyticWindow):
        group = f"PARTITION BY {', '.join(f'${key}' for key in plan.partition)} " if plan.partition else ""
        by = ", ".join(f"${each.column}{' DESC' if each.descending else ''}" for each in plan.order)
        by = f"ORDER BY {by} " if by else ""
        pairs = zip(plan.calls, plan.frames, strict=True)
        shown = ", ".join(f"{call} OVER ({group}{by}{frame})" for call, frame in pairs)
        return f"LogicalProject(inputs=[0..{len(plan.input.names) - 1}], exprs=[[{shown}]])", plan.inputs
    if isinstance(plan, SortedWindow):
        keys = f"PARTITION BY {', '.join(f'${key}' for key in plan.partition)} " if plan.partition else ""
        order = ", ".join(f"${each.column}{' DESC' if each.descending else ''}" for each in plan.order)
        shown = ", ".join(f"{call} OVER ({keys}ORDER BY {order})" for call in plan.calls)
        return f"LogicalProject(inputs=[0..{len(plan.input.names) - 1}], exprs=[[{shown}]])", plan.inputs
    if isinstance(plan, Expand):
        return _expand(plan), plan.inputs
    if isinstance(plan, UnionAll):
        return "LogicalUnion(all=[true])", plan.inputs
    assert isinstance(plan, Values)
    return f"LogicalValues(tuples=[[{', '.join(_row(row) for row in plan.rows)}]])", ()


def _places(plan: Join | TemporalJoin | LookupJoin) -> list[tuple[int, int]]:
    return list(zip(plan.left_keys, plan.right_keys, strict=True))


def _sort_text(plan: Sort) -> str:
    columns = [f"sort{index}=[${each.column}]" for index, each in enumerate(plan.order)]
    for index, each in enumerate(plan.order):
        direction = "DESC" if each.descending else "ASC"
        columns.append(f"dir{index}=[{direction}-nulls-{'last' if each.nulls_last else 'first'}]")
    columns += [f"offset=[{plan.offset}]"] if plan.offset else []
    return ", ".join([*columns, *([f"fetch=[{plan.limit}]"] if plan.limit is not None else [])])


def _row(row: Sequence[Expression]) -> str:
    return "{ " + ", ".join(map(str, row)) + " }"


class Exchange:
    """Stands between an aggregate and its input."""

    def __init__(self, keys: Sequence[str], input: Plan) -> None:
        self.keys = keys
        self.input = input


def executed(plan: Plan | Step | Exchange) -> Steps:
    """A part of a plan as a stream runs it."""
    if isinstance(plan, Step):
        return plan.label, plan.inputs
    if isinstance(plan, Exchange):
        kind = f"hash[{', '.join(plan.keys)}]" if plan.keys else "single"
        return f"Exchange(distribution=[{kind}])", (plan.input,)
    if isinstance(plan, Scan):
        return f"TableSourceScan(table=[[{', '.join(plan.path)}]], fields=[{', '.join(plan.names)}])", ()
    if isinstance(plan, Project | Filter):
        calc = merged_calc(plan)
        if calc.is_identity:
            return executed(calc.input)
        names = calc.input.names
        select = ", ".join(
            _selected(each, name, names) for each, name in zip(calc.expressions, calc.names, strict=True)
        )
        where = f", where=[{expression_text(calc.condition, names)}]" if calc.condition is not None else ""
        users = any(has_user_calls(each) for each in (*calc.expressions, calc.condition) if each is not None)
        return f"{'PythonCalc' if users else 'Calc'}(select=[{select}]{where})", (calc.input,)
    if isinstance(plan, Correlate):
        label = "PythonCorrelate" if isinstance(plan.call, UserCall) else "Correlate"
        invocation = expression_text(plan.call, plan.input.names)
        join = plan.kind
        return f"{label}(invocation=[{invocation}], select=[{', '.join(plan.names)}], joinType=[{join}])", plan.inputs
    if isinstance(plan, Aggregate):
        names = plan.input.names
        keys = [names[key] for key in plan.keys]
        calls = [
            f"{call_text(call, names)} AS {name}"
            for name, call in zip(plan.names[len(plan.keys) :], plan.calls, strict=True)
        ]
        group = f"groupBy=[{', '.join(keys)}], " if keys else ""
        if is_windowed(plan):
            windows = window_columns(plan.input)
            assert windows is not None
            plain = [names[key] for key in plan.keys if key not in windows.starts | windows.ends | windows.times]
            group = f"groupBy=[{', '.join(plain)}], " if plain else ""
            label = f"WindowAggregate({group}window=[{_window(windows.window)}], select=[{', '.join([*keys, *calls])}])"
            return label, (Exchange(plain, plan.input),)
        label = "PythonGroupAggregate" if any(call.user is not None for call in plan.calls) else "GroupAggregate"
        return f"{label}({group}select=[{', '.join([*keys, *calls])}])", (Exchange(keys, plan.input),)
    if isinstance(plan, TableAggregate):
        names = plan.input.names
        keys = [names[key] for key in plan.keys]
        group = f"groupBy=[{', '.join(keys)}], " if keys else ""
        select = ", ".join([*keys, f"{call_text(plan.call, names)} AS ({', '.join(plan.names[len(keys) :])})"])
        return f"PythonGroupTableAggregate({group}select=[{select}])", (Exchange(keys, plan.input),)
    if isinstance(plan, LookupJoin):
        asked = ", ".join(f"{plan.right.names[b]}={plan.left.names[a]}" for a, b in _places(plan))
        table = ".".join(plan.right.path)
        kind = JOINS[plan.kind]
        label = f"LookupJoin(table=[{table}], joinType=[{kind}], lookup=[{asked}], select=[{', '.join(plan.names)}])"
        return label, (plan.left,)
    if isinstance(plan, Join | TemporalJoin):
        where = join_condition(plan)
        name = "TemporalJoin" if isinstance(plan, TemporalJoin) else "IntervalJoin" if interval_of(plan) else "Join"
        if isinstance(plan, Join) and is_window_join(plan):
            name = "WindowJoin"
        label = (
            f"{name}(joinType=[{JOINS.get(plan.kind, plan.kind)}], where=[{where}], select=[{', '.join(plan.names)}])"
        )
        left = Exchange([plan.left.names[key] for key in plan.left_keys], plan.left)
        return label, (left, Exchange([plan.right.names[key] for key in plan.right_keys], plan.right))
    if isinstance(plan, RowNumber):
        keys = [plan.input.names[key] for key in plan.partition]
        order = order_text(plan.order, plan.input.names)
        kind = "WindowRank" if window_columns(plan) is not None else "Rank"
        label = f"{kind}(rankType=[ROW_NUMBER], partitionBy=[{', '.join(keys)}], orderBy=[{order}])"
        return label, (Exchange(keys, plan.input),)
    if isinstance(plan, Sort):
        if plan.limit is not None:
            return executed(first_rows(plan))
        return f"TemporalSort(orderBy=[{order_text(plan.order, plan.names)}])", (Exchange([], plan.input),)
    if isinstance(plan, WindowTable):
        return f"WindowTableFunction(window=[{_window(plan)}])", plan.inputs
    if isinstance(plan, ToChangelog | FromChangelog):
        return f"ProcessTableFunction(invocation=[{_changelog(plan)}], select=[{','.join(plan.names)}])", plan.inputs
    if isinstance(plan, Replicate):
        return f"Correlate(invocation=[$REPLICATE_ROWS$1], select=[{', '.join(plan.names)}])", plan.inputs
    if isinstance(plan, MatchRecognize):
        keys = [plan.input.names[key] for key in plan.partition]
        pattern = ", ".join(step.variable for step in plan.steps)
        label = f"Match(partitionBy=[{', '.join(keys)}], pattern=[({pattern})], select=[{', '.join(plan.names)}])"
        return label, (Exchange(keys, plan.input),)
    if isinstance(plan, OverWindow):
        names = plan.input.names
        keys = [names[key] for key in plan.partition]
        calls = [
            f"{call_text(call, names)} AS {name}"
            for call, name in zip(plan.calls, plan.names[len(names) :], strict=True)
        ]
        group = f"partitionBy=[{', '.join(keys)}], " if keys else ""
        label = (
            f"OverAggregate({group}orderBy=[{names[plan.time]} ASC], window=[{_frame(plan)}], "
            f"select=[{', '.join([*names, *calls])}])"
        )
        return label, (Exchange(keys, plan.input),)
    if isinstance(plan, SortedWindow):
        names = plan.input.names
        keys = [names[key] for key in plan.partition]
        results = zip(plan.calls, plan.names[len(names) :], strict=True)
        calls = [f"{call_text(call, names)} AS {name}" for call, name in results]
        group = f"partitionBy=[{', '.join(keys)}], " if keys else ""
        label = (
            f"OverAggregate({group}orderBy=[{order_text(plan.order, names)}], "
            f"window=[{'ROWS' if plan.rows else 'RANGE'} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], "
            f"select=[{', '.join([*names, *calls])}])"
        )
        return label, (Exchange(keys, plan.input),)
    if isinstance(plan, Expand):
        return _expand(plan), plan.inputs
    if isinstance(plan, UnionAll):
        return f"Union(all=[true], union=[{', '.join(plan.names)}])", plan.inputs
    assert isinstance(plan, Values)
    return f"Values(tuples=[[{', '.join(_row(row) for row in plan.rows)}]])", ()


def join_condition(plan: Join | TemporalJoin) -> str:
    """The whole condition of a join."""
    sides = unique_names([*plan.left.names, *plan.right.names])
    equal = [f"({sides[a]} = {sides[len(plan.left.names) + b]})" for a, b in _places(plan)]
    checked = [expression_text(plan.condition, sides)] if plan.condition is not None else []
    return " AND ".join([*equal, *checked]) or "true"


def order_text(order: Sequence[SortOrder], names: Sequence[str]) -> str:
    """What rows are ordered by."""
    return ", ".join(f"{names[each.column]} {'DESC' if each.descending else 'ASC'}" for each in order)


def _frame(plan: OverWindow) -> str:
    start = "UNBOUNDED" if plan.preceding is None else str(plan.preceding)
    return f"{'ROWS' if plan.rows else 'RANGE'} BETWEEN {start} PRECEDING AND CURRENT ROW"


def _expand(plan: Expand) -> str:
    names = plan.input.names
    projects = [
        "{"
        + ", ".join([*("null" if at in plan.cleared and at not in kept else name for at, name in enumerate(names))])
        + f", {number} AS {plan.names[-1]}"
        + "}"
        for number, kept in enumerate(plan.sets)
    ]
    return f"Expand(projects=[{', '.join(projects)}])"


def _changelog(plan: ToChangelog | FromChangelog) -> str:
    return f"{'TO' if isinstance(plan, ToChangelog) else 'FROM'}_CHANGELOG(TABLE(#0))"


def _window(plan: WindowTable) -> str:
    slide = f", slide=[{plan.slide} ms]" if plan.slide else ""
    return f"{plan.kind}(time_col=[{plan.input.names[plan.time]}], size=[{plan.size} ms]{slide})"


def _selected(expression: Expression, name: str, names: Sequence[str]) -> str:
    shown = expression_text(expression, names)
    return shown if shown == name else f"{shown} AS {name}"


def call_text(call: AggregateCall, names: Sequence[str]) -> str:
    """An aggregate with the names of its arguments."""
    shown = ", ".join(names[index] for index in call.given) or "*"
    inner = f"DISTINCT {shown}" if call.distinct else shown
    return f"{call.function}({inner})" + (f" FILTER {names[call.filter]}" if call.filter is not None else "")


def expression_text(expression: Expression | None, names: Sequence[str]) -> str:
    """An expression with the names of columns."""
    if isinstance(expression, InputRef):
        return names[expression.index]
    if isinstance(expression, Literal):
        return str(expression).rsplit(":", 1)[0] if isinstance(expression.value, str) else str(expression)
    if not isinstance(expression, Call):
        return str(expression)
    args = [expression_text(each, names) for each in expression.args]
    if expression.function in _INFIX and len(args) > 1:
        return f"({f' {expression.function} '.join(args)})"
    if expression.function in ("IS NULL", "IS NOT NULL"):
        return f"{args[0]} {expression.function}"
    if expression.function in ("CAST", "TRY_CAST"):
        return f"{expression.function}({args[0]} AS {expression.type.sql})"
    return f"{expression.function}({', '.join(args)})"
