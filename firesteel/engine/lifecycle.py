"""Where a job is in its life, and since when."""

from __future__ import annotations

import threading
import time

from firesteel.common.job_status import JobStatus

__all__ = ["Lifecycle"]


class Lifecycle:
    """The status of one job. Several threads may want to change it, and the first one decides.

    >>> life = Lifecycle()
    >>> life.turn(JobStatus.CREATED, JobStatus.RUNNING), life.turn(JobStatus.RUNNING, JobStatus.CANCELLING)
    (True, True)
    >>> life.turn(JobStatus.RUNNING, JobStatus.RESTARTING), life.status.name
    (False, 'CANCELLING')
    """

    ALIVE = (JobStatus.RUNNING, JobStatus.RESTARTING)

    def __init__(self) -> None:
        self.deciding = threading.RLock()
        """Held by whoever looks at the status and changes more than that."""
        self._status = JobStatus.CREATED
        self._times: dict[str, int] = {}
        self.become(JobStatus.CREATED)

    @property
    def status(self) -> JobStatus:
        return self._status

    @property
    def alive(self) -> bool:
        """Whether the job works, or is about to again."""
        return self._status in self.ALIVE

    @property
    def times(self) -> dict[str, int]:
        """When the job took each status that it had, the last time, in milliseconds since 1970."""
        with self.deciding:
            return dict(self._times)

    def become(self, status: JobStatus) -> None:
        with self.deciding:
            self._status = status
            self._times[status.name] = int(time.time() * 1000)

    def turn(self, before: JobStatus, after: JobStatus) -> bool:
        """Changes the status, unless somebody was faster. Returns whether it was changed."""
        with self.deciding:
            if self._status is not before:
                return False
            self.become(after)
            return True
