"""What takes a while and is asked for again until it is done: savepoints, stops, checkpoints, disposals.

Each is a row of the registry, so an answer outlives the job manager that gave it. One that was under way when a job
manager ended is given up: nobody knows how far it came.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from firesteel.cluster.managed import now_ms
from firesteel.cluster.registry import OperationRow, Registry
from firesteel.cluster.supervisor import Supervisor
from firesteel.engine.facade import GetCheckpoints, Stop, TakeSavepoint
from firesteel.errors import FiresteelError, JobCommandError, ProgramError

__all__ = ["Operations"]

logger = logging.getLogger("firesteel.cluster")

_ID = re.compile("[0-9a-f]{32}")
SECONDS_TO_CHECKPOINT = 600.0


class Operations:
    """Begins operations and knows how they went."""

    def __init__(self, registry: Registry, supervisor: Supervisor) -> None:
        self._registry, self._supervisor = registry, supervisor
        self._lock = threading.Lock()

    def give_up_old(self) -> None:
        """Those that an earlier job manager did not bring to an end."""
        for row in self._registry.open_operations():
            failure = "The job manager was restarted before this was done. Ask for it again."
            self._registry.put_operation(replace(row, done=True, failure=failure))

    def find(self, operation_id: str) -> OperationRow | None:
        return self._registry.operation(operation_id)

    def savepoint(self, job: str, directory: str | None, cancel: bool, operation: str | None = None) -> OperationRow:
        def work() -> str:
            taken = self._supervisor.ask(job, TakeSavepoint(directory))
            if cancel:
                self._supervisor.cancel(job)
            return str(taken.path)

        return self._begin("savepoint", job, work, operation)

    def stop(self, job: str, directory: str | None, drain: bool, operation: str | None = None) -> OperationRow:
        return self._begin("stop", job, lambda: str(self._supervisor.ask(job, Stop(directory, drain)).path), operation)

    def checkpoint(self, job: str, operation: str | None = None) -> OperationRow:
        """A checkpoint follows each micro-batch, so the last one has all that the job has done so far."""

        def work() -> str:
            deadline = time.monotonic() + SECONDS_TO_CHECKPOINT
            while time.monotonic() < deadline:
                last = self._supervisor.ask(job, GetCheckpoints(), 30.0).latest_completed
                if last is not None:
                    return str(last.checkpoint_id)
                time.sleep(0.2)
            raise JobCommandError("The job did not complete a checkpoint in time.")

        return self._begin("checkpoint", job, work, operation)

    def dispose(self, path: str, operation: str | None = None) -> OperationRow:
        def work() -> str:
            # Loads Arrow, which the job manager need not wait for.
            from firesteel.engine.savepoints.taking import dispose

            dispose(path)
            return path

        return self._begin("dispose", "", work, operation)

    def _begin(self, kind: str, job: str, work: Callable[[], str], wanted: str | None) -> OperationRow:
        """An id that a client chose makes a request idempotent: asked again, it is the same operation."""
        if wanted is not None and not _ID.fullmatch(wanted):
            raise ProgramError("A trigger id has 32 hexadecimal digits in lower case.")
        with self._lock:
            known = None if wanted is None else self._registry.operation(wanted)
            if known is not None:
                if (known.kind, known.job) != (kind, job):
                    raise ProgramError(f"The trigger id {wanted} was used for something else.")
                return known
            row = OperationRow(wanted or uuid.uuid4().hex, job, kind, now_ms())
            self._registry.put_operation(row)
        threading.Thread(target=self._run, args=(row, work), name=f"firesteel-{kind}", daemon=True).start()
        return row

    def _run(self, row: OperationRow, work: Callable[[], str]) -> None:
        try:
            done = replace(row, done=True, result=work())
        except (FiresteelError, OSError) as error:
            done = replace(row, done=True, failure=str(error) or type(error).__name__)
        except Exception as error:
            logger.exception("%s of job %s failed", row.kind, row.job)
            done = replace(row, done=True, failure=f"{type(error).__name__}: {error}")
        try:
            self._registry.put_operation(done)
        except Exception:
            logger.exception("how %s of job %s ended could not be kept", row.kind, row.job)
