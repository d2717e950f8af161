"""Joins as streams: of tables that change, within an interval of time, with versions of a table, with a connector."""

from __future__ import annotations

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import IntervalJoin
from firesteel.runtime.operators.table import Join as JoinSpec
from firesteel.runtime.operators.table import LookupJoin as LookupJoinSpec
from firesteel.runtime.operators.table import TemporalJoin as TemporalJoinSpec
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.interval_joins import Interval
from firesteel.table.logical.plan import Join, LookupJoin, TemporalJoin
from firesteel.table.logical.time_attributes import interval_of
from firesteel.table.logical.window_columns import is_window_join
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.lookups import lookup_plan
from firesteel.table.physical.planner_base import schema_of
from firesteel.table.physical.window_planner import WindowPlanner
from firesteel.table.sql.errors import SqlValidationError

__all__ = ["JoinPlanner"]

_Keys = tuple[int, ...]


class JoinPlanner(WindowPlanner):
    """The part of a planner that knows joins. Those of windows are planned as windows."""

    def _join(self, plan: Join) -> DataStream:
        if is_window_join(plan):
            return self._window_join(plan)
        interval = interval_of(plan)
        if interval is not None:
            return self._interval_join(plan, interval)
        spec = JoinSpec(
            *_joined(plan),
            self._condition(plan.condition),
            (self._ttl(plan.state_ttl[0]), self._ttl(plan.state_ttl[1])),
            plan.null_equal,
        )
        return self._paired(plan, "Join", spec)

    def _interval_join(self, plan: Join, interval: Interval) -> DataStream:
        for side in plan.inputs:
            if not inserts_only(side):
                raise SqlValidationError("A join within an interval of time takes no updates: an input changes rows.")
        spec = IntervalJoin(
            *_joined(plan),
            interval.times,
            interval.lower,
            interval.upper,
            self._condition(interval.condition),
            interval.processing_time,
        )
        return self._paired(plan, "IntervalJoin", spec)

    def _temporal_join(self, plan: TemporalJoin) -> DataStream:
        spec = TemporalJoinSpec(*_joined(plan), plan.times, self._condition(plan.condition))
        return self._paired(plan, "TemporalJoin", spec)

    def _lookup_join(self, plan: LookupJoin) -> DataStream:
        table, path = plan.right.table, ".".join(plan.right.path)
        if not isinstance(table, DeclaredTable):
            raise SqlValidationError(f"Table {path} is not a table of a connector, so it cannot be asked for keys.")
        asked = lookup_plan(table, path, plan.options)
        spec = LookupJoinSpec(
            *_joined(plan),
            asked.table,
            self._condition(plan.condition),
            asked.cache,
            asked.attempts,
            asked.delay,
        )
        return self.stream(plan.left).transform("LookupJoin", spec, ColumnsType(spec.schema))


def _joined(plan: Join | TemporalJoin | LookupJoin) -> tuple[str, _Keys, _Keys, pa.Schema, pa.Schema, pa.Schema]:
    """What all joins are told first: the kind, the keys and layouts of both sides, the layout of the result."""
    return (
        plan.kind,
        plan.left_keys,
        plan.right_keys,
        schema_of(plan.left),
        schema_of(plan.right),
        schema_of(plan),
    )
