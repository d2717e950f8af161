"""Graphs live in the Spark session of the process, which the first test starts."""

from __future__ import annotations

import pytest
from sparkkit import spark_env

from firesteel.datastream import StreamExecutionEnvironment

SMALL = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For graphs of a few vertices most of the time would go into code that is compiled for them and into partitions that
are empty. The example, the page and a test in the user's session have Spark's and our own settings."""


@pytest.fixture(scope="session")
def env() -> StreamExecutionEnvironment:
    return spark_env(config=SMALL)
