"""The fault suite in short: a worker and the driver of a real job are killed, and nothing is lost or comes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from postgreskit import Database

from chaos.check import compare, without_faults
from chaos.job import Plan
from chaos.outcome import Outcome, table
from chaos.processes import Process, executors, python_workers
from chaos.scenario import Scenario, run_scenario


def test_a_driver_and_a_worker_are_killed(database: Database, tmp_path: Path) -> None:
    # Seed 1: first the driver, then a worker.
    scenario = Scenario("short", ("driver", "worker"), kills=2, seed=1, gap=(0.2, 0.8), spare=1)
    parameters = database.server.parameters(database.name)
    del parameters["autocommit"]
    outcome = run_scenario(scenario, tmp_path / "chaos", parameters, database.url)
    assert outcome.explain() == []
    assert outcome.good
    assert outcome.kills == Counter(driver=1, worker=1)
    assert outcome.restarts == 1
    assert len(outcome.recoveries) == 2


def test_who_is_killed() -> None:
    daemon = "python -m firesteel.engine.spark.daemon pyspark.worker"
    table = [Process(10, 1, "java"), Process(11, 10, daemon), Process(12, 11, daemon), Process(13, 1, daemon)]
    table += [Process(14, 2, "java org.apache.spark.executor.CoarseGrainedExecutorBackend"), Process(15, 14, daemon)]
    processes = {one.pid: one for one in table}
    assert [one.pid for one in python_workers(processes)] == [12, 13], "not what the workers are forked from"
    assert [one.pid for one in executors(processes)] == [14]


def test_what_is_lost_or_comes_twice_is_told() -> None:
    expected = without_faults(Plan(records=2000))
    assert expected == without_faults(Plan(records=2000)), "a run without faults is always the same"
    assert {kind for kind, *_ in expected} == {"count", "timer", "alarm", "window", "union", "rules"}
    outcome = Outcome("some", 2000, Counter(driver=1), differences={"files": compare(expected, expected)})
    assert outcome.good
    outcome.missed = ["after-log"]
    assert not outcome.good, "a crash point that was never reached was not tried"
    assert outcome.explain() == ["some: nothing was killed at 'after-log'"]
    outcome.missed = []
    found = expected.copy()
    found["count", 3, 7, 0] -= 1
    found[
        "window", 1, 5000, next(value for kind, key, end, value in expected if (kind, key, end) == ("window", 1, 5000))
    ] += 1
    outcome.differences["PostgreSQL"] = compare(found, expected)
    assert (outcome.lost, outcome.duplicated, outcome.good) == (1, 1, False)
    assert outcome.explain()[0] == "some, PostgreSQL: lost: count 3 7 0"
    assert table([outcome]).endswith("FAILED")
    outcome.differences = {}
    assert not outcome.good, "what was not compared is not good"
