"""The states of a job."""

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """Where a job is in its life.

    >>> [status.name for status in JobStatus if status.is_globally_terminal_state()]
    ['FAILED', 'CANCELED', 'FINISHED']
    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Whether the job is over for good."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Whether the job is over here; a suspended one may go on elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
