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
from firesteel.cluster.processes import Process
from firesteel.cluster.settings import ClusterSettings
from firesteel.common.process_environment import JOB_MANAGER, SETTINGS, environment_of_child, take
from firesteel.errors import SetupError

__all__ = ["RunningCluster", "find_running", "settings_from_environment", "start_in_background"]

SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class RunningCluster:
    """A job manager of this user on this machine."""

    address: str
    pid: int
    folder: Path


def find_running(folder: Path) -> RunningCluster | None:
    """The job manager that works in a folder, if its process lives."""
    try:
        known = json.loads((folder / "cluster.json").read_bytes())
        process = Process(int(known["pid"]), str(known["started"]))
        address = str(known["address"])
    except (OSError, ValueError, KeyError):
        return None
    return RunningCluster(address, process.pid, folder) if process.alive else None


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
    if found is not None:
        raise SetupError(f"A job manager runs already at {found.address} (process {found.pid}).")
    known = asdict(replace(settings, folder=folder.path))
    # Settings for all programs, if there are any, are for those that it will start.
    inherited = {SETTINGS: os.environ[SETTINGS]} if SETTINGS in os.environ else {}
    inherited[JOB_MANAGER] = json.dumps({**known, "folder": str(folder.path)})
    output = folder.logs / "start.log"
    with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.server"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=environment_of_child(**inherited),
            start_new_session=True,
        )
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        found = find_running(folder.path)
        if found is not None and found.pid == process.pid:
            # It is nobody's child any more: this process does not wait for it.
            process.returncode = 0
            return found
        if process.poll() is not None:
            text = output.read_text(errors="replace").strip().splitlines()
            raise SetupError(f"The job manager ended at once. {text[-1] if text else ''}")
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise SetupError(f"The job manager did not answer within {SECONDS_TO_START:.0f} s: see {output}.")
