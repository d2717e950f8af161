"""Drivers of another machine, as a leader sees them who takes over: real PostgreSQL, processes as drivers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterkit import FakeLauncher, finish, has_state, settings_for, submit, wait_for_process
from filelock import FileLock
from postgreskit import Database

from firesteel.cluster import supervisor
from firesteel.cluster.driver_lease import KILL, TERMINATE, DriverLease
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import JobRow
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.server import assemble

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeCluster]:
    """Job managers of one cluster, one after the other, each on a machine of its own."""
    monkeypatch.setattr(supervisor, "SECONDS_TO_KILL_AGAIN", 0.2, raising=False)
    made: list[Cluster] = []

    def one(machine: str, **more: int) -> Cluster:
        settings = settings_for(
            tmp_path / "c",
            registry=f"postgresql://{database.user}@127.0.0.1:{database.server.port}/{database.name}",
            registry_password=database.password,
            **more,
        )
        launcher = FakeLauncher(checkpointing=True)
        made.append(assemble(settings, ClusterFolder.make(tmp_path / "c"), launcher=launcher))
        made[-1].supervisor._drivers.machine = machine
        return made[-1]

    yield one
    for row in made[-1].supervisor.registry.jobs():
        if row.pid:
            end_session(Process(row.pid, row.pid_started))
    for cluster in made:
        cluster.supervisor.stop(leave_jobs=True)
        cluster.supervisor.registry.close()


class Elsewhere:
    """A driver whose machine the next leader is not on: its process is one that is not alive there."""

    def __init__(self, cluster: Cluster) -> None:
        cluster.supervisor.start()
        self.row: JobRow = submit(cluster)
        self.process = wait_for_process(cluster, self.row.id)
        self.lease = DriverLease(cluster.supervisor.registry.assign_driver(self.row.id, 0))
        # A number that this machine did not give.
        cluster.supervisor.stop(leave_jobs=True)
        cluster.supervisor.registry.update_job(self.row.id, pid_started="elsewhere-1")

    def close(self) -> None:
        self.lease._over.set()
        self.lease._base.close()
        end_session(self.process)


def test_a_driver_that_is_just_starting_elsewhere_does_not_begin(make: MakeCluster, tmp_path: Path) -> None:
    first = make("here")
    driver = Elsewhere(first)
    # It has its lock already, and not yet its lease.
    with FileLock(first.folder.job(driver.row.id).lock):
        second = make("there")
        second.supervisor.start()
        assert not driver.lease.take(), "it is refused before it has done anything"
    # The job goes on with the next one, and no restart was used up for it: this job has none.
    wait_for_process(second, driver.row.id, 1)
    driver.close()


def test_a_driver_that_takes_its_lease_meanwhile_is_adopted(make: MakeCluster) -> None:
    first = make("here")
    driver = Elsewhere(first)
    second = make("there")
    registry = second.supervisor.registry
    withdraw = registry.withdraw_driver

    def too_late(job: str, number: int) -> bool:
        assert driver.lease.take()
        return withdraw(job, number)

    registry.withdraw_driver = too_late  # type: ignore[method-assign, assignment]
    second.supervisor.start()
    managed = second.supervisor.managed(driver.row.id)
    assert managed is not None
    assert managed.remote
    assert second.supervisor.row(driver.row.id).driver == 0
    driver.lease.check()
    driver.close()


def test_a_job_that_has_ended_has_no_lease(make: MakeCluster) -> None:
    cluster = make("here")
    cluster.supervisor.start()
    job = submit(cluster)
    wait_for_process(cluster, job.id)
    held = cluster.supervisor.registry.driver(job.id)
    assert held is not None
    assert held.alive
    finish(cluster, job.id)
    assert has_state(cluster, job.id, "FINISHED")
    held = cluster.supervisor.registry.driver(job.id)
    assert held is not None
    assert not held.alive


def test_a_cancellation_is_carried_out_by_a_leader_elsewhere(make: MakeCluster) -> None:
    driver = Elsewhere(make("here"))
    assert driver.lease._renew()
    second = make("there", cancel_ms=300)
    registry = second.supervisor.registry
    registry.update_job(driver.row.id, state="CANCELLING")
    asked: list[str] = []

    def ask(job: str, number: int, request: str, seconds: float) -> None:
        asked.append(json.loads(request)["command"])
        # The first requests are lost.
        if asked.count(KILL) == 3:
            driver.lease.release()

    registry.ask_driver = ask  # type: ignore[method-assign, assignment]
    second.supervisor.start()
    assert has_state(second, driver.row.id, "CANCELED")
    assert "cancel" in asked
    assert asked.count(KILL) >= 3
    driver.close()


def test_drivers_elsewhere_are_suspended_with_the_job_manager(
    make: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Elsewhere(make("here"))
    assert driver.lease._renew()
    second = make("there")

    def ask(job: str, number: int, request: str, seconds: float) -> None:
        if json.loads(request)["command"] == TERMINATE:
            finish(second, driver.row.id, "SUSPENDED")
            driver.lease.release()

    second.supervisor.registry.ask_driver = ask  # type: ignore[method-assign, assignment]
    second.supervisor.start()
    monkeypatch.setattr(supervisor, "SECONDS_TO_SUSPEND", 60.0)
    second.supervisor.stop(leave_jobs=False)
    assert [row.state for row in second.supervisor.registry.jobs()] == ["SUSPENDED"]
    third = make("there")
    third.supervisor.start()
    wait_for_process(third, driver.row.id, 1)
    assert third.supervisor.registry.attempts(driver.row.id)[0].outcome == "SUSPENDED"
    driver.close()


def test_a_driver_that_ends_itself_ends_its_children_first(tmp_path: Path) -> None:
    program = f"""
import os, subprocess, sys
sys.path.insert(0, {str(Path(supervisor.__file__).parents[2])!r})
from firesteel.cluster.processes import Process, end_session
child = subprocess.Popen(["sleep", "1000"], process_group=0)
print(child.pid, flush=True)
end_session(Process.of(os.getpid()))
"""
    driver = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert driver.stdout is not None
    with driver.stdout:
        child = Process.of(int(driver.stdout.readline()))
        assert driver.wait(300) == -signal.SIGKILL
    try:
        assert child.wait(120), "its JVM would go on"
    finally:
        child.send(signal.SIGKILL)
    assert not [one for one in os.listdir("/proc") if one == str(child.pid)] or not child.alive
