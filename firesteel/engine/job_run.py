"""The port of an engine: how a job is prepared and run. Spark's adapter and the one in memory implement it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.engine.job_context import JobContext
from firesteel.errors import FailureKind, kind_of

__all__ = ["Engine", "JobRun"]


class JobRun(ABC):
    """A job in the hands of an engine. All of it exists once it is constructed; ``run`` runs one attempt to its end."""

    def __init__(self, context: JobContext) -> None:
        self.context = context

    @property
    @abstractmethod
    def where(self) -> str:
        """A short description of where the job runs."""

    @abstractmethod
    def run(self) -> None:
        """Runs the job to its end, or until it is cancelled or suspended."""

    @abstractmethod
    def interrupt(self) -> None:
        """Called from another thread: makes a ``run`` that is under way return soon."""

    @abstractmethod
    def end_attempt(self) -> None:
        """After a failure that will be followed by a restart: lets go of the attempt's tasks and of what they did."""

    @abstractmethod
    def begin_attempt(self) -> None:
        """Gets everything ready for one more ``run``, which goes on from the last checkpoint."""

    def restartable(self, error: BaseException) -> bool:
        """Whether another attempt may end otherwise."""
        return kind_of(error) is FailureKind.PASSING

    def update_statistics(self) -> None:  # noqa: B027 - optional to override
        """Before somebody looks at the checkpoints: adds what the engine knows of them meanwhile."""

    def dispose(self, status: JobStatus) -> None:  # noqa: B027 - optional to override
        """When it is known how the job ended: keeps or deletes what is durable."""

    @property
    def jvm(self) -> Any:
        """Spark's JVM; None where there is none."""
        return None

    @property
    def kept_in(self) -> str | None:
        """Where a later start finds what it needs to go on; None where nothing is kept."""
        return None


class Engine(ABC):
    """Where jobs run."""

    name: str
    """What people and the configuration call it."""
    starting = "starting"
    """What the user waits for while a job is prepared."""
    processes_stay = True
    """Whether a subtask finds what its last batch left in memory."""
    suspends_within = 60.0
    """Seconds after which nobody waits any longer for a job to come to rest."""

    @abstractmethod
    def prepare(self, context: JobContext) -> JobRun:
        """Gets everything ready, in the caller's thread. What has to be undone at the job's end is noted in the
        context as it is made, so that a preparation that fails leaves nothing behind."""
