"""What the operators of a query keep, described as tables for those who read savepoints.

Each function here follows what the operator of its spec stores (:mod:`firesteel.runtime.operators.table`): a change
there that is not followed here shows wrong columns, which ``tests/table/test_savepoints_of_queries.py`` notices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from firesteel.cep.operator import MatchPattern
from firesteel.datastream.data_stream import DataStream
from firesteel.durable.state_tables import OperatorTables, ShownColumn, StateTable
from firesteel.graph.specs import TransformSpec
from firesteel.runtime.operators.table import (
    AggregateCall,
    ChangelogNormalize,
    FirstRow,
    GroupAggregate,
    IntervalJoin,
    Join,
    KeyConflicts,
    OverAggregate,
    Rank,
    SortedOver,
    TableAggregate,
    TemporalJoin,
    TimeSort,
    WindowAggregate,
    WindowJoin,
    WindowRank,
)
from firesteel.runtime.operators.table.accumulators import RetractingExtreme
from firesteel.runtime.operators.table.key_conflicts import stored_schema
from firesteel.runtime.operators.table.over import used_columns
from firesteel.table.logical.patterns import MatchRecognize
from firesteel.table.logical.plan import Plan, WindowTable
from firesteel.table.physical.explain import executed
from firesteel.table.physical.pattern_matching import event_columns, read_columns
from firesteel.table.physical.shown_columns import (
    COUNT,
    LOCAL,
    MOMENT,
    NamedColumns,
    StoredRow,
    accumulator_for,
    bare,
    call_name,
    counts_rows,
    key_columns,
)
from firesteel.table.types.arrow import arrow_schema

__all__ = ["described", "state_tables"]

Described = tuple[StoredRow, list[StateTable]]
"""The key, and the states."""


def described(stream: DataStream, plan: Plan) -> DataStream:
    """The stream of an operator that runs a part of a plan, with how its state is shown."""
    spec = stream.transformation.spec
    tables = state_tables(spec.spec, plan, stream.get_name()) if isinstance(spec, TransformSpec) else None
    return stream if tables is None else stream.show_state_as(tables)


def state_tables(spec: Any, plan: Plan, operator: str) -> OperatorTables | None:
    """The tables of an operator that runs a part of a plan; None where it keeps nothing."""
    describe = _OPERATORS.get(type(spec))
    if describe is None:
        return None
    names = [NamedColumns(each) for each in plan.inputs or (plan,)]
    key, states = describe(spec, plan, names)
    return OperatorTables(_meaning(spec, plan, operator, names), tuple(key.columns), tuple(states))


def _meaning(spec: Any, plan: Plan, operator: str, names: list[NamedColumns]) -> str:
    """The operator as an execution plan has it, with the expressions that columns without a name stand for."""
    if isinstance(spec, ChangelogNormalize | KeyConflicts) or (
        isinstance(spec, Rank) and spec.last_wins and not spec.order
    ):
        schema = spec.schema
        return f"{operator}(key=[{', '.join(schema.field(key).name for key in spec.keys)}])"
    label, _ = executed(plan)
    texts = {name: text for each in names for name, text in each.texts.items()}
    for name in sorted(texts, key=len, reverse=True):
        label = label.replace(f"({name})", f"({bare(texts[name])})").replace(name, texts[name])
    if isinstance(spec, Rank | FirstRow) and label.startswith("Rank("):
        places = (1, 1) if isinstance(spec, FirstRow) else (spec.start, spec.end)
        label = f"{label[:-1]}, rankRange=[rankStart={places[0]}, rankEnd={places[1]}])"
    return label


def _key(schema: pa.Schema, keys: Sequence[int], names: NamedColumns) -> StoredRow:
    return key_columns([schema.field(key) for key in keys], names)


# Aggregates


def _groups(
    begin: Callable[[], StoredRow],
    calls: Sequence[AggregateCall],
    input: pa.Schema,
    names: NamedColumns,
    retracts: bool,
    state_ttl: int | None = None,
    bounded: bool = False,
) -> list[StateTable]:
    """``begin``: what a group is known by. ``bounded``: whether the time of its last row is kept, too."""
    row = begin()
    (counted,) = row.take()
    number = next((at for at, call in enumerate(calls) if counts_rows(call)), None)
    states = []
    for at, call in enumerate(calls):
        if counts_rows(call):
            row.columns.append(_count(call_name(call, input, names), counted, "aggregate"))
            continue
        row.call(call, input, names, retracts)
        if call.argument is not None and call.user is None:
            keeps_values = isinstance(accumulator_for(call, input, retracts), RetractingExtreme)
            if call.distinct or keeps_values:
                states.append(_values(begin(), at, call, input, names, state_ttl))
    if number is None:
        row.columns.append(_count("rows", counted, "count"))
    if bounded:
        row.show("last_time", MOMENT, "time", "moment")
    row.last_changed(state_ttl)
    return [row.table("groups", "a group, with the state of its aggregates"), *states]


def _count(name: str, place: int, role: str) -> ShownColumn:
    return ShownColumn(name, COUNT, role, (place,))


def _values(
    row: StoredRow, at: int, call: AggregateCall, input: pa.Schema, names: NamedColumns, state_ttl: int | None
) -> StateTable:
    assert call.argument is not None
    row.fields([input.field(call.argument)], names, "row")
    row.show("count", COUNT, "count")
    row.last_changed(state_ttl)
    return row.table(
        f"distinct {at}", f"a value of a group, for {call_name(call, input, names)}: how often it is there"
    )


def _group_aggregate(spec: GroupAggregate, plan: Plan, names: list[NamedColumns]) -> Described:
    def begin() -> StoredRow:
        return _key(spec.input, spec.keys, names[0])

    return begin(), _groups(begin, spec.calls, spec.input, names[0], spec.retracts, spec.state_ttl)


def _table_aggregate(spec: TableAggregate, plan: Plan, names: list[NamedColumns]) -> Described:
    def begin() -> StoredRow:
        return _key(spec.input, spec.keys, names[0])

    return begin(), _groups(begin, (spec.call,), spec.input, names[0], spec.retracts)


def _window_aggregate(spec: WindowAggregate, plan: Plan, names: list[NamedColumns]) -> Described:
    window = spec.window
    session = window.kind.upper() == "SESSION"
    if isinstance(plan, WindowTable):
        return _session_table(spec, plan, names[0])

    def begin() -> StoredRow:
        row = _key(spec.input, spec.keys, names[0])
        if session:
            kind = MOMENT if window.time_zone is not None else LOCAL
            row.show("window_start", kind, "window", "moment")
            row.show("window_end", kind, "window", "moment")
            return row
        (end,) = row.take()
        if window.kind.upper() in ("TUMBLE", "HOP"):
            row.columns.append(ShownColumn("window_start", LOCAL, "window", (end,), "moment", shift=-window.size))
        row.columns.append(ShownColumn("window_end", LOCAL, "window", (end,), "moment"))
        return row

    return _key(spec.input, spec.keys, names[0]), _groups(begin, spec.calls, spec.input, names[0], spec.retracts)


def _session_table(spec: WindowAggregate, plan: WindowTable, names: NamedColumns) -> Described:
    """A table of sessions collects the rows of its input."""
    schema = arrow_schema(plan.input.names, plan.input.types)
    row = _key(schema, plan.partition, names)
    kind = MOMENT if spec.window.time_zone is not None else LOCAL
    row.show("window_start", kind, "window", "moment")
    row.show("window_end", kind, "window", "moment")
    row.take()
    (rows,) = row.take()
    row.show("position", COUNT, "place")
    row.elements(schema, plan.partition, names)
    table = row.table("groups", "a row of a session that has not ended", unnested=rows)
    return _key(schema, plan.partition, names), [table]


def _over(spec: OverAggregate, plan: Plan, names: list[NamedColumns]) -> Described:
    used = used_columns(spec)
    narrow = pa.schema([spec.input.field(at) for at in used])
    keys = [used.index(key) for key in spec.keys]

    def moved(call: AggregateCall) -> AggregateCall:
        return replace(
            call,
            argument=None if call.argument is None else used.index(call.argument),
            filter=None if call.filter is None else used.index(call.filter),
            arguments=tuple(used.index(at) for at in call.arguments),
        )

    def begin() -> StoredRow:
        return _key(narrow, keys, names[0])

    bounded = spec.preceding is not None
    state_ttl = None if bounded else spec.state_ttl
    states = _groups(begin, [moved(call) for call in spec.calls], narrow, names[0], bounded, state_ttl, bounded)
    if spec.time is not None:
        waits = "a row that waits for the watermark"
        states.append(_stored_rows("waiting", waits, spec.input, spec.keys, names[0]))
    if bounded:
        states.append(_stored_rows("frames", "a row that is in the frame of rows to come", narrow, keys, names[0]))
    return begin(), states


# Rows


def _stored_rows(state: str, meaning: str, schema: pa.Schema, keys: Sequence[int], names: NamedColumns) -> StateTable:
    row = _key(schema, keys, names)
    row.show("time", MOMENT, "time", "moment")
    row.show("arrival", COUNT, "count")
    row.kept([field for at, field in enumerate(schema) if at not in keys], names, "kept")
    return row.table(state, meaning)


def _last_rows(
    state: str, meaning: str, schema: pa.Schema, keys: Sequence[int], names: NamedColumns, state_ttl: int | None
) -> StateTable:
    row = _key(schema, keys, names)
    row.kept([field for at, field in enumerate(schema) if at not in keys], names, "unscaled")
    row.last_changed(state_ttl)
    return row.table(state, meaning)


def _normalize(spec: ChangelogNormalize, plan: Plan, names: list[NamedColumns]) -> Described:
    rows = _last_rows("rows", "the last row of a key", spec.schema, spec.keys, names[0], spec.state_ttl)
    return _key(spec.schema, spec.keys, names[0]), [rows]


def _first_row(spec: FirstRow, plan: Plan, names: list[NamedColumns]) -> Described:
    rows = _last_rows("first rows", "the first row of a partition", spec.input, spec.keys, names[0], spec.state_ttl)
    return _key(spec.input, spec.keys, names[0]), [rows]


def _lists(
    meaning: str, input: pa.Schema, keys: Sequence[int], names: NamedColumns, state_ttl: int | None
) -> Described:
    """Lists of rows in order."""
    row = _key(input, keys, names)
    (rows,) = row.take()
    row.last_changed(state_ttl)
    row.show("position", COUNT, "place")
    row.elements(input, keys, names)
    return _key(input, keys, names), [row.table("partitions", meaning, unnested=rows)]


def _rank(spec: Rank, plan: Plan, names: list[NamedColumns]) -> Described:
    if spec.last_wins and not spec.order:
        # Names of a sink are those of its query.
        names = [NamedColumns(plan)]
        return _lists("a row of a key, the last one first", spec.input, spec.keys, names[0], spec.state_ttl)
    return _lists("a row of a partition, in order", spec.input, spec.keys, names[0], spec.state_ttl)


def _key_conflicts(spec: KeyConflicts, plan: Plan, names: list[NamedColumns]) -> Described:
    # Names of a sink are those of its query.
    name = NamedColumns(plan)
    row = _key(spec.schema, spec.keys, name)
    (rows,) = row.take()
    row.show("position", COUNT, "place")
    row.elements(stored_schema(spec.schema), [key + 1 for key in spec.keys], name)
    meaning = "the row of a key, and what changes it at the next watermark"
    return _key(spec.schema, spec.keys, name), [row.table("rows", meaning, unnested=rows)]


def _sorted_over(spec: SortedOver, plan: Plan, names: list[NamedColumns]) -> Described:
    return _lists("a row of a partition, in order", spec.input, spec.keys, names[0], None)


def _time_sort(spec: TimeSort, plan: Plan, names: list[NamedColumns]) -> Described:
    progress = StoredRow()
    progress.show("last_time", MOMENT, "time", "moment")
    waiting = _stored_rows("waiting", "a row that waits for the watermark", spec.input, (), names[0])
    return StoredRow(), [waiting, progress.table("progress", "the time of the last row that is out")]


def _window_rank(spec: WindowRank, plan: Plan, names: list[NamedColumns]) -> Described:
    rows = _stored_rows("rows", "a row whose window has not ended", spec.input, spec.keys, names[0])
    return _key(spec.input, spec.keys, names[0]), [rows]


# Joins


def _side(
    state: str,
    meaning: str,
    schema: pa.Schema,
    keys: Sequence[int],
    names: NamedColumns,
    marks: Callable[[StoredRow], None] | None = None,
    near: Callable[[StoredRow], None] | None = None,
    outer: bool = False,
    state_ttl: int | None = None,
) -> StateTable:
    """A side of a join. ``near`` and ``marks``: what stands before and behind the row's other columns."""
    row = _key(schema, keys, names)
    if near is not None:
        near(row)
    row.fields([field for at, field in enumerate(schema) if at not in keys], names, "row")
    if marks is not None:
        marks(row)
    row.show("count", COUNT, "count")
    if outer:
        row.show("matches", COUNT, "count")
    else:
        row.take()
    row.last_changed(state_ttl)
    return row.table(state, meaning)


