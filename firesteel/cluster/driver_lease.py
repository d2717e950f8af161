"""A driver's lease in the registry: it may commit while it has one.

1. **Take**, before the program runs. The registry has the number of the one driver that may run; another one is
   refused, whoever started it and however late.
2. **Renew**, once a second, in a thread. The length of the lease counts from before the renewal was sent, on the own
   clock, and the registry counts from later on: here it runs out first.
3. **Check**, before each commit. A driver whose lease has run out (it stood still, or the registry cannot be reached)
   waits with its commit until it is renewed. So a database that is away for a while delays jobs, and ends none.
4. **Lost**: the registry has another driver's number, or has closed the lease. All processes of this driver are killed
   at once, its own among them. The next driver goes on from the checkpoint.

The thread also carries requests of a job manager on another machine to the job, and answers back.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import threading
from typing import Any

from firesteel.cluster.postgres import Postgres, PostgresAddress
from firesteel.cluster.processes import Process, end_session, start_of
from firesteel.common.lease_clock import lease_clock
from firesteel.engine.facade.commands import command_of
from firesteel.engine.facade.encoding import encoded
from firesteel.engine.folder_lease import machine_id
from firesteel.errors import FiresteelError, JobCommandError, in_a_line
from firesteel.jobs import running_job

__all__ = ["KILL", "TERMINATE", "DriverLease"]

logger = logging.getLogger("firesteel.cluster")

TERMINATE = "terminate"
"""The request that stands for SIGTERM."""
KILL = "kill"
"""The one that stands for SIGKILL, to all processes of the driver."""
_MARGIN = 0.8
"""The share of the lease that is used: clocks do not run equally fast."""


class DriverLease:
    """The lease of this process."""

    def __init__(self, known: str) -> None:
        """``known``: what :meth:`Registry.assign_driver` returned."""
        values: dict[str, Any] = json.loads(known)
        self._job, self._number, self._seconds = values["job"], int(values["number"]), float(values["seconds"])
        self._base = Postgres(PostgresAddress(**values["address"]), "firesteel-driver")
        self._valid_until = 0.0
        self._renewed = threading.Condition()
        self._over = threading.Event()
        self._asked: set[str] = set()

    def take(self) -> bool:
        """Says whether this driver is the one that may run. Then it is renewed in the background."""
        if not self._renew():
            return False
        threading.Thread(target=self._keep, name="firesteel-driver-lease", daemon=True).start()
        return True

    def check(self) -> None:
        """Returns when this process may commit; waits as long as that is not certain."""
        if lease_clock() < self._valid_until:
            return
        logger.warning("the lease of this driver has run out: commits wait until the registry confirms it")
        with self._renewed:
            self._renewed.wait_for(lambda: lease_clock() < self._valid_until)

    def release(self) -> None:
        """The driver ends by itself."""
        self._over.set()
        statement = "UPDATE drivers SET closed = TRUE WHERE job = %s AND number = %s"
        with contextlib.suppress(FiresteelError):
            self._base.run(lambda cursor: cursor.execute(statement, (self._job, self._number)))
        self._base.close()

    def _keep(self) -> None:
        pause = min(1.0, self._seconds / 5)
        while not self._over.wait(pause):
            try:
                if not self._renew():
                    self._end()
                self._carry_requests()
            except Exception as error:
                # Whatever it is, it may pass. Commits wait, and without this thread they would for ever.
                logger.warning("the lease of this driver could not be renewed: %s", in_a_line(error))

    def _renew(self) -> bool:
        statement = """UPDATE drivers SET machine = %s, pid = %s, pid_started = %s,
                expires = clock_timestamp() + %s * INTERVAL '1 s'
            WHERE job = %s AND number = %s AND NOT closed"""
        process = os.getpid()
        values = (machine_id(), process, start_of(process), self._seconds, self._job, self._number)
        began = 0.0

        def renew(cursor: Any) -> bool:
            nonlocal began
            began = lease_clock()
            return bool(cursor.execute(statement, values).rowcount)

        if not self._base.run(renew, seconds=self._seconds):
            return False
        with self._renewed:
            self._valid_until = began + self._seconds * _MARGIN
            self._renewed.notify_all()
        return True

    def _end(self) -> None:
        if not self._over.is_set():
            logger.error("another driver of this job has taken over: this one ends")
            end_session(Process.of(os.getpid()))

    # Requests

    def _carry_requests(self) -> None:
        statement = "SELECT id, request FROM commands WHERE job = %s AND number = %s AND answer IS NULL"
        found = self._base.run(lambda cursor: cursor.execute(statement, (self._job, self._number)).fetchall())
        for name, request in found:
            if name not in self._asked:
                self._asked.add(name)
                threading.Thread(
                    target=self._carry, args=(name, request), name="firesteel-request", daemon=True
                ).start()
        self._asked &= {name for name, _ in found}

    def _carry(self, name: str, request: str) -> None:
        try:
            answer = json.dumps(self._answer(json.loads(request)))
        except Exception as error:
            # Whoever asked would wait for minutes.
            answer = json.dumps({"error": in_a_line(error), "kind": "job"})
        with contextlib.suppress(FiresteelError):
            statement = "UPDATE commands SET answer = %s WHERE id = %s"
            self._base.run(lambda cursor: cursor.execute(statement, (answer, name)))

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("command"):
            case "kill":
                end_session(Process.of(os.getpid()))
            case "terminate":
                os.kill(os.getpid(), signal.SIGTERM)
                return {}
        job = running_job(self._job, None)
        if job is None:
            return {"error": "The job cannot be asked now.", "kind": "command"}
        try:
            return {"answer": encoded(job.execute(command_of(request)))}
        except FiresteelError as error:
            return {"error": str(error), "kind": "command" if isinstance(error, JobCommandError) else "job"}
