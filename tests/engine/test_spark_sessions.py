"""Each job has a session of its own, beside the one that the process has."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sparkkit import spark_env

from firesteel.common.process_environment import _FOR_ONE_PROCESS
from firesteel.datastream import MapFunction, RuntimeContext
from firesteel.engine.manifest import CheckpointFolder

PARTITIONS = "spark.sql.shuffle.partitions"


class Subtasks(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.of = runtime_context.get_number_of_parallel_subtasks()
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return self.of, self.subtask, value


class OwnVariables(MapFunction):
    """The variables in the worker's environment that a process that it starts must not inherit."""

    def map(self, value: Any) -> Any:
        return sorted(os.environ.keys() & set(_FOR_ONE_PROCESS))


def test_neither_driver_nor_workers_pass_on_what_was_meant_for_them(spark: SparkSession) -> None:
    env = spark_env(1)
    with env.from_collection([1]).map(OwnVariables()).execute_and_collect() as records:
        assert list(records) == [[]]
    assert not os.environ.keys() & set(_FOR_ONE_PROCESS)
    # The home that was made for the JVM is no home for others.
    assert os.environ.get("SPARK_HOME") != str(spark.sparkContext._jvm.System.getenv("SPARK_HOME"))


def run(parallelism: int) -> set[Any]:
    env = spark_env(parallelism)
    numbers = env.from_collection(list(range(40))).key_by(lambda n: n)
    with numbers.reduce(lambda a, b: a + b).map(Subtasks()).execute_and_collect() as records:
        return set(records)


def test_two_jobs_that_start_at_once_have_each_their_own_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have set their number of partitions when the first query starts."""
    users = SparkSession.builder.getOrCreate()
    before, active = (users.conf.getAll, spark.conf.getAll), SparkSession.getActiveSession()
    both = threading.Barrier(2, timeout=300)
    make = CheckpointFolder.make_query_folder

    def wait(folder: CheckpointFolder) -> None:
        both.wait()
        make(folder)

    monkeypatch.setattr(CheckpointFolder, "make_query_folder", wait)
    with ThreadPoolExecutor(2) as pool:
        for parallelism, found in zip((2, 3), pool.map(run, (2, 3)), strict=True):
            assert {value for _, _, value in found} == set(range(40))
            assert {(of, subtask) for of, subtask, _ in found} == {(parallelism, n) for n in range(parallelism)}
    assert (users.conf.getAll, spark.conf.getAll) == before
    assert SparkSession.getActiveSession() is active
