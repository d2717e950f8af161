"""A registry that fails in the middle of something: no job is left alone, and no driver runs that nobody watches."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from clusterkit import FakeLauncher, finish, has_state, running_cluster, submit, wait_for_process
from sparkkit import eventually

from firesteel.cluster import driver_cycle, supervisor
from firesteel.cluster.driver import Assignment
from firesteel.cluster.folders import JobFolder
from firesteel.cluster.launching import DriverLivesError
from firesteel.cluster.processes import Process
from firesteel.cluster.registry import RegistryUnreachableError
from firesteel.cluster.rest.calls import Cluster

ONCE = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_cycle, "SECONDS_TO_TRY_AGAIN", 0.05)
    monkeypatch.setattr(supervisor, "SECONDS_TO_KILL_AGAIN", 0.2, raising=False)


class Failing:
    """A method of the registry that fails some times, as one does whose connection broke."""

    def __init__(self, cluster: Cluster, name: str, times: int, when: Callable[..., bool] = lambda *a, **k: True):
        self._real, self._when, self.left = getattr(cluster.supervisor.registry, name), when, times
        setattr(cluster.supervisor.registry, name, self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.left and self._when(*arguments, **named):
            self.left -= 1
            raise RegistryUnreachableError("The registry does not answer.")
        return self._real(*arguments, **named)


def of_state(*states: str) -> Callable[..., bool]:
    return lambda job, **changes: changes.get("state") in states


def test_the_end_of_a_driver_is_noted_as_soon_as_that_is_possible(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(ONCE)) as cluster:
        job = submit(cluster)
        process = wait_for_process(cluster, job.id)
        attempts = Failing(cluster, "put_attempt", 2)
        restarts = Failing(cluster, "update_job", 2, of_state("RESTARTING"))
        process.send(9)
        # The strategy allows one restart: it was asked once, however often the answer could not be noted.
        wait_for_process(cluster, job.id, 1)
        assert (attempts.left, restarts.left) == (0, 0)
        Failing(cluster, "update_job", 2, of_state("FINISHED"))
        finish(cluster, job.id)
        assert has_state(cluster, job.id, "FINISHED")


@pytest.mark.parametrize("name", ["update_job", "assign_driver"])
def test_a_driver_is_started_as_soon_as_that_is_possible(tmp_path: Path, name: str) -> None:
    launcher = FakeLauncher(ONCE)
    with running_cluster(tmp_path / "c", launcher) as cluster:
        states = of_state("INITIALIZING", "RESTARTING")
        failing = Failing(cluster, name, 2, states if name == "update_job" else lambda *given: True)
        job = submit(cluster)
        process = wait_for_process(cluster, job.id)
        assert failing.left == 0
        failing.left = 2
        process.send(9)
        wait_for_process(cluster, job.id, 1)
        assert failing.left == 0
    assert [task.attempt for task, _ in launcher.started] == [0, 1], "no number is left out"


@pytest.mark.parametrize("name", ["put_attempt", "update_job"])
def test_a_driver_that_could_not_be_noted_is_watched(tmp_path: Path, name: str) -> None:
    launcher = FakeLauncher()
    with running_cluster(tmp_path / "c", launcher) as cluster:

        def noting(*given: Any, **changes: Any) -> bool:
            return name == "put_attempt" or bool(changes.get("pid"))

        failing = Failing(cluster, name, 10**6, noting)
        job = submit(cluster)
        managed = cluster.supervisor.managed(job.id)
        assert managed is not None
        assert eventually(lambda: managed.process)
        process = managed.process
        assert process is not None
        cluster.supervisor.cancel(job.id)
        # Its end cannot be noted, either, without attempts.
        assert eventually(lambda: not process.alive), "a job that is cancelled has no driver that goes on"
        failing.left = 0
        assert has_state(cluster, job.id, "CANCELED")
    assert len(launcher.started) == 1


class Held(FakeLauncher):
    """The driver before has not ended, and so the next one cannot be started, until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.tried, self.go_on, self.may = threading.Semaphore(0), threading.Event(), threading.Event()

    def start(
        self,
        folder: JobFolder,
        task: Assignment,
        settings: Mapping[str, str],
        configuration: Mapping[str, str] | None = None,
    ) -> Process:
        self.tried.release()
        assert self.go_on.wait(300)
        if not self.may.is_set():
            raise DriverLivesError("A driver of the job has not ended yet.")
        return super().start(folder, task, settings)


def test_nobody_waits_for_a_driver_that_is_being_started(tmp_path: Path) -> None:
    launcher = Held()
    with running_cluster(tmp_path / "c", launcher) as cluster:
        first, second = submit(cluster), submit(cluster)
        assert launcher.tried.acquire(timeout=60)
        assert launcher.tried.acquire(timeout=60), "both are started at the same time"
        assert {row.state for row in cluster.supervisor.rows()} == {"INITIALIZING"}
        # One that is cancelled meanwhile is not started any more.
        cluster.supervisor.cancel(second.id)
        assert not launcher.go_on.is_set()
        launcher.go_on.set()
        assert launcher.tried.acquire(timeout=60), "it is tried again"
        launcher.may.set()
        wait_for_process(cluster, first.id)
        assert has_state(cluster, second.id, "CANCELED")
        assert cluster.supervisor.row(first.id).driver == 0, "waiting for a lock uses up no number"
    assert {task.job for task, _ in launcher.started} == {first.id}


def test_a_machine_without_room_for_a_driver_is_asked_again(tmp_path: Path) -> None:
    class Full(FakeLauncher):
        left = 1

        def start(
            self,
            folder: JobFolder,
            task: Assignment,
            settings: Mapping[str, str],
            configuration: Mapping[str, str] | None = None,
        ) -> Process:
            if self.left:
                self.left -= 1
                raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
            return super().start(folder, task, settings)

    with running_cluster(tmp_path / "c", Full(ONCE)) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id, 1)
        (attempt, _) = cluster.supervisor.registry.attempts(job.id)
        assert attempt.outcome == "crashed"
        assert "could not be started" in attempt.message
    with running_cluster(tmp_path / "d", Full()) as cluster:
        job = submit(cluster)
        assert has_state(cluster, job.id, "FAILED"), "the strategy allows no restart"
