"""How the JVM is started for a job, without starting it."""

from __future__ import annotations

from typing import Any

import pytest
from sparkkit import spark_env

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.settings import Settings
from firesteel.engine.spark import job, session
from firesteel.errors import ConfigurationError


class Asked(Exception):
    """Instead of a session."""


@pytest.mark.parametrize(
    ("config", "bounded", "flag"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"state.backend.type": "rocksdb"}, True, False),
        ({"state.backend.type": "rocksdb", "firesteel.spark.jit": "quick"}, True, True),
        ({"firesteel.spark.jit": "full"}, True, False),
    ],
)
def test_a_job_with_much_to_do_has_the_full_compiler(
    config: dict[str, str], bounded: bool, flag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def export(home: Any, options: Any, quick: bool) -> None:
        asked.append(quick)
        raise Asked

    monkeypatch.setattr(session, "_export", export)
    monkeypatch.setattr(job, "get_session", session._start)
    env = spark_env(config=config)
    if bounded:
        stream = env.from_collection([1])
    else:
        stream = env.from_source(DataGeneratorSource(lambda n: n), WatermarkStrategy.no_watermarks(), "numbers")
    stream.print()
    with pytest.raises(Asked):
        env.execute()
    assert asked == [flag]


def test_no_other_compiler_is_known() -> None:
    with pytest.raises(ConfigurationError, match="'fast': it must be auto, quick or full"):
        Settings.of(Configuration.from_dict({"firesteel.spark.jit": "fast"}))
