"""The folder by which running jobs are found: nobody else's files are believed, and none of theirs is touched."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folderkit import runtime_folder

from firesteel.cli import main
from firesteel.engine import control
from firesteel.engine.control import ControlSocket, RunningJob, ask, jobs_folder, running_jobs
from firesteel.errors import JobExecutionError, SetupError

DEAD = 2**22 + 1
"""A process id that Linux gives to nobody."""


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A short path: that of a socket must be.
    with runtime_folder() as folder:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        yield Path(folder)


def plant(file: str, **values: Any) -> Path:
    """A descriptor in the folder of running jobs."""
    jobs_folder().mkdir(mode=0o700, exist_ok=True)
    path = jobs_folder() / file
    path.write_text(json.dumps({"id": "a" * 32, "name": "planted", "pid": DEAD, "started": 1.0, **values}))
    return path


def test_no_path_leads_out_of_the_folder(runtime: Path) -> None:
    victim = runtime / "victim.sock"
    victim.touch()
    planted = plant("planted.json", id="../victim")
    assert running_jobs() == []
    assert victim.exists()
    assert planted.exists(), "nothing is deleted that is not ours"


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "../../victim"},
        {"id": "A" * 32},
        {"id": "b" * 32},
        {"id": 7},
        {"id": "a" * 32 + "\n"},
        {"name": None},
        {"pid": "1"},
        {"pid": -1},
        {"started": "now"},
    ],
    ids=str,
)
def test_a_descriptor_that_is_not_a_jobs_is_passed_over(wrong: dict[str, Any]) -> None:
    planted = plant(f"{'a' * 32}.json", **{"pid": os.getpid(), **wrong})
    assert running_jobs() == []
    assert planted.exists()


def test_what_is_no_plain_file_is_not_opened(runtime: Path) -> None:
    elsewhere = plant(f"{'a' * 32}.json").rename(runtime / "elsewhere.json")
    (jobs_folder() / f"{'a' * 32}.json").symlink_to(elsewhere)
    os.mkfifo(jobs_folder() / f"{'b' * 32}.json")
    assert running_jobs() == []
    assert elsewhere.exists()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_open_is_not_read(mode: int, capsys: pytest.CaptureFixture[str]) -> None:
    planted = plant(f"{'a' * 32}.json")
    jobs_folder().chmod(mode)
    with pytest.raises(SetupError, match=r"belongs to somebody else, or others can open it.*FIRESTEEL_RUNTIME_DIR"):
        running_jobs()
    assert planted.exists()
    assert main(["list"]) == 1
    assert "FIRESTEEL_RUNTIME_DIR" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away takes root")
def test_a_folder_of_another_user_is_not_read(runtime: Path) -> None:
    planted = plant(f"{'a' * 32}.json")
    os.chown(jobs_folder(), 65534, 65534)
    with pytest.raises(SetupError):
        running_jobs()
    assert planted.exists()


def test_a_link_in_place_of_the_folder_is_not_followed(runtime: Path) -> None:
    (runtime / "theirs").mkdir(mode=0o700)
    jobs_folder().symlink_to(runtime / "theirs")
    with pytest.raises(SetupError):
        running_jobs()


def test_without_the_folder_there_are_no_jobs() -> None:
    assert running_jobs() == []
    assert not jobs_folder().exists()


def test_a_job_of_a_container_that_counts_its_own_processes_stays_known() -> None:
    job = RunningJob("c" * 32, "elsewhere", DEAD, 1.0)
    listening = ControlSocket(job, lambda request: {"said": request["command"]})
    assert running_jobs() == [job]
    assert ask(job, command="hello") == {"said": "hello"}
    listening.close()
    assert list(jobs_folder().iterdir()) == []


def test_descriptors_are_the_owners_alone() -> None:
    previous = os.umask(0)
    try:
        listening = ControlSocket(RunningJob("d" * 32, "mine", os.getpid(), 1.0), lambda request: {})
    finally:
        os.umask(previous)
    assert {path.stat().st_mode & 0o777 for path in jobs_folder().iterdir()} == {0o600}
    listening.close()


def test_both_ends_refuse_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever got past the folder's mode is asked for by the kernel."""
    asked: list[dict[str, Any]] = []
    job = RunningJob("e" * 32, "mine", os.getpid(), 1.0)
    listening = ControlSocket(job, lambda request: asked.append(request) or {})
    monkeypatch.setattr(control, "is_own_user", lambda connection: False)
    with pytest.raises(JobExecutionError, match="Another user answers"):
        ask(job, command="cancel")
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(job.socket))
        line.settimeout(120)
        assert line.recv(1) == b"", "closed without an answer"
    assert asked == []
    listening.close()
