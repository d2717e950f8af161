"""What stays known of jobs that have ended, or whose process is gone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from facadekit import finished, own_runtime_folder  # noqa: F401 - fixtures

from firesteel.cli import main
from firesteel.common import JobStatus
from firesteel.engine import job_records
from firesteel.engine.control import ControlSocket, RunningJob, jobs_folder, running_jobs
from firesteel.engine.facade import (
    Cancel,
)
from firesteel.errors import FiresteelError, JobCommandError
from firesteel.jobs import FinishedJob, find_job, list_jobs


def test_a_job_that_has_ended_can_be_looked_at_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    job = find_job("done")
    assert isinstance(job, FinishedJob)
    details = job.status()
    assert (details.status, details.records, details.batches) == (JobStatus.FINISHED, 3, 1)
    assert details.ended is not None
    assert details.runtime(0) == details.ended - details.started
    assert job.checkpoints().completed == 1
    assert job.plan().plan["stages"] == 1
    with pytest.raises(JobCommandError, match=r"Job 'done' \(\w+\) has ended \(FINISHED\): there is nothing to cancel"):
        job.execute(Cancel())
    capsys.readouterr()
    for command in (["cancel", "done"], ["stop", "done"], ["savepoint", "done"]):
        assert main(command) == 1
        assert "has ended (FINISHED)" in capsys.readouterr().err


def test_records_are_the_owners_alone() -> None:
    previous = os.umask(0)
    try:
        finished()
    finally:
        os.umask(previous)
    for path in jobs_folder().rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_newest_records_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_records, "KEPT", 3)
    for number in range(5):
        finished(f"job {number}")
    assert [job.name for job in list_jobs()[1]] == ["job 4", "job 3", "job 2"]


def test_of_jobs_with_one_name_the_last_one_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    finished("twice", 1)
    finished("twice", 2)
    assert find_job("twice").status().records == 2
    first, last = sorted(list_jobs()[1], key=lambda job: job.status().records)
    assert find_job(first.id).status().records == 1
    assert find_job(last.id[:12]).id == last.id
    with pytest.raises(FiresteelError, match=r"could be several jobs that have ended: .* Name one by its id"):
        find_job("")


def test_what_is_no_record_is_passed_over(runtime: Path) -> None:
    finished()
    (good,) = (jobs_folder() / "finished" / "memory").iterdir()
    content = json.loads(good.read_text())
    assert content["format"] == 1
    for name, text in {
        "a" * 32: json.dumps(content),
        "b" * 32: "{",
        "c" * 32: "[]",
        "d" * 32: json.dumps({"status": {**content["status"], "id": "../../victim"}}),
        "a1" * 16: json.dumps({"format": 2, "jobs": []}),
        "a2" * 16: json.dumps({**content, "format": "x", "status": {**content["status"], "id": "a2" * 16}}),
        "e" * 32: json.dumps({"status": {**content["status"], "status": "GREAT"}}),
    }.items():
        (good.parent / f"{name}.json").write_text(text)
    (good.parent / f"{'f' * 32}.json").symlink_to(good)
    assert [job.name for job in list_jobs()[1]] == ["done"]
    # One that says no version is version 1.
    del content["format"]
    older = {**content, "status": {**content["status"], "id": "a3" * 16, "name": "older"}}
    (good.parent / f"{'a3' * 16}.json").write_text(json.dumps(older))
    assert sorted(job.name for job in list_jobs()[1]) == ["done", "older"]


CRASHES = """
import os, signal, sys
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource

env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
env.from_source(DataGeneratorSource(lambda n: n, 10**9, 500), WatermarkStrategy.no_watermarks(), "numbers").print()
env.execute_async("killed")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_whose_process_was_killed_is_not_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    run = subprocess.run([sys.executable, "-c", CRASHES], capture_output=True, timeout=300, check=False)
    assert run.returncode == -signal.SIGKILL
    running, (job,) = list_jobs()
    assert (running, job.name, job.status().status) == ([], "killed", JobStatus.FAILED)
    assert "is gone and left no report of how the job ended" in job.exceptions().failures[0].message
    with pytest.raises(JobCommandError, match="no metrics are kept"):
        job.metrics()
    assert main(["list"]) == 0
    assert re.search(r"No jobs are running.\n.*\n\w{32} +FAILED .* killed\n", capsys.readouterr().out)


def test_a_descriptor_that_goes_is_not_a_crash() -> None:
    """A job that ends removes its descriptor before it stops listening, so nobody takes it for a dead one."""
    for _ in range(50):
        listening = ControlSocket(RunningJob("a" * 32, "short", os.getpid(), 1.0), lambda request: {})
        looking = threading.Thread(target=running_jobs)
        looking.start()
        listening.close()
        looking.join()
    assert list_jobs() == ([], [])


def test_a_program_that_ends_with_its_job_still_answers() -> None:
    """The process has nothing left to do when its job is cancelled, and must not leave before it has answered."""
    script = (
        CRASHES.replace("os.kill(os.getpid(), signal.SIGKILL)", "")
        .replace(
            'env.execute_async("killed")',
            'job = env.execute_async("short")\n'
            'print("started", flush=True)\n'
            "try:\n    job.get_job_execution_result().result()\nexcept Exception:\n    pass\n",
        )
        .replace(".print()", ".filter(lambda n: False).print()")
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    assert find_job("short").cancel().status is JobStatus.CANCELED
    assert process.wait(300) == 0
    process.stdout.close()
