"""The process that runs one attempt of a job: ``python -m firesteel.cluster.driver``, all else by the environment. One
that was started ahead (:mod:`.warm_driver`) does the same from the first step on.

1. Take the job's lock: there is at most one driver of a job, whatever became of the job manager that started it.
2. Look whether this attempt is still wanted. Whoever raises the number holds the lock meanwhile. Where several
   machines share a registry, take the lease there, too: without it nothing is committed.
3. Leave number and start of this process: a job manager that died before it could note them finds them there.
4. Run the program. The job that ends leaves its last answers in the job's folder.
5. Leave how it ended, forced to disk, then exit. An attempt without an outcome has crashed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from firesteel.cluster.folders import JobFolder
from firesteel.cluster.processes import start_of
from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import DRIVER, take
from firesteel.durable.versions import DRIVER_OUTCOME, DRIVER_PROCESS, Format
from firesteel.engine.commit_guard import set_commit_guard
from firesteel.engine.processes import jvm_process
from firesteel.errors import FiresteelError, JobCancelledError, in_a_line

__all__ = ["CRASHED", "Assignment", "main", "run_attempt", "wanted_attempt"]

SECONDS_TO_LOCK = 30.0
"""The driver before this one may still be on its way out."""
CRASHED = "CRASHED"
"""The outcome of a driver that could not go on for lack of its JVM."""
REFUSED = 75
"""The exit code of a driver that is not wanted."""


@dataclass(frozen=True)
class Assignment:
    """What a driver or a planner has to do."""

    job: str
    program: str
    arguments: tuple[str, ...] = ()
    folder: str = ""
    attempt: int = 0
    result: str = ""
    """The file for the answer of a planner."""
    epoch: int = 0
    """That of the job manager."""
    lease: str = field(default="", repr=False)
    """What the driver needs for its lease; empty where there are none."""

    def text(self) -> str:
        return json.dumps(vars(self))

    @staticmethod
    def take() -> Assignment:
        """From the environment. It is removed there: it is not for the processes that this one starts."""
        return Assignment.of(take(DRIVER))

    @staticmethod
    def of(text: str) -> Assignment:
        """
        >>> task = Assignment("a" * 32, "orders.py", ("--from", "kafka"), attempt=3)
        >>> Assignment.of(task.text()) == task
        True
        """
        known: dict[str, Any] = json.loads(text)
        return Assignment(**{**known, "arguments": tuple(known["arguments"])})


def main() -> int:
    return run_attempt(Assignment.take())


def run_attempt(task: Assignment) -> int:
    """Runs one attempt, if it is wanted; returns the exit code of the process."""
    folder = JobFolder(Path(task.folder))
    _log_to_standard_error()
    lock = FileLock(folder.lock, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=SECONDS_TO_LOCK)
    except Timeout:
        print(f"Another driver of job {task.job} runs: this one ends.", file=sys.stderr)
        return REFUSED
    wanted, _ = wanted_attempt(folder)
    if wanted != task.attempt:
        print(f"Driver {task.attempt} of job {task.job} is not wanted: {wanted} is.", file=sys.stderr)
        return REFUSED
    lease = None
    if task.lease:
        from firesteel.cluster.driver_lease import DriverLease

        lease = DriverLease(task.lease)
        if not lease.take():
            print(f"Driver {task.attempt} of job {task.job} is not wanted any more.", file=sys.stderr)
            return REFUSED
        set_commit_guard(lease.check)
    _leave_process(folder, task)
    code = _run_to_the_end(folder, task)
    if lease is not None:
        lease.release()
    return code


def wanted_attempt(folder: JobFolder) -> tuple[int, int]:
    """The number of the driver that may run, and the epoch of the job manager that said so; -1 where nobody has."""
    try:
        number, _, epoch = folder.attempt.read_text().partition(" ")
    except FileNotFoundError:
        return -1, 0
    return int(number), int(epoch or 0)


def _run_to_the_end(folder: JobFolder, task: Assignment) -> int:
    code = 0
    outcome: dict[str, Any] = {}
    try:
        _run(task)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if code:
            outcome = {"failure": f"The program ended with exit code {error.code!r}."}
    except JobCancelledError:
        # Cancelled or suspended: the job's record says which.
        code = 0
    except BaseException as error:
        code = 1
        ours = isinstance(error, FiresteelError)
        print(error if ours else traceback.format_exc(), file=sys.stderr)
        outcome = {
            "failure": in_a_line(error),
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "trace": "".join(traceback.format_exception(error))[-20_000:],
        }
    sys.stdout.flush()
    sys.stderr.flush()
    _leave_outcome(folder, task, code, outcome)
    return code


def _log_to_standard_error() -> None:
    """What Firesteel has to say of a job, with the time: there is nobody at a terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("firesteel")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _leave_process(folder: JobFolder, task: Assignment) -> None:
    known = {"pid": os.getpid(), "started": start_of(os.getpid()), "attempt": task.attempt}
    replace_file(str(folder.driver), _versioned(DRIVER_PROCESS, known), durable=True)


def _run(task: Assignment) -> None:
    from firesteel.programs import run_program

    # With the settings in the environment, id and attempt among them, which the processes that it starts do not get.
    run_program(task.program, task.arguments)


def _leave_outcome(folder: JobFolder, task: Assignment, code: int, outcome: dict[str, Any]) -> None:
    status = _status_of_job(folder, task)
    if status is None:
        # No job was started, or it could not be.
        status = "FAILED" if code else "FINISHED"
    elif status == "FINISHED" and code:
        # The job did what it should, the program around it did not.
        status = "FAILED"
    if status == "FAILED" and lost_jvm():
        # That is not the job's failure: a new driver has a new JVM.
        status = CRASHED
    known = {"status": status, "code": code, "ended": int(time.time() * 1000), **outcome}
    replace_file(str(folder.outcome(task.attempt)), _versioned(DRIVER_OUTCOME, known), durable=True)


def _versioned(form: Format, known: dict[str, Any]) -> bytes:
    return json.dumps({"format": form.version, **known}).encode()


def lost_jvm() -> bool:
    """Whether this process had a JVM that has ended before it. A job cannot bring back its own."""
    process = jvm_process()
    return process is not None and process.poll() is not None


def _status_of_job(folder: JobFolder, task: Assignment) -> str | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        record = json.loads((folder.records / f"{task.job}.json").read_bytes())
        if record["status"]["pid"] == os.getpid():
            return str(record["status"]["status"])
    return None


if __name__ == "__main__":
    sys.exit(main())
