"""What the job manager knows of jobs, attempts and operations: rows of plain data, and the port that keeps them.

Every write names the epoch of the job manager that makes it. A registry refuses those of an epoch that is over: so a
job manager that stood still while another one took over changes nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from firesteel.durable.versions import REGISTRY
from firesteel.errors import FailureKind, FiresteelError, SetupError

__all__ = [
    "ENDED",
    "AttemptRow",
    "DriverRow",
    "JobRow",
    "Leader",
    "OperationRow",
    "Registry",
    "RegistryUnreachableError",
    "StaleEpochError",
    "check_registry_version",
]

ENDED = ("FINISHED", "FAILED", "CANCELED")
"""The states of a job that is over for good."""


class StaleEpochError(FiresteelError):
    """Another job manager has taken over."""

    kind = FailureKind.PERMANENT


class RegistryUnreachableError(FiresteelError):
    """The registry does not answer."""

    kind = FailureKind.PASSING


@dataclass(frozen=True)
class JobRow:
    """One job. Times are in milliseconds since 1970."""

    id: str
    name: str
    program: str
    """The id of the stored program."""
    state: str = "CREATED"
    """CREATED (waits for a slot), INITIALIZING (its driver starts), RUNNING, RESTARTING, CANCELLING, SUSPENDED, or one
    of ENDED. What a running driver says of itself is newer."""
    parent: str = ""
    """The first job of the same program, where this is one that the program executed later."""
    arguments: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict, hash=False, repr=False)
    """The settings of the submission, secrets among them."""
    mode: str = "STREAMING"
    parallelism: int = 1
    max_parallelism: int = -1
    plan: dict[str, Any] = field(default_factory=dict, hash=False, repr=False)
    configuration: dict[str, str] = field(default_factory=dict, hash=False, repr=False)
    """All settings as the program has them in effect, secrets masked."""
    restart: dict[str, str] = field(default_factory=dict, hash=False)
    """The settings of the restart strategy."""
    checkpointing: bool = False
    submitted: int = 0
    started: int = 0
    """When the first driver was started; 0 before."""
    ended: int = 0
    changed: int = 0
    attempt: int = 0
    """The number of the attempt that runs, or ran last; failures inside a driver count, too."""
    driver: int = 0
    """The number of the driver that runs, or ran last; the first one is 0."""
    pid: int = 0
    pid_started: str = ""
    """What tells the process from a later one with the same number."""
    failure: str = ""
    times: dict[str, int] = field(default_factory=dict, hash=False)
    """When it took each state, the last time."""
    record: dict[str, Any] = field(default_factory=dict, hash=False, repr=False)
    """The last answers of the job to all that can be asked, once it has ended."""


@dataclass(frozen=True)
class AttemptRow:
    """One driver process of a job."""

    job: str
    number: int
    pid: int = 0
    started: int = 0
    ended: int = 0
    outcome: str = ""
    """A state, or ``crashed``."""
    message: str = ""
    failures: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    """The failures that the driver reported before it crashed."""


@dataclass(frozen=True)
class OperationRow:
    """A savepoint, a stop, a checkpoint or a disposal that somebody asked for."""

    id: str
    job: str
    kind: str
    created: int
    done: bool = False
    result: str = ""
    failure: str = ""


@dataclass(frozen=True)
class Leader:
    """The job manager that acts now."""

    epoch: int
    address: str


@dataclass(frozen=True)
class DriverRow:
    """The lease of a job's driver, where several machines share a registry."""

    job: str
    number: int
    machine: str
    """Empty as long as the driver has not taken its lease."""
    pid: int
    pid_started: str
    alive: bool
    """Whether the lease has not run out, by the clock of the registry."""


class Registry(Protocol):
    """Where rows are kept. All methods may be called from any thread."""

    def claim(self, address: str = "") -> int:
        """Begins a new epoch of the job manager at this address; returns its number. Writes of earlier ones are refused
        from now on."""

    @property
    def epoch(self) -> int:
        """The epoch that this job manager claimed; 0 before."""

    def check(self) -> None:
        """Raises StaleEpochError if another job manager has taken over. Comes before what is no write: signals to
        drivers, new processes."""

    def leader(self) -> Leader | None:
        """Who claimed last."""

    def assign_driver(self, job_id: str, number: int) -> str:
        """From now on only this driver can have the job's lease. Returns what the driver needs to take it; empty where
        there are no leases, because all drivers are on one machine."""

    def driver(self, job_id: str) -> DriverRow | None:
        """The lease of a job's driver; None where there are no leases."""

    def close_driver(self, job_id: str, number: int, force: bool = False) -> bool:
        """Ends the lease of a driver that has let it run out, or, with ``force``, of one that is known to be gone; says
        whether it is closed now. It cannot be renewed after that."""

    def withdraw_driver(self, job_id: str, number: int) -> bool:
        """Ends the lease of a driver that has not taken it yet; says whether it had not. It cannot take it after
        that."""

    def ask_driver(self, job_id: str, number: int, request: str, seconds: float) -> str | None:
        """Leaves a request for a driver of another machine and waits for the answer; None where none came in time."""

    def jobs(self) -> list[JobRow]:
        """All jobs, oldest first, without their records."""

    def job(self, job_id: str) -> JobRow | None:
        """One job with its record."""

    def add_job(self, row: JobRow) -> None: ...

    def update_job(self, job_id: str, **changes: Any) -> JobRow: ...

    def forget_job(self, job_id: str) -> None: ...

    def put_attempt(self, row: AttemptRow) -> None:
        """Adds an attempt, or replaces what was known of it."""

    def attempts(self, job_id: str) -> list[AttemptRow]: ...

    def put_operation(self, row: OperationRow) -> None:
        """Adds an operation, or replaces what was known of it."""

    def operation(self, operation_id: str) -> OperationRow | None: ...

    def open_operations(self) -> list[OperationRow]: ...

    def close(self) -> None: ...


def check_registry_version(found: object, where: str) -> None:
    """Raises a SetupError for a registry that this Firesteel does not read."""
    refusal = REGISTRY.refusal(found)
    if refusal is not None:
        raise SetupError(f"{refusal[0].upper()}{refusal[1:]} ({where}).")
