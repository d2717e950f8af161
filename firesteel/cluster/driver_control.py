"""How the supervisor reaches drivers: those of this machine by socket and signals, those of others by the registry,
where they keep their leases."""

from __future__ import annotations

import contextlib
import json
import signal
from dataclasses import dataclass
from typing import Any, TypeVar

from firesteel.cluster.driver import CRASHED
from firesteel.cluster.driver_lease import KILL, TERMINATE
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import adopted
from firesteel.cluster.managed import ManagedJob
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import ENDED, JobRow, Registry
from firesteel.durable.versions import DRIVER_OUTCOME
from firesteel.engine.facade import Command, JobFacade
from firesteel.engine.facade.commands import request_of
from firesteel.engine.facade.encoding import decoded, encoded
from firesteel.engine.folder_lease import machine_id
from firesteel.engine.job_records import answers_of
from firesteel.errors import JobCommandError, JobExecutionError
from firesteel.jobs import running_job

__all__ = ["DriverControl", "FoundDriver", "RegistryJob"]

AnswerT = TypeVar("AnswerT")

SECONDS_TO_ANSWER = 600.0
"""A savepoint may take its time."""
SECONDS_TO_TAKE = 3.0
"""How long a request that stands for a signal is waited for. Whether it had an effect is seen from the lease."""


@dataclass(frozen=True)
class FoundDriver:
    """What became of a driver while there was no job manager."""

    process: Process | None
    """None where it never began, and cannot any more."""
    alive: bool = False
    remote: bool = False
    """Whether it is on another machine: then its lease tells whether it lives."""


class DriverControl:
    """The drivers of one job manager."""

    def __init__(self, folder: ClusterFolder, registry: Registry) -> None:
        self._folder, self._registry = folder, registry
        self.machine = machine_id()

    def find(self, row: JobRow) -> FoundDriver:
        """The driver that an earlier job manager started, or was about to start."""
        noted = Process(row.pid, row.pid_started)
        while True:
            held = self._registry.driver(row.id)
            if held is None or held.number != row.driver:
                return self._found_by_files(row, noted)
            holder = Process(held.pid, held.pid_started)
            if held.machine not in ("", self.machine):
                # Its process means nothing here.
                return FoundDriver(holder, remote=True)
            for process in (noted, holder):
                if process.alive:
                    return FoundDriver(process, alive=True)
            if held.machine:
                return FoundDriver(holder)
            # It has not taken its lease: it is on its way, on whatever machine, or it never will. It did nothing yet,
            # and will not if the lease is gone. Where it was quicker, it has the lease now, and says where it is.
            if self._registry.withdraw_driver(row.id, row.driver):
                return FoundDriver(noted) if self._outcome(row) is not None else FoundDriver(None)

    def _found_by_files(self, row: JobRow, noted: Process) -> FoundDriver:
        process = adopted(self._folder.job(row.id), row.driver, noted)
        if process is not None:
            return FoundDriver(process, alive=True)
        return FoundDriver(noted) if row.pid or self._outcome(row) is not None else FoundDriver(None)

    def facade(self, job: ManagedJob, seconds: float | None) -> JobFacade | None:
        """The job, if it can be asked."""
        if job.remote:
            return RegistryJob(self._registry, job.row, seconds)
        return running_job(job.id, seconds)

    def terminate(self, job: ManagedJob, process: Process) -> None:
        """Asks a driver to end, as SIGTERM does."""
        if job.remote:
            self._send(job, TERMINATE)
        else:
            process.send(signal.SIGTERM)

    def kill(self, job: ManagedJob, process: Process) -> None:
        """Ends all processes of a driver."""
        self._registry.check()
        if job.remote:
            self._send(job, KILL)
        else:
            end_session(process)

    def _send(self, job: ManagedJob, command: str) -> None:
        self._registry.ask_driver(job.id, job.row.driver, json.dumps({"command": command}), SECONDS_TO_TAKE)

    def lease_is_over(self, job: ManagedJob) -> bool:
        """Whether a driver of another machine has ended, or was not heard of for the length of its lease."""
        held = self._registry.driver(job.id)
        if held is None or held.number != job.row.driver:
            return True
        # Closed, it cannot be renewed any more: what the driver does after that is not committed.
        return not held.alive and self._registry.close_driver(job.id, held.number)

    def outcome(self, job: ManagedJob) -> dict[str, Any] | None:
        """How the last driver of a job said that it ended; None if it crashed."""
        return self._outcome(job.row)

    def _outcome(self, row: JobRow) -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError):
            path = self._folder.job(row.id).outcome(row.driver)
            known = json.loads(path.read_bytes())
            if isinstance(known, dict):
                refusal = DRIVER_OUTCOME.refusal(known.get("format", 1))
                if refusal is not None:
                    # Not a crash: another driver would do once more what may be done.
                    return {"status": "FAILED", "failure": f"{refusal[0].upper()}{refusal[1:]} ({path})."}
                if known.get("status") in (*ENDED, "SUSPENDED", CRASHED):
                    return known
        return None

    def record(self, job: ManagedJob) -> dict[str, Any]:
        """The last answers of a job: as it left them, or else as it gave them last."""
        with contextlib.suppress(OSError, ValueError):
            return answers_of(json.loads((self._folder.job(job.id).records / f"{job.id}.json").read_bytes()))
        return {} if job.snapshot is None else dict(encoded(job.snapshot))


class RegistryJob(JobFacade):
    """A job whose driver runs on another machine."""

    def __init__(self, registry: Registry, row: JobRow, seconds: float | None = None) -> None:
        self._registry, self._row, self._seconds = registry, row, seconds or SECONDS_TO_ANSWER

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def name(self) -> str:
        return self._row.name

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        request = json.dumps(request_of(command))
        text = self._registry.ask_driver(self.id, self._row.driver, request, self._seconds)
        if text is None:
            raise JobExecutionError(f"Job {self.name!r} ({self.id}) did not answer within {self._seconds:.0f} s.")
        reply: dict[str, Any] = json.loads(text)
        if "error" in reply:
            raise (JobCommandError if reply.get("kind") == "command" else JobExecutionError)(str(reply["error"]))
        answer: AnswerT = decoded(command.answer, reply.get("answer"))
        return answer
