"""Drivers that wait for a job: real processes that speak the real protocol, without Spark. ``tests/recovery`` has one
with Spark."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterkit import has_state, running_cluster
from sparkkit import eventually

from firesteel.cluster import warm_drivers
from firesteel.cluster.launching import Launcher
from firesteel.cluster.processes import Process
from firesteel.cluster.registry import JobRow
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.warm_drivers import WarmDriver, WarmDrivers, other_jvm
from firesteel.common import Configuration
from firesteel.errors import ConfigurationError

WITHOUT_SPARK = """\
import sys
from types import SimpleNamespace
def start():
    {start}
sys.modules["firesteel.engine.spark.warm_start"] = SimpleNamespace(start_warm_spark=start)
sys.modules["firesteel.engine.spark.warm_spark"] = SimpleNamespace(is_alive=lambda: True)
from firesteel.cluster.warm_driver import main
sys.exit(main())
"""
LINE = "import json, os, socket, time\nline = socket.socket(fileno=int(os.environ['FIRESTEEL_WARM_DRIVER']))\n"
READY = LINE + "line.sendall(b'{\"ready\": true}\\n')\n"
WAITS = READY + "line.recv(1)"
DIES_WITH_ITS_TASK = READY + "line.recv(1)\nos._exit(3)"
DIES_AS_A_DRIVER = READY + "line.recv(1)\nline.sendall(b'{\"taken\": true}\\n')\nos._exit(3)"

PROGRAM = """\
import os, sys
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1).from_collection([1, 2, 3]).map(lambda n: n * 10).print()
env.execute("tens")
with open(sys.argv[1], "a") as file:
    print(os.getpid(), os.environ.get("FIRESTEEL_SETTINGS"), os.environ.get("FIRESTEEL_DRIVER"), file=file)
