"""The same job under two job managers with a registry in PostgreSQL, whose processes are killed in turn."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.job import Plan
from chaos.outcome import Outcome
from chaos.outside import PostgresAndFiles
from chaos.portions import let_go
from chaos.processes import MARK, family, freeze, kill, wake
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.processes import Process, end_session, session_members
from firesteel.cluster.registry import ENDED
from firesteel.cluster.starting import RunningCluster, find_members, find_running
from firesteel.cluster.tokens import read_token
from firesteel.errors import FiresteelError

__all__ = ["TARGETS", "ManagedRun"]

ROOT = Path(__file__).resolve().parents[1]
SECONDS_TO_RECOVER = 180
TARGETS = ("leader", "standby", "frozen leader", "managed driver", "JVM", "registry")
"""``leader`` and ``standby``: a job manager, after which another one is started. ``frozen leader``: it is stopped, and
goes on when another one leads. ``managed driver`` and ``JVM``: of the job. ``registry``: PostgreSQL, which also takes
the results."""
PROGRAM = """\
import sys
from pathlib import Path
from chaos.job import Plan, main
main(Plan.load(Path(sys.argv[1])))
"""


class ManagedRun:
    """The job, its job managers and their misfortunes."""

    def __init__(
        self, plan: Plan, folder: Path, outside: PostgresAndFiles, database: dict[str, Any], outcome: Outcome, seed: int
    ) -> None:
        self._folder, self._outside, self._outcome, self._database = folder, outside, outcome, database
        self._random = random.Random(seed)
        self._mark = uuid.uuid4().hex
        self._job = ""
        plan.save(folder / "plan.json")
        (folder / "program.py").write_text(PROGRAM)

    @property
    def _cluster(self) -> Path:
        return self._folder / "cluster"

    def through(self, kills: int, targets: tuple[str, ...], gap: tuple[float, float]) -> None:
        began = time.monotonic()
        with self._environment():
            try:
                for _ in range(2):
                    self._start_member()
                self._job = self._client().submit(str(self._folder / "program.py"), [str(self._folder / "plan.json")])
                alive = self._wait_for_results(0)
                # Each in turn, so that all of them had their share.
                for number in range(kills):
                    time.sleep(self._random.uniform(*gap))
                    if not alive or self._state() in ENDED:
                        break
                    target, known = targets[number % len(targets)], len(self._outcome.recoveries)
                    alive = self._strike(target, number)
                    self._go_on(number)
                    for seconds in self._outcome.recoveries[known:]:
                        print(f"{target}: {seconds:.1f} s", file=sys.stderr, flush=True)
                while alive:
                    alive = self._wait_for_results(self._outside.count())
                self._outcome.restarts = int(self._client().job(self._job).known["drivers"]) - 1
                if self._state() != "FINISHED":
                    raise RuntimeError(f"the job ended as {self._state()}")
            finally:
                self._stop()
        self._outcome.seconds = time.monotonic() - began

    # Job managers

    @contextlib.contextmanager
    def _environment(self) -> Iterator[None]:
        """That of the job managers, and so of their drivers."""
        before = dict(os.environ)
        os.environ.update(
            {
                MARK: self._mark,
                "FIRESTEEL_WARMUP": "off",
                "FIRESTEEL_RUNTIME_DIR": str(self._folder / "run"),
                "FIRESTEEL_REGISTRY_PASSWORD": self._database["password"],
                **self._outside.environment,
                "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            }
        )
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def _start_member(self) -> None:
        known = self._database
        url = f"postgresql://{known['user']}@{known['host']}:{known['port']}/{known['dbname']}"
        command = [sys.executable, "-m", "firesteel", "cluster", "start", "--dir", str(self._cluster), "--port", "0"]
        subprocess.run([*command, "--registry", url], check=True, capture_output=True, timeout=SECONDS_TO_RECOVER)

    def _members(self) -> list[RunningCluster]:
        return find_members(self._cluster)

    def _leader(self) -> RunningCluster:
        end = time.monotonic() + SECONDS_TO_RECOVER
        while time.monotonic() < end:
            found = find_running(self._cluster)
            if found is not None and (self._cluster / "cluster.json").exists():
                return found
            time.sleep(0.05)
        raise RuntimeError("no job manager leads")

    def _client(self) -> ClusterClient:
        addresses = [one.address for one in self._members()]
        return ClusterClient(",".join(addresses), read_token(self._cluster / "token"))

    def _state(self) -> str:
        return str(self._client().job(self._job).known["state"])

    # Misfortunes

    def _go_on(self, number: int) -> None:
        let_go(self._folder / "kills", number)

    def _strike(self, target: str, number: int) -> bool:
        """Whether the job lives and has new results then."""
        before, struck = self._outside.count(), time.monotonic()
        leader = self._leader()
        frozen = None
        if target == "registry":
            # The server that comes back is none of the job's processes.
            mark = os.environ.pop(MARK)
            self._outside.misfortunes["database"](self._random)
            os.environ[MARK] = mark
        elif target in ("managed driver", "JVM"):
            driver = Process.of(int(self._client().job(self._job).known["pid"]))
            victim = driver.pid if target == "managed driver" else self._jvm(driver)
            if victim is None or not kill(victim):
                return True
        elif target == "frozen leader":
            frozen = leader.pid
            freeze(frozen)
        else:
            others = [one for one in self._members() if one.pid != leader.pid]
            kill(leader.pid if target == "leader" else others[0].pid)
        self._outcome.kills[target] += 1
        try:
            if target in ("leader", "frozen leader"):
                # Results come all the time. That another one leads is what counts.
                self._wait_for_another(leader)
                self._outcome.recoveries.append(time.monotonic() - struck)
                self._go_on(number)
                return self._wait_for_results(self._outside.count())
            # Whether all is well again shows in the results of the next portion.
            self._go_on(number)
            time.sleep(0.05)
            return self._wait_for_results(max(before, self._outside.count()), struck)
        finally:
            if frozen is not None:
                wake(frozen)
            if target in ("leader", "standby"):
                self._start_member()

    def _wait_for_another(self, before: RunningCluster) -> None:
        end = time.monotonic() + SECONDS_TO_RECOVER
        while time.monotonic() < end:
            leader = self._leader()
            if leader.pid != before.pid:
                with contextlib.suppress(FiresteelError):
                    client = ClusterClient(leader.address, read_token(self._cluster / "token"))
                    if client.job(self._job).known["state"]:
                        return
            time.sleep(0.05)
        raise RuntimeError(f"nobody took over:\n{self._log()}")

    @staticmethod
    def _jvm(driver: Process) -> int | None:
        for one in session_members(driver):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{one.pid}/exe").endswith("/java"):
                    return one.pid
        return None

    def _wait_for_results(self, before: int, struck: float | None = None) -> bool:
        end = time.monotonic() + SECONDS_TO_RECOVER
        while time.monotonic() < end:
            if self._outside.count() > before:
                if struck is not None:
                    self._outcome.recoveries.append(time.monotonic() - struck)
                return True
            with contextlib.suppress(FiresteelError):
                if self._state() in ENDED:
                    return False
            time.sleep(0.1)
        raise RuntimeError(f"no new results for {SECONDS_TO_RECOVER} s:\n{self._log()}")

    def _stop(self) -> None:
        self._outside.close()
        for member in self._members():
            os.kill(member.pid, signal.SIGCONT)
            end_session(Process.of(member.pid))
        for pid in family(self._mark):
            kill(pid)

    def _log(self) -> str:
        texts = [path.read_text(errors="replace")[-1500:] for path in sorted(self._cluster.glob("logs/jobmanager*"))]
        texts += [path.read_text(errors="replace")[-3000:] for path in sorted(self._cluster.glob("jobs/*/logs/*"))[-1:]]
        return "\n".join(texts)
