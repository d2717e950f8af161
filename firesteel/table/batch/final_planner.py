"""Rows that a query has in the end, for the sinks of streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.planner import Planner, schema_of

__all__ = ["FinalPlanner"]


class _Executor(Protocol):
    def rows(self, plan: Plan, name: str) -> Iterable[pa.RecordBatch]: ...


class FinalPlanner(Planner):
    """Gives the final rows of plans as streams."""

    final = True

    def __init__(self, env: StreamExecutionEnvironment, time_zone: str, executor: _Executor) -> None:
        super().__init__(env, time_zone)
        self._executor = executor

    def inserts_only(self, plan: Plan) -> bool:
        return True

    def stream(self, plan: Plan) -> DataStream:
        rows = list(self._executor.rows(plan, "insert"))
        return self.batches(rows, schema_of(plan), "Source: batch")
