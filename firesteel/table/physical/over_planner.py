"""OVER as streams: aggregates of each row and those before it."""

from __future__ import annotations

from dataclasses import replace

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.operators.table import OverAggregate, SortedOver
from firesteel.table.logical.plan import OverWindow, SortedWindow
from firesteel.table.logical.time_attributes import ROWTIME, time_attribute
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.planner_base import PlannerBase, orders_of, schema_of
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError

__all__ = ["OverPlanner"]


class OverPlanner(PlannerBase):
    """The part of a planner that knows OVER."""

    def _over(self, plan: OverWindow) -> DataStream:
        if not inserts_only(plan.input):
            raise SqlValidationError("OVER takes no updates, and its input takes rows back: so does Flink.")
        rowtime = plan.time if time_attribute(plan.input, plan.time) == ROWTIME else None
        for call in plan.calls:
            if call.user is not None and call.user.pandas and plan.preceding is None:
                raise SqlValidationError(
                    f"{call.user.name} is a pandas aggregate: it needs all rows of its window at once, and one that "
                    "begins with the first row grows for ever. Give it a begin: ROWS or RANGE ... PRECEDING."
                )
        calls = self._calls(plan.calls, plan.input, plan.preceding is not None, each_row=True)
        spec = OverAggregate(
            plan.partition, calls, schema_of(plan.input), schema_of(plan), rowtime, plan.rows, plan.preceding
        )
        spec = replace(spec, state_ttl=self._ttl(None))
        return self._keyed(plan, plan.input, plan.partition, "OverAggregate", spec)

    def _sorted_over(self, plan: SortedWindow) -> DataStream:
        calls = self._calls(plan.calls, plan.input, False)
        if any(call.user is not None for call in calls):
            raise NotSupportedError("Not supported yet: users' functions with OVER in another order than that of time.")
        spec = SortedOver(
            plan.partition, orders_of(plan.order), calls, schema_of(plan.input), schema_of(plan), plan.rows
        )
        return self._keyed(plan, plan.input, plan.partition, "OverAggregate", spec)
