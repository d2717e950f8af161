"""The process of an SQL session: ``python -m firesteel.cluster.sql_process``, or a warm driver that became one.

It has the session's tables, views and settings, and runs its queries; INSERT statements it hands to the job manager, as
jobs that outlive it. Its end of the line is its life: when the job manager closes the other end, or is gone, it ends
its queries, and itself with its JVM and workers.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.sql_line import SqlLine
from firesteel.common.configuration import Configuration
from firesteel.common.process_environment import SQL_SESSION, submitted_with, take
from firesteel.errors import JobNotFoundError
from firesteel.table.client.operations import SqlOperations
from firesteel.table.client.submitted_script import program_of
from firesteel.table.table_environment import TableEnvironment

__all__ = ["main", "run_session", "serve_session"]

SECONDS_TO_END = 10.0
"""What has not ended by then is killed."""
SECONDS_TO_SUBMIT = 300.0
SECONDS_TO_ASK = 60.0


def main() -> int:
    return run_session(socket.socket(fileno=int(take(SQL_SESSION))))


def run_session(connection: socket.socket) -> int:
    """The rest of this process's life."""
    # Not for the JVM and workers: the job manager would not notice the end of this process.
    connection.set_inheritable(False)
    with submitted_with(""):
        session = serve_session(connection)
        # Whatever hangs: nobody waits for this process any more.
        watchdog = threading.Timer(SECONDS_TO_END, end_session, (Process.of(os.getpid()),))
        watchdog.daemon = True
        watchdog.start()
        session.close()
    return 0


def serve_session(connection: socket.socket) -> _Session:
    """Answers until the line is closed."""
    session = _Session(connection)
    session.line.serve()
    return session


class _Session:
    """Answers the questions of the job manager. Nothing takes long but the start, so the next one may wait."""

    def __init__(self, connection: socket.socket) -> None:
        self.line = SqlLine(connection, self._answer, self._described)
        self._operations: SqlOperations | None = None

    @property
    def operations(self) -> SqlOperations:
        assert self._operations is not None
        return self._operations

    def _answer(self, what: str, given: dict[str, Any]) -> Any:
        if what == "begin":
            return self._begin(given["settings"])
        operations, handle = self.operations, given.get("operation", "")
        match what:
            case "execute":
                return operations.execute(given["statement"])
            case "script":
                return operations.execute_script(given["script"])
            case "status":
                return operations.status(handle).value
            case "fetch":
                return operations.fetch(handle, given["token"], given["format"])
            case "cancel":
                return operations.cancel(handle).value
            case "forget":
                return operations.forget(handle)
            case "settings":
                return operations.settings
        raise ValueError(f"A session does not answer {what!r}.")

    def _begin(self, settings: dict[str, str]) -> None:
        configuration = Configuration()
        # A line that changes would be drawn into the log.
        for key, value in {"firesteel.progress": "false", **settings}.items():
            configuration.set_string(key, value)
        self._operations = SqlOperations(TableEnvironment.create(configuration), _JobsOfManager(self.line, settings))

    def _described(self, error: BaseException) -> dict[str, Any]:
        kind = "missing" if isinstance(error, JobNotFoundError) else "statement"
        if self._operations is None:
            return {"text": str(error), "kind": kind}
        return {**self._operations.described(error), "kind": kind}

    def close(self) -> None:
        if self._operations is not None:
            self._operations.close()


class _JobsOfManager:
    """Jobs, as the session needs them, on the other side of the line."""

    def __init__(self, line: SqlLine, settings: dict[str, str]) -> None:
        self._line, self._settings = line, settings

    def submit(self, name: str, statements: Sequence[str], secrets: Sequence[str]) -> str:
        given: dict[str, Any] = {"name": f"{name}.py", "program": program_of(statements), "secrets": list(secrets)}
        given["settings"] = self._settings
        return str(self._line.ask("submit", SECONDS_TO_SUBMIT, **given))

    def listed(self) -> list[tuple[str, str, str]]:
        return [(row[0], row[1], row[2]) for row in self._line.ask("jobs", SECONDS_TO_ASK)]

    def cancel(self, job_id: str) -> None:
        self._line.ask("cancel", SECONDS_TO_ASK, job=job_id)


if __name__ == "__main__":
    sys.exit(main())
