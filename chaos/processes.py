"""The processes of a job, found by a mark in their environment, so that none but our own is ever killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MARK", "Process", "executors", "family", "freeze", "kill", "python_workers", "wake"]

MARK = "FIRESTEEL_CHAOS_RUN"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    @property
    def is_python_worker(self) -> bool:
        return "firesteel.engine.spark.daemon" in self.command

    @property
    def is_executor(self) -> bool:
        return "CoarseGrainedExecutorBackend" in self.command


def family(mark: str) -> dict[int, Process]:
    """All living processes with this mark."""
    entry = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if entry not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(folder.name)] = Process(int(folder.name), int(fields[1]), command)
    return found


def python_workers(processes: dict[int, Process]) -> list[Process]:
    """The workers, without the process that they are forked from: that is the one whose parent is a JVM of ours."""
    workers = {pid: one for pid, one in processes.items() if one.is_python_worker}
    forked = [one for one in workers.values() if one.parent in workers or one.parent not in processes]
    return sorted(forked, key=lambda one: one.pid)


def executors(processes: dict[int, Process]) -> list[Process]:
    """The executors of a cluster."""
    return sorted((one for one in processes.values() if one.is_executor), key=lambda one: one.pid)


def kill(pid: int) -> bool:
    """Whether there was somebody to kill."""
    return _signal(pid, signal.SIGKILL)


def freeze(pid: int) -> bool:
    """Stops a process until it is woken."""
    return _signal(pid, signal.SIGSTOP)


def wake(pid: int) -> bool:
    """Lets a process go on that was frozen."""
    return _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
