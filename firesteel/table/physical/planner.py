"""Plans to streams: every relation becomes an operator over batches of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.time import Duration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.runtime.columns.kinds import KIND
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import (
    ChangelogNormalize,
    ColumnsToEvents,
    Replicate,
    RowsToColumns,
    TimeSort,
    rowtime_strategy,
)
from firesteel.runtime.operators.table import Correlate as CorrelateSpec
from firesteel.runtime.operators.table import FromChangelog as FromChangelogSpec
from firesteel.runtime.operators.table import ToChangelog as ToChangelogSpec
from firesteel.table.catalog.tables import DeclaredTable, InlineTable, SparkTable, StreamTable
from firesteel.table.functions.evaluation import Evaluator
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
    RowNumber,
    Scan,
    Sort,
    SortedWindow,
    TableAggregate,
    TemporalJoin,
    ToChangelog,
    UnionAll,
    Values,
    WindowTable,
    unique_names,
)
from firesteel.table.logical.plan import Replicate as ReplicatePlan
from firesteel.table.logical.pruning import columns_read, pruned
from firesteel.table.logical.time_attributes import UNSORTABLE, in_order_of_time, is_rowtime
from firesteel.table.physical.calcs import CalcPlan, merged_calc
from firesteel.table.physical.changelog import inserts_only, numbered_over
from firesteel.table.physical.columns import columns
from firesteel.table.physical.external.connector import Changes
from firesteel.table.physical.group_planner import GroupPlanner
from firesteel.table.physical.join_planner import JoinPlanner
from firesteel.table.physical.made_rows import made_rows
from firesteel.table.physical.over_planner import OverPlanner
from firesteel.table.physical.pattern_matching import event_columns, key_of, match_spec, read_columns
from firesteel.table.physical.planner_base import orders_of, schema_of
from firesteel.table.physical.rank_planner import RankPlanner
from firesteel.table.physical.sources import declared_changes, declared_stream
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import RowType

__all__ = ["Planner", "schema_of"]

_ROWS_PER_BATCH = 8192


class Planner(GroupPlanner, JoinPlanner, RankPlanner, OverPlanner):
    """Builds the streams of plans in one environment. A part that two plans have in common is built once."""

    idle_timeout: int | None = None
    """Milliseconds without rows after which a source of a table is not waited for."""
    repeated_changes = False
    """Whether changes of a table may come twice."""
    final = False
    """Whether streams have the rows that queries have in the end, instead of changes."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        time_zone: str = "UTC",
        mini_batch: bool = False,
        state_ttl: int | None = None,
    ) -> None:
        """``state_ttl``: milliseconds after which what did not change is forgotten, where a query says nothing else."""
        super().__init__(time_zone, mini_batch, state_ttl)
        self._env = env
        self._built: dict[tuple[Plan, tuple[int, ...]], DataStream] = {}
        self._inside = False
        self._asked: dict[tuple[Any, ...], frozenset[str]] | None = None

    def asks_only(self, plans: Iterable[Plan]) -> None:
        """Streams will be made of these plans alone: sources need not read columns that none of them asks for."""
        asked: dict[tuple[Any, ...], frozenset[str]] = {}
        for plan in plans:
            for scan, names in columns_read(pruned(plan)):
                key = scan.path, scan.options
                asked[key] = asked.get(key, frozenset()) | names
        self._asked = asked

    @property
    def settings(self) -> tuple[Any, ...]:
        """What streams depend on besides their plans."""
        own = self._time_zone, self._mini_batch, self._state_ttl
        return *own, self.bundle_size, self.idle_timeout, self.repeated_changes

    def stream(self, plan: Plan) -> DataStream:
        """A stream of batches with the plan's columns."""
        if not self._inside:
            self._inside = True
            try:
                return self.stream(pruned(plan))
            finally:
                self._inside = False
        # A name may have become that of another table since.
        key = plan, tuple(map(id, _tables(plan)))
        known = self._built.get(key)
        if known is None:
            known = self._built[key] = _BUILDERS[type(plan)](self, plan)
        return known

    def inserts_only(self, plan: Plan) -> bool:
        """Whether the stream of a plan takes nothing back."""
        return inserts_only(plan)

    def _scan(self, plan: Scan) -> DataStream:
        table, schema = plan.table, schema_of(plan)
        if isinstance(table, InlineTable):
            rows = self.batches(list(table.batches), schema, f"Source: {plan.path[-1]}")
            return rows.uid(self.named("source", plan.path))
        if isinstance(table, SparkTable):
            rows = self.batches(table.read(), schema, f"Source: {plan.path[-1]}")
            return rows.uid(self.named("source", plan.path))
        if isinstance(table, StreamTable):
            given: DataStream = table.stream
            return given
        if isinstance(table, DeclaredTable):
            strategy = None
            if plan.watermark is not None:
                (watermark,) = columns((plan.watermark,), self._time_zone)
                strategy = rowtime_strategy(watermark)
                if self.idle_timeout is not None:
                    strategy = strategy.with_idleness(Duration.of_millis(self.idle_timeout))
            # Not by all of the plan: a position is as good for another watermark, and for a table with more columns.
            uid = self.named("source", plan.path, plan.options)
            asked = self._asked.get((plan.path, plan.options)) if self._asked is not None else None
            rows = declared_stream(
                self._env, table, plan.path, strategy, lambda stream: self.identified(stream, plan), uid, asked
            )
            return self._normalized(plan, table, rows) if self.repeated_changes else rows
        raise NotSupportedError(f"Not supported yet: reading {type(table).__name__}.")

    def _normalized(self, plan: Scan, table: DeclaredTable, rows: DataStream) -> DataStream:
        """Changes that may come twice, as those that they are: a row that is there already changes nothing."""
        if declared_changes(table, plan.path) is not Changes.ALL:
            return rows
        if not table.primary_key:
            raise SqlValidationError(
                f"Table {'.'.join(plan.path)} gives changes that may come twice "
                "(table.exec.source.cdc-events-duplicate), and has no key that tells: declare PRIMARY KEY (...) NOT "
                "ENFORCED."
            )
        keys = tuple(map(plan.names.index, table.primary_key))
        spec = ChangelogNormalize(keys, schema_of(plan))
        normalized = rows.key_by(KeyColumns(keys)).transform("ChangelogNormalize", spec, ColumnsType(schema_of(plan)))
        return self.identified(normalized, plan, "normalized")

    def batches(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema, name: str) -> DataStream:
        """A stream of rows that are there already."""
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
            return self.identified(
                self._env.from_collection([one] * len(plan.rows), ColumnsType(schema)).name("Values"), plan
            )
        rows = [pa.RecordBatch.from_arrays(Evaluator(row).columns(one), schema=schema) for row in plan.rows]
        whole = pa.Table.from_batches(rows, schema).combine_chunks().to_batches()
        return self.identified(self.batches(whole, schema, "Values"), plan)

    def _calc(self, plan: Project | Filter) -> DataStream:
        calc = merged_calc(plan)
        if isinstance(calc.input, RowNumber):
            counted = numbered_over(calc, calc.input)
            return self.stream(counted) if counted is not None else self._ranked(calc, calc.input)
        below = self.stream(calc.input)
        return self._calculated(calc, below)

    def _row_number(self, plan: RowNumber) -> DataStream:
        return self._calc(Project(plan, tuple(plan.refs()), plan.names))

    def _sort(self, plan: Sort) -> DataStream:
        if plan.limit is not None:
            return self.stream(first_rows(plan))
        if not in_order_of_time(plan.input, plan.order):
            raise SqlValidationError(UNSORTABLE)
        if not inserts_only(plan.input):
            raise SqlValidationError("An order of time takes no updates, and its input takes rows back: so does Flink.")
        rowtime = plan.order[0].column if is_rowtime(plan.input, plan.order[0].column) else None
        spec = TimeSort(rowtime, orders_of(plan.order[1:]), schema_of(plan.input), schema_of(plan))
        return self._keyed(plan, plan.input, (), "TemporalSort", spec)

    def _match(self, plan: MatchRecognize) -> DataStream:
        if not inserts_only(plan.input):
            raise SqlValidationError("MATCH_RECOGNIZE takes no updates: its input changes rows.")
        asked = event_columns(plan)
        spec = match_spec(plan, asked, self._time_zone)
        rowtime = None if plan.processing_time else plan.order[0].column
        events = self.stream(plan.input).transform("ColumnsToEvents", ColumnsToEvents(read_columns(plan), rowtime))
        keyed = events.key_by(key_of([asked.index(key) for key in plan.partition]))
        matches = keyed.transform("Match", spec)
        if not plan.partition:
            matches = matches.force_non_parallel()
        matches = self.identified(matches, plan)
        names = unique_names([*(f"k{at}" for at in plan.partition), *(f"r{at}" for at in range(len(plan.references)))])
        kinds = [*(plan.input.types[key] for key in plan.partition), *(each.type for each in plan.references)]
        layout = arrow_schema(names, kinds)
        rows = matches.transform("RowsToColumns", RowsToColumns(layout), ColumnsType(layout))
        base = Scan(("matches",), RowType.of(list(names), kinds), None)
        results = (*base.refs()[: len(plan.partition)], *plan.measures)
        return self._calculated(CalcPlan(base, results, plan.names, None), rows)

    def _replicate(self, plan: ReplicatePlan) -> DataStream:
        schema = schema_of(plan)
        return self.stream(plan.input).transform("Replicate", Replicate(schema), ColumnsType(schema))

    def _correlate(self, plan: Correlate) -> DataStream:
        schema = schema_of(plan)
        spec = CorrelateSpec(made_rows(plan.call, self._time_zone), plan.kept, schema, plan.kind == "LEFT")
        return self.stream(plan.input).transform(f"Correlate({plan.call.function})", spec, ColumnsType(schema))

    def _to_changelog(self, plan: ToChangelog) -> DataStream:
        schema = schema_of(plan)
        spec = ToChangelogSpec(plan.codes, schema)
        return self.stream(plan.input).transform("ToChangelog", spec, ColumnsType(schema))

    def _from_changelog(self, plan: FromChangelog) -> DataStream:
        if not inserts_only(plan.input):
            raise SqlValidationError("FROM_CHANGELOG takes no updates: its input changes rows.")
        schema = schema_of(plan)
        spec = FromChangelogSpec(plan.place, plan.kinds, schema)
        return self.stream(plan.input).transform("FromChangelog", spec, ColumnsType(schema))

    def _union(self, plan: UnionAll) -> DataStream:
        first, *others = (self.stream(branch) for branch in plan.branches)
        return first.union(*others)


def _tables(plan: Plan) -> Iterator[Any]:
    """What the catalog has for the scans of a plan."""
    if isinstance(plan, Scan):
        yield plan.table
    for below in plan.inputs:
        yield from _tables(below)


_BUILDERS: dict[type[Plan], Callable[[Planner, Any], DataStream]] = {
    Scan: Planner._scan,
    Values: Planner._values,
    Project: Planner._calc,
    Filter: Planner._calc,
    Aggregate: Planner._aggregate,
    TableAggregate: Planner._table_aggregate,
    Correlate: Planner._correlate,
    Join: Planner._join,
    TemporalJoin: Planner._temporal_join,
    LookupJoin: Planner._lookup_join,
    RowNumber: Planner._row_number,
    Sort: Planner._sort,
    UnionAll: Planner._union,
    MatchRecognize: Planner._match,
    ReplicatePlan: Planner._replicate,
    ToChangelog: Planner._to_changelog,
    FromChangelog: Planner._from_changelog,
    WindowTable: Planner._window_table,
    OverWindow: Planner._over,
    SortedWindow: Planner._sorted_over,
    Expand: Planner._expand,
}
