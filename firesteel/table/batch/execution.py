"""Runs plans in batch mode: on Spark, or in this process where ``firesteel.master`` is memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import NOTHING_NEEDED, Dependencies
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.engine.settings import Settings
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.planner import Planner

__all__ = ["BatchExecutor", "executor_of"]


class BatchExecutor(Protocol):
    """What runs the plans of an environment."""

    def rows(self, plan: Plan, name: str) -> Iterable[pa.RecordBatch]:
        """The rows of a query."""

    def written(self, table: DeclaredTable, plan: Plan) -> bool:
        """Writes the rows of a plan into a table, if that can be done without the table's streaming sink."""

    def planner(self, env: StreamExecutionEnvironment) -> Planner:
        """For a sink of streams: it gets the rows that a query has in the end."""


def executor_of(
    configuration: Configuration, time_zone: str, dependencies: Dependencies = NOTHING_NEEDED
) -> BatchExecutor:
    """The executor that the settings ask for. ``dependencies`` are what users' functions need."""
    settings = Settings.of(configuration)
    if settings.master == "memory":
        from firesteel.table.batch.in_memory import MemoryExecutor

        return MemoryExecutor(configuration, time_zone, dependencies)
    # Here, not at the top: a program in memory does without Spark.
    from firesteel.table.batch.on_spark import SparkExecutor

    return SparkExecutor(configuration, settings, time_zone, dependencies)
