"""Batch mode without Spark: the operators of streams run to the end, and what is left of the changes is the result."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.batch.analytics import analysed
from firesteel.table.batch.bounds import check_plan
from firesteel.table.batch.final_planner import FinalPlanner
from firesteel.table.batch.ordering import sorted_rows
from firesteel.table.batch.rewriting import as_stream, with_inputs
from firesteel.table.catalog.tables import DeclaredTable, InlineTable
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.logical.analytic_windows import AnalyticWindow
from firesteel.table.logical.plan import Filter, Plan, Project, RowNumber, Scan, Sort, SortOrder
from firesteel.table.logical.time_attributes import ROWTIME, time_attribute
from firesteel.table.physical.calcs import CalcPlan, merged_calc, place_limits
from firesteel.table.physical.planner import Planner, schema_of
from firesteel.table.types.arrow import arrow_schema

__all__ = ["MemoryExecutor", "final_rows"]

_TAKEN_BACK = (1, 3)
"""Kinds of rows that are no more: -U and -D."""


class MemoryExecutor:
    """Runs queries in this process."""

    def __init__(self, configuration: Configuration, time_zone: str) -> None:
        self._configuration = configuration
        self._time_zone = time_zone

    def rows(self, plan: Plan, name: str) -> Iterator[pa.RecordBatch]:
        """The final rows, in the order of the query if it has one."""
        check_plan(plan, self._configuration)
        plan = self._with_numbers(plan)
        calc = merged_calc(plan)
        sort = calc.input if isinstance(calc.input, Sort) else None
        below = as_stream(sort.input if sort is not None else plan)
        env = StreamExecutionEnvironment(Configuration(self._configuration))
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


def final_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """What is left when all changes have been made, in the order in which it came.

    >>> schema = pa.schema([("n", pa.int64())])
    >>> changes = pa.record_batch({"n": [1, 1, 2], "$kind": pa.array([0, 1, 2], pa.int8())})
    >>> final_rows([changes], schema)["n"].to_pylist()
    [2]
    """
    if not schema.names:
        # Rows without columns cannot be taken back.
        return pa.Table.from_batches([data_of(batch) for batch in batches])
    plain = pa.Table.from_batches([data_of(batch).cast(schema) for batch in batches], schema)
    kinds = [kinds_of(batch) for batch in batches]
    if all(each is None or not set(each.tolist()) & set(_TAKEN_BACK) for each in kinds):
        return plain
    left: dict[str, list[int]] = defaultdict(list)
    number = 0
    for batch, kind in zip(batches, kinds, strict=True):
        names = kind.tolist() if kind is not None else [0] * batch.num_rows
        for row, what in zip(data_of(batch).to_pylist(), names, strict=True):
            places = left[repr(row)]
            if what in _TAKEN_BACK:
                places.pop()
            else:
                places.append(number)
            number += 1
    kept = sorted(place for places in left.values() for place in places)
    return plain.take(pa.array(kept, pa.int64()))
