"""Groups of rows as streams: GROUP BY with aggregates, table aggregates, GROUPING SETS."""

from __future__ import annotations

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import Expand as ExpandSpec
from firesteel.runtime.operators.table import GroupAggregate
from firesteel.runtime.operators.table import TableAggregate as TableAggregateSpec
from firesteel.table.logical.expressions import Expression, InputRef, Literal
from firesteel.table.logical.plan import Aggregate, Expand, TableAggregate
from firesteel.table.logical.window_columns import is_windowed
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.columns import columns
from firesteel.table.physical.planner_base import schema_of
from firesteel.table.physical.window_groups import window_aggregate
from firesteel.table.physical.window_planner import WindowPlanner
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.types.data_types import BigIntType

__all__ = ["GroupPlanner"]


class GroupPlanner(WindowPlanner):
    """The part of a planner that knows groups. Those of windows are planned as windows."""

    bundle_size = 1000
    """With 1, users' aggregates tell what each row has changed; otherwise what the rows of a micro-batch have."""
    whole_groups = False
    """Whether all rows are there before anything is computed: of a batch."""

    def _aggregate(self, plan: Aggregate) -> DataStream:
        windowed = window_aggregate(plan)
        if windowed is not None:
            return self._windowed(plan, windowed)
        if is_windowed(plan):
            return self._ended(plan)
        retracts = not inserts_only(plan.input)
        # As in PyFlink, users' aggregates tell what a bundle of rows has changed.
        each_row = self.bundle_size == 1 and not self._mini_batch
        calls = self._calls(plan.calls, plan.input, retracts, each_row=each_row)
        users = [call.user for call in plan.calls if call.user is not None]
        for user in users:
            if user.pandas and not self.whole_groups:
                raise NotSupportedError(
                    f"{user.name} is a pandas aggregate: it needs all rows of a group at once, so a window that ends. "
                    "As in Flink, a GROUP BY of a stream takes aggregates with func_type='general'."
                )
        spec = GroupAggregate(
            plan.keys,
            calls,
            schema_of(plan.input),
            schema_of(plan),
            retracts=retracts,
            mini_batch=self._mini_batch or (bool(users) and not each_row),
            state_ttl=self._ttl(plan.state_ttl),
        )
        return self._keyed(plan, plan.input, plan.keys, "GroupAggregate", spec)

    def _table_aggregate(self, plan: TableAggregate) -> DataStream:
        retracts = not inserts_only(plan.input)
        call = self._call(plan.call, plan.input, retracts, False)
        spec = TableAggregateSpec(plan.keys, call, schema_of(plan.input), schema_of(plan), retracts)
        return self._keyed(plan, plan.input, plan.keys, "GroupTableAggregate", spec)

    def _expand(self, plan: Expand) -> DataStream:
        schema = schema_of(plan)
        projections = []
        for number, kept in enumerate(plan.sets):
            expressions: list[Expression] = [
                Literal(None, kind.nullable()) if at in plan.cleared and at not in kept else InputRef(at, kind)
                for at, kind in enumerate(plan.input.types)
            ]
            expressions.append(Literal(number, BigIntType(is_nullable=False)))
            projections.append(columns(tuple(expressions), self._time_zone))
        spec = ExpandSpec(tuple(projections), schema)
        return self.stream(plan.input).transform("Expand", spec, ColumnsType(schema))
