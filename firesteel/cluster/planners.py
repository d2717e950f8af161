"""What a program would run, found out by a process of its own (:mod:`.planner`)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.cluster.driver import Assignment
from firesteel.cluster.driver_environment import driver_environment, settings_text
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import JobRow
from firesteel.cluster.warm_drivers import SECONDS_AFTER_A_JOB
from firesteel.errors import ProgramError

__all__ = ["Plan", "Planner", "Planners"]


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


class Planner:
    """One process, from its start until it has answered. It ends by itself if this process does."""

    def __init__(self) -> None:
        # A file without a name: one that waits leaves nothing behind, however this process ends.
        self._output = tempfile.TemporaryFile(prefix="firesteel-plan-")  # noqa: SIM115 - closed by close()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "firesteel.cluster.planner"],
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                # What the program has to know comes by the pipe. Never by the command line: all can read that.
                env=driver_environment(),
                start_new_session=True,
            )
        except BaseException:
            self._output.close()
            raise
        self._known = Process.of(self._process.pid)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def plan(self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str], seconds: float) -> Plan:
        """Runs a program up to its execute(). A ProgramError has what it failed with."""
        with tempfile.TemporaryDirectory(prefix="firesteel-plan-", ignore_cleanup_errors=True) as folder:
            result = os.path.join(folder, "plan.json")
            try:
                answer = self._answer(program, arguments, settings, seconds, result)
            except BaseException:
                # Before the folder is removed that it writes to.
                self.close()
                raise
        if "error" in answer:
            raise ProgramError(answer["error"])
        return Plan(**answer)

    def _answer(
        self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str], seconds: float, result: str
    ) -> dict[str, Any]:
        task = Assignment(job="", program=str(program), arguments=arguments, result=result)
        request = json.dumps({"assignment": task.text(), "settings": settings_text(settings)})
        try:
            self._process.communicate(request.encode() + b"\n", seconds)
        except subprocess.TimeoutExpired:
            raise ProgramError(
                f"The program did not reach its execute() within {seconds:.0f} s (firesteel.cluster.plan-timeout)."
            ) from None
        try:
            with open(result, "rb") as file:
                answer: dict[str, Any] = json.load(file)
        except (OSError, ValueError):
            self._output.seek(0)
            last = self._output.read()[-2000:].decode(errors="replace").strip()
            raise ProgramError(
                f"The process that plans the program ended with code {self._process.returncode}. {last}"
            ) from None
        return answer

    def close(self) -> None:
        """Ends it if it has not ended, and all that its program has started."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self.alive:
            end_session(self._known)
        self._process.wait()
        self._output.close()


class Planners:
    """Those of one job manager. With ``ahead`` one has loaded Firesteel before there is a program: that is most of what
    planning takes."""

    def __init__(self, seconds: float, ahead: bool) -> None:
        """``seconds``: how long a program may take."""
        self._seconds, self._ahead = seconds, ahead
        self._lock = threading.Lock()
        self._waiting: Planner | None = None
        self._later: threading.Timer | None = None
        self._closed = False
        if ahead:
            self._start_ahead()

    def plan(self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Plan:
        planner = self._take()
        try:
            return planner.plan(program, arguments, settings, self._seconds)
        finally:
            planner.close()

    def _take(self) -> Planner:
        with self._lock:
            waiting, self._waiting = self._waiting, None
            if self._ahead and not self._closed and (self._later is None or not self._later.is_alive()):
                self._later = threading.Timer(SECONDS_AFTER_A_JOB, self._start_ahead)
                self._later.daemon = True
                self._later.start()
        if waiting is not None:
            if waiting.alive:
                return waiting
            waiting.close()
        return Planner()

    def _start_ahead(self) -> None:
        with self._lock:
            if self._waiting is None and not self._closed:
                # Without one the next program is planned by a process that starts then, and says what is wrong.
                with contextlib.suppress(OSError):
                    self._waiting = Planner()

    def close(self) -> None:
        """Ends what waits, and starts none ahead any more."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, None
            if self._later is not None:
                self._later.cancel()
        if waiting is not None:
            waiting.close()
