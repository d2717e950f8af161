"""What is killed, how often and when; and one run of that, from the first start to the comparison."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_server import KafkaServer

from chaos.check import without_faults, without_faults_in_sql
from chaos.cluster import standalone_cluster
from chaos.job import Plan
from chaos.kafka_faults import KafkaCrashes, KafkaPoint
from chaos.kafka_outside import KafkaOutside
from chaos.managed import TARGETS, ManagedRun
from chaos.outcome import Outcome
from chaos.outside import Outside, PostgresAndFiles, TablesOfSql
from chaos.run import Run
from firesteel.testing import CrashPoint

__all__ = ["Scenario", "run_kafka_scenario", "run_scenario"]

RATE = 1500.0
RATE_OF_SQL = 150.0
"""A batch goes through some forty operators with state."""
WHILE_RECOVERING = (KafkaPoint.RECOVERING, KafkaPoint.REPEATING)
"""Points that only a job comes by that was killed before: the first time is the right one."""


@dataclass(frozen=True)
class Scenario:
    """One way to make a job's life hard."""

    name: str
    targets: tuple[str, ...] = ()
    """What is killed at random moments: ``driver``, ``worker`` (a Python process of tasks), ``executor``, ``database``
    and ``broker`` (which come back), ``connections`` (to the broker, which are cut), ``zombie`` (a worker is frozen,
    its driver killed, and the worker goes on when another driver is at work), ``read-only`` (the checkpoint folder,
    which can be written again later), ``interrupt`` and ``terminate`` (signals to the driver), ``second start`` (of a
    driver with the same folder); and those of :mod:`chaos.managed`, in turn, where the job runs under job managers."""
    kills: int = 0
    early: int = 0
    """Kills of the driver while it starts and has its first batch, before there are results."""
    points: tuple[CrashPoint | KafkaPoint, ...] = ()
    """Points of the commit protocol, or inside of Kafka's sink, at which a process is killed on purpose, once each."""
    cluster: bool = False
    """On a standalone cluster, not in one JVM."""
    seed: int = 1
    gap: tuple[float, float] = (0.2, 2.5)
    """A kill comes so many seconds after the first results that follow the one before."""
    sql: bool = False
    """The statements of :mod:`chaos.sql_job` instead of the functions of :mod:`chaos.job`."""
    in_pages: bool = False
    """With less memory for state than the operators of SQL need, so that it is read and written page by page."""
    spare: float = 4.0
    """Seconds of the job's life that are not for kills."""
    without: tuple[str, ...] = ()
    """Mechanisms that are switched off; see :mod:`chaos.job`."""

    @property
    def records(self) -> int:
        """Enough for the job to live through all kills."""
        # What early kills leave behind is worked off while the next start is killed.
        kills = self.kills * (sum(self.gap) / 2 + 1.5) + 4 * self.early
        return int(self.rate * (self.spare + kills + 3 * len(self.points)))

    @property
    def rate(self) -> float:
        return RATE_OF_SQL if self.sql else RATE


def run_scenario(
    scenario: Scenario,
    folder: Path,
    database: dict[str, Any],
    url: str,
    crash_database: Callable[[float], None] | None = None,
) -> Outcome:
    """Runs a scenario in a folder and a database of its own, whose server can be crashed for some seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(scenario.records, scenario.rate, url, str(folder / "files"), list(scenario.without))
    outside = (TablesOfSql if scenario.sql else PostgresAndFiles)(database, crash_database)
    plan = replace(plan, portions=scenario.kills + 1, done=str(folder / "kills"))
    if scenario.sql:
        plan = replace(plan, program="chaos.sql_job")
    if set(scenario.targets) & set(TARGETS):
        return _run_managed(scenario, folder, plan, outside, database)
    return _run(scenario, folder, plan, outside)


def run_kafka_scenario(scenario: Scenario, folder: Path, server: KafkaServer) -> Outcome:
    """The same with topics of its own for the records and for the results."""
    folder.mkdir(parents=True, exist_ok=True)
    with server.proxy() as proxy:
        outside = KafkaOutside(server, proxy, scenario.records, RATE)
        plan = Plan(scenario.records, RATE, without=list(scenario.without), kafka=outside.settings)
        return _run(scenario, folder, plan, outside)


def _run(scenario: Scenario, folder: Path, plan: Plan, outside: Outside) -> Outcome:
    outcome = Outcome(scenario.name, scenario.records)
    with _master(scenario, folder) as (master, executors):
        settings = {"firesteel.master": master, "firesteel.checkpoint.dir": str(folder / "checkpoint")}
        if scenario.sql:
            # There are fewer records, and each crash point is to be passed some times.
            settings["firesteel.batch.max-records"] = "100"
        if scenario.in_pages:
            settings |= {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1 kb"}
        crashes = None
        if scenario.points:
            (folder / "crashes").mkdir()
            actions = {point: ["pass"] * passes + ["kill"] for point, passes in _passes(scenario).items()}
            crashes = KafkaCrashes(actions, str(folder / "crashes"))
            settings |= crashes.config
            if plan.kafka:
                plan = replace(plan, kafka={**plan.kafka, "crashes": crashes.folder})
        plan = replace(plan, settings=settings)
        run = Run(plan, folder, outside, outcome, executors, scenario.seed)
        run.through(scenario.kills, scenario.targets, scenario.gap, scenario.early)
    if crashes is not None:
        for point, passes in _passes(scenario).items():
            reached = crashes.reached(point) > passes
            outcome.kills[point] += int(reached)
            if not reached:
                outcome.missed.append(str(point))
    outside.check(plan, (without_faults_in_sql if scenario.sql else without_faults)(plan), outcome)
    return outcome


def _run_managed(
    scenario: Scenario, folder: Path, plan: Plan, outside: PostgresAndFiles, database: dict[str, Any]
) -> Outcome:
    outcome = Outcome(scenario.name, scenario.records)
    settings = {"firesteel.master": "local[2]", "firesteel.checkpoint.dir": str(folder / "checkpoint")}
    plan = replace(plan, settings=settings)
    ManagedRun(plan, folder, outside, database, outcome, scenario.seed).through(
        scenario.kills, scenario.targets, scenario.gap
    )
    outside.check(plan, without_faults(plan), outcome)
    return outcome


def _passes(scenario: Scenario) -> dict[CrashPoint | str, int]:
    """How often each crash point is passed before the job is killed there. One after the other, with some batches in
    between, so that each time something was committed before and something comes after."""
    at_work = [point for point in scenario.points if point not in WHILE_RECOVERING]
    passes: dict[CrashPoint | str, int] = {point: 2 + 4 * number for number, point in enumerate(at_work)}
    return passes | dict.fromkeys((point for point in scenario.points if point in WHILE_RECOVERING), 0)


@contextmanager
def _master(scenario: Scenario, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Where the job runs, and the mark of its executors if they are processes of their own."""
    if not scenario.cluster:
        yield "local[2]", None
        return
    mark = uuid.uuid4().hex
    with standalone_cluster(folder, mark) as address:
        yield address, mark
