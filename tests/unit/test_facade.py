"""The facade of jobs: commands and answers, jobs that run and jobs that fail."""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from facadekit import Counted, Itself, endless, environment, own_runtime_folder  # noqa: F401 - fixtures
from sparkkit import eventually

from firesteel.cli import main
from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.control import ask, running_jobs
from firesteel.engine.facade import (
    COMMANDS,
    BatchSummary,
    CheckpointStatistics,
    CheckpointSummary,
    Command,
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
from firesteel.errors import ConfigurationError, JobCancelledError, JobCommandError, JobExecutionError
from firesteel.jobs import FinishedJob, RemoteJob, find_job, list_jobs

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
        ({"command": "stop", "drain": "yes"}, r"'stop' is not understood: drain: 'yes' is not of type bool"),
        ({"command": "savepoint", "directory": 7}, r"'savepoint' is not understood: directory: 7 is not of type str"),
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


def test_a_job_that_can_be_reached_but_has_not_begun_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[JobDetails] = []
    asking = threading.Thread(target=lambda: answers.append(find_job("early").cancel()))

    class Late(threading.Thread):
        """The thread of the job, which begins when somebody has asked."""

        def start(self) -> None:
            asking.start()
            assert eventually(lambda: find_job("early").status().status is JobStatus.CANCELLING)
            # Not for the outcome: one that does not wait for the job has answered by now.
            asking.join(0.2)
            super().start()

    monkeypatch.setattr(
        "firesteel.engine.job.job_thread", lambda target, name: Late(target=target, name=name, daemon=True)
    )
    env = environment()
    env.from_source(DataGeneratorSource(lambda n: n, 10**9, 500), WatermarkStrategy.no_watermarks(), "numbers").print()
    job = env.execute_async("early")
    asking.join()
    assert [one.status for one in answers] == [JobStatus.CANCELED]
    with pytest.raises(JobCancelledError):
        job.get_job_execution_result().result()


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


def test_a_command_without_a_name_is_refused_by_running_and_by_finished_jobs() -> None:
    @dataclass(frozen=True)
    class Unknown(Command[None]):
        number: int

    job = endless("nameless")
    try:
        with pytest.raises(JobCommandError, match=r"know the command Unknown\. It knows GetStatus, GetMetrics"):
            find_job("nameless").execute(Unknown(1))
    finally:
        job.cancel()
    env = environment()
    env.from_collection([1]).print()
    env.execute("done")
    assert isinstance(find_job("done"), FinishedJob)
    with pytest.raises(JobCommandError, match=r"know the command Unknown\. It knows GetStatus, GetMetrics"):
        find_job("done").execute(Unknown(1))


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


# Ids that are set


def test_an_id_that_was_set_is_the_first_jobs(tmp_path: Path) -> None:
    wanted = "ab" * 16
    settings = {"firesteel.job.id": wanted, "firesteel.job.attempt": "3", "firesteel.job.records": str(tmp_path)}

    def run(**more: str) -> JobDetails:
        config = Configuration.from_dict({"firesteel.master": "memory", **settings, **more})
        env = StreamExecutionEnvironment.get_execution_environment(config)
        env.from_collection([1]).map(lambda n: n).print()
        job = env.execute_async("named")
        job.get_job_execution_result().result()
        return job.facade.status()  # type: ignore[attr-defined, no-any-return]

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
