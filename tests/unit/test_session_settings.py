"""How the JVM is started for a job, without starting it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sparkkit import spark_env

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors.collection import CollectionEnumerator
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.text import TextFileEnumerator
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.settings import Settings
from firesteel.engine.spark import engine, session
from firesteel.errors import ConfigurationError
from firesteel.testing import ListSource


class Asked(Exception):
    """Instead of a session."""


@pytest.mark.parametrize(
    ("count", "jit", "flag"),
    [
        (100_000, "auto", True),
        (100_001, "auto", False),
        (None, "auto", False),
        (None, "quick", True),
        (10, "full", False),
    ],
)
def test_a_job_with_much_to_do_has_the_full_compiler(
    count: int | None, jit: str, flag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def export(home: Any, options: Any, quick: bool) -> None:
        asked.append(quick)
        raise Asked

    monkeypatch.setattr(session, "_export", export)
    monkeypatch.setattr(engine, "get_session", session._start)
    env = spark_env(config={"firesteel.spark.jit": jit})
    numbers = env.from_source(DataGeneratorSource(lambda n: n, count), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.union(env.from_collection([1])).print()
    with pytest.raises(Asked):
        env.execute()
    assert asked == [flag]


def test_what_a_source_knows_of_its_size(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("a line\n" * 100)
    small = [
        CollectionEnumerator.of([1, 2]),
        IndexEnumerator(2),
        IndexEnumerator(2, 1.0),
        TextFileEnumerator.of(str(file)),
        ListSource([[1]]).create_enumerator(),
    ]
    assert all(source.ends_within(100) for source in small)
    assert not any(source.ends_within(1) for source in small)
    assert not IndexEnumerator(None, 1.0).ends_within(100)


def test_no_other_compiler_is_known() -> None:
    with pytest.raises(ConfigurationError, match="'fast': it must be auto, quick or full"):
        Settings.of(Configuration.from_dict({"firesteel.spark.jit": "fast"}))
