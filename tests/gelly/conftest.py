"""Graphs live in the Spark session of the process, which the first test starts."""

from __future__ import annotations

import pytest
from sparkkit import spark_env

from firesteel.datastream import StreamExecutionEnvironment


@pytest.fixture(scope="session")
def env() -> StreamExecutionEnvironment:
    return spark_env()
