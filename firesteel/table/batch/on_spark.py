"""Batch mode on Spark SQL."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import NOTHING_NEEDED, Dependencies
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.engine.imports import IMPORTS
from firesteel.engine.settings import Settings
from firesteel.engine.shipping import gather
from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.session import import_paths, ship_files
from firesteel.filesystems import StorageOptions

# Each registers its relations.
from firesteel.table.batch import analytic_windows, correlates, groups, relations, sources  # noqa: F401
from firesteel.table.batch.bounds import check_plan
from firesteel.table.batch.final_planner import FinalPlanner
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.batch.layout import from_spark
from firesteel.table.batch.sessions import query_session
from firesteel.table.batch.translator import Translator
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.null_checks import may_have_nulls
from firesteel.table.physical.planner import Planner
from firesteel.table.types.arrow import arrow_schema

__all__ = ["SparkExecutor"]


class SparkExecutor:
    """Runs queries as jobs of Spark."""

    def __init__(
        self,
        configuration: Configuration,
        settings: Settings,
        time_zone: str,
        dependencies: Dependencies = NOTHING_NEEDED,
    ) -> None:
        self._configuration = configuration
        self._dependencies = dependencies
        self._settings = settings
        self._time_zone = time_zone

    def translator(self) -> Translator:
        """For the plans of one statement, which see the same time."""
        session = query_session(self._settings)
        paths = import_paths(Settings(master=session.sparkContext.master))
        files = gather(self._dependencies.configured(self._configuration), StorageOptions.of(self._settings.spark))
        IMPORTS.hold(files, runs_here=False)
        ship_files(session, files)
        parameters = self._configuration.get_string("pipeline.global-job-parameters", "") or ""
        context = KernelContext(self._time_zone, time.time(), paths, files, parameters)
        return Translator(session, context, self._configuration)

    def rows(self, plan: Plan, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query, in its order if it has one."""
        check_plan(plan, self._configuration)
        frame = self.translator().frame(plan)
        return self._collected(frame, plan, name)

    def _collected(self, frame: DataFrame, plan: Plan, name: str) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(plan.names, plan.types)
        context = frame.sparkSession.sparkContext
        try:
            context.setJobDescription(name)
            found = frame.toArrow()
        except Exception as error:
            raise translate(error) from error
        finally:
            context.setJobDescription(None)
        for batch in found.to_batches():
            columns = [from_spark(each, kind) for each, kind in zip(batch.columns, plan.types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def written(self, table: DeclaredTable, plan: Plan) -> bool:
        """What keeps nothing needs no row in this process."""
        if table.options.get("connector") != "blackhole" or may_have_nulls(plan, table):
            return False
        check_plan(plan, self._configuration)
        frame = self.translator().frame(plan)
        try:
            frame.write.format("noop").mode("overwrite").save()
        except Exception as error:
            raise translate(error) from error
        return True

    def planner(self, env: StreamExecutionEnvironment) -> Planner:
        """For sinks of streams, which get the rows from this process."""
        return FinalPlanner(env, self._time_zone, self)
