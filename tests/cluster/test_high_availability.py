"""Several job managers with PostgreSQL: processes that are killed, stopped and cut off, with real drivers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterkit import ENDLESS, FakeLauncher, has_state, submit
from hakit import MEMORY, Members, works
from postgreskit import Database
from sparkkit import eventually
from tcp_proxy import TcpProxy

from firesteel.cli import main
from firesteel.cluster.driver import Assignment
from firesteel.cluster.folders import ClusterFolder, JobFolder
from firesteel.cluster.launching import start_driver
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import ENDED
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.rest.standby import LEADER
from firesteel.cluster.server import assemble
from firesteel.cluster.starting import find_members
from firesteel.engine.facade import GetSnapshot


@pytest.fixture
def members(tmp_path: Path, database: Database) -> Iterator[Members]:
    found = Members(tmp_path / "c", database)
    yield found
    found.close()


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    return str(path)


def test_a_standby_takes_over_and_jobs_never_stop(members: Members, program: str) -> None:
    first = members.start()
    assert eventually(lambda: members.leads(first, 1))
    second = members.start()
    client = members.client(second, first)
    # What is asked of a standby reaches the leader: uploads, changes, questions.
    job = client.submit(program, settings=MEMORY)
    assert eventually(lambda: works(client, job))
    assert members.headers(second)[LEADER] == first.address
    driver = Process.of(int(client.job(job).known["pid"]))

    os.kill(first.pid, signal.SIGKILL)
    assert eventually(lambda: members.leads(second, 2))
    assert eventually(lambda: works(client, job))
    known = client.job(job).known
    assert (known["pid"], known["drivers"]) == (driver.pid, 1)
    assert client.get("/firesteel/v1/manager")["epoch"] == 2
    assert "epoch 2 begins" in client.text("/jobmanager/log")[0]

    # The leader stands still: only its lease tells.
    third = members.start()
    client = members.client(second, third)
    os.kill(second.pid, signal.SIGSTOP)
    assert eventually(lambda: members.leads(third, 3))
    assert eventually(lambda: works(members.client(third), job))
    os.kill(second.pid, signal.SIGCONT)
    # It finds that it is not the leader any more, changes nothing, and passes requests on.
    assert eventually(lambda: members.headers(second).get(LEADER) == third.address)
    assert members.leads(third, 3)
    known = client.job(job).known
    assert (known["pid"], known["drivers"]) == (driver.pid, 1)
    # And can be elected again.
    os.kill(third.pid, signal.SIGKILL)
    assert eventually(lambda: members.leads(second, 4))
    client.job(job).cancel()
    assert not driver.alive


def test_a_leader_that_is_cut_off_steps_down(members: Members, program: str) -> None:
    with TcpProxy("127.0.0.1", members.database.server.port) as proxy:
        first = members.start(proxy.port)
        assert eventually(lambda: members.leads(first, 1))
        second = members.start()
        job = members.client(first).submit(program, settings=MEMORY)
        assert eventually(lambda: works(members.client(first), job))
        # The driver's lease goes the same way: its commits wait.
        proxy.swallow()
        assert eventually(lambda: members.leads(second, 2))
        # Here it is known that nothing is known.
        assert eventually(lambda: members.headers(first) == {LEADER: ""})
        known = members.client(second).job(job).known
        driver = int(known["pid"])
        proxy.reset()
        assert eventually(lambda: members.headers(first).get(LEADER) == second.address)
        assert eventually(lambda: works(members.client(second), job))
        known = members.client(second).job(job).known
        assert (known["pid"], known["drivers"]) == (driver, 1)
        assert members.leads(second, 2)


def test_the_registry_is_restarted(members: Members, program: str) -> None:
    leader = members.start()
    assert eventually(lambda: members.leads(leader, 1))
    client = members.client(leader)
    job = client.submit(program, settings=MEMORY)
    assert eventually(lambda: works(client, job))
    before = client.job(job).known
    members.database.server.crash(seconds_down=3)
    # Whoever leads now, the job ran on, and goes on committing.
    assert eventually(lambda: LEADER not in members.headers(leader))
    assert eventually(lambda: client.job(job).known["records"] > before["records"])
    after = client.job(job).known
    assert (after["pid"], after["drivers"]) == (before["pid"], 1)


def test_commands(members: Members, program: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text(members.database.password + "\n")
    secret.chmod(0o600)
    settings = members.settings()
    start = ["cluster", "start", "--dir", str(members.folder), "--port", "0", "--registry", settings.registry]
    start += ["--warm-drivers", "0"]
    assert main([*start, "--registry-password-file", str(secret)]) == 0
    assert main([*start, "--registry-password-file", str(secret)]) == 0
    found = find_members(members.folder)
    members.started += found
    assert len(found) == 2
    for member in found:
        line = Path(f"/proc/{member.pid}/cmdline").read_text()
        assert members.database.password not in line
    assert eventually(lambda: any(LEADER not in members.headers(one) for one in found))
    capfd.readouterr()
    addresses = ",".join(one.address.removeprefix("http://") for one in found)
    os.environ["FIRESTEEL_TOKEN_FILE"] = str(members.folder / "token")
    try:
        assert main(["list", "-m", addresses, "--json"]) == 0
    finally:
        del os.environ["FIRESTEEL_TOKEN_FILE"]
    assert capfd.readouterr().out.strip() == "[]"
    assert main(["cluster", "stop", "--dir", str(members.folder)]) == 0
    assert not find_members(members.folder)
    secret.chmod(0o644)
    assert main([*start, "--registry-password-file", str(secret)]) == 1
    assert "Others can read the password" in capfd.readouterr().err


# Fences


class Delayed(FakeLauncher):
    """Starts real drivers, of a program that sleeps. Something happens right before."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def start(self, folder: JobFolder, task: Assignment, settings: Any, configuration: Any = None) -> Process:
        self._before()
        return start_driver(folder, task, settings, 1 << 20, 2)