_COUNTS_ALONE = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
_COUNTS_ALONE |= {"SEMI": (True, False), "ANTI": (True, False)}


def _join(spec: Join, plan: Plan, names: list[NamedColumns]) -> Described:
    outer = _COUNTS_ALONE.get(spec.kind.upper(), (False, False))
    states = [
        _side(side, f"a row of the {side} input", schema, keys, name, outer=alone, state_ttl=state_ttl)
        for side, schema, keys, name, alone, state_ttl in zip(
            _SIDES,
            (spec.left, spec.right),
            (spec.left_keys, spec.right_keys),
            names,
            outer,
            spec.state_ttl,
            strict=True,
        )
    ]
    return _key(spec.left, spec.left_keys, names[0]), states


_SIDES = ("left", "right")


def _interval_join(spec: IntervalJoin, plan: Plan, names: list[NamedColumns]) -> Described:
    def bucket(row: StoredRow) -> None:
        row.take()

    def time(row: StoredRow) -> None:
        row.show("time", MOMENT, "time", "moment")

    outer = _COUNTS_ALONE.get(spec.kind.upper(), (False, False))
    waits = "a row of the {} input that may still be matched"
    sides = ((spec.left, spec.left_keys), (spec.right, spec.right_keys))
    states = [
        _side(side, waits.format(side), schema, keys, name, time, bucket, alone)
        for side, (schema, keys), name, alone in zip(_SIDES, sides, names, outer, strict=True)
    ]
    return _key(spec.left, spec.left_keys, names[0]), states


