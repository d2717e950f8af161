"""Plans of batch mode as text, with the names that Flink has for the parts of a bounded query."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.logical.analytic_windows import AnalyticWindow
from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan import Aggregate, Filter, Join, Plan, Project, RowNumber, Sort
from firesteel.table.physical import explain
from firesteel.table.physical.calcs import merged_calc
from firesteel.table.physical.explain import Step, Steps

__all__ = ["explained_in_batch"]


def explained_in_batch(plans: Sequence[Plan], targets: Sequence[str] = ()) -> str:
    """The plan as it was written and as it runs."""
    return explain.explained(plans, targets, _executed)


def _executed(plan: Plan | Step) -> Steps:
    if isinstance(plan, Aggregate):
        return _aggregate(plan)
    if isinstance(plan, Join):
        return _join(plan)
    if isinstance(plan, Sort):
        return _sort(plan)
    if isinstance(plan, RowNumber):
        return _row_number(plan)
    if isinstance(plan, AnalyticWindow):
        return _analytic(plan)
    if isinstance(plan, Project | Filter) and merged_calc(plan).is_identity:
        return _executed(merged_calc(plan).input)
    return explain.executed(plan)


def _exchange(kind: str, input: Plan | Step) -> Step:
    return Step(f"Exchange(distribution=[{kind}])", (input,))


def _by(names: Sequence[str]) -> str:
    return f"hash[{', '.join(names)}]" if names else "single"


def _aggregate(plan: Aggregate) -> Steps:
    names = plan.input.names
    keys = [names[key] for key in plan.keys]
    group = f"groupBy=[{', '.join(keys)}], " if keys else ""
    results = plan.names[len(keys) :]
    if any(call.distinct for call in plan.calls):
        calls = [f"{explain.call_text(call, names)} AS {name}" for name, call in zip(results, plan.calls, strict=True)]
        label = f"HashAggregate(isMerge=[false], {group}select=[{', '.join([*keys, *calls])}])"
        return label, (_exchange(_by(keys), plan.input),)
    partial, final, number = list(keys), list(keys), 0
    for name, call in zip(results, plan.calls, strict=True):
        buffers = [f"{kind}${number + index}" for index, kind in enumerate(_buffers(call))]
        number += len(buffers)
        shown = ", ".join(buffers)
        partial.append(f"Partial_{explain.call_text(call, names)} AS {shown if len(buffers) == 1 else f'({shown})'}")
        final.append(f"Final_{call.function}({shown}) AS {name}")
    local = Step(f"LocalHashAggregate({group}select=[{', '.join(partial)}])", (plan.input,))
    return f"HashAggregate(isMerge=[true], {group}select=[{', '.join(final)}])", (_exchange(_by(keys), local),)


def _buffers(call: AggregateCall) -> list[str]:
    if call.function == "AVG":
        return ["sum", "count"]
    if call.function == "COUNT" and not call.args:
        return ["count1"]
    return [call.function.lower()]


def _join(plan: Join) -> Steps:
    kind = explain.JOINS.get(plan.kind, plan.kind)
    where, names = explain.join_condition(plan), ", ".join(plan.names)
    if not plan.left_keys:
        label = f"NestedLoopJoin(joinType=[{kind}], where=[{where}], select=[{names}], build=[right])"
        return label, (plan.left, _exchange("broadcast", plan.right))
    label = (
        f"AdaptiveJoin(originalJoin=[ShuffleHashJoin], joinType=[{kind}], where=[{where}], select=[{names}], "
        "build=[right])"
    )
    left = _exchange(_by([plan.left.names[key] for key in plan.left_keys]), plan.left)
    return label, (left, _exchange(_by([plan.right.names[key] for key in plan.right_keys]), plan.right))


def _sort(plan: Sort) -> Steps:
    order = explain.order_text(plan.order, plan.names)
    if plan.limit is None and not plan.offset:
        return f"Sort(orderBy=[{order}])", (_exchange("single", plan.input),)
    name = f"SortLimit(orderBy=[{order}], " if plan.order else "Limit("
    below: Plan | Step = plan.input
    fetch = "unlimited"
    if plan.limit is not None:
        fetch = str(plan.limit)
        below = Step(f"{name}offset=[0], fetch=[{plan.offset + plan.limit}], global=[false])", (plan.input,))
    return f"{name}offset=[{plan.offset}], fetch=[{fetch}], global=[true])", (_exchange("single", below),)


def _row_number(plan: RowNumber) -> Steps:
    names = plan.input.names
    keys = [names[key] for key in plan.partition]
    order = explain.order_text(plan.order, names)
    partition = f"partitionBy=[{', '.join(keys)}], " if keys else ""
    label = (
        f"OverAggregate({partition}orderBy=[{order}], window#0=[ROW_NUMBER(*) AS {plan.names[-1]} ROWS BETWEEN "
        f"UNBOUNDED PRECEDING AND CURRENT ROW], select=[{', '.join(plan.names)}])"
    )
    by = ", ".join([*(f"{key} ASC" for key in keys), order])
    sort = Step(f"Sort(orderBy=[{by}])", (_exchange(_by(keys), plan.input),))
    return label, (_exchange("forward", sort),)


def _analytic(plan: AnalyticWindow) -> Steps:
    names = plan.input.names
    keys = [names[key] for key in plan.partition]
    order = explain.order_text(plan.order, names)
    partition = f"partitionBy=[{', '.join(keys)}], " if keys else ""
    ordered = f"orderBy=[{order}], " if order else ""
    results = zip(plan.calls, plan.frames, plan.names[len(names) :], strict=True)
    windows = [
        f"window#{at}=[{explain.call_text(call, names)} AS {name} {frame}]"
        for at, (call, frame, name) in enumerate(results)
    ]
    label = f"OverAggregate({partition}{ordered}{', '.join(windows)}, select=[{', '.join(plan.names)}])"
    by = ", ".join([*(f"{key} ASC" for key in keys), *([order] if order else [])])
    below: Plan | Step = _exchange(_by(keys), plan.input)
    return label, (_exchange("forward", Step(f"Sort(orderBy=[{by}])", (below,))) if by else below,)
