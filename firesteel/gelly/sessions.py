"""The Spark session that a graph lives in: the one it is given, or one of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine.settings import Settings
from firesteel.engine.spark.session import get_session
from firesteel.errors import ConfigurationError, ProgramError, short_repr

__all__ = ["session_of"]

_OURS = {
    # A graph's rows are many and small, unlike the frames of a streaming job.
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.shuffle.partitions": "16",
}


def session_of(env: Any = None) -> SparkSession:
    """``env`` may be a session of Spark, which stays as it is, or an environment, whose settings count.

    Without one, and with an environment, graphs have a session of their own beside the user's. Spark is started where
    it does not run.
    """
    if isinstance(env, SparkSession):
        return env
    if env is None:
        env = StreamExecutionEnvironment.get_execution_environment()
    if not isinstance(env, StreamExecutionEnvironment):
        raise ProgramError(
            f"A graph's env is a SparkSession or a StreamExecutionEnvironment, got {short_repr(env)} "
            f"({type(env).__name__})."
        )
    settings = Settings.of(env.get_configuration())
    if settings.master == "memory":
        raise ConfigurationError(
            "Graphs run on Spark: firesteel.master should be local or a Spark master, got 'memory'."
        )
    # Work on graphs is long enough for the better of the JVM's compilers.
    jit = "full" if settings.jit == "auto" else settings.jit
    return get_session(replace(settings, jit=jit, spark={**_OURS, **settings.spark}), "graphs")
