"""The Spark home that is made for a Java and a PySpark."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.engine.spark import home
from firesteel.engine.spark.java import find_java


def test_a_home_is_made_once_and_orphans_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_CACHE_DIR", str(tmp_path))
    gone, there = tmp_path / "spark-4.3.0-gone", tmp_path / "spark-4.3.0-there"
    for other, target in ((gone, tmp_path / "no-environment"), (there, tmp_path)):
        other.mkdir()
        (other / "jars").symlink_to(target)
        (other / "classes.jsa").touch()
    made = home.spark_home(find_java())
    assert made is not None
    assert sorted(tmp_path.iterdir()) == sorted([there, made.path])
    assert (made.path / "jars" / "scala-library.jar").resolve().parent.exists()
    stamp = made.arguments.stat().st_mtime_ns
    assert home.spark_home(find_java()) == made
    assert made.arguments.stat().st_mtime_ns == stamp
