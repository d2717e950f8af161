"""Windows of a number of rows: every so many rows of a group, in the order in which they come."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.functions.binding import bind
from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef, Literal
from firesteel.table.logical.plan import Aggregate, Filter, OverWindow, Plan, Project, unique_names
from firesteel.table.logical.time_attributes import is_proctime
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import BigIntType

__all__ = ["rows_in_windows"]

_NUMBER = BigIntType(is_nullable=False)


def rows_in_windows(groups: Aggregate, plan: Plan, time: Expression, size: int, slide: int, streaming: bool) -> Plan:
    """The groups of ``plan``, whose aggregates are of the last ``size`` rows of a group, after every ``slide`` rows."""
    if not streaming:
        raise SqlValidationError("Windows of a number of rows are for streams, as in Flink.")
    if not isinstance(time, InputRef) or not is_proctime(plan, time.index):
        raise SqlValidationError("Windows of a number of rows are of processing time, as in Flink: PROCTIME().")
    below = groups.input
    assert isinstance(below, Project)
    clock = len(below.names)
    timed = Project(below.input, (*below.expressions, time), unique_names([*below.names, "$time"]))
    count = AggregateCall("COUNT", (), _NUMBER)
    counted = OverWindow(timed, groups.keys, clock, True, None, (count,))
    # A variance over rows that leave it again is computed of sums.
    calls = tuple(
        replace(call, options=("sums",)) if call.function.startswith(("VAR", "STDDEV")) else call
        for call in groups.calls
    )
    number = InputRef(len(counted.names) - 1, _NUMBER)
    over: Plan = OverWindow(counted, groups.keys, clock, True, size - 1, calls) if calls else counted
    first, between = Literal(size, _NUMBER), Literal(slide, _NUMBER)
    distance = bind("MOD", [bind("-", [number, first]), between])
    complete = bind("AND", [bind(">=", [number, first]), bind("=", [distance, Literal(0, _NUMBER)])])
    refs = over.refs()
    results = refs[len(counted.names) :]
    return Project(Filter(over, complete), (*(refs[key] for key in groups.keys), *results), groups.names)
