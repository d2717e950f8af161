"""Starts planners and drivers: each in a session of its own, which learns from its environment what to do."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from firesteel.cluster import log_writer
from firesteel.cluster.driver import Assignment, wanted_attempt
from firesteel.cluster.folders import JobFolder
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import JobRow, StaleEpochError
from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import DRIVER, SEPARATOR, SETTINGS, environment_of_child
from firesteel.errors import FailureKind, FiresteelError, ProgramError

__all__ = ["DriverLivesError", "Launcher", "Plan", "adopted", "plan_program", "start_driver"]

_OWN = ("FIRESTEEL_TOKEN", "FIRESTEEL_TOKEN_FILE", "FIRESTEEL_CLUSTER_DIR", "FIRESTEEL_REGISTRY_PASSWORD")
"""What is the job manager's and no business of a program's."""


SECONDS_TO_LOCK = 3.0


class DriverLivesError(FiresteelError):
    """The driver before the one that was to be started has not ended. It stands still: its lease is over."""

    kind = FailureKind.PASSING


@dataclass(frozen=True)
class Plan:
    """What a program would run."""

    name: str
    mode: str = "STREAMING"
    parallelism: int = 1
    max_parallelism: int = -1
    plan: dict[str, Any] = field(default_factory=dict, hash=False)
    configuration: dict[str, str] = field(default_factory=dict, hash=False)
    restart: dict[str, str] = field(default_factory=dict, hash=False)
    checkpointing: bool = False
    checkpoint_folder: str | None = None
    savepoint_folder: str = ""

    def row(
        self, job_id: str, program: str, arguments: tuple[str, ...], settings: Mapping[str, str], now: int
    ) -> JobRow:
        """The row of a job that is to run it."""
        return JobRow(
            id=job_id,
            name=self.name,
            program=program,
            arguments=arguments,
            settings=dict(settings),
            mode=self.mode,
            parallelism=self.parallelism,
            max_parallelism=self.max_parallelism,
            plan=self.plan,
            configuration=self.configuration,
            restart=self.restart,
            checkpointing=self.checkpointing,
            submitted=now,
            changed=now,
            times={"CREATED": now},
        )


class Launcher:
    """Starts the processes of one job manager. Tests put other processes in their place."""

    def __init__(self, plan_seconds: float, log_size: int, log_files: int) -> None:
        self._plan_seconds = plan_seconds
        self._log_size, self._log_files = log_size, log_files

    def plan(self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Plan:
        return plan_program(program, arguments, settings, self._plan_seconds)

    def start(self, folder: JobFolder, task: Assignment, settings: Mapping[str, str]) -> Process:
        return start_driver(folder, task, settings, self._log_size, self._log_files)


def _environment(task: Assignment, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, with what the driver must know. Never the command line: all can read that."""
    environment = {key: value for key, value in environment_of_child().items() if key not in _OWN}
    inherited = [os.environ[SETTINGS]] if os.environ.get(SETTINGS) else []
    environment[SETTINGS] = SEPARATOR.join([*inherited, *(f"{key}={value}" for key, value in settings.items())])
    environment[DRIVER] = task.text()
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def plan_program(program: Path, arguments: tuple[str, ...], settings: Mapping[str, str], seconds: float) -> Plan:
    """Runs a program up to its execute() in a process of its own. A ProgramError has what it failed with."""
    folder = tempfile.mkdtemp(prefix="firesteel-plan-")
    try:
        result, output = os.path.join(folder, "plan.json"), os.path.join(folder, "output")
        task = Assignment(job="", program=str(program), arguments=arguments, result=result)
        with open(output, "wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "firesteel.cluster.planner"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=_environment(task, settings),
                start_new_session=True,
            )
        known = Process.of(process.pid)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            end_session(known)
            process.wait()
            raise ProgramError(
                f"The program did not reach its execute() within {seconds:.0f} s (firesteel.cluster.plan-timeout)."
            ) from None
        try:
            with open(result, "rb") as file:
                answer = json.load(file)
        except (OSError, ValueError):
            with open(output, "rb") as said:
                last = said.read()[-2000:].decode(errors="replace").strip()
            raise ProgramError(
                f"The process that plans the program ended with code {process.returncode}. {last}"
            ) from None
        if "error" in answer:
            raise ProgramError(answer["error"])
        return Plan(**answer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_driver(
    folder: JobFolder, task: Assignment, settings: Mapping[str, str], log_size: int, log_files: int
) -> Process:
    """Starts an attempt. Its number is written first, so that no other attempt can begin any more. A StaleEpochError
    says that a later job manager has written one: this process stood still since it decided to start a driver. A
    DriverLivesError says that the driver before this one has not ended."""
    folder.make()
    try:
        with FileLock(folder.lock, mode=0o600, thread_local=False).acquire(timeout=SECONDS_TO_LOCK):
            number, epoch = wanted_attempt(folder)
            if epoch > task.epoch or number > task.attempt:
                raise StaleEpochError(f"Driver {number} of job {task.job} was started by another job manager.")
            replace_file(str(folder.attempt), f"{task.attempt} {task.epoch}".encode(), durable=True)
    except Timeout:
        raise DriverLivesError(f"A driver of job {task.job} that lost its lease has not ended yet.") from None
    writer = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(Path(log_writer.__file__)),
            str(folder.log(task.attempt)),
            str(log_size),
            str(log_files),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert writer.stdin is not None
    try:
        driver = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.driver"],
            stdin=subprocess.DEVNULL,
            stdout=writer.stdin,
            stderr=subprocess.STDOUT,
            env=_environment(task, settings),
            start_new_session=True,
        )
    finally:
        writer.stdin.close()
    _CHILDREN.append(writer)
    _reap_writers()
    process = Process.of(driver.pid)
    # It is watched by its number, and its end is taken by Process.reap.
    driver.returncode = 0
    return process


_CHILDREN: list[subprocess.Popen[bytes]] = []
"""Writers of logs that have not ended. They do so by themselves."""


def _reap_writers() -> None:
    _CHILDREN[:] = [one for one in _CHILDREN if one.poll() is None]


def adopted(folder: JobFolder, attempt: int, noted: Process, seconds: float = 20.0) -> Process | None:
    """The driver that an earlier job manager started: the process that it noted, or, if it died before it could, the
    one that says so itself. None where there is none."""
    if noted.alive:
        return noted
    deadline = time.monotonic() + seconds
    while True:
        found = _said(folder, attempt)
        if found is not None and found.alive:
            return found
        try:
            # Nobody holds it: no driver is there, and one that is on its way will find that it is not wanted.
            with FileLock(folder.lock, mode=0o600, thread_local=False).acquire(timeout=0):
                return None
        except Timeout:
            # One has begun and did not yet say which process it is.
            if time.monotonic() > deadline:
                return None
            time.sleep(0.1)


def _said(folder: JobFolder, attempt: int) -> Process | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(folder.driver.read_bytes())
        if known["attempt"] == attempt:
            return Process(int(known["pid"]), str(known["started"]))
    return None
