"""The memory and the processor time of an engine's processes, read from /proc."""

import os
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """The workers' resident memory in bytes, ``seconds`` after the start."""

    seconds: float
    workers: list[int]


def parents() -> dict[int, tuple[int, int]]:
    """The parent and the process group of every process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(stat.parent.name)] = int(fields[1]), int(fields[2])
    return found


def descendants(root: int) -> set[int]:
    """All processes below ``root``, and those in the process groups of workers below it: a worker that outlives the one
    that made it has no parent left to tell."""
    processes = parents()
    own_group = processes[root][1] if root in processes else 0
    found = {root}
    grown = True
    while grown:
        groups = {processes[pid][1] for pid in found if pid in processes} - {own_group}
        below = {pid for pid, (parent, group) in processes.items() if parent in found or group in groups}
        grown = not below <= found
        found |= below
    return found - {root}


WORKER, JVM = "worker", "jvm"


def role(pid: int) -> str | None:
    """``worker`` for a Python process of Spark or PyFlink, ``jvm`` for Java, None for anything else."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    program = command.partition(b"\0")[0].rpartition(b"/")[2]
    if program == b"java":
        return JVM
    return WORKER if b"python" in program and (b"pyspark" in command or b"pyflink" in command) else None


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def highest(pid: int) -> int:
    """The most memory that a process ever had resident, as the kernel remembers it."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def processor_seconds() -> float:
    """The processor time so far of this process and all below it, also of those that have ended."""
    ticks = 0
    for pid in {os.getpid(), *descendants(os.getpid())}:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # User and system time, its own and that of children that it has waited for.
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


THREADS = {"C1 ": "compilers", "C2 ": "compilers", "stream exec": "planning", "Executor task": "tasks in the JVM"}
"""Threads of the JVM, by how their names begin."""


def processor_ms() -> Counter[str]:
    """The processor time so far of this process and all below it, in milliseconds by what it was for."""
    found: Counter[str] = Counter()
    for pid in {os.getpid(), *descendants(os.getpid())}:
        used = _ticks(Path(f"/proc/{pid}/stat"))
        if role(pid) == JVM:
            known: Counter[str] = Counter()
            for thread in Path(f"/proc/{pid}/task").glob("[0-9]*/stat"):
                ticks = _ticks(thread)
                for name, kind in THREADS.items():
                    known[kind] += ticks[1] if ticks[0].startswith(name) else 0
            found += known
            found["the rest of the JVM"] += max(0, used[1] - known.total())
        else:
            found["this process" if pid == os.getpid() else "Python workers"] += used[1]
    return Counter({kind: ticks * 1000 // os.sysconf("SC_CLK_TCK") for kind, ticks in found.items()})


def _ticks(stat: Path) -> tuple[str, int]:
    """Name and processor time of a process or thread; nothing of one that has ended."""
    try:
        name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", 0
    fields = rest.split()
    return name, int(fields[11]) + int(fields[12])


class Sampler(threading.Thread):
    """Takes a sample of the Python workers below this process at every interval, until it is stopped."""

    def __init__(self, interval: float = 0.5) -> None:
        super().__init__(daemon=True)
        self.interval = interval
        self.samples: list[Sample] = []
        self.started = time.perf_counter()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(self.interval):
            workers = [resident(pid) for pid in descendants(os.getpid()) if role(pid) == WORKER]
            self.samples.append(Sample(time.perf_counter() - self.started, workers))

    def stop(self) -> list[Sample]:
        self.ended.set()
        self.join()
        return self.samples


def peaks(samples: list[Sample], parts: int = 4) -> list[dict[str, float]]:
    """For each quarter of the run: the highest sum, and the largest single worker, in MiB."""
    if not samples:
        return []
    end = samples[-1].seconds
    found = []
    for part in range(parts):
        inside = [each.workers for each in samples if part <= parts * each.seconds / end <= part + 1]
        found.append(
            {
                "all_workers_mib": max((sum(workers) for workers in inside), default=0) / 2**20,
                "largest_worker_mib": max((max(workers, default=0) for workers in inside), default=0) / 2**20,
            }
        )
    return found


class Peaks(threading.Thread):
    """Looks at the processes below this one now and then, and keeps the most memory that each ever had."""

    def __init__(self, interval: float = 1.0) -> None:
        super().__init__(daemon=True)
        self.interval = interval
        self.found: dict[str, dict[int, int]] = {WORKER: {}, JVM: {}}
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(self.interval):
            self.look()

    def look(self) -> None:
        for pid in descendants(os.getpid()):
            kind = role(pid)
            if kind is not None:
                self.found[kind][pid] = max(self.found[kind].get(pid, 0), highest(pid))

    def stop(self) -> dict[str, object]:
        """In MiB; None where no such process was seen."""
        self.look()
        self.ended.set()
        self.join()
        workers = sorted((size / 2**20 for size in self.found[WORKER].values()), reverse=True)
        return {
            "largest_worker_mib": workers[0] if workers else None,
            "jvm_mib": max((size / 2**20 for size in self.found[JVM].values()), default=None),
            "workers_mib": workers,
        }
