"""Where the cache and the descriptors of running jobs lie."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import platformdirs
import pytest

from firesteel.engine.run_folder import jobs_folder
from firesteel.engine.spark.home import cache_folder


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRESTEEL_RUNTIME_DIR", "FIRESTEEL_CACHE_DIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_what_was_chosen_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("FIRESTEEL_CACHE_DIR", str(tmp_path / "cache"))
    assert jobs_folder() == tmp_path / "firesteel"
    assert cache_folder() == tmp_path / "cache"


def test_the_systems_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jobs_folder() == tmp_path / "firesteel"
    assert cache_folder() == tmp_path / "cache" / "firesteel"


@pytest.mark.parametrize("mode", [None, 0o777, 0o770])
def test_a_folder_that_others_can_change_is_not_used(
    mode: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can rename it can put another one in its place."""
    runtime = tmp_path / "runtime"
    if mode is not None:
        runtime.mkdir()
        runtime.chmod(mode)
    monkeypatch.setattr(platformdirs, "user_runtime_path", lambda *_, **__: runtime / "firesteel")
    assert jobs_folder() == Path(tempfile.gettempdir()) / f"firesteel-{os.getuid()}"


def test_no_warning_where_the_system_has_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jobs_folder().name.startswith("firesteel")
