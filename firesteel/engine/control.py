"""How other processes of the same user reach a running job: a socket in a folder that only this user can open.

Each job on Spark leaves ``<id>.json`` (its descriptor) and ``<id>.sock`` (where it listens) there while it runs. A
request is one line of JSON, and so is the answer. The folder's permissions are the lock: it and the sockets belong to
the user. They are checked before anything is read there, by jobs and by those who look for jobs, and both ends of a
connection ask the kernel which user the other one is. What a descriptor says is checked before it becomes a path.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firesteel.common.private_files import open_private
from firesteel.engine.peers import is_own_user
from firesteel.engine.processes import is_alive
from firesteel.engine.scratch import own_folder
from firesteel.errors import FiresteelError, JobExecutionError, SetupError

__all__ = ["ControlSocket", "RunningJob", "ask", "find_job", "running_jobs"]

logger = logging.getLogger("firesteel")

Answer = Callable[[dict[str, Any]], dict[str, Any]]
_SECONDS_TO_CONNECT = 5.0
_ID = re.compile("[0-9a-f]{32}")
_LONGEST_DESCRIPTOR = 1 << 16


@dataclass(frozen=True)
class RunningJob:
    """What a job says of itself."""

    id: str
    name: str
    pid: int
    started: float

    @staticmethod
    def of_descriptor(path: Path) -> RunningJob:
        """What a file says of a job. Raises ValueError where it is none of ours, OSError where it cannot be read."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is no file")
            values = json.loads(file.read(_LONGEST_DESCRIPTOR))
        match values:
            case {"id": str(job), "name": str(name), "pid": int(pid), "started": int(started) | float(started)}:
                if _ID.fullmatch(job) and path.name == f"{job}.json" and pid > 0:
                    return RunningJob(job, name, pid, started)
        raise ValueError("it is not a job's")

    @property
    def socket(self) -> Path:
        # A socket's path has at most a hundred characters.
        return jobs_folder() / f"{self.id[:12]}.sock"


def jobs_folder() -> Path:
    """Where this user's running jobs are known."""
    runtime = os.environ.get("FIRESTEEL_RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime else Path(tempfile.gettempdir())
    return parent / ("firesteel" if runtime else f"firesteel-{os.getuid()}")


def _own_folder() -> Path:
    try:
        return own_folder(jobs_folder())
    except SetupError as error:
        raise SetupError(f"{error} Set FIRESTEEL_RUNTIME_DIR to a folder of your own.") from None


class ControlSocket:
    """Where a running job listens for commands. Jobs run without it, too."""

    def __init__(self, job: RunningJob, answer: Answer) -> None:
        self._job = job
        self._answer = answer
        self._listening: socket.socket | None = None
        self._descriptor: Path | None = None
        try:
            folder = _own_folder()
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
            logger.warning("job %r cannot be reached from the command line: %s", job.name, error)
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
            threading.Thread(target=self._talk, args=(line,), daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError, ValueError):
            file = line.makefile("rw", encoding="utf-8")
            request = json.loads(file.readline())
            try:
                answer = self._answer(request)
            except Exception as error:
                answer = {"error": str(error) or type(error).__name__}
            file.write(json.dumps(answer) + "\n")
            file.flush()

    def close(self) -> None:
        if self._listening is not None:
            # Wakes the thread that waits in accept().
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            for path in (self._descriptor, self._job.socket):
                if path is not None:
                    path.unlink(missing_ok=True)


def running_jobs() -> list[RunningJob]:
    """This user's jobs, oldest first. What a killed process left behind is removed.

    Raises SetupError where the folder is not this user's alone: then it may hold anything.
    """
    if not jobs_folder().exists():
        return []
    found = []
    for path in _own_folder().glob("*.json"):
        try:
            job = RunningJob.of_descriptor(path)
        except (OSError, ValueError) as error:
            logger.debug("%s is not looked at: %s", path, error)
            continue
        # Not by its process: ids are reused, and containers that share the folder count their own.
        if _listens(job):
            found.append(job)
        else:
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


def find_job(name: str) -> RunningJob:
    """A running job by its id, the beginning of it, or its name."""
    jobs = running_jobs()
    matches = [job for job in jobs if job.id == name] or [j for j in jobs if j.name == name or j.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = ", ".join(f"{job.id} ({job.name})" for job in matches)
        raise FiresteelError(f"{name!r} could be several running jobs: {listed}. Name one by its id.")
    known = ", ".join(f"{job.id[:8]} ({job.name})" for job in jobs) or "none"
    raise FiresteelError(f"No job {name!r} runs here as this user. Running: {known}.")


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
        raise JobExecutionError(f"Job {job.name!r}: {answer['error']}")
    return answer
