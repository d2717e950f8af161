"""The Spark home that is made for a Java and a PySpark."""

from __future__ import annotations

import hashlib
import zipfile
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
    assert f"{made.path}/local-files.jar" in made.arguments.read_text()
    assert zipfile.is_zipfile(made.path / "local-files.jar")
    stamp = made.arguments.stat().st_mtime_ns
    assert home.spark_home(find_java()) == made
    assert made.arguments.stat().st_mtime_ns == stamp


def test_an_interrupt_leaves_no_half_made_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setenv("FIRESTEEL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(home, "_launcher_options", interrupted)
    with pytest.raises(KeyboardInterrupt):
        home.spark_home(find_java())
    assert list(tmp_path.iterdir()) == []


def test_the_compiled_class_is_that_of_its_source() -> None:
    """tools/make_local_files.py makes it, and notes of which source."""
    folder = Path(home.__file__).parent / "jvm"
    digest = hashlib.sha256((folder / "LocalFiles.java").read_bytes()).hexdigest()
    with zipfile.ZipFile(folder / "local-files.jar") as jar:
        assert f"Source-Digest: {digest}" in jar.read("META-INF/MANIFEST.MF").decode()
        classes = [name for name in jar.namelist() if name.endswith(".class")]
        assert classes == ["firesteel/spark/LocalFiles$Raw.class", "firesteel/spark/LocalFiles.class"]
        # 61 is Java 17.
        assert {int.from_bytes(jar.read(name)[6:8], "big") for name in classes} == {61}
