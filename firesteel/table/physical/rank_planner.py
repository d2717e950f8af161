"""Top-N as streams: rows by their place in an order, and deduplication."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.operators.table import FirstRow, Rank, WindowRank
from firesteel.table.logical.expressions import AggregateCall as LogicalCall
from firesteel.table.logical.expressions import InputRef
from firesteel.table.logical.plan import Filter, Project, RowNumber, Scan, SortedWindow, WindowTable
from firesteel.table.logical.time_attributes import time_attribute
from firesteel.table.logical.window_columns import WindowColumns, window_columns
from firesteel.table.physical.calcs import CalcPlan, PlaceLimits, place_limits
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.planner_base import orders_of, schema_of
from firesteel.table.physical.window_planner import WindowPlanner
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import RowType

__all__ = ["RankPlanner"]


class RankPlanner(WindowPlanner):
    """The part of a planner that knows places in an order. Within windows, too."""

    def _ranked(self, calc: CalcPlan, numbered: RowNumber) -> DataStream:
        """Top-N: rows of certain places are all that is kept."""
        limits = place_limits(calc, len(numbered.names) - 1)
        if limits is None:
            count = LogicalCall("COUNT", (), numbered.types[-1])
            window = SortedWindow(numbered.input, numbered.partition, numbered.order, True, (count,))
            return self._calculated(replace(calc, input=window), self.stream(window))
        windows = window_columns(numbered)
        if windows is not None:
            return self._placed(calc, numbered, limits, "WindowRank", self._window_rank(numbered, limits, windows))
        return self._placed(calc, numbered, limits, "Rank", _rank(numbered, limits, self._ttl(None)))

    def _window_rank(self, numbered: RowNumber, limits: PlaceLimits, windows: WindowColumns) -> WindowRank:
        """Top-N and deduplication of each window."""
        first, last, _, with_rank = limits
        if not inserts_only(numbered.input):
            raise SqlValidationError("Top-N of windows takes no updates, and its input takes rows back.")
        self._of_event_time(windows.window)
        return WindowRank(
            numbered.partition,
            orders_of(numbered.order),
            next(key for key in numbered.partition if key in windows.ends),
            schema_of(numbered.input),
            schema_of(numbered if with_rank else numbered.input),
            last,
            first,
            with_rank,
            self._zone(windows.window),
            # The last row by time is the one that came last.
            last_wins=(first, last) == (1, 1) and numbered.order[0].descending and _by_window_time(numbered),
        )

    def _placed(
        self,
        calc: CalcPlan,
        numbered: RowNumber,
        limits: PlaceLimits,
        name: str,
        spec: WindowRank | Rank | FirstRow,
    ) -> DataStream:
        """Rows of certain places, and what is computed of them."""
        first, last, rest, with_rank = limits
        ranked = self._keyed(numbered, numbered.input, numbered.partition, name, spec, (first, last, with_rank))
        # The rank stands behind all columns, so that places stay as they are.
        rows = numbered if with_rank else numbered.input
        base = Scan(("rank",), RowType.of(list(rows.names), list(rows.types)), None)
        return self._calculated(CalcPlan(base, calc.expressions, calc.names, rest), ranked)


def _rank(numbered: RowNumber, limits: PlaceLimits, state_ttl: int | None) -> Rank | FirstRow:
    """Of the rows between two places. The first rows alone, which nothing takes back, are found without lists."""
    start, end, _, with_rank = limits
    first_only = (start, end) == (1, 1)
    keys, order = numbered.partition, orders_of(numbered.order)
    input_schema, schema = schema_of(numbered.input), schema_of(numbered if with_rank else numbered.input)
    last_wins = first_only and _last_by_time(numbered)
    retracts = not inserts_only(numbered.input)
    if first_only and not retracts and not any(pa.types.is_nested(field.type) for field in input_schema):
        return FirstRow(keys, order, input_schema, schema, with_rank, last_wins=last_wins, state_ttl=state_ttl)
    return Rank(
        keys, order, input_schema, schema, end, start, with_rank, retracts, last_wins=last_wins, state_ttl=state_ttl
    )


def _last_by_time(numbered: RowNumber) -> bool:
    """Whether the first place is the last row in time. Of those with the same time Flink keeps the one that came last,
    which it does in no other order."""
    order = numbered.order
    return len(order) == 1 and order[0].descending and time_attribute(numbered.input, order[0].column) is not None


def _by_window_time(numbered: RowNumber) -> bool:
    """Whether rows are ordered by the time that their windows were made of."""
    plan, index = numbered.input, numbered.order[0].column
    while isinstance(plan, Project | Filter):
        if isinstance(plan, Project):
            expression = plan.expressions[index]
            if not isinstance(expression, InputRef):
                return False
            index = expression.index
        plan = plan.input
    return isinstance(plan, WindowTable) and index in (plan.time, len(plan.names) - 1) and len(numbered.order) == 1
