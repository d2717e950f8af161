"""The job of SQL that is killed: a statement set with every operator that has state (:mod:`chaos.sql_queries`), from a
generator into a table of PostgreSQL, which is written by key, and into files, exactly once.

    python -m chaos.sql_job SETTINGS.json
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from chaos.job import Plan, environment
from chaos.portions import PortionedSource
from chaos.sql_queries import APPENDED, CHANGED, EVENT, declare, event
from firesteel.common import WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.engine.commit_log import CommitLog
from firesteel.table import StreamTableEnvironment

__all__ = ["changelogs"]

QUERIES_PER_STATEMENT = 6
COLUMNS = "kind STRING, `key` INT, n BIGINT, `value` BIGINT"


def tables_of(env: StreamExecutionEnvironment, plan: Plan) -> StreamTableEnvironment:
    """An environment with the tables and views that the queries read."""
    tables = StreamTableEnvironment.create(env)
    source = PortionedSource(event, plan.records, plan.rate, plan.done, plan.portions)
    # One subtask, so that the events of a key come in their order.
    events = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", EVENT).uid("events")
    declare(tables, events.set_parallelism(1))
    return tables


def changelogs(env: StreamExecutionEnvironment, plan: Plan) -> dict[str, DataStream]:
    """The changes of each query."""
    tables = tables_of(env, plan)
    queries = {**APPENDED, **CHANGED}
    return {kind: tables.to_changelog_stream(tables.sql_query(query)) for kind, query in queries.items()}


def main(plan: Plan) -> None:
    if "commit-log" in plan.without:
        CommitLog.read = lambda self: {}  # type: ignore[method-assign]
    tables = tables_of(environment(plan), plan)
    tables.execute_sql(f"""
        CREATE TABLE appended ({COLUMNS}) WITH (
            'connector' = 'filesystem', 'path' = '{plan.folder}', 'format' = 'csv',
            'sink.rolling-policy.file-size' = '20 kb', 'sink.rolling-policy.rollover-interval' = '3 s'
        )
    """)
    tables.execute_sql(f"""
        CREATE TABLE changed ({COLUMNS}, PRIMARY KEY (kind, `key`, n) NOT ENFORCED) WITH (
            'connector' = 'jdbc', 'url' = '{plan.url}', 'table-name' = 'results',
            'username' = '{os.environ["PGUSER"]}', 'password' = '{os.environ["PGPASSWORD"]}'
        )
    """)
    statements = tables.create_statement_set()
    # Rows of several queries go into one table, so none of their keys is its.
    targets = (("appended", APPENDED, ""), ("changed", CHANGED, " ON CONFLICT DO DEDUPLICATE"))
    for target, queries, conflict in targets:
        every = list(queries.values())
        for first in range(0, len(every), QUERIES_PER_STATEMENT):
            several = every[first : first + QUERIES_PER_STATEMENT]
            statements.add_insert_sql(f"INSERT INTO {target} {' UNION ALL '.join(several)}{conflict}")
    statements.execute().wait()


if __name__ == "__main__":
    main(Plan.load(Path(sys.argv[1])))
