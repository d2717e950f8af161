"""Tests on a real Spark. All tests of a process share one session, which the first job starts."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from firesteel.common import Configuration
from firesteel.engine.settings import Settings
from firesteel.engine.spark.session import get_session


@pytest.fixture
def spark() -> SparkSession:
    """The session that jobs of this process run in."""
    return get_session(Settings.of(Configuration.from_dict({"firesteel.master": "local"})), "tests")
