"""Starts the job manager as a process of its own, and finds one that runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.processes import Process, start_of
from firesteel.cluster.settings import ClusterSettings
from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import JOB_MANAGER, SETTINGS, environment_of_child, take
from firesteel.errors import SetupError

__all__ = [
    "RunningCluster",
    "find_members",
    "find_running",
    "leave_address",
    "remove_address",
    "settings_from_environment",
    "start_in_background",
]

SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class RunningCluster:
    """A job manager of this user on this machine."""

    address: str
    pid: int
    folder: Path


def leave_address(path: Path, address: str) -> None:
    """Where a job manager can be found, and which process it is."""
    known = {"address": address, "pid": os.getpid(), "started": start_of(os.getpid())}
    replace_file(str(path), json.dumps(known).encode())


def remove_address(path: Path, address: str) -> None:
    """Unless the file is another one's by now."""
    found = _read_address(path)
    if found is not None and found[0] == address:
        path.unlink(missing_ok=True)


def _read_address(path: Path) -> tuple[str, Process] | None:
    try:
        known = json.loads(path.read_bytes())
        return str(known["address"]), Process(int(known["pid"]), str(known["started"]))
    except (OSError, ValueError, KeyError):
        return None


def find_running(folder: Path) -> RunningCluster | None:
    """The job manager that works in a folder, if its process lives on this machine; among several the leader, or else
    one that knows it."""
    for path in (folder / "cluster.json", *sorted((folder / "members").glob("*.json"))):
        found = _read_address(path)
        if found is not None and found[1].alive:
            return RunningCluster(found[0], found[1].pid, folder)
    return None


def find_members(folder: Path) -> list[RunningCluster]:
    """All job managers of a folder that live on this machine, the leader last."""
    known = [_read_address(path) for path in sorted((folder / "members").glob("*.json"))]
    leader = _read_address(folder / "cluster.json")
    alive = [one for one in known if one is not None and one[1].alive]
    return [
        RunningCluster(address, process.pid, folder)
        for address, process in sorted(alive, key=lambda one: one == leader)
    ]


def settings_from_environment() -> ClusterSettings:
    """What the starting process left there."""
    known: dict[str, Any] = json.loads(take(JOB_MANAGER))
    known["folder"] = Path(known["folder"])
    known["hosts"] = tuple(known["hosts"])
    return ClusterSettings(**known).checked()


def start_in_background(settings: ClusterSettings) -> RunningCluster:
    """Starts a job manager in a session of its own, and waits until it answers."""
    folder = ClusterFolder.make(settings.folder)
    found = find_running(folder.path)
    if found is not None and not settings.highly_available:
        raise SetupError(f"A job manager runs already at {found.address} (process {found.pid}).")
    known = asdict(replace(settings, folder=folder.path))
    # Settings for all programs, if there are any, are for those that it will start.
    inherited = {SETTINGS: os.environ[SETTINGS]} if SETTINGS in os.environ else {}
    inherited[JOB_MANAGER] = json.dumps({**known, "folder": str(folder.path)})
    environment = environment_of_child(**inherited)
    output = folder.logs / f"start-{settings.port}.log" if settings.highly_available else folder.logs / "start.log"
    with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.server"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={key: value for key, value in environment.items() if key != "FIRESTEEL_REGISTRY_PASSWORD"},
            start_new_session=True,
        )
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        members = find_members(folder.path) if settings.highly_available else [find_running(folder.path)]
        found = next((one for one in members if one is not None and one.pid == process.pid), None)
        if found is not None:
            # It is nobody's child any more: this process does not wait for it.
            process.returncode = 0
            return found
        if process.poll() is not None:
            text = output.read_text(errors="replace").strip().splitlines()
            raise SetupError(f"The job manager ended at once. {text[-1] if text else ''}")
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise SetupError(f"The job manager did not answer within {SECONDS_TO_START:.0f} s: see {output}.")
