"""The archive of classes that lets Spark start faster: made once, by one process, and never in the way of a job."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.process_environment import JVM_FLAGS, exported
from firesteel.engine.spark import context, warmup
from firesteel.engine.spark.home import SparkHome
from firesteel.engine.spark.java import Java
from firesteel.errors import SetupError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkHome:
    """A home whose Java only says whether it takes an archive."""
    made = SparkHome(tmp_path / "home", Java(tmp_path / "java", "17.0.1"))
    (made.path / "jars").mkdir(parents=True)
    (made.path / "jars" / "spark.jar").write_text("1")
    made.arguments.touch()
    (made.java.home / "bin").mkdir(parents=True)
    made.java.executable.write_text("#!/bin/sh\ncase $1 in *.tmp) exit 0;; esac\necho unusable; exit 1\n")
    made.java.executable.chmod(0o755)
    monkeypatch.setattr(warmup, "find_java", lambda: made.java)
    monkeypatch.setattr(warmup, "spark_home", lambda java: made)
    monkeypatch.delenv("FIRESTEEL_WARMUP", raising=False)
    return made


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trial jobs that were run: each leaves an archive."""
    found: list[str] = []
    run = subprocess.run

    def trial(command: list[str], **options: Any) -> Any:
        if command[-1] != "firesteel.engine.spark.warmup":
            return run(command, **options)
        found.append(options["env"]["FIRESTEEL_MAKE_ARCHIVE"])
        Path(found[-1]).write_text(f"archive {len(found)}")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", trial)
    return found


def test_it_counts_when_it_is_whole(home: SparkHome, trials: list[str]) -> None:
    assert not home.has_archive
    assert warmup.warm_up() == home.archive
    assert home.has_archive
    assert home.archive.read_text() == "archive 1"
    assert not list(home.path.glob("*.tmp"))
    # A process that died between the archive and the note of what it was made of.
    home.stamp.unlink()
    assert not home.has_archive


@pytest.mark.parametrize("what", ["PySpark", "Java"])
def test_with_other_files_of_java_or_spark_it_is_made_anew(home: SparkHome, trials: list[str], what: str) -> None:
    library = home.java.home / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.write_text("1")
    warmup.warm_up()
    changed = library if what == "Java" else home.path / "jars" / "spark.jar"
    os.utime(changed, ns=(1, 1))
    assert not home.has_archive, "the JVM would ignore it"
    warmup.warm_up()
    assert home.has_archive
    assert len(trials) == 2


def test_one_process_makes_it_and_others_take_it(
    home: SparkHome, trials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = warmup._lock_of

    class Other:
        """Another process has it, and is done when this one gets it."""

        def acquire(self, timeout: float) -> Any:
            monkeypatch.setattr(warmup, "_lock_of", lock)
            warmup.warm_up()
            return lock(home).acquire(timeout=timeout)

    monkeypatch.setattr(warmup, "_lock_of", lambda home: Other())
    assert warmup.warm_up() == home.archive
    assert len(trials) == 1


def test_nobody_starts_a_second_one_beside_it(
    home: SparkHome, trials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        return started.append(command) if command[0] == "nice" else popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    with warmup._lock_of(home).acquire():
        warmup._spawn(home)
        assert not started
    assert stat.S_IMODE((home.path / "classes.lock").stat().st_mode) == 0o600
    warmup._spawn(home)
    assert len(started) == 1
    warmup.warm_up()
    warmup._spawn(home)
    warmup.warm_up_soon()
    assert len(started) == 1
    home.stamp.unlink()
    monkeypatch.setenv("FIRESTEEL_WARMUP", "off")
    warmup.warm_up_soon()
    assert len(started) == 1


def test_one_that_java_does_not_take_is_not_kept(home: SparkHome, trials: list[str]) -> None:
    home.java.executable.write_text("#!/bin/sh\necho unusable; exit 1\n")
    with pytest.raises(SetupError, match="cannot be used: unusable"):
        warmup.warm_up()
    assert not home.has_archive
    assert not list(home.path.glob("classes*.tmp"))


def test_a_folder_with_blanks_has_none(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "a b", Java(tmp_path, "17"))
    home.path.mkdir()
    home.archive.touch()
    home.stamp.write_text(home.made_of)
    assert not home.takes_archive
    assert not home.has_archive


def test_a_jvm_that_does_not_start_with_it_is_started_without(
    home: SparkHome, trials: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    warmup.warm_up()
    tried: list[str] = []

    def create(master: str, options: Mapping[str, str], asked: Mapping[str, str], own: bool) -> Any:
        tried.append(os.environ[JVM_FLAGS])
        if "SharedArchiveFile" in tried[-1]:
            raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
        return "a session"

    monkeypatch.setattr(context, "_create", create)
    with exported({JVM_FLAGS: f"-Xmx1g -XX:SharedArchiveFile={home.archive}"}):
        made: Any = context._created("local", {}, {}, home)
    assert made == "a session"
    assert tried == [f"-Xmx1g -XX:SharedArchiveFile={home.archive}", "-Xmx1g"]
    assert not home.has_archive
    assert "is removed" in caplog.text
