"""One run of the job, in processes of its own: started, killed in part or as a whole, started again, until done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from chaos.job import Plan
from chaos.outcome import Outcome
from chaos.outside import Outside
from chaos.portions import let_go
from chaos.processes import MARK, executors, family, freeze, kill, python_workers, wake
from chaos.read_only import read_only

__all__ = ["Run"]

ROOT = Path(__file__).resolve().parents[1]
SECONDS_TO_RECOVER = 600
SIGNALS = {"driver": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
"""What the driver gets, by the name of the misfortune."""
EXPECTED = (-signal.SIGKILL, -signal.SIGINT, 128 + signal.SIGTERM)
"""How a job ends that was asked to."""
EARLY = (0.2, 12.0)
"""Seconds after its start within which a driver is killed early."""


class Run:
    """The job and its misfortunes."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        outside: Outside,
        outcome: Outcome,
        executors_mark: str | None,
        seed: int,
    ) -> None:
        self._folder, self._outside, self._outcome = folder, outside, outcome
        self._mark = uuid.uuid4().hex
        self._tasks_mark = executors_mark or self._mark
        """What the processes that run tasks are known by: those of a cluster are not the job's children."""
        self._program = plan.program
        self._random = random.Random(seed)
        self._may_fail = False
        """Whether the job may end by itself, with an error: a folder that cannot be written is no passing failure."""
        self._process: subprocess.Popen[bytes] | None = None
        self._done = Path(plan.done or folder / "kills")
        plan.save(folder / "plan.json")

    def through(self, kills: int, targets: tuple[str, ...], gap: tuple[float, float], early: int = 0) -> None:
        """The whole of it. The first ``early`` kills come while the job starts and has its first batch."""
        began = time.monotonic()
        try:
            self._process = self._started()
            for _ in range(early):
                self._kill_early()
            alive = self._wait_for_results(0)
            for number in range(kills):
                time.sleep(self._random.uniform(*gap))
                if not alive or self._ended() == 0:
                    break
                alive = self._kill(self._random.choice(targets), number)
                let_go(self._done, number)
            while alive:
                alive = self._wait_for_results(self._outside.count())
        finally:
            self._stop()
        self._outcome.seconds = time.monotonic() - began

    # The job

    def _started(self) -> subprocess.Popen[bytes]:
        ours = ("FIRESTEEL_", "SPARK_", "PYSPARK_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        environment = kept | {
            MARK: self._mark,
            "FIRESTEEL_WARMUP": "off",
            **self._outside.environment,
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        }
        with (self._folder / "job.log").open("ab") as log:
            command = [sys.executable, "-m", self._program, str(self._folder / "plan.json")]
            return subprocess.Popen(command, env=environment, cwd=self._folder, stdout=log, stderr=log)

    def _ended(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    def _wait_for_results(self, before: int, killed: float | None = None) -> bool:
        """Whether the job lives and has more results than ``before``. If its driver died it is started again."""
        end = time.monotonic() + SECONDS_TO_RECOVER
        while time.monotonic() < end:
            status = self._ended()
            if status == 0:
                return False
            if status is not None:
                if status not in EXPECTED and not self._may_fail:
                    raise RuntimeError(f"the job ended by itself with {status}:\n{self._log()}")
                # At once, as a supervisor does it: what is left of the old one must not matter.
                self._outcome.restarts += 1
                self._process = self._started()
                killed, before = killed or time.monotonic(), max(before, self._outside.count())
            elif self._outside.count() > before:
                if killed is not None:
                    self._outcome.recoveries.append(time.monotonic() - killed)
                return True
            time.sleep(0.05)
        raise RuntimeError(f"no new results for {SECONDS_TO_RECOVER} s:\n{self._log()}")

    # Killing

    def _kill(self, target: str, number: int) -> bool:
        """Kills something. Whether the job lives and has new results then."""
        before = self._outside.count()
        killed = time.monotonic()
        zombie = None
        if target in self._outside.misfortunes:
            self._outside.misfortunes[target](self._random)
        elif target == "read-only":
            self._may_fail = True
            read_only(self._folder / "checkpoint", self._random.uniform(0.5, 3))
        elif target == "second start":
            self._refused()
        elif target == "zombie":
            if (zombie := self._frozen_worker()) is None:
                return True
        elif target in SIGNALS:
            assert self._process is not None
            self._process.send_signal(SIGNALS[target])
            self._process.wait()
        elif (victim := self._victim(target)) is None or not kill(victim):
            return True
        self._outcome.kills[target] += 1
        let_go(self._done, number)
        # What was under way may still be committed; what counts is the first result after that.
        time.sleep(0.05)
        try:
            return self._wait_for_results(max(before, self._outside.count()), killed)
        finally:
            if zombie is not None:
                wake(zombie)

    def _frozen_worker(self) -> int | None:
        """Stops a worker and kills its driver. Another one takes over; then the worker goes on with what it did."""
        victim = self._victim("worker")
        if victim is None or not freeze(victim):
            return None
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        return victim

    def _kill_early(self) -> None:
        assert self._process is not None
        time.sleep(self._random.uniform(*EARLY))
        self._process.kill()
        self._process.wait()
        self._outcome.kills["start"] += 1
        self._outcome.restarts += 1
        self._process = self._started()

    def _refused(self) -> None:
        """A second driver with the same folder, while the first one runs."""
        status = self._started().wait(SECONDS_TO_RECOVER)
        if status in (0, *EXPECTED) or "is in use by job" not in self._log():
            raise RuntimeError(f"a second start should be refused, but ended with {status}:\n{self._log()}")

    def _victim(self, target: str) -> int | None:
        processes = family(self._tasks_mark)
        found = python_workers(processes) if target == "worker" else executors(processes)
        return self._random.choice(found).pid if found else None

    def _stop(self) -> None:
        """Nothing of the job stays, however this ends."""
        self._outside.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        end = time.monotonic() + 30
        while (left := family(self._mark)) and time.monotonic() < end:
            time.sleep(0.1)
        for pid in left:
            kill(pid)

    def _log(self) -> str:
        return (self._folder / "job.log").read_text(errors="replace")[-4000:]