print("done by", sys.argv[2])
"""


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    monkeypatch.setattr(warm_drivers, "_jobs_run_here", lambda: True)
    # However long a job takes here, the next driver does not come meanwhile; and one that is held up is waited for.
    monkeypatch.setattr(warm_drivers, "SECONDS_AFTER_A_JOB", 3600.0)
    monkeypatch.setattr(warm_drivers, "SECONDS_TO_TAKE", 300.0)


def starting(text: str) -> Callable[[], WarmDriver]:
    return lambda: WarmDriver([sys.executable, "-c", text])


def pool(text: str = WITHOUT_SPARK.format(start="pass"), count: int = 1, idle: float = 0.0) -> WarmDrivers:
    return WarmDrivers(count, idle, starting(text), lambda: warm_drivers.MEMORY)


def ready(found: WarmDrivers, slots: int = 4) -> bool:
    def looked() -> bool:
        found.tend(slots)
        return found.waiting > 0

    return eventually(looked)


def launcher(found: WarmDrivers) -> Launcher:
    made = Launcher(60, 1 << 20, 2)
    made.warm = found
    return made


def submit(cluster: Cluster, out: Path, **settings: str) -> JobRow:
    program = cluster.programs.put("tens.py", PROGRAM.encode())
    return cluster.supervisor.submit(program, (str(out), "secret-argument"), {"a.password": "hunter2", **settings})


def waiting_process(found: WarmDrivers) -> Process:
    return found._drivers[0].process


def test_a_job_runs_in_a_driver_that_waited(tmp_path: Path) -> None:
    found = pool()
    with running_cluster(tmp_path / "c", launcher(found)) as cluster:
        assert eventually(lambda: cluster.supervisor.warm_drivers == 1)
        waited = waiting_process(found)
        line = Path(f"/proc/{waited.pid}/cmdline").read_text()
        job = submit(cluster, tmp_path / "out")
        assert has_state(cluster, job.id, "FINISHED"), cluster.supervisor.row(job.id).failure
        # The process that waited ran it, and what it was told is for nobody else.
        assert (tmp_path / "out").read_text() == f"{waited.pid} None None\n"
        log = cluster.folder.job(job.id).log(0)
        assert eventually(lambda: log.exists() and "done by secret-argument" in log.read_text())
        assert [text for text in log.read_text().splitlines() if text.isdigit()] == ["10", "20", "30"]
        assert log.stat().st_mode & 0o077 == 0
        assert "secret-argument" not in line
        (attempt,) = cluster.supervisor.registry.attempts(job.id)
        assert (attempt.outcome, attempt.pid) == ("FINISHED", waited.pid)
        assert cluster.supervisor.warm_drivers == 0, "a driver is for one job"


@pytest.mark.parametrize("when", ["before", "while it is taken", "with its task"])
def test_a_driver_that_dies_before_it_has_begun_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(warm_drivers, "SECONDS_TO_TAKE", 0.3)
    found = pool(DIES_WITH_ITS_TASK) if when == "with its task" else pool()
    with running_cluster(tmp_path / "c", launcher(found)) as cluster:
        assert eventually(lambda: cluster.supervisor.warm_drivers == 1)
        waited = waiting_process(found)
        if when != "with its task":
            # One that stands still reads what it is told when it goes on, were it not killed before.
            waited.send(signal.SIGKILL if when == "before" else signal.SIGSTOP)
        job = submit(cluster, tmp_path / "out")
        assert has_state(cluster, job.id, "FINISHED"), cluster.supervisor.row(job.id).failure
        assert not waited.alive
        (line,) = (tmp_path / "out").read_text().splitlines()
        assert not line.startswith(f"{waited.pid} "), "it ran once, in another process"
        (attempt,) = cluster.supervisor.registry.attempts(job.id)
        assert attempt.number == 0, "that was no attempt of the job"


def test_a_driver_that_dies_after_it_was_taken_is_an_attempt_that_crashed(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", launcher(pool(DIES_AS_A_DRIVER))) as cluster:
        assert eventually(lambda: cluster.supervisor.warm_drivers == 1)
        strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
        job = submit(cluster, tmp_path / "out", **strategy)
        assert has_state(cluster, job.id, "FINISHED"), cluster.supervisor.row(job.id).failure
        assert [one.outcome for one in cluster.supervisor.registry.attempts(job.id)] == ["crashed", "FINISHED"]
        assert len((tmp_path / "out").read_text().splitlines()) == 1


def test_a_driver_that_is_not_wanted_any_more_does_nothing(tmp_path: Path) -> None:
    """Another job manager has started another driver since."""
    from firesteel.cluster.driver import Assignment
    from firesteel.cluster.folders import ClusterFolder

    folder = ClusterFolder.make(tmp_path / "c").job("0" * 32).make()
    program = tmp_path / "p.py"
    program.write_text(PROGRAM)
    found = pool()
    assert ready(found)
    driver = found.take("0" * 32, {})
    assert driver is not None
    folder.attempt.write_text("7 2")
    # Somebody reads what it says.
    output = os.dup(driver.output)
    task = Assignment("0" * 32, str(program), (str(tmp_path / "out"), "x"), str(folder.path), attempt=6, epoch=1)
    assert driver.hand_over(task.text(), "")
    assert driver.process.wait(120)
    assert eventually(lambda: driver.process.reap() == 75 << 8)
    assert b"Driver 6 of job 00000000000000000000000000000000 is not wanted: 7 is." in os.read(output, 1 << 16)
    os.close(output)
    assert not (tmp_path / "out").exists()


def test_a_job_that_needs_another_jvm_gets_a_driver_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = pool()
    with running_cluster(tmp_path / "c", launcher(found)) as cluster, caplog.at_level(logging.INFO):
        assert eventually(lambda: cluster.supervisor.warm_drivers == 1)
        waited = waiting_process(found)
        job = submit(cluster, tmp_path / "out", **{"spark.driver.memory": "4g"})
        assert has_state(cluster, job.id, "FINISHED")
        assert cluster.supervisor.registry.attempts(job.id)[0].pid != waited.pid
        assert waited.alive
        assert f"job {job.id} gets no warm driver, because of its settings spark.driver.memory" in caplog.text


def test_settings_of_the_machine_are_no_reason_against_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("spark.driver.memory: 4g\nspark.hadoop.fs.s3a.secret.key: hunter2\n")
    monkeypatch.setenv("FIRESTEEL_CONF_DIR", str(tmp_path))
    usual = {"spark.driver.memory": "4g", "spark.hadoop.fs.s3a.secret.key": "******", "parallelism.default": "9"}
    assert other_jvm(usual) == []
    assert other_jvm({**usual, "firesteel.master": f"local[{os.cpu_count()}]"}) == []
    assert other_jvm({**usual, "spark.driver.memory": "5g"}) == ["spark.driver.memory"]
    assert other_jvm({**usual, "firesteel.spark.ui": "true"}) == ["firesteel.spark.ui"]
    assert other_jvm({}) == ["spark.driver.memory", "spark.hadoop.fs.s3a.secret.key"]


def test_the_next_one_is_started_a_while_after_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pool(WAITS)
    assert ready(found)
    taken = found.take("a" * 32, {})
    assert taken is not None
    found.tend(4)
    assert found.waiting == 0
    assert not found._drivers, "the job has the machine for itself"
    monkeypatch.setattr(found, "_not_before", time.monotonic())
    assert ready(found)
    found.close()
    taken.end()


def test_one_that_has_waited_for_long_ends_until_there_is_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pool(idle=0.05)
    assert ready(found)
    waited = waiting_process(found)
    assert eventually(lambda: bool(found.tend(4)) or not found._drivers)
    assert not waited.alive
    found.tend(4)
    assert not found._drivers
    assert found.take("a" * 32, {}) is None
    monkeypatch.setattr(found, "_not_before", 0.0)
    assert ready(found)
    found.close()


@pytest.mark.parametrize(
    ("start", "unsuited", "text"),
    [
        ("from firesteel.errors import SetupError; raise SetupError('not here')", True, "not here"),
        ("raise RuntimeError('hiccup')", False, "hiccup"),
        ("import os; print('last words'); os._exit(3)", False, "it has ended. It said: last words"),
    ],
)
def test_one_that_cannot_get_ready_is_not_tried_at_once(
    caplog: pytest.LogCaptureFixture, start: str, unsuited: bool, text: str
) -> None:
    found = pool(WITHOUT_SPARK.format(start=start))
    found.tend(4)
    assert found._drivers
    with caplog.at_level(logging.INFO):
        assert eventually(lambda: bool(found.tend(4)) or not found._drivers)
    assert text in caplog.text
    found.tend(4)
    assert not found._drivers
    assert (found.count == 0) is unsuited
    assert unsuited or found._not_before > time.monotonic() + 5


def test_no_more_than_free_slots_and_memory_allow() -> None:
    short = WarmDrivers(2, 0.0, starting(WAITS), lambda: warm_drivers.MEMORY - 1)
    short.tend(4)
    assert not short._drivers
    found = pool(WAITS, count=2)
    for _ in range(3):
        found.tend(1)
    assert len(found._drivers) == 1
    found.tend(0)
    assert len(found._drivers) == 1, "the job that took the last slot may be about to have it"
    found.tend(2)
    assert len(found._drivers) == 2
    processes = [driver.process for driver in found._drivers]
    found.close()
    assert not any(process.alive for process in processes)
    found.tend(2)
    assert not found._drivers


def test_it_ends_with_the_job_manager_however_that_ended() -> None:
    found = pool()
    assert ready(found)
    (driver,) = found._drivers
    # The system closes both when a process is killed.
    driver._close()
    assert driver.process.wait(120)
    assert eventually(lambda: driver.process.reap() == 0)


def test_where_jobs_run_elsewhere_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("FIRESTEEL_MASTER", "spark://host:7077")
    found = pool(WAITS)
    found.tend(4)
    assert not found._drivers
    monkeypatch.setenv("FIRESTEEL_MASTER", "local[4]")
    here = pool(WAITS)
    assert ready(here)
    here.close()


def test_how_many_is_a_setting() -> None:
    assert ClusterSettings.of(Configuration()).warm_drivers == 1
    given = {"firesteel.cluster.warm-drivers": "3", "firesteel.cluster.warm-driver-timeout": "5 min"}
    made = ClusterSettings.of(Configuration.from_dict(given))
    assert (made.warm_drivers, made.warm_ms) == (3, 300_000)
    assert ClusterSettings.of(Configuration.from_dict(given), warm_drivers=0).warm_drivers == 0
    with pytest.raises(ConfigurationError, match="cannot be -1 warm drivers"):
        ClusterSettings.of(Configuration(), warm_drivers=-1)
