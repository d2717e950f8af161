"""How one driver of a job ended, and what the restart strategy says to that: found out once, noted until the registry
has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.cluster.driver import CRASHED
from firesteel.cluster.managed import ManagedJob, crash_text, now_ms
from firesteel.cluster.processes import Process
from firesteel.cluster.registry import AttemptRow
from firesteel.engine.facade.encoding import encoded

__all__ = ["DriverEnd"]


@dataclass
class DriverEnd:
    """The end of a driver."""

    pid: int
    how: str
    """A state, or ``crashed``."""
    message: str
    failures: tuple[dict[str, Any], ...] = ()
    """What a driver that crashed had reported before."""
    ended: int = field(default_factory=now_ms)
    _asked: bool = False
    _pause: float | None = None

    @staticmethod
    def of(
        job: ManagedJob, process: Process, outcome: dict[str, Any] | None, status: int | None, stopping: bool
    ) -> DriverEnd:
        """``outcome``: what the driver left, ``status``: its wait status, ``stopping``: whether it was to be suspended.

        >>> from firesteel.cluster.registry import JobRow
        >>> from firesteel.cluster.managed import restarts_after
        >>> row = JobRow("a" * 32, "orders", "p.py")
        >>> job = ManagedJob(row, restarts_after(row, []))
        >>> DriverEnd.of(job, Process(7, ""), {"status": "SUSPENDED"}, None, stopping=True).how
        'SUSPENDED'
        >>> end = DriverEnd.of(job, Process(7, ""), {"status": "SUSPENDED"}, None, stopping=False)
        >>> end.how, end.message
        ('crashed', 'The driver (process 7) was ended by a signal.')
        """
        how = "crashed" if outcome is None or outcome["status"] == CRASHED else str(outcome["status"])
        if how == "SUSPENDED" and not stopping:
            # A signal of somebody else ended the driver.
            how, message = "crashed", f"The driver (process {process.pid}) was ended by a signal."
        elif outcome is None:
            message = crash_text(process.pid, status)
        else:
            message = str(outcome.get("failure", ""))
        failures = () if job.snapshot is None or how != "crashed" else job.snapshot.exceptions.failures
        return DriverEnd(process.pid, how, message, tuple(encoded(one) for one in failures))

    def attempt(self, job: ManagedJob, known: list[AttemptRow]) -> AttemptRow:
        """As a row. ``known``: those that the registry has."""
        row = job.row
        before = [one for one in known if one.number == row.driver]
        return AttemptRow(
            row.id,
            row.driver,
            self.pid,
            started=before[0].started if before else row.started,
            ended=self.ended,
            outcome=self.how,
            message=self.message,
            failures=self.failures,
        )

    def pause(self, job: ManagedJob) -> float | None:
        """For how many seconds the next driver waits; None where there is to be none. The strategy counts what it is
        asked, so it is asked once."""
        if not self._asked:
            self._asked, self._pause = True, job.restarts.after(self.ended / 1000)
        return self._pause
