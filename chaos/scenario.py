"""What is killed, how often and when; and one run of that, from the first start to the comparison."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from chaos.check import compare, in_files, without_faults
from chaos.cluster import standalone_cluster
from chaos.job import Plan
from chaos.outcome import Outcome
from chaos.run import Run
from firesteel.testing import CommitCrashes, CrashPoint

__all__ = ["Scenario", "run_scenario"]

RATE = 1500.0


@dataclass(frozen=True)
class Scenario:
    """One way to make a job's life hard."""

    name: str
    targets: tuple[str, ...] = ()
    """What is killed at random moments: ``driver``, ``worker`` (a Python process of tasks), ``executor``, ``database``
    (which comes back), ``read-only`` (the checkpoint folder, which can be written again later), ``interrupt`` and
    ``terminate`` (signals to the driver), ``second start`` (of a driver with the same folder)."""
    kills: int = 0
    early: int = 0
    """Kills of the driver while it starts and has its first batch, before there are results."""
    points: tuple[CrashPoint, ...] = ()
    """Points of the commit protocol at which a process is killed on purpose, once each."""
    cluster: bool = False
    """On a standalone cluster, not in one JVM."""
    seed: int = 1
    gap: tuple[float, float] = (0.2, 2.5)
    """A kill comes so many seconds after the first results that follow the one before."""
    spare: float = 4.0
    """Seconds of the job's life that are not for kills."""
    without: tuple[str, ...] = ()
    """Mechanisms that are switched off; see :mod:`chaos.job`."""

    @property
    def records(self) -> int:
        """Enough for the job to live through all kills."""
        # What early kills leave behind is worked off while the next start is killed.
        kills = self.kills * (sum(self.gap) / 2 + 1.5) + 4 * self.early
        return int(RATE * (self.spare + kills + 3 * len(self.points)))


def run_scenario(
    scenario: Scenario,
    folder: Path,
    database: dict[str, Any],
    url: str,
    crash_database: Callable[[float], None] | None = None,
) -> Outcome:
    """Runs a scenario in a folder and a database of its own, whose server can be crashed for some seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with psycopg.connect(**database) as connection:
        connection.execute("CREATE TABLE results (kind text, key int, n bigint, value bigint)")
    with _master(scenario, folder) as (master, executors):
        settings = {"firesteel.master": master, "firesteel.checkpoint.dir": str(folder / "checkpoint")}
        crashes = None
        if scenario.points:
            (folder / "crashes").mkdir()
            words = {point: ["pass"] * passes + ["kill"] for point, passes in _passes(scenario).items()}
            crashes = CommitCrashes(words, str(folder / "crashes"))
            settings |= crashes.config
        plan = Plan(scenario.records, RATE, url, str(folder / "files"), list(scenario.without), settings)
        outcome = Outcome(scenario.name, scenario.records)
        run = Run(plan, folder, database, outcome, executors, scenario.seed, crash_database)
        run.through(scenario.kills, scenario.targets, scenario.gap, scenario.early)
    if crashes is not None:
        for point, passes in _passes(scenario).items():
            outcome.kills[point] += int(crashes.reached(point) > passes)
    _check(plan, database, outcome)
    return outcome


def _passes(scenario: Scenario) -> dict[CrashPoint | str, int]:
    """How often each crash point is passed before the job is killed there. One after the other, with some batches in
    between, so that each time something was committed before and something comes after."""
    return {point: 2 + 4 * number for number, point in enumerate(scenario.points)}


@contextmanager
def _master(scenario: Scenario, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Where the job runs, and the mark of its executors if they are processes of their own."""
    if not scenario.cluster:
        yield "local[2]", None
        return
    mark = uuid.uuid4().hex
    with standalone_cluster(folder, mark) as address:
        yield address, mark


def _check(plan: Plan, database: dict[str, Any], outcome: Outcome) -> None:
    expected = without_faults(plan)
    with psycopg.connect(**database) as connection:
        rows = connection.execute("SELECT kind, key, n, value FROM results").fetchall()
        prepared = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
        left = connection.execute(prepared).fetchone()
    outcome.left = left[0] if left else 0
    outcome.differences["PostgreSQL"] = compare(Counter(rows), expected)
    outcome.differences["files"] = compare(in_files(Path(plan.folder)), expected)
