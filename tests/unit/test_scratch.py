"""Temporary files: private, and gone with the process that made them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from firesteel.engine import scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_made", {})
    return tmp_path


PROGRAM = """
import pathlib, sys
from firesteel.engine.scratch import scratch_folder
(scratch_folder() / "large").write_text("x")
print(scratch_folder(), flush=True)
sys.stdin.read()
"""


def another_process(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_process_that_ends_removes_its_folder(temporary: Path) -> None:
    process, folder = another_process(temporary)
    assert (folder / "large").exists()
    process.communicate()
    assert not folder.exists()


def test_what_a_killed_process_left_goes_with_the_next_start_and_what_is_in_use_stays(temporary: Path) -> None:
    killed, left = another_process(temporary)
    running, used = another_process(temporary)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.exists()
    mine = scratch.scratch_folder()
    assert not left.exists()
    assert (used / "large").exists()
    assert mine.is_dir()
    running.communicate()


def test_others_cannot_look_inside(temporary: Path) -> None:
    folder = scratch.scratch_folder()
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.parent.stat().st_mode & 0o077 == 0


def test_a_folder_of_somebody_else_is_not_used(temporary: Path) -> None:
    planted = scratch.user_folder()
    planted.mkdir(mode=0o777)
    planted.chmod(0o777)
    folder = scratch.scratch_folder()
    assert planted not in folder.parents
    assert folder.stat().st_mode & 0o077 == 0
