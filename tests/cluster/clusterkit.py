"""A job manager in this process, with real drivers or with processes that only look like some."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkkit import eventually
from starlette.testclient import TestClient

from firesteel.cluster.driver import Assignment
from firesteel.cluster.folders import ClusterFolder, JobFolder
from firesteel.cluster.launching import Launcher
from firesteel.cluster.planners import Plan
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.registry import JobRow
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.server import assemble
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sql_process import serve_session
from firesteel.common.private_files import replace_file

PLAN: dict[str, Any] = {
    "nodes": [
        {"id": 1, "type": "Source: numbers", "pact": "Data Source", "parallelism": 1, "uid": "numbers", "stage": 0},
        {
            "id": 2,
            "type": "counted",
            "pact": "Operator",
            "parallelism": 2,
            "uid": "counted",
            "stage": 1,
            "predecessors": [{"id": 1, "ship_strategy": "HASH", "side": "second"}],
        },
    ],
    "chains": [
        {"name": "Source: numbers", "nodes": [1], "parallelism": 1},
        {"name": "counted", "nodes": [2], "parallelism": 2},
    ],
    "stages": 2,
}


class FakeLauncher(Launcher):
    """Drivers that do nothing until they are told how to end. They are processes, sessions and files as real ones."""

    def __init__(
        self, restart: Mapping[str, str] | None = None, checkpointing: bool = False, children: int = 0
    ) -> None:
        super().__init__(10, 1 << 20, 2)
        self.restart, self.checkpointing, self.children = dict(restart or {}), checkpointing, children
        self.started: list[tuple[Assignment, dict[str, str]]] = []
        self.configuration: dict[str, str] = {}
        self.name = "fake"

    def plan(self, program: Path, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Plan:
        return Plan(
            self.name,
            parallelism=2,
            plan=PLAN,
            restart=self.restart,
            checkpointing=self.checkpointing,
            configuration=self.configuration,
        )

    def start(
        self,
        folder: JobFolder,
        task: Assignment,
        settings: Mapping[str, str],
        configuration: Mapping[str, str] | None = None,
    ) -> Process:
        folder.make()
        replace_file(str(folder.attempt), str(task.attempt).encode())
        folder.log(task.attempt).write_text(f"driver {task.attempt}\n")
        # Waits for a file with its outcome: the same name as a real one's, written before by the test.
        program = "import os, subprocess, time\n"
        program += f"for _ in range({self.children}): subprocess.Popen(['sleep', '1000'])\n"
        program += f"while not os.path.exists({str(folder.outcome(task.attempt))!r}): time.sleep(0.02)"
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", program], start_new_session=True)
        child.returncode = 0
        self.started.append((task, dict(settings)))
        return Process.of(child.pid)

    def start_session(self, log: Path, settings: Mapping[str, str]) -> tuple[Process, socket.socket]:
        """A session in a thread of this process, beside a process that only lives."""
        ours, theirs = socket.socketpair()
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        child.returncode = 0
        process = Process.of(child.pid)

        def serve() -> None:
            serve_session(theirs).close()
            theirs.close()
            end_session(process)

        threading.Thread(target=serve, daemon=True).start()
        return process, ours


def finish(cluster: Cluster, job_id: str, status: str = "FINISHED", **more: Any) -> None:
    """Has the fake driver of a job end with an outcome."""
    folder = cluster.folder.job(job_id)
    row = cluster.supervisor.row(job_id)
    replace_file(str(folder.outcome(row.driver)), json.dumps({"status": status, "code": 0, **more}).encode())


def settings_for(folder: Path, **more: Any) -> ClusterSettings:
    return ClusterSettings(folder=folder, poll_ms=50, **{"slots": 4, "warm_drivers": 0, **more})


@contextlib.contextmanager
def running_cluster(folder: Path, launcher: Launcher | None = None, **more: Any) -> Iterator[Cluster]:
    """Started, and ended so that no job is left."""
    settings = settings_for(folder, **more)
    cluster = assemble(settings, ClusterFolder.make(folder), launcher=launcher)
    cluster.supervisor.start()
    try:
        yield cluster
    finally:
        cluster.close(leave_jobs=True)
        for row in cluster.supervisor.registry.jobs():
            if row.pid:
                process = Process(row.pid, row.pid_started)
                end_session(process)
                process.reap()
        cluster.supervisor.registry.close()


def client_of(cluster: Cluster, token: str | None = None, **headers: str) -> TestClient:
    sent = {"Authorization": f"Bearer {cluster.tokens.full if token is None else token}", **headers}
    return TestClient(build(cluster), base_url="http://127.0.0.1:8081", headers=sent, raise_server_exceptions=False)


def submit(cluster: Cluster, text: str = "print()\n", **settings: str) -> JobRow:
    program = cluster.programs.put("program.py", text.encode())
    return cluster.supervisor.submit(program, settings=settings)


def has_state(cluster: Cluster, job_id: str, *states: str) -> bool:
    return eventually(lambda: cluster.supervisor.row(job_id).state in states)


def wait_for_process(cluster: Cluster, job_id: str, driver: int = 0) -> Process:
    """The process of the n-th driver."""

    def there() -> bool:
        row = cluster.supervisor.row(job_id)
        return row.driver == driver and row.pid != 0

    assert eventually(there)
    row = cluster.supervisor.row(job_id)
    return Process(row.pid, row.pid_started)


ENDLESS = """\
import os
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(1000)
numbers = env.from_source(DataGeneratorSource(lambda n: n, 10**9, 500), WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).name("sum").uid("sum").filter(lambda n: False).print()
print("the program runs", flush=True)
env.execute("endless")
"""
