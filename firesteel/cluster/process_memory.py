"""The processes of a job on this machine, with their memory: its driver, the JVM, Python workers. And what is left."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["ProcessUse", "free_memory", "processes_of"]

_GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class ProcessUse:
    """One process."""

    pid: int
    kind: str
    """driver, JVM, Python worker, Python daemon, or the name of another program."""
    memory: int
    """Resident bytes."""
    cpu_seconds: float
    started: int
    """In milliseconds since 1970."""
    threads: int


def processes_of(driver: int) -> list[ProcessUse]:
    """The driver's process and all below it; none where it does not run on this machine."""
    found = []
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(driver)
        for process in [root, *root.children(recursive=True)]:
            # Workers come and go.
            with contextlib.suppress(psutil.Error):
                found.append(_use(process, process.pid == driver))
    return found


def free_memory(group: Path = _GROUP) -> int:
    """Bytes that new processes can have: of the machine, or of the container that this process is in.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in {"max": "1000", "current": "700", "stat": "anon 500\\ninactive_file 150\\n"}.items():
    ...         _ = Path(folder, f"memory.{name}").write_text(text)
    ...     free_memory(Path(folder))
    450
    """
    free = int(psutil.virtual_memory().available)
    # Without a limit there is no such file, or no number in it.
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        known = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Files that were read and can be read again take the rest.
        free = min(free, limit - used + int(known.get("inactive_file", "0")))
    return free


def _use(process: psutil.Process, is_driver: bool) -> ProcessUse:
    with process.oneshot():
        cpu = process.cpu_times()
        return ProcessUse(
            process.pid,
            "driver" if is_driver else _kind(process),
            process.memory_info().rss,
            round(cpu.user + cpu.system, 2),
            int(process.create_time() * 1000),
            process.num_threads(),
        )


def _kind(process: psutil.Process) -> str:
    name = process.name()
    if name == "java":
        return "JVM"
    words = " ".join(process.cmdline())
    if "fork_server" in words or "/forks/python" in words:
        return "fork server"
    if "daemon" in words:
        # Spark's daemon forks the workers, which keep its command line.
        parent = process.parent()
        above = "" if parent is None else " ".join([parent.name(), *parent.cmdline()])
        return "Python daemon" if above.startswith("java") or "fork_server" in above else "Python worker"
    return "Python worker" if "pyspark" in words or "firesteel" in words else name
