"""The session that queries of batch mode run in: ours, beside the user's."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from firesteel.engine.settings import Settings
from firesteel.engine.spark.context import running_session, with_master
from firesteel.engine.spark.masters import is_local
from firesteel.engine.spark.session import get_session

__all__ = ["in_session", "new_frame", "query_session", "users_session"]

_MEANING = {
    # Whole numbers wrap around, and a decimal with too many digits is NULL.
    "spark.sql.ansi.enabled": "false",
    # Times without a zone are the same numbers as those with one; functions of zones are ours.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.sizeOfNull": "false",
}
"""Without these results would be others than Flink's."""

_SPEED = {
    # Queries have many small rows, unlike the frames of a streaming job.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}


def query_session(settings: Settings) -> SparkSession:
    """Starts Spark where it does not run. What the program sets for Spark counts, apart from the meaning of SQL."""
    jit = "full" if settings.jit == "auto" else settings.jit
    speed = dict(_SPEED)
    if is_local(with_master(settings).master):
        # Spark's default is for a cluster.
        speed["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
    return get_session(replace(settings, jit=jit, spark={**speed, **settings.spark, **_MEANING}), "tables")


def users_session(settings: Settings) -> SparkSession:
    """The session that belongs to the program, in which DataFrames are given back."""
    return running_session(settings) or query_session(settings)


def new_frame(session: SparkSession, data: Any, schema: Any) -> DataFrame:
    """A DataFrame of rows. PySpark makes the session active that it is of; the program's shall stay so."""
    before = SparkSession._activeSession
    try:
        return session.createDataFrame(data, schema)
    finally:
        SparkSession._activeSession = before
        of_java = SparkSession._get_j_spark_session_class(session._jvm)
        if before is None:
            of_java.clearActiveSession()
        else:
            of_java.setActiveSession(before._jsparkSession)


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The same rows as a DataFrame of another session."""
    jvm = session._jvm
    assert jvm is not None
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)
