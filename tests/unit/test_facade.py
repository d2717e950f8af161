"""The facade of jobs: commands and answers, running jobs and those that have ended, the commands that show them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import eventually

from firesteel.cli import main
from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine import job_records
from firesteel.engine.control import ControlSocket, RunningJob, ask, jobs_folder, running_jobs
from firesteel.engine.facade import (
    COMMANDS,
    BatchSummary,
    Cancel,
    CheckpointStatistics,
    CheckpointSummary,
    Command,
    GetStatus,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobFailure,
    JobMetrics,
    JobPlan,
    JobSnapshot,
    LogLevels,
    OperatorMetrics,
    PerSecond,
    SavepointTaken,
    Stop,
    SubtaskMetrics,
    TakeSavepoint,
    TaskMetrics,
    command_of,
    request_of,
)
from firesteel.engine.facade.encoding import decoded, encoded
from firesteel.errors import ConfigurationError, FiresteelError, JobCommandError, JobExecutionError
from firesteel.jobs import FinishedJob, RemoteJob, find_job, list_jobs


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A short path: that of a socket must be.
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        yield Path(folder)


def environment(parallelism: int = 1, **settings: str) -> StreamExecutionEnvironment:
    config = {"firesteel.master": "memory", **{key.replace("_", "."): value for key, value in settings.items()}}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    env.set_parallelism(parallelism)
    return env


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def map(self, value: int) -> int:
        self.calls.inc()
        return value


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def endless(name: str) -> Any:
    env = environment()
    numbers = env.from_source(
        DataGeneratorSource(lambda n: n, 10**9, 500), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.key_by(lambda n: n % 2).map(Counted()).name("counted").uid("counted").filter(lambda n: False).print()
    job = env.execute_async(name)
    assert eventually(lambda: job.inbox.progress.records > 0)  # type: ignore[attr-defined]
    return job


# Commands and answers


@pytest.mark.parametrize("command", [*(kind() for kind in COMMANDS.values()), TakeSavepoint("/x"), Stop("/x", True)])
def test_a_command_is_the_same_after_json(command: Command[Any]) -> None:
    assert command_of(json.loads(json.dumps(request_of(command)))) == command


@pytest.mark.parametrize(
    "answer",
    [
        JobDetails("a", "b", JobStatus.FAILED, "spark", "BATCH", 7, 1, 2, times={"CREATED": 1}, failure="bad"),
        JobMetrics(
            (
                OperatorMetrics(
                    *(1, "u", "n", 0, 2, 9),
                    (
                        SubtaskMetrics(
                            *(0, 1, 5, {"calls": 2, "rate": {"mean": 0.5}}, 1, 2, 3, 4, 5, 6.5, 7, 8),
                            PerSecond(0.5, 1.5, 2.5, 3.5, 4.5, 5.5),
                        ),
                    ),
                    *("source", 1, 77),
                ),
            ),
            (TaskMetrics(0, 1, 2, 3, 4.5),),
            *(1, 2, 3, 4),
        ),
        JobPlan({"nodes": [{"id": 1}]}),
        CheckpointStatistics(1, 2, 3, (CheckpointSummary(0, True, 1, 2, 3, None, 4, {"n": 5}, None),)),
        JobExceptions((JobFailure(1, 0, "bad", "builtins.ValueError", True, "Map", 0, "job.py:3"),), True),
        JobBatches((BatchSummary(3, 1_000, 12.5, 1, True, 10, 20, 30, 40, {"tasks": 7.0}),)),
        LogLevels({"": "INFO", "shop": "DEBUG"}),
        SavepointTaken("/saved"),
        JobSnapshot(
            JobDetails("a", "b", JobStatus.RUNNING, "spark", "STREAMING", 7, 1),
            JobMetrics(tasks=(TaskMetrics(0, 1, 2, 3),)),
            CheckpointStatistics(1),
            JobExceptions(),
        ),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_is_the_same_after_json(answer: Any) -> None:
    assert decoded(type(answer), json.loads(json.dumps(encoded(answer)))) == answer


def test_every_answer_of_every_command_can_travel() -> None:
    """A type that ``decoded`` does not know would show only when somebody asks."""
    answers = {command.answer for command in COMMANDS.values()}
    assert answers == {
        JobDetails,
        JobMetrics,
        JobPlan,
        JobSnapshot,
        JobBatches,
        LogLevels,
        CheckpointStatistics,
        JobExceptions,
        SavepointTaken,
    }


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"command": "explode"}, r"does not know the command 'explode'. It knows status, metrics, plan, checkpoints"),
        ({}, r"does not know the command None"),
        ({"command": ["status"]}, r"does not know the command \['status'\]"),
        ({"command": "stop", "force": True}, r"'stop' has nothing that is called force"),
        ({"command": "stop", "drain": "yes"}, r"'stop' is not understood: drain: 'yes' is no bool"),
        ({"command": "savepoint", "directory": 7}, r"'savepoint' is not understood: directory: 7 is no str"),
    ],
)
def test_what_is_not_understood_is_refused(request_: dict[str, Any], text: str) -> None:
    with pytest.raises(JobCommandError, match=text):
        command_of(request_)


# Jobs that run


def test_a_job_in_memory_is_asked_like_any_other(tmp_path: Path) -> None:
    job = endless("asked")
    try:
        (found,), ended = list_jobs(seconds=60)
        assert (found.id, found.name, ended) == (job.job_id, "asked", [])
        details = found.status()
        assert details == job.facade.status() or details.records <= job.facade.status().records
        assert (details.status, details.engine, details.mode) == (JobStatus.RUNNING, "memory", "STREAMING")
        assert (details.pid, details.ended, details.parallelism) == (os.getpid(), None, 1)
        assert details.times["CREATED"] <= details.times["RUNNING"]
        assert [node["type"] for node in found.plan().plan["nodes"]][:2] == ["Source: numbers", "counted"]
        assert found.exceptions() == JobExceptions()
        last = found.checkpoints().latest_completed
        assert last is not None
        assert last.duration_ms >= 0
        saved = found.savepoint(str(tmp_path))
        assert (Path(saved) / "manifest.json").exists()
        assert found.cancel().status is JobStatus.CANCELED
        assert running_jobs() == []
        assert find_job("asked").status().status is JobStatus.CANCELED
    finally:
        job.cancel()


def test_a_job_is_stopped_with_a_savepoint(tmp_path: Path) -> None:
    endless("stopped")
    path = find_job("stopped").stop(str(tmp_path))
    assert json.loads((Path(path) / "manifest.json").read_text())["job"] == "stopped"
    assert eventually(lambda: isinstance(find_job("stopped"), FinishedJob))
    assert find_job("stopped").status().status is JobStatus.FINISHED


def test_an_unknown_command_is_refused_by_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    job = endless("strict")
    try:
        (running,) = running_jobs()
        with pytest.raises(JobCommandError, match=r"Job 'strict': A job does not know the command 'explode'"):
            ask(running, command="explode")
        with pytest.raises(JobExecutionError, match=r"Where should the savepoint go"):
            RemoteJob(running).savepoint()
    finally:
        job.cancel()


def test_a_command_that_is_none_of_ours_is_refused_in_the_process() -> None:
    class Explode(Command[None]):
        name, answer = "explode", type(None)

    job = endless("local")
    try:
        with pytest.raises(JobCommandError, match="does not know the command Explode"):
            job.facade.execute(Explode())
    finally:
        job.cancel()


def test_metrics_are_per_operator_and_subtask() -> None:
    env = environment(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    numbers = env.from_collection(list(range(100)), Types.LONG()).assign_timestamps_and_watermarks(strategy)
    numbers.key_by(lambda n: n).map(Counted()).name("counted").uid("counted").filter(lambda n: n < 10).print()
    job: Any = env.execute_async("measured")
    job.get_job_execution_result().result()
    for metrics in (job.facade.metrics(), find_job("measured").metrics()):
        operators = {operator.name: operator for operator in metrics.operators}
        counted = operators["counted"]
        assert (counted.uid, counted.stage, counted.parallelism, counted.records_out) == ("counted", 1, 2, 100)
        assert [one.subtask for one in counted.subtasks] == [0, 1]
        assert sum(one.values["calls"] for one in counted.subtasks) == 100
        assert all(one.values["calls"] == one.records_out for one in counted.subtasks)
        assert {one.watermark for one in counted.subtasks} == {2**63 - 1}
        tasks = {(task.stage, task.subtask): task for task in metrics.tasks}
        assert sorted(tasks) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert sum(task.records_in for (stage, _), task in tasks.items() if stage == 0) == 100
        assert all(task.bytes_out > 0 for task in tasks.values())


# Failures


def fails_once(marker: Path) -> Any:
    def fail(value: int) -> int:
        if value == 7 and not marker.exists():
            marker.touch()
            raise ValueError("no sevens")
        return value

    return fail


def test_failures_are_known_with_operator_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = environment()
    env.get_config()
    env.enable_checkpointing(10)
    env.from_collection(list(range(10))).map(fails_once(tmp_path / "failed")).name("picky").print()
    env.execute("restarted")
    capsys.readouterr()
    job = find_job("restarted")
    assert (job.status().status, job.status().attempt, job.status().failure) == (JobStatus.FINISHED, 1, None)
    (failure,) = job.exceptions().failures
    assert (failure.operator, failure.subtask, failure.attempt, failure.restarted) == ("picky", 0, 0, True)
    assert (failure.exception, failure.element) == ("builtins.ValueError", "7")
    assert failure.built_at is not None
    assert __file__ in failure.built_at
    assert failure.raised_at is not None
    assert re.search(r"test_facade.py:\d+ in fail: raise ValueError", failure.raised_at)
    assert "Traceback" in failure.trace
    assert main(["exceptions", "restarted"]) == 0
    shown = capsys.readouterr().out
    assert "attempt 0, then restarted" in shown
    assert "Operator 'picky' failed in subtask 0." in shown
    assert "Traceback" not in shown
    assert main(["exceptions", "restarted", "-v"]) == 0
    assert "Traceback" in capsys.readouterr().out


def test_a_job_that_failed_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment()
    env.from_collection([1, 0]).map(lambda n: 1 // n).print()
    with pytest.raises(JobExecutionError):
        env.execute("divided")
    details = find_job("divided").status()
    assert details.status is JobStatus.FAILED
    assert details.failure is not None
    assert "ZeroDivisionError" in details.failure
    assert not find_job("divided").exceptions().failures[0].restarted
    capsys.readouterr()
    assert main(["status", "divided"]) == 0
    assert re.search(r"status +FAILED\n(.*\n)+ +failure +.*ZeroDivisionError", capsys.readouterr().out)


# Jobs that have ended


def finished(name: str = "done", count: int = 3) -> None:
    env = environment()
    env.from_collection(list(range(count))).map(lambda n: n).name("same").print()
    env.execute(name)


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
    for name, text in {
        "a" * 32: json.dumps(content),
        "b" * 32: "{",
        "c" * 32: "[]",
        "d" * 32: json.dumps({"status": {**content["status"], "id": "../../victim"}}),
        "e" * 32: json.dumps({"status": {**content["status"], "status": "GREAT"}}),
    }.items():
        (good.parent / f"{name}.json").write_text(text)
    (good.parent / f"{'f' * 32}.json").symlink_to(good)
    assert [job.name for job in list_jobs()[1]] == ["done"]


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


# The command line


def test_list_shows_what_runs_and_what_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    finished("first")
    job = endless("second")
    capsys.readouterr()
    try:
        assert main(["list"]) == 0
        header, running, ended = capsys.readouterr().out.splitlines()
        assert header.split() == ["job", "status", "started", "runtime", "records", "name"]
        assert re.fullmatch(rf"{job.job_id}  RUNNING .* second", running)
        assert re.fullmatch(r"\w{32}  FINISHED .* 3  first", ended)
        assert main(["list", "-r"]) == 0
        assert "first" not in capsys.readouterr().out
    finally:
        job.cancel()
    assert main(["list", "-r"]) == 0
    assert capsys.readouterr().out == "No jobs are running.\n"


def test_list_shows_the_last_ones_unless_all_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        finished(f"job {number}", 1)
    capsys.readouterr()
    assert main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 10
    assert main(["list", "-a"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 12


def test_commands_that_show_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main(["status", "done"]) == 0
    shown = capsys.readouterr().out
    assert re.match(r"done \(\w{32}\)\n  status      FINISHED\n", shown)
    assert "records     3 in 1 batches" in shown
    assert main(["checkpoints", "done"]) == 0
    counts, _, line = capsys.readouterr().out.splitlines()
    assert counts == "1 completed, 0 failed, 0 times gone on from one"
    assert re.match(r" 1  COMPLETED  \d{4}-\d\d-\d\d .* 3 ", line)
    assert main(["metrics", "done"]) == 0
    assert re.search(r"\nsame +3 +3 +-\n +0 +3 +3 +\d+ % ", capsys.readouterr().out)
    assert main(["exceptions", "done"]) == 0
    assert capsys.readouterr().out == "No failures.\n"


@pytest.mark.parametrize("name", ["status", "checkpoints", "metrics", "exceptions"])
def test_answers_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main([name, "done", "--json"]) == 0
    command = COMMANDS[name]()
    assert decoded(command.answer, json.loads(capsys.readouterr().out)) == find_job("done").execute(command)


def test_the_plan_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main(["status", "done", "--plan"]) == 0
    assert json.loads(capsys.readouterr().out) == find_job("done").plan().plan


def test_nobody_is_asked_by_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "nobody"]) == 3
    assert "No job 'nobody' runs here as this user, or ran lately. Running: none." in capsys.readouterr().err
    assert GetStatus.name in COMMANDS


# Ids that are set


def test_an_id_that_was_set_is_the_first_jobs(tmp_path: Path) -> None:
    wanted = "ab" * 16
    settings = {"firesteel.job.id": wanted, "firesteel.job.attempt": "3", "firesteel.job.records": str(tmp_path)}

    def run(**more: str) -> JobDetails:
        config = Configuration.from_dict({"firesteel.master": "memory", **settings, **more})
        env = StreamExecutionEnvironment.get_execution_environment(config)
        env.from_collection([1]).map(lambda n: n).print()
        return env.execute_async("named").facade.status()  # type: ignore[attr-defined, no-any-return]

    first, second = run(), run()
    assert (first.id, first.attempt) == (wanted, 3)
    assert second.id not in (wanted, "")
    assert eventually(lambda: (tmp_path / f"{wanted}.json").exists())
    kept = json.loads((tmp_path / f"{wanted}.json").read_text())
    assert kept["status"]["status"] == "FINISHED"
    assert "snapshot" not in kept, "it is made of the others"
    with pytest.raises(ConfigurationError, match="32 hexadecimal digits"):
        run(**{"firesteel.job.id": "xyz"})


def test_a_snapshot_is_all_that_changes_at_once() -> None:
    job = endless("watched")
    try:
        found = find_job("watched").snapshot()
        assert found.status.name == "watched"
        assert found.metrics.operators
        assert found.checkpoints.completed > 0
    finally:
        job.cancel()
    assert find_job("watched").snapshot().status.status is JobStatus.CANCELED
