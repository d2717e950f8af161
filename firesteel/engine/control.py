"""How other processes of the same user reach a running job: a socket in a folder that only this user can open.

Each job leaves ``<id>.json`` (its descriptor) and ``<id>.sock`` (where it listens) there while it runs. A
request is one line of JSON, and so is the answer. The folder's permissions are the lock: it and the sockets belong to
the user. They are checked before anything is read there, by jobs and by those who look for jobs, and both ends of a
connection ask the kernel which user the other one is. What a descriptor says is checked before it becomes a path.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firesteel.common.private_files import open_private
from firesteel.engine.job_records import ENGINES, note_crash
from firesteel.engine.peers import is_own_user
from firesteel.engine.processes import is_alive
from firesteel.engine.run_folder import JOB_ID, jobs_folder, own_jobs_folder, read_json
from firesteel.errors import JobCommandError, JobExecutionError, SetupError

__all__ = ["ControlSocket", "RunningJob", "ask", "running_jobs"]

logger = logging.getLogger("firesteel")

Answer = Callable[[dict[str, Any]], dict[str, Any]]
_SECONDS_TO_CONNECT = 5.0
_SECONDS_TO_ANSWER = 5.0
"""How long a process that ends waits for answers that are under way."""
_LONGEST_DESCRIPTOR = 1 << 16
_LONGEST_REQUEST = 1 << 20


@dataclass(frozen=True)
class RunningJob:
    """What a job says of itself."""

    id: str
    name: str
    pid: int
    started: float

    engine: str = ENGINES[0]
    """Which engine runs it."""

    @staticmethod
    def of_descriptor(path: Path) -> RunningJob:
        """What a file says of a job. Raises ValueError where it is none of ours, OSError where it cannot be read."""
        match read_json(path, _LONGEST_DESCRIPTOR):
            case {"id": str(job), "name": str(name), "pid": int(pid), "started": int(started) | float(started), **rest}:
                engine = rest.get("engine", ENGINES[0])
                if JOB_ID.fullmatch(job) and path.name == f"{job}.json" and pid > 0 and engine in ENGINES:
                    return RunningJob(job, name, pid, started, engine)
        raise ValueError("it is not a job's")

    @property
    def socket(self) -> Path:
        # A socket's path has at most a hundred characters.
        return jobs_folder() / f"{self.id[:12]}.sock"


_talking: set[threading.Thread] = set()
"""Threads that answer a request."""


@atexit.register
def _finish_answers() -> None:
    """Whoever had a job cancelled or stopped gets the answer, though the job was the last thing in the process."""
    deadline = time.monotonic() + _SECONDS_TO_ANSWER
    for thread in list(_talking):
        thread.join(max(0.0, deadline - time.monotonic()))


class ControlSocket:
    """Where a running job listens for commands. Jobs run without it, too."""

    def __init__(self, job: RunningJob, answer: Answer) -> None:
        self._job = job
        self._answer = answer
        self._listening: socket.socket | None = None
        self._descriptor: Path | None = None
        try:
            folder = own_jobs_folder()
            # What killed processes have left goes with the next start.
            running_jobs()
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(str(job.socket))
            os.chmod(job.socket, 0o600)
            listening.listen()
            self._descriptor = folder / f"{job.id}.json"
            with open_private(str(self._descriptor), "w", encoding="utf-8") as file:
                json.dump(asdict(job), file)
        except (OSError, SetupError, AttributeError) as error:
            # A job in memory is most often one of many in a test, and over before anybody asks.
            level = logging.DEBUG if job.engine == "memory" else logging.WARNING
            logger.log(level, "job %r cannot be reached from the command line: %s", job.name, error)
            return
        self._listening = listening
        threading.Thread(target=self._serve, args=(listening,), name=f"control-{job.id[:6]}", daemon=True).start()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            if not is_own_user(line):
                line.close()
                continue
            talk = threading.Thread(target=self._serve_connection, args=(line,), name="control-answer", daemon=True)
            _talking.add(talk)
            talk.start()

    def _serve_connection(self, line: socket.socket) -> None:
        try:
            with line, contextlib.suppress(OSError, ValueError):
                file = line.makefile("rw", encoding="utf-8")
                request = json.loads(file.readline(_LONGEST_REQUEST))
                try:
                    if not isinstance(request, dict):
                        raise JobCommandError("A request is a JSON object.")
                    answer = self._answer(request)
                except Exception as error:
                    kind = "command" if isinstance(error, JobCommandError) else "job"
                    answer = {"error": str(error) or type(error).__name__, "kind": kind}
                file.write(json.dumps(answer) + "\n")
                file.flush()
        finally:
            _talking.discard(threading.current_thread())

    def close(self) -> None:
        """The job has ended. Requests that are being answered get their answers."""
        if self._listening is not None:
            # First of all: a descriptor with nobody behind it is one of a killed process.
            if self._descriptor is not None:
                self._descriptor.unlink(missing_ok=True)
            # Wakes the thread that waits in accept().
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._job.socket.unlink(missing_ok=True)


def running_jobs() -> list[RunningJob]:
    """This user's jobs, oldest first. What a killed process left behind is removed.

    Raises SetupError where the folder is not this user's alone: then it may hold anything.
    """
    if not jobs_folder().exists():
        return []
    found = []
    for path in own_jobs_folder().glob("*.json"):
        try:
            job = RunningJob.of_descriptor(path)
        except (OSError, ValueError) as error:
            logger.debug("%s is not looked at: %s", path, error)
            continue
        # Not by its process: ids are reused, and containers that share the folder count their own.
        if _listens(job):
            found.append(job)
        elif path.exists():
            # One that ends removes its descriptor before it stops listening. So this one's process is gone.
            note_crash(job.id, job.name, job.pid, job.started, job.engine)
            path.unlink(missing_ok=True)
            job.socket.unlink(missing_ok=True)
    return sorted(found, key=lambda job: job.started)


def _listens(job: RunningJob) -> bool:
    """Whether a job can be reached. It does so before its descriptor is written."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(str(job.socket))
        except OSError:
            return False
    return True


def ask(job: RunningJob, seconds: float | None = None, **request: Any) -> dict[str, Any]:
    """What a job answers to a request. Waits as long as it takes, or so many seconds."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with line:
        deadline = time.monotonic() + _SECONDS_TO_CONNECT
        while True:
            try:
                line.connect(str(job.socket))
                break
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if time.monotonic() > deadline or not is_alive(job.pid):
                    raise JobExecutionError(f"Job {job.name!r} ({job.id}) does not answer: {error}.") from error
                time.sleep(0.1)
        if not is_own_user(line):
            raise JobExecutionError(f"Another user answers for job {job.name!r} ({job.id}) at {job.socket}.")
        line.settimeout(seconds)
        text = ""
        # A job that is about to end may close the line before it has read anything.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            file = line.makefile("rw", encoding="utf-8")
            file.write(json.dumps(request) + "\n")
            file.flush()
            text = file.readline()
    if not text:
        raise JobExecutionError(f"Job {job.name!r} ({job.id}) ended before it answered.")
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        refused = answer.get("kind") == "command"
        raise (JobCommandError if refused else JobExecutionError)(f"Job {job.name!r}: {answer['error']}")
    return answer
