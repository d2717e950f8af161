"""The life of jobs under the job manager, with processes in the place of drivers: fast, and all signals are real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from clusterkit import FakeLauncher, finish, has_state, running_cluster, settings_for, submit, wait_for_process
from sparkkit import eventually

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import adopted, start_driver
from firesteel.cluster.leadership import Leadership, Switch
from firesteel.cluster.processes import Process, end_session, session_members, start_of
from firesteel.cluster.registry import JobRow, StaleEpochError
from firesteel.cluster.server import assemble
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.cluster.tokens import Tokens
from firesteel.common import Configuration
from firesteel.errors import ConfigurationError, JobCommandError, JobNotFoundError, SetupError

QUICK = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


def test_a_job_runs_and_its_outcome_ends_it(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher()) as cluster:
        job = submit(cluster, **{"a.password": "hunter2"})
        process = wait_for_process(cluster, job.id)
        assert cluster.supervisor.row(job.id).state == "INITIALIZING"
        assert os.getsid(process.pid) == process.pid, "a driver has a session of its own"
        finish(cluster, job.id)
        assert has_state(cluster, job.id, "FINISHED")
        assert eventually(lambda: (cluster.folder.archive / job.id).exists())
        (attempt,) = cluster.supervisor.registry.attempts(job.id)
        assert (attempt.outcome, attempt.pid) == ("FINISHED", process.pid)


def test_a_crash_is_followed_by_another_driver_until_the_strategy_says_no(tmp_path: Path) -> None:
    launcher = FakeLauncher(QUICK)
    with running_cluster(tmp_path / "c", launcher) as cluster:
        job = submit(cluster)
        for number in range(3):
            wait_for_process(cluster, job.id, number).send(signal.SIGKILL)
        assert has_state(cluster, job.id, "FAILED")
        row = cluster.supervisor.row(job.id)
        assert "was killed by SIGKILL" in row.failure
        assert [one.outcome for one in cluster.supervisor.registry.attempts(job.id)] == ["crashed"] * 3
    # The same job, so the same checkpoint; later ones know that they are not the first.
    assert {settings["firesteel.job.id"] for _, settings in launcher.started} == {job.id}
    assert [settings["firesteel.job.attempt"] for _, settings in launcher.started] == ["0", "1", "2"]


def test_a_restart_does_not_wait_for_the_next_look_at_all_jobs(tmp_path: Path) -> None:
    settings = replace(settings_for(tmp_path / "c"), poll_ms=3_600_000)
    cluster = assemble(settings, ClusterFolder.make(tmp_path / "c"), launcher=FakeLauncher(QUICK))
    cluster.supervisor.start()
    job = submit(cluster)
    wait_for_process(cluster, job.id).send(signal.SIGKILL)
    end_session(wait_for_process(cluster, job.id, 1))
    end_session(wait_for_process(cluster, job.id, 2))
    assert has_state(cluster, job.id, "FAILED")
    cluster.supervisor.stop(leave_jobs=True)
    cluster.supervisor.registry.close()


def test_the_processes_of_a_driver_that_crashed_end_with_it(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(QUICK, children=2)) as cluster:
        job = submit(cluster)
        process = wait_for_process(cluster, job.id)
        assert eventually(lambda: len(session_members(process)) == 3)
        left = [one for one in session_members(process) if one != process]
        process.send(signal.SIGKILL)
        wait_for_process(cluster, job.id, 1)
        assert not any(one.alive for one in left), "or two JVMs would have one checkpoint"


def test_without_a_strategy_a_crash_ends_the_job(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher()) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id).send(signal.SIGSEGV)
        assert has_state(cluster, job.id, "FAILED")
        assert "was killed by SIGSEGV" in cluster.supervisor.row(job.id).failure


def test_a_job_without_a_place_for_its_checkpoint_is_given_one(tmp_path: Path) -> None:
    launcher = FakeLauncher(checkpointing=True)
    with running_cluster(tmp_path / "c", launcher) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id)
        ((_, settings),) = launcher.started
        assert settings["execution.checkpointing.dir"] == str(cluster.folder.checkpoints / job.id)


def test_a_driver_that_is_told_to_end_by_others_is_started_again(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(QUICK)) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id)
        finish(cluster, job.id, "SUSPENDED")
        wait_for_process(cluster, job.id, 1)


def test_a_driver_that_lost_its_jvm_is_started_again(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(QUICK)) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id)
        finish(cluster, job.id, "CRASHED", failure="Spark's JVM has ended: it was killed (SIGKILL).")
        wait_for_process(cluster, job.id, 1)
        assert "JVM has ended" in cluster.supervisor.registry.attempts(job.id)[0].message


def test_jobs_beyond_the_slots_wait_in_order(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(), slots=1) as cluster:
        first, second, third = (submit(cluster) for _ in range(3))
        wait_for_process(cluster, first.id)
        assert [cluster.supervisor.row(job.id).state for job in (second, third)] == ["CREATED", "CREATED"]
        assert cluster.supervisor.free_slots == 0
        finish(cluster, first.id)
        wait_for_process(cluster, second.id)
        assert cluster.supervisor.row(third.id).state == "CREATED"
        cluster.supervisor.cancel(third.id)
        assert cluster.supervisor.row(third.id).state == "CANCELED"
        finish(cluster, second.id)
        assert has_state(cluster, second.id, "FINISHED")
        assert not cluster.supervisor.registry.attempts(third.id)


def test_a_job_between_two_drivers_is_cancelled_at_once(tmp_path: Path) -> None:
    slow = {**QUICK, "restart-strategy.fixed-delay.delay": "1 h"}
    with running_cluster(tmp_path / "c", FakeLauncher(slow)) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id).send(signal.SIGKILL)
        assert has_state(cluster, job.id, "RESTARTING")
        assert cluster.supervisor.free_slots == 3, "it keeps its slot"
        cluster.supervisor.cancel(job.id)
        assert cluster.supervisor.row(job.id).state == "CANCELED"
        with pytest.raises(JobCommandError, match="has ended"):
            cluster.supervisor.cancel(job.id)


def test_a_driver_that_cannot_be_asked_is_ended_by_a_signal(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(QUICK)) as cluster:
        job = submit(cluster)
        process = wait_for_process(cluster, job.id)
        cluster.supervisor.cancel(job.id)
        assert has_state(cluster, job.id, "CANCELED")
        assert not process.alive


def test_a_driver_that_stands_still_is_killed_after_a_while(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(QUICK), cancel_ms=100) as cluster:
        job = submit(cluster)
        process = wait_for_process(cluster, job.id)
        # A process that was stopped does not get SIGTERM either.
        process.send(signal.SIGSTOP)
        cluster.supervisor.cancel(job.id)
        assert has_state(cluster, job.id, "CANCELED")
        assert not process.alive


def test_what_a_driver_leaves_behind_is_ended(tmp_path: Path) -> None:
    leader = subprocess.Popen(
        # A JVM stays in the group of its driver; the daemon of Python workers makes one of its own.
        ["sh", "-c", "sleep 1000 & setsid true; (exec sleep 1001) & echo ready; wait"],
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    assert leader.stdout is not None
    leader.stdout.readline()
    known = Process.of(leader.pid)
    assert eventually(lambda: len(session_members(known)) == 3)
    leader.kill()
    leader.wait()
    left = session_members(known)
    assert len(left) == 2
    assert end_session(known) == 2
    assert not any(one.alive for one in left)


def test_a_number_that_was_given_away_is_left_alone(tmp_path: Path) -> None:
    """Another process has the number of a driver that ended long ago."""
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        former = Process(other.pid, "long-ago")
        assert not former.alive
        assert former.open() is None
        assert session_members(former) == []
        former.send(signal.SIGKILL)
        assert end_session(former) == 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_that_was_never_noted_stands_for_no_other() -> None:
    # Whoever was started from outside of a container has session 0 in it.
    assert session_members(Process(0, "")) == []
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Process(0, "").reap() is None, "0 means any child to the system"
    assert child.wait() == 0


def test_a_zombie_has_ended() -> None:
    child = subprocess.Popen(["true"])
    known = Process.of(child.pid)
    assert eventually(lambda: start_of(child.pid) == "")
    assert not known.alive
    child.wait()


# The job manager dies and comes back


def test_a_new_job_manager_adopts_what_runs(tmp_path: Path) -> None:
    launcher = FakeLauncher(QUICK)
    folder = ClusterFolder.make(tmp_path / "c")
    first = assemble(settings_for(tmp_path / "c"), folder, launcher=launcher)
    first.supervisor.start()
    job = submit(first)
    process = wait_for_process(first, job.id)
    first.supervisor.stop(leave_jobs=True)
    assert process.alive
    with running_cluster(tmp_path / "c", launcher) as second:
        # Another job has come and gone: whatever there was to be done with the first one is done by now.
        other = submit(second)
        wait_for_process(second, other.id)
        finish(second, other.id)
        assert has_state(second, other.id, "FINISHED")
        assert process.alive
        assert second.supervisor.row(job.id).pid == process.pid
        assert [task.job for task, _ in launcher.started] == [job.id, other.id]
        finish(second, job.id)
        assert has_state(second, job.id, "FINISHED")
    # What the first one still wants to write is refused.
    with pytest.raises(StaleEpochError):
        first.supervisor.registry.update_job(job.id, state="RUNNING")
    first.supervisor.registry.close()


@pytest.mark.parametrize(("status", "state"), [("FINISHED", "FINISHED"), ("FAILED", "FAILED"), (None, "RESTARTING")])
def test_what_ended_meanwhile_is_found_out(tmp_path: Path, status: str | None, state: str) -> None:
    launcher = FakeLauncher({**QUICK, "restart-strategy.fixed-delay.delay": "1 h"})
    first = assemble(settings_for(tmp_path / "c"), ClusterFolder.make(tmp_path / "c"), launcher=launcher)
    first.supervisor.start()
    job = submit(first)
    process = wait_for_process(first, job.id)
    first.supervisor.stop(leave_jobs=True)
    if status is None:
        process.send(signal.SIGKILL)
    else:
        finish(first, job.id, status)
    assert process.wait(120)
    first.supervisor.registry.close()
    with running_cluster(tmp_path / "c", launcher) as second:
        assert has_state(second, job.id, state)


def test_the_strategy_does_not_begin_anew_with_the_job_manager(tmp_path: Path) -> None:
    launcher = FakeLauncher({**QUICK, "restart-strategy.fixed-delay.attempts": "1"})
    first = assemble(settings_for(tmp_path / "c"), ClusterFolder.make(tmp_path / "c"), launcher=launcher)
    first.supervisor.start()
    job = submit(first)
    wait_for_process(first, job.id).send(signal.SIGKILL)
    second_driver = wait_for_process(first, job.id, 1)
    first.supervisor.stop(leave_jobs=True)
    first.supervisor.registry.close()
    with running_cluster(tmp_path / "c", launcher) as second:
        second_driver.send(signal.SIGKILL)
        assert has_state(second, job.id, "FAILED")


def test_a_cancellation_is_not_forgotten(tmp_path: Path) -> None:
    launcher = FakeLauncher(QUICK)
    first = assemble(settings_for(tmp_path / "c"), ClusterFolder.make(tmp_path / "c"), launcher=launcher)
    first.supervisor.start()
    job = submit(first)
    process = wait_for_process(first, job.id)
    first.supervisor.stop(leave_jobs=True)
    # It died between the note and the signal.
    first.supervisor.registry.update_job(job.id, state="CANCELLING")
    first.supervisor.registry.close()
    with running_cluster(tmp_path / "c", launcher) as second:
        assert has_state(second, job.id, "CANCELED")
        assert not process.alive


def test_suspended_jobs_go_on_with_the_next_job_manager(tmp_path: Path) -> None:
    launcher = FakeLauncher(checkpointing=True)
    first = assemble(settings_for(tmp_path / "c"), ClusterFolder.make(tmp_path / "c"), launcher=launcher)
    first.supervisor.start()
    job = submit(first)
    wait_for_process(first, job.id)
    # A real driver leaves this when it gets SIGTERM; this one just dies of it.
    first.supervisor._background.stopping = True
    finish(first, job.id, "SUSPENDED")
    assert has_state(first, job.id, "SUSPENDED")
    first.supervisor.stop(leave_jobs=False)
    first.supervisor.registry.close()
    with running_cluster(tmp_path / "c", launcher) as second:
        wait_for_process(second, job.id, 1)
    assert [settings["firesteel.job.attempt"] for _, settings in launcher.started] == ["0", "1"]


def test_old_jobs_are_forgotten_with_their_files(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher(), history=1) as cluster:
        first, second = submit(cluster), submit(cluster)
        for job in (first, second):
            wait_for_process(cluster, job.id)
            finish(cluster, job.id)
            assert has_state(cluster, job.id, "FINISHED")
        assert eventually(lambda: not cluster.folder.job(first.id).path.exists())
        with pytest.raises(JobNotFoundError):
            cluster.supervisor.row(first.id)
        assert cluster.supervisor.row(second.id).state == "FINISHED"


# Drivers


def test_a_driver_that_is_not_wanted_ends_by_itself(tmp_path: Path) -> None:
    """A job manager died right after it had started a driver, and its successor started another one."""
    from firesteel.cluster.driver import Assignment

    folder = ClusterFolder.make(tmp_path / "c").job("0" * 32).make()
    program = tmp_path / "p.py"
    program.write_text("import time\ntime.sleep(1000)\n")
    folder.attempt.write_text("1")
    task = Assignment("0" * 32, str(program), (), str(folder.path), attempt=0)
    environment = {**os.environ, "FIRESTEEL_DRIVER": task.text()}
    ended = subprocess.run(
        [sys.executable, "-m", "firesteel.cluster.driver"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 75
    assert "Driver 0 of job 00000000000000000000000000000000 is not wanted: 1 is." in ended.stderr
    assert not folder.driver.exists()


@pytest.mark.parametrize("later", ["7 2", "6 3"], ids=["a later driver", "a later job manager"])
def test_a_job_manager_that_stood_still_does_not_overwrite_which_driver_is_wanted(tmp_path: Path, later: str) -> None:
    from firesteel.cluster.driver import Assignment

    folder = ClusterFolder.make(tmp_path / "c").job("0" * 32).make()
    folder.attempt.write_text(later)
    task = Assignment("0" * 32, str(tmp_path / "p.py"), (), str(folder.path), attempt=6, epoch=2)
    with pytest.raises(StaleEpochError, match="was started by another job manager"):
        start_driver(folder, task, {}, 1 << 20, 2)
    assert folder.attempt.read_text() == later
    assert not list(folder.logs.iterdir())


def test_a_driver_whose_process_was_not_noted_is_found(tmp_path: Path) -> None:
    """The job manager died between the start of a driver and the note of its process."""
    from firesteel.cluster.driver import Assignment

    folder = ClusterFolder.make(tmp_path / "c").job("0" * 32).make()
    program = tmp_path / "p.py"
    program.write_text("import time\nprint('here', flush=True)\ntime.sleep(1000)\n")
    task = Assignment("0" * 32, str(program), ("--token", "secret-argument"), str(folder.path), attempt=3)
    process = start_driver(folder, task, {"a.password": "hunter2"}, 1 << 20, 2)
    try:
        assert eventually(lambda: folder.driver.exists())
        assert adopted(folder, 3, Process(0, "")) == process
        # What is secret is not on the command line.
        line = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert "hunter2" not in line
        assert "secret-argument" not in line
        assert eventually(lambda: "here" in folder.log(3).read_text())
        assert folder.log(3).stat().st_mode & 0o077 == 0
    finally:
        process.send(signal.SIGKILL)
        process.wait(120)
        process.reap()
    assert adopted(folder, 3, process) is None


def test_a_log_is_followed_by_a_new_file_when_it_is_full(tmp_path: Path) -> None:
    from firesteel.cluster import log_writer

    path = tmp_path / "attempt-0.log"
    text = "".join(f"line {number:05d}\n" for number in range(2000))
    subprocess.run(
        [sys.executable, "-I", "-S", log_writer.__file__, str(path), "4000", "3"], input=text.encode(), check=True
    )
    parts = [tmp_path / f"attempt-0.log{end}" for end in (".3", ".2", ".1", "")]
    assert all(part.exists() for part in parts)
    assert not (tmp_path / "attempt-0.log.4").exists()
    kept = "".join(part.read_text() for part in parts)
    assert text.endswith(kept), "the newest lines are kept, whole and in order"
    assert kept.startswith("line ")


# The registry


def test_a_registry_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    from firesteel.errors import SetupError

    SqliteRegistry(tmp_path / "r").close()
    with sqlite3.connect(tmp_path / "r") as base:
        base.execute("UPDATE cluster SET value = '99' WHERE name = 'version'")
    base.close()
    with pytest.raises(
        SetupError,
        match=r"^The registry of a job manager has format 99, of a newer Firesteel; .* or a newer one \(",
    ):
        SqliteRegistry(tmp_path / "r")
    assert (tmp_path / "r").stat().st_mode & 0o077 == 0


def test_a_registry_that_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(SetupError, match=f"{tmp_path}/r cannot be read"):
        SqliteRegistry(tmp_path / "r")


def test_two_who_make_tokens_at_once_have_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ClusterFolder.make(tmp_path / "c")
    first = Tokens.of(folder)
    # It looked before the first one had made them.
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert Tokens.of(folder) == first
    assert sorted(path.name for path in folder.path.glob("*token*")) == ["read-token", "token"]


class Always:
    """An election that is always won, and counts how often it was given up."""

    resigned = 0

    def stand(self, seconds: float) -> bool:
        return True

    def holds(self) -> bool:
        return True

    def resign(self) -> None:
        self.resigned += 1


def test_a_leader_that_cannot_leave_its_address_leads(tmp_path: Path) -> None:
    def announce(leads: bool) -> None:
        raise OSError("No space left on device")

    async def standing_by(*given: object) -> None: ...

    election, folder = Always(), ClusterFolder.make(tmp_path / "c")
    lead = partial(assemble, settings_for(tmp_path / "c"), folder, launcher=FakeLauncher())
    leadership = Leadership(election, lead, Switch(standing_by), announce)
    leadership.start()
    assert leadership.elected.wait(60)
    assert election.resigned == 0
    leadership.stop()
    assert election.resigned == 1


def test_two_registries_of_one_file(tmp_path: Path) -> None:
    first, second = SqliteRegistry(tmp_path / "r"), SqliteRegistry(tmp_path / "r")
    assert first.claim() == 1
    first.add_job(JobRow("a" * 32, "one", "p"))
    assert second.claim() == 2
    with pytest.raises(StaleEpochError):
        first.add_job(JobRow("b" * 32, "two", "p"))
    second.add_job(JobRow("b" * 32, "two", "p"))
    assert [row.name for row in first.jobs()] == ["one", "two"]
    first.close()
    second.close()


# Settings


def test_another_address_takes_tls() -> None:
    with pytest.raises(ConfigurationError, match="can be reached from other machines"):
        ClusterSettings.of(Configuration(), address="0.0.0.0")
    with pytest.raises(ConfigurationError, match="both a certificate and its key"):
        ClusterSettings.of(Configuration(), certificate="c.pem")
    known = ClusterSettings.of(Configuration(), address="0.0.0.0", certificate="c.pem", key="k.pem")
    assert known.scheme == "https"
    assert ClusterSettings().address == "127.0.0.1"
