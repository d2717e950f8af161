"""Batch mode without Spark: the operators of streams run to the end, and what is left of the changes is the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import NOTHING_NEEDED, Dependencies
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.batch.analytics import analysed
from firesteel.table.batch.bounds import check_plan
from firesteel.table.batch.final_planner import FinalPlanner
from firesteel.table.batch.ordering import sorted_rows
from firesteel.table.batch.rewriting import as_stream, with_inputs
from firesteel.table.catalog.tables import DeclaredTable, InlineTable
from firesteel.table.final_rows import final_rows
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.logical.analytic_windows import AnalyticWindow
from firesteel.table.logical.plan import Filter, Plan, Project, RowNumber, Scan, Sort, SortOrder
from firesteel.table.logical.time_attributes import ROWTIME, time_attribute
from firesteel.table.physical.calcs import CalcPlan, merged_calc, place_limits
from firesteel.table.physical.planner import Planner, schema_of
from firesteel.table.types.arrow import arrow_schema

__all__ = ["MemoryExecutor"]


class MemoryExecutor:
    """Runs queries in this process."""

    def __init__(
        self, configuration: Configuration, time_zone: str, dependencies: Dependencies = NOTHING_NEEDED
    ) -> None:
        self._configuration = configuration
        self._time_zone = time_zone
        self._dependencies = dependencies

    def rows(self, plan: Plan, name: str) -> Iterator[pa.RecordBatch]:
        """The final rows, in the order of the query if it has one."""
        # Told at once, and not when the first row is asked for.
        check_plan(plan, self._configuration)
        return self._rows(plan, name)

    def _rows(self, plan: Plan, name: str) -> Iterator[pa.RecordBatch]:
        plan = self._with_numbers(plan)
        calc = merged_calc(plan)
        sort = calc.input if isinstance(calc.input, Sort) else None
        below = as_stream(sort.input if sort is not None else plan)
        env = StreamExecutionEnvironment(Configuration(self._configuration))
        env.dependencies = self._dependencies
        planner = Planner(env, self._time_zone, mini_batch=True)
        planner.whole_groups = True
        with planner.stream(below).execute_and_collect(name) as batches:
            rows = final_rows(list(batches), schema_of(below))
        if sort is None:
            yield from rows.to_batches()
            return
        rows = sorted_rows(rows, sort.order).slice(sort.offset, sort.limit)
        for batch in rows.to_batches():
            yield self._calculated(batch, calc)

    def _with_numbers(self, plan: Plan) -> Plan:
        """Places of all rows, which a stream cannot give: where there is no last place, they are counted here."""
        if isinstance(plan, AnalyticWindow):
            return self._analysed(plan)
        calc = merged_calc(plan)
        if isinstance(calc.input, RowNumber) and place_limits(calc, len(calc.input.names) - 1) is None:
            rows = pa.Table.from_batches(self.rows(calc.input.input, "row numbers"), schema_of(calc.input.input))
            numbered = tuple(_numbered(rows, calc.input).to_batches())
            scan = Scan(("row numbers",), calc.input.row_type, InlineTable(calc.input.row_type, numbered))
            below: Plan = scan if calc.condition is None else Filter(scan, calc.condition)
            return Project(below, calc.expressions, calc.names)

        def below_numbers(each: Plan) -> Plan:
            return with_inputs(each, self._with_numbers if each is calc.input else below_numbers)

        return below_numbers(plan) if isinstance(calc.input, RowNumber) else with_inputs(plan, self._with_numbers)

    def _analysed(self, plan: AnalyticWindow) -> Plan:
        """Functions that need all rows of a partition, which a stream never has."""
        rows = pa.Table.from_batches(self.rows(plan.input, "rows of windows"), schema_of(plan.input))
        found = analysed(rows, plan, lambda groups: self._table(groups))
        batches = tuple(found.combine_chunks().to_batches())
        rowtimes = tuple(name for at, name in enumerate(plan.names) if time_attribute(plan, at) == ROWTIME)
        return Scan(("windows",), plan.row_type, InlineTable(plan.row_type, batches), rowtimes)

    def _table(self, plan: Plan) -> pa.Table:
        return pa.Table.from_batches(self.rows(plan, "groups of windows"), schema_of(plan))

    def _calculated(self, batch: pa.RecordBatch, calc: CalcPlan) -> pa.RecordBatch:
        """What is computed of rows that are in order already."""
        if calc.condition is not None:
            context = EvaluationContext(batch.num_rows, self._time_zone)
            batch = batch.filter(Evaluator([calc.condition]).columns(batch, context)[0])
        context = EvaluationContext(batch.num_rows, self._time_zone)
        columns = Evaluator(calc.expressions).columns(batch, context)
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(calc.names, [e.type for e in calc.expressions]))

    def written(self, table: DeclaredTable, plan: Plan) -> bool:
        """Sinks are those of streams."""
        return False

    def planner(self, env: StreamExecutionEnvironment) -> Planner:
        """For sinks."""
        return FinalPlanner(env, self._time_zone, self)


def _numbered(rows: pa.Table, plan: RowNumber) -> pa.Table:
    rows = sorted_rows(rows, [*(SortOrder(key) for key in plan.partition), *plan.order])
    counts: Counter[str] = Counter()
    places = []
    for key in rows.select(list(plan.partition)).to_pylist() if plan.partition else [{}] * rows.num_rows:
        counts[repr(key)] += 1
        places.append(counts[repr(key)])
    return rows.append_column(pa.field(plan.names[-1], pa.int64()), pa.array(places, pa.int64()))
