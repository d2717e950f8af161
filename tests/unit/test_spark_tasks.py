"""The tasks of a worker process: made once, thrown away after a failure, closed when their job is over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job
from firesteel.engine.spark.lifeline import Lifeline
from firesteel.engine.spark.tasks import JobOver, Tasks
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.task import StageTask

EVENTS: list[str] = []


class Life(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        EVENTS.append("open")

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        EVENTS.append("close")
        if EVENTS[0] == "clumsy":
            raise ValueError("cannot\nclose")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    EVENTS.clear()
    yield
    EVENTS.clear()


def payload(job_id: str, line: Lifeline | None = None) -> JobPayload:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).map(Life()).print()
    graph = build_job_graph(build_stream_graph(env.program, 1))
    packed = pickle_job(JobSpec(job_id, "job", graph))
    return JobPayload(job_id, (), packed.pickled, line.address if line else None)


def run_batch(tasks: Tasks, job: JobPayload) -> StageTask:
    task = tasks.get(job, 0, 0)
    with tasks.running((job.job_id, 0, 0)):
        list(task.run_source(SourceShare(0, 0, False, {}, frozenset())))
    return task


def wait_for_holders(line: Lifeline) -> None:
    deadline = time.monotonic() + 60
    while not line.holders:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_task_serves_many_batches_and_not_one_after_its_failure() -> None:
    tasks, job = Tasks(), payload("a")
    task = run_batch(tasks, job)
    assert run_batch(tasks, job) is task
    assert EVENTS == ["open"]
    with pytest.raises(KeyError), tasks.running(("a", 0, 0)):
        raise KeyError
    assert EVENTS == ["open", "close"]
    assert run_batch(tasks, job) is not task


def test_a_generator_that_is_left_in_the_middle_ends_its_task() -> None:
    tasks, job = Tasks(), payload("a")
    task = run_batch(tasks, job)

    def batch() -> Iterator[int]:
        with tasks.running(("a", 0, 0)):
            yield 1

    running = batch()
    next(running)
    running.close()
    assert tasks.get(job, 0, 0) is not task


def test_the_end_of_a_job_closes_its_tasks_and_no_others() -> None:
    tasks, line, other = Tasks(), Lifeline("127.0.0.1"), Lifeline("127.0.0.1")
    run_batch(tasks, payload("over", line))
    going = payload("going on", other)
    task = run_batch(tasks, going)
    wait_for_holders(line)
    wait_for_holders(other)
    assert end_from_elsewhere(line) == []
    assert EVENTS == ["open", "open", "close"]
    assert tasks.get(going, 0, 0) is task
    end_from_elsewhere(other)
    assert EVENTS == ["open", "open", "close", "close"]


def end_from_elsewhere(line: Lifeline) -> list[str]:
    """Ends a line as the driver does, while this process, in its main thread, waits as a worker does."""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.extend(line.end()))
    thread.start()
    while thread.is_alive():
        thread.join(0.01)
    return said


def test_what_fails_in_close_is_told() -> None:
    EVENTS.append("clumsy")
    tasks, line = Tasks(), Lifeline("127.0.0.1")
    run_batch(tasks, payload("a", line))
    wait_for_holders(line)
    (said,) = end_from_elsewhere(line)
    assert said.startswith("Operator 'Map' failed in subtask 0.")
    assert said.endswith("ValueError: cannot close")


def test_a_task_that_runs_is_interrupted() -> None:
    tasks, line = Tasks(), Lifeline("127.0.0.1")
    job = payload("a", line)
    run_batch(tasks, job)
    wait_for_holders(line)
    begun = threading.Event()
    ending = threading.Thread(target=lambda: begun.wait() and line.end())
    ending.start()

    def work() -> None:
        begun.set()
        time.sleep(60)

    with pytest.raises(JobOver), tasks.running(("a", 0, 0)):
        work()
    ending.join()
    assert EVENTS == ["open", "close"]


def test_jobs_that_nobody_ends_are_closed_when_there_are_too_many() -> None:
    tasks = Tasks()
    for number in range(6):
        run_batch(tasks, payload(f"job {number}"))
    assert EVENTS.count("open") - EVENTS.count("close") == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_close_what_its_parent_opened() -> None:
    from firesteel.engine.spark.tasks import TASKS

    run_batch(TASKS, payload("a"))
    child = os.fork()
    if child == 0:
        TASKS.close_all()
        os._exit(EVENTS.count("close"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    TASKS.close_all()
    assert EVENTS == ["open", "close"]


def test_a_line_without_the_secret_is_not_held() -> None:
    import socket

    line = Lifeline("127.0.0.1")
    with socket.create_connection((line.address.host, line.address.port)) as stranger:
        stranger.sendall(b"x" * len(line.address.secret))
        assert stranger.recv(1) == b""
    assert line.holders == 0
    assert line.end() == []
