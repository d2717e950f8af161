"""What a job can be asked for. Each command is a frozen record, and says of what type its answer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

from firesteel.engine.facade.answers import (
    CheckpointStatistics,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobMetrics,
    JobPlan,
    JobSnapshot,
    LogLevels,
    SavepointTaken,
)
from firesteel.engine.facade.encoding import decoded, encoded
from firesteel.errors import JobCommandError

__all__ = [
    "COMMANDS",
    "Cancel",
    "Command",
    "GetBatches",
    "GetCheckpoints",
    "GetExceptions",
    "GetMetrics",
    "GetPlan",
    "GetSnapshot",
    "GetStatus",
    "SetLogLevel",
    "Stop",
    "TakeSavepoint",
    "check_known",
    "command_of",
    "request_of",
]

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Command(Generic[AnswerT]):
    """Asks a job for something."""

    name: ClassVar[str]
    """What it is called in requests."""
    answer: ClassVar[type]
    """The type of its answer."""
    changes: ClassVar[bool] = False
    """Whether it does something to the job. A job that has ended answers only those that do not."""
    parts: ClassVar[tuple[str, ...]] = ()
    """The commands whose answers its own one is made of, if it is."""


@dataclass(frozen=True)
class GetStatus(Command[JobDetails]):
    """What the job is, and where it is in its life."""

    name = "status"
    answer = JobDetails


@dataclass(frozen=True)
class GetMetrics(Command[JobMetrics]):
    """What each operator and each task has done."""

    name = "metrics"
    answer = JobMetrics


@dataclass(frozen=True)
class GetBatches(Command[JobBatches]):
    """The last micro-batches, with what each spent its time on."""

    name = "batches"
    answer = JobBatches
    after: int = -1
    """Only those with a higher number than this."""


@dataclass(frozen=True)
class GetPlan(Command[JobPlan]):
    """The job as a graph."""

    name = "plan"
    answer = JobPlan


@dataclass(frozen=True)
class GetCheckpoints(Command[CheckpointStatistics]):
    """How many checkpoints there were, and the last ones with time, duration and size."""

    name = "checkpoints"
    answer = CheckpointStatistics


@dataclass(frozen=True)
class GetExceptions(Command[JobExceptions]):
    """The failures so far, with the operator and the user's line."""

    name = "exceptions"
    answer = JobExceptions


@dataclass(frozen=True)
class GetSnapshot(Command[JobSnapshot]):
    """Status, metrics, checkpoints and failures at once."""

    name = "snapshot"
    answer = JobSnapshot
    parts = ("status", "metrics", "checkpoints", "exceptions")


@dataclass(frozen=True)
class TakeSavepoint(Command[SavepointTaken]):
    """Takes a savepoint, while the job goes on."""

    name = "savepoint"
    answer = SavepointTaken
    changes = True
    directory: str | None = None
    """None: where the job's configuration says."""


@dataclass(frozen=True)
class Stop(Command[SavepointTaken]):
    """Ends the job with a savepoint."""

    name = "stop"
    answer = SavepointTaken
    changes = True
    directory: str | None = None
    drain: bool = False
    """Whether event time comes to its end before, so that all windows and timers fire."""


@dataclass(frozen=True)
class SetLogLevel(Command[LogLevels]):
    """Changes from which level on a logger logs, in the driver and in all workers, until the job ends."""

    name = "log-level"
    answer = LogLevels
    changes = True
    level: str = "INFO"
    logger: str = ""
    """The root logger has no name."""


@dataclass(frozen=True)
class Cancel(Command[JobDetails]):
    """Ends the job without a savepoint."""

    name = "cancel"
    answer = JobDetails
    changes = True


COMMANDS: dict[str, type[Command[Any]]] = {
    command.name: command
    for command in (
        GetStatus,
        GetMetrics,
        GetPlan,
        GetCheckpoints,
        GetExceptions,
        GetSnapshot,
        GetBatches,
        TakeSavepoint,
        Stop,
        SetLogLevel,
        Cancel,
    )
}


def check_known(command: Command[Any]) -> None:
    """Raises a JobCommandError for what is none of the commands above, of which nothing else may be asked."""
    if type(command) not in COMMANDS.values():
        known = ", ".join(kind.__name__ for kind in COMMANDS.values())
        raise JobCommandError(f"A job does not know the command {type(command).__name__}. It knows {known}.")


def request_of(command: Command[Any]) -> dict[str, Any]:
    """A command as JSON.

    >>> request_of(Stop(drain=True))
    {'command': 'stop', 'directory': None, 'drain': True}
    """
    check_known(command)
    return {"command": command.name, **encoded(command)}


def command_of(request: Mapping[str, Any]) -> Command[Any]:
    """The command of a request. What is not understood is refused, as a whole.

    >>> command_of({"command": "savepoint", "directory": "/saved"})
    TakeSavepoint(directory='/saved')
    """
    name = request.get("command")
    kind = COMMANDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise JobCommandError(f"A job does not know the command {name!r}. It knows {', '.join(COMMANDS)}.")
    values = {key: value for key, value in request.items() if key != "command"}
    unknown = sorted(values.keys() - {one.name for one in fields(kind)})
    if unknown:
        raise JobCommandError(f"The command {name!r} has nothing that is called {', '.join(unknown)}.")
    try:
        command: Command[Any] = decoded(kind, values)
    except ValueError as error:
        raise JobCommandError(f"The command {name!r} is not understood: {error}.") from error
    return command
