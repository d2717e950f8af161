"""Plans to streams: every relation becomes an operator over batches of columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.runtime.columns.kinds import KIND
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import (
    AggregateCall,
    Calc,
    GroupAggregate,
    Order,
    Rank,
    Window,
    WindowAggregate,
    rowtime_strategy,
)
from firesteel.runtime.operators.table import Join as JoinSpec
from firesteel.table.catalog.tables import DeclaredTable, InlineTable, StreamTable
from firesteel.table.functions.evaluation import Evaluator
from firesteel.table.logical.expressions import AggregateCall as LogicalCall
from firesteel.table.logical.expressions import Expression
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
from firesteel.table.physical.calcs import CalcPlan, merged_calc, place_limits
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.columns import columns
from firesteel.table.physical.sources import declared_stream
from firesteel.table.physical.window_groups import WindowedAggregate, window_aggregate
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.types.arrow import arrow_schema, arrow_type
from firesteel.table.types.data_types import RowType

__all__ = ["Planner", "schema_of"]

_ROWS_PER_BATCH = 8192


def schema_of(plan: Plan) -> pa.Schema:
    """The layout of a relation's batches."""
    return arrow_schema(plan.names, plan.types)


class Planner:
    """Builds the streams of plans in one environment. A part that two plans have in common is built once."""

    def __init__(self, env: StreamExecutionEnvironment, time_zone: str = "UTC", mini_batch: bool = False) -> None:
        self._env = env
        self._time_zone = time_zone
        self._mini_batch = mini_batch
        self._built: dict[Plan, DataStream] = {}
        self._uids: dict[str, int] = {}

    def stream(self, plan: Plan) -> DataStream:
        """A stream of batches with the plan's columns."""
        known = self._built.get(plan)
        if known is None:
            known = _BUILDERS[type(plan)](self, plan)
            self._built[plan] = known
        return known

    def _uid(self, stream: DataStream, plan: Plan, *details: Any) -> DataStream:
        """State is found again by what the plan says up to here, so that an edited query keeps what did not change."""
        digest = hashlib.sha256(repr((plan, *details)).encode()).hexdigest()[:16]
        number = self._uids[digest] = self._uids.get(digest, -1) + 1
        return stream.uid(f"sql-{type(plan).__name__.lower()}-{digest}" + (f"-{number}" if number else ""))

    def _scan(self, plan: Scan) -> DataStream:
        table, schema = plan.table, schema_of(plan)
        if isinstance(table, InlineTable):
            return self._batches(list(table.batches), schema, f"Source: {plan.path[-1]}")
        if isinstance(table, StreamTable):
            given: DataStream = table.stream
            return given
        if isinstance(table, DeclaredTable):
            stream = declared_stream(self._env, table, plan.path)
            if plan.watermark is None:
                return stream
            (watermark,) = columns((plan.watermark,), self._time_zone)
            return stream.assign_timestamps_and_watermarks(rowtime_strategy(watermark))
        raise NotSupportedError(f"Not supported yet: reading {type(table).__name__}.")

    def _batches(self, batches: list[pa.RecordBatch], schema: pa.Schema, name: str) -> DataStream:
        cut = [
            batch.slice(start, _ROWS_PER_BATCH)
            for batch in batches
            for start in range(0, batch.num_rows, _ROWS_PER_BATCH)
        ]
        return self._env.from_collection(cut, ColumnsType(schema)).name(name)

    def _values(self, plan: Values) -> DataStream:
        one = pa.record_batch({KIND: pa.array([0], pa.int8())})
        schema = schema_of(plan)
        if not plan.names:
            # A row without columns: there is nothing but its kind.
            return self._env.from_collection([one] * len(plan.rows), ColumnsType(schema)).name("Values")
        rows = [pa.RecordBatch.from_arrays(Evaluator(row).columns(one), schema=schema) for row in plan.rows]
        whole = pa.Table.from_batches(rows, schema).combine_chunks().to_batches()
        return self._batches(whole, schema, "Values")

    def _calc(self, plan: Project | Filter) -> DataStream:
        calc = merged_calc(plan)
        if isinstance(calc.input, RowNumber):
            return self._ranked(calc, calc.input)
        below = self.stream(calc.input)
        return self._calculated(calc, below)

    def _calculated(self, calc: CalcPlan, below: DataStream) -> DataStream:
        if calc.is_identity:
            return below
        condition: Any = None
        if calc.condition is not None:
            (condition,) = columns((calc.condition,), self._time_zone)
        schema = arrow_schema(calc.names, [each.type for each in calc.expressions])
        spec = Calc(columns(calc.expressions, self._time_zone), schema, condition)
        return below.transform(f"Calc({_described(calc.expressions)})", spec, ColumnsType(schema))

    def _aggregate(self, plan: Aggregate) -> DataStream:
        windowed = window_aggregate(plan)
        if windowed is not None:
            return self._windowed(plan, windowed)
        schema = schema_of(plan)
        calls = tuple(_call(call) for call in plan.calls)
        spec = GroupAggregate(
            plan.keys,
            calls,
            schema_of(plan.input),
            schema,
            retracts=not inserts_only(plan.input),
            mini_batch=self._mini_batch,
        )
        keyed = self.stream(plan.input).key_by(KeyColumns(plan.keys))
        result = keyed.transform("GroupAggregate", spec, ColumnsType(schema))
        if not plan.keys:
            result = result.force_non_parallel()
        return self._uid(result, plan)

    def _windowed(self, plan: Aggregate, windowed: WindowedAggregate) -> DataStream:
        """Groups that window_start and window_end are among the keys of: results come when windows end."""
        calls = tuple(_call(call) for call in windowed.calls)
        layout = arrow_schema(windowed.names, windowed.types)
        window = windowed.window
        spec = WindowAggregate(
            windowed.keys,
            calls,
            Window(window.kind, window.size, window.slide, window.offset),
            windowed.time,
            schema_of(windowed.input),
            layout,
            windowed.properties,
        )
        keyed = self.stream(windowed.input).key_by(KeyColumns(windowed.keys))
        result = keyed.transform("WindowAggregate", spec, ColumnsType(layout))
        if not windowed.keys:
            result = result.force_non_parallel()
        result = self._uid(result, plan)
        base = Scan(("windows",), RowType.of(list(windowed.names), list(windowed.types)), None)
        return self._calculated(CalcPlan(base, windowed.results, plan.names, None), result)

    def _window_table(self, plan: WindowTable) -> DataStream:
        raise NotSupportedError("Not supported yet: windows without an aggregate: GROUP BY window_start, window_end.")

    def _ranked(self, calc: CalcPlan, numbered: RowNumber) -> DataStream:
        """Top-N: rows of certain places are all that is kept."""
        limits = place_limits(calc, len(numbered.names) - 1)
        if limits is None:
            raise NotSupportedError(
                "Not supported yet: ROW_NUMBER() without a limit. For the first rows filter it outside: WHERE rn <= 10."
            )
        start, end, rest, with_rank = limits
        input_schema = schema_of(numbered.input)
        names, types = (numbered.names, numbered.types) if with_rank else (numbered.input.names, numbered.input.types)
        spec = Rank(
            numbered.partition,
            tuple(Order(each.column, not each.descending, not each.nulls_last) for each in numbered.order),
            input_schema,
            arrow_schema(names, types),
            end,
            start,
            with_rank,
            retracts=not inserts_only(numbered.input),
        )
        keyed = self.stream(numbered.input).key_by(KeyColumns(numbered.partition))
        ranked = keyed.transform("Rank", spec, ColumnsType(spec.schema))
        if not numbered.partition:
            ranked = ranked.force_non_parallel()
        ranked = self._uid(ranked, numbered, (start, end, with_rank))
        # The rank stands behind all columns, so that places stay as they are.
        base = Scan(("rank",), RowType.of(list(names), list(types)), None)
        return self._calculated(CalcPlan(base, calc.expressions, calc.names, rest), ranked)

    def _row_number(self, plan: RowNumber) -> DataStream:
        return self._calc(Project(plan, tuple(plan.refs()), plan.names))

    def _join(self, plan: Join) -> DataStream:
        schema = schema_of(plan)
        condition: Any = None
        if plan.condition is not None:
            (condition,) = columns((plan.condition,), self._time_zone)
        spec = JoinSpec(
            plan.kind,
            plan.left_keys,
            plan.right_keys,
            schema_of(plan.left),
            schema_of(plan.right),
            schema,
            condition,
        )
        pair = self.stream(plan.left).connect(self.stream(plan.right))
        keyed = pair.key_by(KeyColumns(plan.left_keys), KeyColumns(plan.right_keys))
        result = keyed.transform("Join", spec, ColumnsType(schema))
        if not plan.left_keys:
            result = result.force_non_parallel()
        return self._uid(result, plan)

    def _union(self, plan: UnionAll) -> DataStream:
        first, *others = (self.stream(branch) for branch in plan.branches)
        return first.union(*others)


def _call(call: LogicalCall) -> AggregateCall:
    argument = call.args[0] if call.args else None
    return AggregateCall(call.function, argument, arrow_type(call.type), call.distinct, call.filter)


def _described(expressions: tuple[Expression, ...]) -> str:
    text = ", ".join(map(str, expressions))
    return text if len(text) <= 60 else f"{text[:57]}..."


_BUILDERS: dict[type[Plan], Callable[[Planner, Any], DataStream]] = {
    Scan: Planner._scan,
    Values: Planner._values,
    Project: Planner._calc,
    Filter: Planner._calc,
    Aggregate: Planner._aggregate,
    Join: Planner._join,
    RowNumber: Planner._row_number,
    UnionAll: Planner._union,
    WindowTable: Planner._window_table,
}
