"""Running jobs from the command line: list, savepoint, stop, cancel, and run from a savepoint."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folderkit import runtime_folder
from sparkkit import eventually, spark_env

from firesteel.cli import main
from firesteel.common import JobStatus, Types, WatermarkStrategy
from firesteel.datastream import SinkFunction
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.control import ControlSocket, RunningJob, jobs_folder, running_jobs

NONE = WatermarkStrategy.no_watermarks()
PROGRAM = """
import sys
from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
total = int(sys.argv[1])
numbers = env.from_source(DataGeneratorSource(lambda n: n, total, 500), WatermarkStrategy.no_watermarks(), "numbers")
numbers.uid("numbers").map(lambda n: (n % 2, 1), output_type=Types.TUPLE([Types.LONG(), Types.LONG()])).key_by(
    lambda pair: pair[0]
).sum(1).uid("sum").print()
env.execute("counting")
"""


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A short path: that of a socket must be.
    with runtime_folder() as folder:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        yield


def start(name: str) -> Any:
    env = spark_env(2)
    numbers = env.from_source(DataGeneratorSource(lambda n: n, 10**9, 500), NONE, "numbers").uid("numbers")
    pairs = numbers.map(lambda n: (n % 2, 1), output_type=Types.TUPLE([Types.LONG(), Types.LONG()]))
    pairs.key_by(lambda pair: pair[0]).sum(1).uid("sum").add_sink(_Nothing())
    job = env.execute_async(name)
    assert eventually(lambda: job.inbox.progress.records > 0)  # type: ignore[attr-defined]
    return job


class _Nothing(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        """Nobody needs it."""


def test_a_job_is_saved_stopped_and_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = start("counting")
    assert main(["list", "-r"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith(str(job.get_job_id()))
    assert re.search(r"RUNNING .*counting$", line)

    assert main(["savepoint", "counting", str(tmp_path / "saved")]) == 0
    path = capsys.readouterr().out.splitlines()[-1]
    assert json.loads((Path(path) / "manifest.json").read_text())["job"] == "counting"
    assert job.get_job_status().result() is JobStatus.RUNNING

    assert main(["stop", str(job.get_job_id())[:10], "-p", str(tmp_path / "stopped")]) == 0
    stopped = capsys.readouterr().out.splitlines()[-1]
    job.get_job_execution_result().result()
    position = next(
        op["position"]
        for op in json.loads((Path(stopped) / "manifest.json").read_text())["operators"]
        if op["uid"] == "numbers"
    )

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    total = position + 100
    assert main(["run", "-s", stopped, "-m", "local", str(program), str(total)]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 100
    assert f"({(total - 1) % 2},{(total + 1) // 2})" in printed

    assert main(["savepoint", "--dispose", path]) == 0
    assert not Path(path).exists()
    assert main(["list"]) == 0
    assert "No jobs are running." in capsys.readouterr().out


def test_a_job_is_cancelled_with_a_savepoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = start("to be cancelled")
    assert main(["cancel", "to be cancelled", "-s", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert (Path(printed[1]) / "manifest.json").exists()
    assert "Cancelled 'to be cancelled'" in printed[2]
    assert job.get_job_status().result() is JobStatus.CANCELED


def test_jobs_that_are_not_there_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "nobody"]) == 3
    assert "No job 'nobody' runs here as this user, or ran lately. Running: none." in capsys.readouterr().err


def test_only_the_user_gets_in_and_the_dead_are_forgotten(tmp_path: Path) -> None:
    socket = ControlSocket(RunningJob("a" * 32, "alive", os.getpid(), 1.0), lambda request: {})
    assert stat.S_IMODE(jobs_folder().stat().st_mode) == 0o700
    assert stat.S_IMODE((jobs_folder() / f"{'a' * 12}.sock").stat().st_mode) == 0o600
    dead = RunningJob("b" * 32, "dead", 2**22 + 1, 2.0)
    (jobs_folder() / f"{dead.id}.json").write_text(json.dumps(dead.__dict__))
    assert [job.name for job in running_jobs()] == ["alive"]
    assert not (jobs_folder() / f"{dead.id}.json").exists()
    socket.close()
    assert running_jobs() == []


def test_a_folder_that_others_can_open_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    jobs_folder().mkdir(parents=True)
    jobs_folder().chmod(0o755)
    with caplog.at_level("WARNING", "firesteel"):
        ControlSocket(RunningJob("c" * 32, "open", os.getpid(), 1.0), lambda request: {}).close()
    assert "cannot be reached from the command line" in caplog.text
    assert not list(jobs_folder().iterdir())