def _temporal_join(spec: TemporalJoin, plan: Plan, names: list[NamedColumns]) -> Described:
    def marks(row: StoredRow) -> None:
        row.show("time", MOMENT, "time", "moment")
        row.show("arrival", COUNT, "count")
        row.show("kind", "STRING", "count", "kind")

    waiting = _side("left", "a row that waits for the watermark", spec.left, spec.left_keys, names[0], marks)
    right = names[1] if len(names) > 1 else NamedColumns()
    versions = _side("right", "a version of a row of the table", spec.right, spec.right_keys, right, marks)
    return _key(spec.left, spec.left_keys, names[0]), [waiting, versions]


def _window_join(spec: WindowJoin, plan: Plan, names: list[NamedColumns]) -> Described:
    waits = "a row of the {} input whose window has not ended"
    left = _stored_rows("left", waits.format("left"), spec.left, spec.left_keys, names[0])
    right = _stored_rows("right", waits.format("right"), spec.right, spec.right_keys, names[1])
    return _key(spec.left, spec.left_keys, names[0]), [left, right]


# Patterns


def _match(spec: MatchPattern, plan: Plan, names: list[NamedColumns]) -> Described:
    assert isinstance(plan, MatchRecognize)
    schema = arrow_schema(plan.input.names, plan.input.types)
    asked = event_columns(plan)

    event = pa.schema([schema.field(at) for at in asked])
    # Of the key, and the time if it is there once only.
    known = [at for at, column in enumerate(read_columns(plan)) if column is None or column in plan.partition]
    waiting = _key(schema, plan.partition, names[0])
    waiting.show("time", MOMENT, "time", "moment")
    waiting.elements(event, known, names[0])
    partial = _key(schema, plan.partition, names[0])
    partial.show("match", COUNT, "place")
    partial.show("waits_for", "STRING", "place")
    partial.show("variable", "STRING", "place")
    partial.show("time", MOMENT, "time", "moment")
    partial.elements(event, known, names[0])
    states = [
        partial.table("partial matches", "a row of a match that is under way", "matches"),
        waiting.table("waiting events", "a row that waits for the watermark", "events"),
    ]
    return _key(schema, plan.partition, names[0]), states


_OPERATORS: dict[type, Callable[[Any, Plan, list[NamedColumns]], Described]] = {
    GroupAggregate: _group_aggregate,
    TableAggregate: _table_aggregate,
    WindowAggregate: _window_aggregate,
    OverAggregate: _over,
    SortedOver: _sorted_over,
    TimeSort: _time_sort,
    ChangelogNormalize: _normalize,
    FirstRow: _first_row,
    Rank: _rank,
    KeyConflicts: _key_conflicts,
    WindowRank: _window_rank,
    Join: _join,
    IntervalJoin: _interval_join,
    TemporalJoin: _temporal_join,
    WindowJoin: _window_join,
    MatchPattern: _match,
}
