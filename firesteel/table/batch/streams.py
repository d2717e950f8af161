"""Tables of streams in batch mode: each stream runs to its end, and what came is a table of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace

import pyarrow as pa

from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.batch.execution import BatchExecutor
from firesteel.table.batch.final_planner import FinalPlanner
from firesteel.table.batch.rewriting import with_inputs
from firesteel.table.catalog.tables import DeclaredTable, InlineTable, StreamTable
from firesteel.table.final_rows import final_rows
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.physical.planner import Planner, schema_of

__all__ = ["StreamsExecutor", "streams_read"]


class StreamsExecutor:
    """Runs plans that read streams of one environment, with the executor that runs all others."""

    def __init__(
        self,
        executor: BatchExecutor,
        env: StreamExecutionEnvironment,
        alone: Callable[[], AbstractContextManager[None]],
        time_zone: str,
    ) -> None:
        """``alone``: sets the sinks of the environment aside, which wait for its own execute()."""
        self._executor = executor
        self._env = env
        self._alone = alone
        self._time_zone = time_zone

    def rows(self, plan: Plan, name: str) -> Iterable[pa.RecordBatch]:
        """The rows of a query."""
        return self._executor.rows(self.read(plan), name)

    def written(self, table: DeclaredTable, plan: Plan) -> bool:
        """Writes the rows of a plan into a table, if that can be done without the table's streaming sink."""
        return self._executor.written(table, self.read(plan))

    def planner(self, env: StreamExecutionEnvironment) -> Planner:
        """For sinks of streams, and for streams of tables."""
        return FinalPlanner(env, self._time_zone, self)

    def read(self, plan: Plan) -> Plan:
        """The plan with the rows of its streams."""
        with self._alone():
            return streams_read(plan, self._env)


def streams_read(plan: Plan, env: StreamExecutionEnvironment) -> Plan:
    """The plan with rows in place of streams. A stream that it has twice runs once."""
    found: dict[int, InlineTable] = {}

    def read(each: Plan) -> Plan:
        if not isinstance(each, Scan) or not isinstance(each.table, StreamTable):
            return with_inputs(each, read)
        key = id(each.table.stream)
        if key not in found:
            found[key] = InlineTable(each.columns, _final(each, env))
        # What a stream's watermarks are made of has been in its rows, all of which have come.
        return replace(each, table=found[key], watermark=None)

    return read(plan)


def _final(scan: Scan, env: StreamExecutionEnvironment) -> tuple[pa.RecordBatch, ...]:
    mode = env.get_runtime_mode()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    try:
        with scan.table.stream.execute_and_collect(scan.path[-1]) as batches:
            rows = final_rows(list(batches), schema_of(scan))
    finally:
        env.set_runtime_mode(mode)
    return tuple(rows.to_batches())