def test_a_job_manager_that_stood_still_starts_no_driver(members: Members) -> None:
    folder = ClusterFolder.make(members.folder)
    later: list[Cluster] = []

    def take_over() -> None:
        if not later:
            later.append(assemble(members.settings(), folder, launcher=Delayed(lambda: None)))
            later[0].supervisor.start()
            assert eventually(lambda: later[0].supervisor.registry.jobs()[0].pid)

    first = assemble(members.settings(), folder, launcher=Delayed(take_over))
    first.supervisor.start()
    try:
        job = submit(first, "import time\ntime.sleep(1000)\n")
        assert eventually(lambda: later and later[0].supervisor.row(job.id).pid)
        # The first one has tried to start a driver by now, or does so at last when it ends.
        first.supervisor.stop(leave_jobs=True)
        (second,) = later
        row = second.supervisor.row(job.id)
        assert (row.state, row.driver) == ("RESTARTING", 1)
        assert Process(row.pid, row.pid_started).alive
        # Another process makes the file, a moment later.
        assert eventually(lambda: [path.name for path in folder.job(job.id).logs.iterdir()] == ["attempt-1.log"])
    finally:
        for one in (first, *later):
            one.supervisor.stop(leave_jobs=True)
            one.supervisor.registry.close()


def test_a_driver_without_a_lease_ends_by_itself(members: Members, tmp_path: Path) -> None:
    folder = ClusterFolder.make(members.folder).job("0" * 32).make()
    program = tmp_path / "p.py"
    program.write_text("print('I run')\n")
    members.lookup.claim()
    lease = members.lookup.assign_driver("0" * 32, 0)
    members.lookup.assign_driver("0" * 32, 1)
    folder.attempt.write_text("0")
    task = Assignment("0" * 32, str(program), (), str(folder.path), attempt=0, lease=lease)
    environment = {**os.environ, "FIRESTEEL_DRIVER": task.text()}
    ended = subprocess.run(
        [sys.executable, "-m", "firesteel.cluster.driver"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 75
    assert "is not wanted any more" in ended.stderr
    assert "I run" not in ended.stdout


# Drivers of another machine


@pytest.fixture
def elsewhere(members: Members, program: str) -> Iterator[tuple[Cluster, str, Process]]:
    """A job manager on another machine than that of the job's driver, as far as it knows."""
    folder = ClusterFolder.make(members.folder)
    first = assemble(members.settings(), folder)
    first.supervisor.start()
    stored = first.programs.put("endless.py", Path(program).read_bytes())
    job = first.supervisor.submit(stored, settings=MEMORY).id
    assert has_state(first, job, "RUNNING")
    row = first.supervisor.row(job)
    first.supervisor.stop(leave_jobs=True)
    first.supervisor.registry.close()
    second = assemble(members.settings(), folder)
    second.supervisor._drivers.machine = "another"
    second.supervisor.start()
    yield second, job, Process(row.pid, row.pid_started)
    second.supervisor.stop(leave_jobs=True)
    second.supervisor.registry.close()


def test_a_driver_of_another_machine_is_watched_and_asked(
    elsewhere: tuple[Cluster, str, Process], tmp_path: Path
) -> None:
    cluster, job, driver = elsewhere
    managed = cluster.supervisor.managed(job)
    assert managed is not None
    assert managed.remote
    assert eventually(lambda: managed.snapshot is not None and managed.snapshot.status.records > 0)
    assert cluster.supervisor.ask(job, GetSnapshot(), 120).status.pid == driver.pid
    operation = cluster.operations.savepoint(job, str(tmp_path / "saved"), cancel=False)

    def saved() -> str:
        found = cluster.operations.find(operation.id)
        assert found is not None
        assert not found.failure
        return found.result

    assert eventually(saved)
    assert Path(saved()).is_dir()
    cluster.supervisor.cancel(job)
    assert has_state(cluster, job, "CANCELED")
    assert eventually(lambda: not driver.alive)


def test_a_driver_that_stood_still_is_replaced_and_ends(elsewhere: tuple[Cluster, str, Process]) -> None:
    cluster, job, driver = elsewhere
    driver.send(signal.SIGSTOP)
    assert has_state(cluster, job, "RESTARTING")
    # The job's lock is still its own, so the next one waits; awake, it finds that its lease is over, and is gone.
    driver.send(signal.SIGCONT)
    assert eventually(lambda: not driver.alive)
    assert has_state(cluster, job, "RUNNING")
    row = cluster.supervisor.row(job)
    assert row.driver > 0
    assert row.state not in ENDED
    end_session(Process(row.pid, row.pid_started))
