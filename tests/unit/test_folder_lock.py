"""One job at a time in a checkpoint folder of this machine."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firesteel.engine.folder_lock import COORDINATOR_LOCK, HOLDER, LOCK, FolderLock, Holder, hold_as_coordinator
from firesteel.errors import CheckpointError
from firesteel.filesystems import LOCAL

HOLD = """
import sys
from firesteel.engine.folder_lock import FolderLock, Holder, hold_as_coordinator
if sys.argv[2] == "driver":
    lock = FolderLock(sys.argv[1], Holder.here("orders", "4f2a"))
    lock.take()
else:
    lock = hold_as_coordinator(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def another(folder: Path, role: str = "driver") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def mine(folder: Path) -> FolderLock:
    return FolderLock(str(folder), Holder.here("orders", "77b1"))


def test_who_comes_second_is_refused_and_learns_who_was_first(tmp_path: Path) -> None:
    first = another(tmp_path)
    with pytest.raises(CheckpointError) as refused:
        mine(tmp_path).take(seconds=0)
    assert f"in use by job 'orders' (4f2a), process {first.pid} on " in str(refused.value)
    assert "Nothing was changed" in str(refused.value)
    first.communicate()


def test_the_note_of_a_holder_has_a_version(tmp_path: Path) -> None:
    lock = mine(tmp_path)
    lock.take(seconds=0)
    known = json.loads((tmp_path / HOLDER).read_text())
    assert known.pop("format") == 1
    assert Holder.from_json(json.dumps(known)) == Holder.from_json((tmp_path / HOLDER).read_text())
    (tmp_path / HOLDER).write_text(json.dumps({"format": 2, "who": "somebody"}))
    with pytest.raises(CheckpointError, match=r"in use by another process\. Nothing was changed there"):
        mine(tmp_path).take(seconds=0)
    lock.release()
    assert [Holder.from_json(text) for text in ("7", "[]", "null", "{", '{"format": 1}')] == [None] * 5


def test_a_second_job_of_the_same_process_is_refused_too(tmp_path: Path) -> None:
    first, second = mine(tmp_path), mine(tmp_path)
    first.take()
    with pytest.raises(CheckpointError, match=f"process {os.getpid()}"):
        second.take(seconds=0)
    first.release()
    second.take(seconds=0)
    second.release()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    first = another(tmp_path)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    lock = mine(tmp_path)
    lock.take(seconds=0)
    assert "77b1" in (tmp_path / HOLDER).read_text()
    lock.release()


def test_a_driver_waits_for_the_coordinator_of_the_one_before(tmp_path: Path) -> None:
    coordinator = another(tmp_path, "coordinator")
    with pytest.raises(CheckpointError, match="A process of an earlier run still works in the checkpoint folder"):
        mine(tmp_path).take(seconds=0, for_coordinator=0)
    coordinator.communicate()
    # What failed has let go of the rest.
    lock = mine(tmp_path)
    lock.take(seconds=0, for_coordinator=0)
    hold_as_coordinator(str(tmp_path), seconds=0).release()
    lock.release()
    assert not (tmp_path / HOLDER).exists()


def test_a_folder_that_is_deleted_takes_nobody_elses_lock_along(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    first, second = mine(folder), FolderLock(str(folder), Holder.here("orders", "9c00"))
    first.take()
    # It ends, and has just deleted its files there, when the next one comes.
    for name in (HOLDER, LOCK, COORDINATOR_LOCK):
        (folder / name).unlink()
    second.take(seconds=0)
    LOCAL.remove_if_empty(str(folder))
    first.release()
    assert "9c00" in (folder / HOLDER).read_text()
    with pytest.raises(CheckpointError, match="in use by"):
        mine(folder).take(seconds=0)
    second.release()


def test_a_full_disk_leaves_no_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        LOCAL.write(str(tmp_path / "manifest"), b"{}")
    assert list(tmp_path.iterdir()) == []
