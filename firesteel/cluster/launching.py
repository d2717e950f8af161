"""Starts drivers: each in a session of its own, which learns from its environment what to do."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from firesteel.cluster import log_writer
from firesteel.cluster.driver import Assignment, wanted_attempt
from firesteel.cluster.driver_environment import driver_environment, settings_text
from firesteel.cluster.folders import JobFolder
from firesteel.cluster.planners import Plan, Planners
from firesteel.cluster.processes import Process
from firesteel.cluster.registry import StaleEpochError
from firesteel.cluster.warm_drivers import WarmDrivers
from firesteel.common.default_configuration import default_configuration
from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import DRIVER, SETTINGS, SQL_SESSION
from firesteel.durable.versions import DRIVER_PROCESS
from firesteel.errors import FailureKind, FiresteelError

logger = logging.getLogger("firesteel.cluster")

__all__ = ["DriverLivesError", "Launcher", "adopted", "claim_attempt", "start_driver"]

SECONDS_TO_LOCK = 3.0


class DriverLivesError(FiresteelError):
    """The driver before the one that was to be started has not ended. It stands still: its lease is over."""

    kind = FailureKind.PASSING


class Launcher:
    """Starts the processes of one job manager. Tests put other processes in their place."""

    def __init__(
        self, plan_seconds: float, log_size: int, log_files: int, warm: int = 0, warm_seconds: float = 0.0
    ) -> None:
        """``warm``: how many drivers wait for a job, ``warm_seconds``: for how long."""
        self._planners = Planners(plan_seconds, ahead=bool(warm))
        self._log_size, self._log_files = log_size, log_files
        self.warm = WarmDrivers(warm, warm_seconds) if warm else None

    def plan(self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Plan:
        return self._planners.plan(program, arguments, settings)

    def start(
        self,
        folder: JobFolder,
        task: Assignment,
        settings: Mapping[str, str],
        configuration: Mapping[str, str] | None = None,
    ) -> Process:
        """``configuration``: what the program has in effect, if that is known; secrets are masked."""
        claim_attempt(folder, task)
        if self.warm is not None:
            driver = self.warm.take(f"job {task.job}", configuration or {})
            if driver is not None:
                try:
                    # First, so that nothing is lost if this process dies now.
                    _start_log_writer(folder.log(task.attempt), self._log_size, self._log_files, driver.output)
                except BaseException:
                    driver.end()
                    raise
                if driver.hand_over(task.text(), settings_text(settings)):
                    return driver.process
        return _start_process(folder, task, settings, self._log_size, self._log_files)

    def start_session(self, log: Path, settings: Mapping[str, str]) -> tuple[Process, socket.socket]:
        """Starts the process of an SQL session, or has a driver that waits become one. Returns the line to it, too."""
        if self.warm is not None:
            known = {key: str(value) for key, value in default_configuration().to_dict().items()}
            driver = self.warm.take("an SQL session", {**known, **settings})
            if driver is not None:
                try:
                    _start_log_writer(log, self._log_size, 1, driver.output)
                except BaseException:
                    driver.end()
                    raise
                line = driver.become_session(settings_text(settings))
                if line is not None:
                    return driver.process, line
        return _start_session(log, settings, self._log_size)

    def close(self) -> None:
        """Ends what waits for a job."""
        self._planners.close()
        if self.warm is not None:
            self.warm.close()


def _environment(task: Assignment, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, with what the driver must know. Never the command line: all can read that."""
    return {**driver_environment(), SETTINGS: settings_text(settings), DRIVER: task.text()}


def start_driver(
    folder: JobFolder, task: Assignment, settings: Mapping[str, str], log_size: int, log_files: int
) -> Process:
    """Starts an attempt: claims its number, then starts its process."""
    claim_attempt(folder, task)
    return _start_process(folder, task, settings, log_size, log_files)


def claim_attempt(folder: JobFolder, task: Assignment) -> None:
    """Before a driver is started its number is written, so that no other attempt can begin any more. A StaleEpochError
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


def _start_process(
    folder: JobFolder, task: Assignment, settings: Mapping[str, str], log_size: int, log_files: int
) -> Process:
    reading, writing = os.pipe()
    try:
        _start_log_writer(folder.log(task.attempt), log_size, log_files, reading)
        driver = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.driver"],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            env=_environment(task, settings),
            start_new_session=True,
        )
    finally:
        os.close(reading)
        os.close(writing)
    process = Process.of(driver.pid)
    # It is watched by its number, and its end is taken by Process.reap.
    driver.returncode = 0
    return process


def _start_session(log: Path, settings: Mapping[str, str], log_size: int) -> tuple[Process, socket.socket]:
    line, theirs = socket.socketpair()
    reading, writing = os.pipe()
    try:
        _start_log_writer(log, log_size, 1, reading)
        child = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.sql_process"],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            env={**driver_environment(), SETTINGS: settings_text(settings), SQL_SESSION: str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except BaseException:
        line.close()
        raise
    finally:
        theirs.close()
        os.close(reading)
        os.close(writing)
    process = Process.of(child.pid)
    # As for drivers: its end is taken by Process.reap.
    child.returncode = 0
    return process, line


def _start_log_writer(path: Path, log_size: int, log_files: int, source: int) -> None:
    """Has a process of its own write what comes out of a pipe to a log."""
    writer = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(Path(log_writer.__file__)),
            str(path),
            str(log_size),
            str(log_files),
        ],
        stdin=source,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _CHILDREN.append(writer)
    _reap_writers()


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
        found = _reported_process(folder, attempt)
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


def _reported_process(folder: JobFolder, attempt: int) -> Process | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(folder.driver.read_bytes())
        refusal = DRIVER_PROCESS.refusal(known.get("format", 1))
        if refusal is not None:
            _warn_once(f"{refusal} ({folder.driver})")
        elif known["attempt"] == attempt:
            return Process(int(known["pid"]), str(known["started"]))
    return None


@functools.cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)
