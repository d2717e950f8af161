"""One job in the hands of the supervisor: its row, its driver, and what the driver said last."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

from firesteel.cluster.processes import Process
from firesteel.cluster.registry import ENDED, AttemptRow, JobRow
from firesteel.common.configuration import Configuration
from firesteel.engine.facade import JobSnapshot
from firesteel.engine.restarts import Restarts, restarts_of

__all__ = ["ManagedJob", "crash_text", "now_ms", "restarts_after"]


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass
class ManagedJob:
    """What the supervisor knows of a job that has not ended."""

    row: JobRow
    restarts: Restarts
    process: Process | None = None
    remote: bool = False
    """Whether the driver is on another machine: known by its lease, and asked through the registry."""
    descriptor: int | None = None
    """Can be read from when the driver has ended."""
    snapshot: JobSnapshot | None = None
    """What the driver that runs now said last; the one before it until then."""
    reached: bool = False
    """Whether the driver that runs now has answered."""
    asking: bool = False
    due: float | None = None
    """When the next driver is started, on the monotonic clock."""
    starting: bool = False
    """Whether a thread starts a driver."""
    unstarted: bool = False
    """Whether the driver's number is one that no process was started with."""
    kill_at: float | None = None
    """When a driver that was asked to end is killed."""
    ending: bool = field(default=False)
    """Whether somebody looks after a driver that has ended."""

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def holds_slot(self) -> bool:
        if self.starting or self.due is not None:
            return True
        return self.row.state not in ("CREATED", "SUSPENDED", *ENDED)

    @property
    def state(self) -> str:
        """The status for people: the driver knows it better, once it has answered."""
        if self.row.state == "RUNNING" and self.reached and self.snapshot is not None and self.process is not None:
            said = self.snapshot.status.status.name
            # It ends when its program does, and other jobs of that may follow.
            return said if said not in ENDED else self.row.state
        return self.row.state

    @property
    def keeps_checkpoint(self) -> bool:
        return self.row.checkpointing or bool(self.row.configuration.get("firesteel.checkpoint.dir"))

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def restarts_after(row: JobRow, attempts: list[AttemptRow]) -> Restarts:
    """The job's restart strategy with all that it has seen: it must not begin anew with every job manager."""
    strategy = restarts_of(Configuration.from_dict(row.restart), row.checkpointing)
    for attempt in attempts:
        if attempt.outcome == "crashed":
            strategy.after(attempt.ended / 1000)
    return strategy


def crash_text(pid: int, status: int | None) -> str:
    """How a driver without an outcome ended.

    >>> crash_text(7, 9)
    'The driver (process 7) was killed by SIGKILL, as the system does when memory runs out.'
    >>> crash_text(7, None)
    'The driver (process 7) is gone and left no outcome: it was killed, or it crashed.'
    """
    if status is None:
        return f"The driver (process {pid}) is gone and left no outcome: it was killed, or it crashed."
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        more = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
        return f"The driver (process {pid}) was killed by {name}{more}."
    return f"The driver (process {pid}) ended with exit code {os.waitstatus_to_exitcode(status)} and left no outcome."
