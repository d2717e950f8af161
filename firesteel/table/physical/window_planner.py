"""Windows as streams: tables of windows, and the groups and joins within them."""

from __future__ import annotations

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import AggregateCall, UnpackRows, Window, WindowAggregate
from firesteel.runtime.operators.table import WindowJoin as WindowJoinSpec
from firesteel.runtime.operators.table import WindowTable as WindowTableSpec
from firesteel.table.logical.expressions import Call, InputRef
from firesteel.table.logical.plan import Aggregate, Join, Plan, Project, Scan, WindowTable
from firesteel.table.logical.time_attributes import PROCTIME, time_attribute
from firesteel.table.logical.window_columns import WindowColumns, window_columns
from firesteel.table.physical.calcs import CalcPlan
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.planner_base import PlannerBase, schema_of
from firesteel.table.physical.window_groups import WindowedAggregate
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import LocalZonedTimestampType, RowField, RowType, TimestampType

__all__ = ["WindowPlanner"]


class WindowPlanner(PlannerBase):
    """The part of a planner that knows windows."""

    def _zone(self, window: WindowTable) -> str | None:
        """Windows over moments are of local time."""
        zoned = isinstance(window.input.types[window.time], LocalZonedTimestampType)
        return self._time_zone if zoned else None

    def _of_event_time(self, window: WindowTable) -> None:
        if time_attribute(window.input, window.time) == PROCTIME:
            raise NotSupportedError("Not supported yet: windows of processing time in other plans than a GROUP BY.")

    def _changing_sessions(self) -> NotSupportedError:
        return NotSupportedError("Not supported yet: SESSION windows over a table that takes rows back.")

    def _window_table(self, plan: WindowTable) -> DataStream:
        self._of_event_time(plan)
        if plan.kind == "SESSION":
            return self._session_table(plan)
        schema = schema_of(plan)
        window = Window(plan.kind, plan.size, plan.slide, plan.offset, self._zone(plan))
        spec = WindowTableSpec(window, plan.time, schema_of(plan.input), schema)
        return self.stream(plan.input).transform("WindowTableFunction", spec, ColumnsType(schema))

    def _session_table(self, plan: WindowTable) -> DataStream:
        """Rows wait until their session has ended: only then is its begin and end known."""
        if not inserts_only(plan.input):
            raise self._changing_sessions()
        refs = plan.input.refs()
        fields = tuple(RowField(f"f{at}", kind) for at, kind in enumerate(plan.input.types))
        packed = Call("ROW", tuple(refs), RowType(fields, is_nullable=False))
        keys = [refs[at] for at in plan.partition]
        names = [f"k{at}" for at in range(len(keys))]
        below = Project(plan.input, (*keys, refs[plan.time], packed), (*names, "time", "row"))
        input_schema = schema_of(below)
        rows = AggregateCall("ARRAY_AGG", len(keys) + 1, pa.list_(input_schema.field(len(keys) + 1).type))
        window_fields = list(schema_of(plan))[-3:]
        layout = pa.schema([*list(input_schema)[: len(keys)], pa.field("rows", rows.type), *window_fields])
        spec = WindowAggregate(
            tuple(range(len(keys))),
            (rows,),
            Window("SESSION", plan.size, time_zone=self._zone(plan)),
            len(keys),
            input_schema,
            layout,
        )
        sessions = self._keyed(plan, below, spec.keys, "WindowTableFunction", spec)
        schema = schema_of(plan)
        return sessions.transform("Rows", UnpackRows(len(keys), schema), ColumnsType(schema))

    def _windowed(self, plan: Aggregate, windowed: WindowedAggregate) -> DataStream:
        """Groups that window_start and window_end are among the keys of: results come when windows end."""
        sessions, retracts = windowed.window.kind == "SESSION", not inserts_only(windowed.input)
        if sessions and retracts:
            raise self._changing_sessions()
        calls = self._calls(windowed.calls, windowed.input, retracts, sessions)
        layout = arrow_schema(windowed.names, windowed.types)
        window = windowed.window
        spec = WindowAggregate(
            windowed.keys,
            calls,
            Window(window.kind, window.size, window.slide, window.offset, self._zone(window)),
            None if time_attribute(window.input, window.time) == PROCTIME else windowed.time,
            schema_of(windowed.input),
            layout,
            windowed.properties,
            retracts=retracts,
        )
        result = self._keyed(plan, windowed.input, windowed.keys, "WindowAggregate", spec)
        base = Scan(("windows",), RowType.of(list(windowed.names), list(windowed.types)), None)
        return self._calculated(CalcPlan(base, windowed.results, plan.names, None), result)

    def _ended(self, plan: Aggregate) -> DataStream:
        """Groups of rows that have the begin and end of a window: results come when windows end."""
        windows = _windows(plan.input)
        self._of_event_time(windows.window)
        end = next(key for key in plan.keys if key in windows.ends)
        keys = tuple(key for key in plan.keys if key != end)
        moment = TimestampType(3, is_nullable=False)
        types = (*(plan.input.types[key] for key in keys), *(call.type for call in plan.calls), moment)
        layout = arrow_schema([f"c{index}" for index in range(len(types))], types)
        window = Window("ENDS", 0, time_zone=self._zone(windows.window))
        spec = WindowAggregate(
            keys,
            self._calls(plan.calls, plan.input, not inserts_only(plan.input)),
            window,
            end,
            schema_of(plan.input),
            layout,
            ("end",),
            retracts=not inserts_only(plan.input),
        )
        result = self._keyed(plan, plan.input, keys, "WindowAggregate", spec)
        places = [len(types) - 1 if key == end else keys.index(key) for key in plan.keys]
        places += range(len(keys), len(types) - 1)
        base = Scan(("windows",), RowType.of(list(layout.names), list(types)), None)
        refs = tuple(InputRef(place, types[place]) for place in places)
        return self._calculated(CalcPlan(base, refs, plan.names, None), result)

    def _window_join(self, plan: Join) -> DataStream:
        if not (inserts_only(plan.left) and inserts_only(plan.right)):
            raise SqlValidationError("A join of windows takes no updates, and one of its inputs takes rows back.")
        left, right = _windows(plan.left), _windows(plan.right)
        self._of_event_time(left.window)
        pairs = list(zip(plan.left_keys, plan.right_keys, strict=True))
        left_end, right_end = next(pair for pair in pairs if pair[0] in left.ends and pair[1] in right.ends)
        spec = WindowJoinSpec(
            plan.kind,
            plan.left_keys,
            plan.right_keys,
            left_end,
            right_end,
            schema_of(plan.left),
            schema_of(plan.right),
            schema_of(plan),
            self._condition(plan.condition),
            self._zone(left.window),
        )
        return self._paired(plan, "WindowJoin", spec)


def _windows(plan: Plan) -> WindowColumns:
    found = window_columns(plan)
    assert found is not None
    return found
