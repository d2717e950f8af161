"""One way to look at a job and to steer it, wherever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from firesteel.engine.facade.answers import (
    CheckpointStatistics,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobMetrics,
    JobPlan,
    JobSnapshot,
)
from firesteel.engine.facade.commands import (
    Cancel,
    Command,
    GetBatches,
    GetCheckpoints,
    GetExceptions,
    GetMetrics,
    GetPlan,
    GetSnapshot,
    GetStatus,
    SetLogLevel,
    Stop,
    TakeSavepoint,
    command_of,
)
from firesteel.engine.facade.encoding import encoded

__all__ = ["JobFacade"]

AnswerT = TypeVar("AnswerT")


class JobFacade(ABC):
    """A job of this process, of another one, or one that has ended. All that can be asked goes through ``execute``; the
    other methods are short forms of it."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The job's id: 32 hexadecimal digits."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The job's name."""

    @abstractmethod
    def execute(self, command: Command[AnswerT]) -> AnswerT:
        """Asks the job, and waits for the answer. A JobCommandError says that the job does not know the command, or has
        ended."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The same in JSON, for servers."""
        return {"answer": encoded(self.execute(command_of(request)))}

    def status(self) -> JobDetails:
        return self.execute(GetStatus())

    def metrics(self) -> JobMetrics:
        return self.execute(GetMetrics())

    def plan(self) -> JobPlan:
        return self.execute(GetPlan())

    def checkpoints(self) -> CheckpointStatistics:
        return self.execute(GetCheckpoints())

    def exceptions(self) -> JobExceptions:
        return self.execute(GetExceptions())

    def snapshot(self) -> JobSnapshot:
        """Status, metrics, checkpoints and failures at once."""
        return self.execute(GetSnapshot())

    def batches(self, after: int = -1) -> JobBatches:
        """The last micro-batches, those with a higher number than ``after``."""
        return self.execute(GetBatches(after))

    def savepoint(self, directory: str | None = None) -> str:
        """Takes a savepoint; returns its path."""
        return self.execute(TakeSavepoint(directory)).path

    def stop(self, directory: str | None = None, drain: bool = False) -> str:
        """Ends the job with a savepoint; returns its path."""
        return self.execute(Stop(directory, drain)).path

    def set_log_level(self, level: str, logger: str = "") -> dict[str, str]:
        """Changes from which level on a logger logs, in the driver and in all workers. Returns all levels that the job
        has set."""
        return self.execute(SetLogLevel(level, logger)).levels

    def cancel(self) -> JobDetails:
        return self.execute(Cancel())
