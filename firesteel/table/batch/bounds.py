"""Tables of connectors in batch mode: what reads them, and whether they end."""

from __future__ import annotations

from firesteel.common.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.graph.specs import SourceSpec
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.functions.watermarks import CURRENT_WATERMARK
from firesteel.table.logical.expressions import calls_of
from firesteel.table.logical.plan import Filter, Plan, Project, Scan, TemporalJoin
from firesteel.table.physical.sources import declared_stream
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError

__all__ = ["check_plan", "table_stream"]


def table_stream(scan: Scan, configuration: Configuration) -> DataStream:
    """What reads the table, in an environment of its own."""
    return declared_stream(StreamExecutionEnvironment(Configuration(configuration)), scan.table, scan.path)


def check_plan(plan: Plan, configuration: Configuration) -> None:
    """Refuses what batch mode cannot run, before anything runs: above all tables without an end."""
    if isinstance(plan, TemporalJoin):
        # Its right side are all versions of a table, of which only the last one is there in the end.
        raise NotSupportedError("Not supported yet in batch mode: FOR SYSTEM_TIME AS OF an event time.")
    if isinstance(plan, Scan) and isinstance(plan.table, DeclaredTable):
        stream = table_stream(plan, configuration)
        specs = [node.spec for node in stream.get_execution_environment().program.nodes()]
        if any(isinstance(each, SourceSpec) and each.enumerator and not each.enumerator.bounded for each in specs):
            connector = plan.table.options.get("connector")
            ends = " Set 'number-of-rows', or the end of a sequence." if connector == "datagen" else ""
            raise SqlValidationError(f"Table {'.'.join(plan.path)} has no end, and batch mode needs one.{ends}")
    expressions = (
        plan.expressions if isinstance(plan, Project) else [plan.condition] if isinstance(plan, Filter) else ()
    )
    if any(True for each in expressions for _ in calls_of(CURRENT_WATERMARK, each)):
        raise SqlValidationError(f"{CURRENT_WATERMARK} is for streams: batch mode has no watermarks, as in Flink.")
    for each in plan.inputs:
        check_plan(each, configuration)
