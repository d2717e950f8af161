"""The SQL sessions of a job manager: each in a process of its own, which has tables and settings and runs queries.

* There are at most so many at a time (``sql-gateway.session.max-num``); one that nobody asks for a while ends
  (``sql-gateway.session.idle-timeout``).
* A session is reached through a pair of sockets. When the job manager ends, however, the session reads the end of it,
  and ends itself; when the session's process is gone, the job manager does, and says what became of it.
* What INSERT starts is a job like any other, which outlives the session.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import Launcher
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sql_line import LineError, SqlLine, TheirError
from firesteel.cluster.supervisor import Supervisor
from firesteel.errors import FailureKind, FiresteelError, JobCommandError, JobNotFoundError, in_a_line

__all__ = ["NoSessionError", "SessionAnswerError", "SqlSessions"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_START = 120.0
SECONDS_TO_ANSWER = 30.0
SECONDS_TO_END = 12.0
"""A little longer than a session takes to end by itself."""
SECONDS_TO_REAP = 10.0
SECONDS_TO_LOOK = 1.0
ENDED = 100
"""Of so many sessions that have ended it is known why."""
LOGS = 10
"""Of so many sessions that crashed the log stays."""


class NoSessionError(FiresteelError):
    """There is no such session, or no more."""

    kind = FailureKind.PERMANENT

    def __init__(self, message: str, ended: bool) -> None:
        super().__init__(message)
        self.ended = ended
        """Whether there was one."""


class SessionAnswerError(FiresteelError):
    """Why a session refused what it was asked: ``error`` has the message, and its place in the statement."""

    kind = FailureKind.PERMANENT

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("text", "")))
        self.error = error


@dataclass
class _Session:
    handle: str
    name: str
    process: Process
    line: SqlLine
    log: Path
    began: int
    used: float = field(default_factory=time.monotonic)
    ending: bool = False


class SqlSessions:
    """All of one job manager."""

    def __init__(
        self,
        settings: ClusterSettings,
        folder: ClusterFolder,
        supervisor: Supervisor,
        programs: ProgramStore,
        launcher: Launcher,
    ) -> None:
        self._most, self._idle_seconds = settings.sql_sessions, settings.sql_idle_ms / 1000
        self._folder, self._supervisor, self._programs, self._launcher = folder, supervisor, programs, launcher
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._starting = 0
        self._ended: dict[str, str] = {}
        """Why those are no more that were, the oldest first."""
        self._over = threading.Event()
        self._watching: threading.Thread | None = None
        self._work = ThreadPoolExecutor(8, thread_name_prefix="firesteel-sql")

    # Beginning and ending

    def open(self, settings: Mapping[str, str], name: str = "") -> str:
        """Starts a session with these settings; returns its handle."""
        with self._lock:
            if self._over.is_set():
                raise JobCommandError("The job manager is about to end.")
            if len(self._sessions) + self._starting >= self._most:
                raise JobCommandError(
                    f"There are {self._most} SQL sessions already, and no more may be (sql-gateway.session.max-num). "
                    "End one of them, or wait until one that nobody uses has ended."
                )
            self._starting += 1
        try:
            session = self._start(settings, name)
        finally:
            with self._lock:
                self._starting -= 1
        try:
            self._ask(session, "begin", SECONDS_TO_START, settings=dict(settings))
        except BaseException:
            self._end(session, "The session could not begin.")
            raise
        logger.info("SQL session %s begins, process %d", session.handle, session.process.pid)
        return session.handle

    def _start(self, settings: Mapping[str, str], name: str) -> _Session:
        handle = str(uuid.uuid4())
        log = self._folder.sql / f"{handle}.log"
        process, connection = self._launcher.start_session(log, settings)
        line = SqlLine(connection, self._answer, _described, lambda action: self._work.submit(action))
        session = _Session(handle, name, process, line, log, int(time.time() * 1000))
        with self._lock:
            self._sessions[handle] = session
            if self._watching is None:
                self._watching = threading.Thread(target=self._watch, name="firesteel-sql-watch", daemon=True)
                self._watching.start()
        threading.Thread(target=self._listen, args=(session,), name="firesteel-sql-line", daemon=True).start()
        return session

    def end(self, handle: str) -> None:
        """Ends a session, and waits for it."""
        self._end(self._session(handle), "The session was ended.")

    def close(self) -> None:
        """Ends all of them."""
        self._over.set()
        with self._lock:
            sessions = list(self._sessions.values())
        ending = [
            threading.Thread(target=self._end, args=(one, "The job manager has ended."), daemon=True)
            for one in sessions
        ]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()
        self._work.shutdown(wait=False, cancel_futures=True)

    def _end(self, session: _Session, why: str) -> None:
        if not self._remove(session, why):
            return
        logger.info("SQL session %s ends: %s", session.handle, why)
        session.line.close()
        if not session.process.wait(SECONDS_TO_END):
            logger.warning("SQL session %s did not end: process %d is killed", session.handle, session.process.pid)
        self._clean_up(session)
        for path in (session.log, Path(f"{session.log}.1")):
            path.unlink(missing_ok=True)

    def _remove(self, session: _Session, why: str) -> bool:
        """False where somebody else ends it."""
        with self._lock:
            if session.ending:
                return False
            self._sessions.pop(session.handle, None)
            self._ended[session.handle] = why
            # Last: whoever sees it may ask at once why.
            session.ending = True
            for handle in list(self._ended)[: len(self._ended) - ENDED]:
                del self._ended[handle]
            return True

    @staticmethod
    def _clean_up(session: _Session) -> int | None:
        # Its JVM and workers, too.
        end_session(session.process)
        deadline = time.monotonic() + SECONDS_TO_REAP
        # The system has its status once the last of its threads is gone, a moment after it counts as ended.
        while (status := session.process.reap()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return status

    # Watching

    def _listen(self, session: _Session) -> None:
        session.line.serve()
        if session.ending:
            return
        session.process.wait(SECONDS_TO_END)
        status = self._clean_up(session)
        why = (
            f"The session's process (number {session.process.pid}) has ended{_how(status)}. Its tables and settings "
            "are gone: begin a new session. Jobs of INSERT statements go on."
        )
        if self._remove(session, why):
            logger.warning("SQL session %s is lost: %s See %s", session.handle, why, session.log)
            session.line.close()
            self._forget_logs()

    def _forget_logs(self) -> None:
        with self._lock:
            live = {one.log for one in self._sessions.values()}
        with contextlib.suppress(OSError):
            left = [path for path in self._folder.sql.glob("*.log") if path not in live]
            for path in sorted(left, key=lambda one: one.stat().st_mtime)[:-LOGS]:
                path.unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._over.wait(SECONDS_TO_LOOK):
            self.end_idle()

    def end_idle(self) -> None:
        """Ends those that nobody has asked for long."""
        now = time.monotonic()
        with self._lock:
            idle = [
                one
                for one in self._sessions.values()
                if self._idle_seconds and now - one.used > self._idle_seconds and not one.ending
            ]
        for session in idle:
            why = (
                f"Nobody used the session for {self._idle_seconds:.0f} s (sql-gateway.session.idle-timeout), so it was "
                "ended. Its tables and settings are gone: begin a new session."
            )
            self._work.submit(self._end, session, why)

    # Asking

    def ask(self, handle: str, what: str, **arguments: Any) -> Any:
        """Asks a session. A NoSessionError says that it is no more, a SessionAnswerError what it refused."""
        return self._ask(self._session(handle), what, SECONDS_TO_ANSWER, **arguments)

    def touch(self, handle: str) -> None:
        """Somebody still needs it."""
        self._session(handle)

    def listed(self) -> list[dict[str, Any]]:
        """Those that live."""
        now = time.monotonic()
        with self._lock:
            found = list(self._sessions.values())
        return [
            {
                "sessionHandle": one.handle,
                "sessionName": one.name or None,
                "began": one.began,
                "idle": int((now - one.used) * 1000),
                "pid": one.process.pid,
            }
            for one in found
        ]

    def _session(self, handle: str) -> _Session:
        with self._lock:
            session = self._sessions.get(handle)
            why = self._ended.get(handle)
            if session is not None:
                session.used = time.monotonic()
                return session
        if why is not None:
            raise NoSessionError(why, ended=True)
        raise NoSessionError(f"There is no SQL session {handle[:60]!r}.", ended=False)

    def _ask(self, session: _Session, what: str, seconds: float, **arguments: Any) -> Any:
        try:
            return session.line.ask(what, seconds, **arguments)
        except TheirError as refused:
            if refused.error.get("kind") == "missing":
                raise JobNotFoundError(str(refused)) from None
            raise SessionAnswerError(refused.error) from None
        except LineError as error:
            # It is known in a moment what became of it.
            deadline = time.monotonic() + SECONDS_TO_END
            while error.ended and not session.ending and time.monotonic() < deadline:
                time.sleep(0.02)
            if session.ending:
                raise NoSessionError(self._ended.get(session.handle, str(error)), ended=True) from None
            raise TimeoutError(f"The SQL session did not answer within {seconds:.0f} s.") from None

    # What sessions ask for

    def _answer(self, what: str, given: dict[str, Any]) -> Any:
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "submit": self._submit,
            "jobs": lambda given: [(row.id, row.name, row.state) for row in self._supervisor.rows()],
            "cancel": lambda given: self._supervisor.cancel(str(given["job"])),
        }
        return actions[what](given)

    def _submit(self, given: dict[str, Any]) -> str:
        program = self._programs.put(str(given["name"]), str(given["program"]).encode())
        settings = {str(key): str(value) for key, value in given["settings"].items()}
        # Passwords in its statements are masked in all that is shown of the job, as those in its settings are.
        settings |= {f"firesteel.sql.secret.{number}": one for number, one in enumerate(given["secrets"])}
        return self._supervisor.submit(program, settings=settings).id


def _described(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, FiresteelError):
        logger.exception("what an SQL session asked for failed", exc_info=error)
    return {"text": str(error) if isinstance(error, FiresteelError) else in_a_line(error)}


def _how(status: int | None) -> str:
    """
    >>> _how(9), _how(256), _how(None)
    (', killed by signal 9 (SIGKILL)', ' with code 1', '')
    """
    if status is None:
        return ""
    code = os.waitstatus_to_exitcode(status)
    return f" with code {code}" if code >= 0 else f", killed by signal {-code} ({signal.Signals(-code).name})"
