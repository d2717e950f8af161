"""The driver's side of a batch: handed to the log of commits, shown once, counted, collected, ended."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.engine.inbox import Inbox
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.metrics import Counter
from firesteel.runtime.frames import DRIVER, Frame, encode
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.report import TaskBatchReport


class NoSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        raise NotImplementedError


class Driver:
    """An inbox of a job with a print, a collect and a committing sink."""

    def __init__(self) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        numbers = env.from_collection([1]).map(str).name("numbers")
        numbers.print()
        numbers.sink_to(NoSink())
        from firesteel.graph.specs import CollectSpec

        numbers._sink("Collect", CollectSpec("channel"))
        job = JobSpec("id", "job", build_job_graph(build_stream_graph(env.program, 1)))
        self.ids = {node.name: node.id for node in job.graph.graph.nodes.values()}
        self.logged: list[tuple[int, dict[int, list[Any]]]] = []
        self.inbox = Inbox(job, self.log)

    def log(self, batch: int, prepared: dict[int, list[Any]]) -> None:
        self.logged.append((batch, prepared))

    def take(self, batch: int, *messages: tuple[str, str, Any]) -> None:
        cells = [
            Frame(DRIVER, 0, 0, 0, n, 0, encode([kind, self.ids[node], payload])).to_bytes()
            for n, (kind, node, payload) in enumerate(messages)
        ]
        # Spark delivers in any order.
        self.inbox.take(batch, reversed(cells))


def report(**fields: Any) -> TaskBatchReport:
    defaults: dict[str, Any] = {
        "stage": 0,
        "subtask": 0,
        "records_in": 0,
        "records_out": {},
        "watermark": None,
        "next_timer": None,
        "metrics": {},
        "last": False,
    }
    return TaskBatchReport(**{**defaults, **fields})


PRINT, SINK, COLLECT, MAP = "Sink: Print to Std. Out", "Sink", "Sink: Collect", "numbers"


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_lines_are_printed_in_the_order_of_tasks(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    driver.take(1, ("stdout", PRINT, "a\n"), ("stdout", PRINT, "b\n"), ("stderr", PRINT, "oops\n"))
    assert capsys.readouterr() == ("a\nb\n", "oops\n")


def test_a_repeated_batch_is_logged_again_but_shown_once(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        driver.take(1, ("stdout", PRINT, "a\n"), ("commit", SINK, ["file-1"]), ("report", MAP, report(records_in=5)))
    assert capsys.readouterr().out == "a\n"
    assert driver.logged == [(1, {driver.ids[SINK]: ["file-1"]})] * 2
    assert driver.inbox.progress.records == 5
    driver.take(2, ("stdout", PRINT, "b\n"))
    assert capsys.readouterr().out == "b\n"


def test_the_committables_of_all_tasks_are_one_entry(driver: Driver) -> None:
    driver.take(1, ("commit", SINK, [1]), ("commit", SINK, [2, 3]))
    driver.take(2, ("stdout", PRINT, "no commit"))
    assert driver.logged == [(1, {driver.ids[SINK]: [1, 2, 3]}), (2, {})]


def test_nothing_is_shown_of_a_batch_that_could_not_be_logged(
    driver: Driver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(batch: int, prepared: dict[int, list[Any]]) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(driver.inbox, "_prepared", full)
        with pytest.raises(OSError, match="disk full"):
            driver.take(1, ("stdout", PRINT, "a\n"), ("commit", SINK, ["x"]))
    assert capsys.readouterr().out == ""
    driver.take(1, ("stdout", PRINT, "a\n"), ("commit", SINK, ["x"]))
    assert capsys.readouterr().out == "a\n"
    assert driver.logged == [(1, {driver.ids[SINK]: ["x"]})]


def test_progress(driver: Driver) -> None:
    node = driver.ids[MAP]
    driver.take(
        1,
        ("report", MAP, report(records_in=3, records_out={node: 2}, watermark=50, next_timer=700)),
        ("report", MAP, report(subtask=1, records_in=4, records_out={node: 5}, watermark=40, next_timer=600)),
        ("report", MAP, report(stage=1, records_in=7, watermark=30)),
    )
    progress = driver.inbox.progress
    assert (progress.batches, progress.records, progress.batch_records) == (1, 7, 7)
    assert progress.emitted == {node: 7}
    # Event time is that of the last stage; the earliest timer wakes the job.
    assert (progress.watermark, progress.wake_at) == (30, 600)
    driver.take(2, ("report", MAP, report(records_in=1, records_out={node: 1})))
    assert (progress.batches, progress.records, progress.batch_records) == (2, 8, 1)
    assert progress.wake_at is None
    assert progress.emitted == {node: 8}


def test_metrics_are_summed_up_by_operator_and_subtask(driver: Driver) -> None:
    """A report has what its batch added: the next batch of a subtask may run in another process."""
    node = driver.ids[MAP]

    def calls(number: int, subtask: int = 0) -> tuple[str, str, Any]:
        return "report", MAP, report(subtask=subtask, metrics={node: {"calls": (Counter, number)}})

    # A task tells what it counted in the batch, wherever the batches before it ran.
    driver.take(1, calls(1), calls(2, subtask=1))
    driver.take(2, calls(5))
    driver.take(2, calls(5))
    assert driver.inbox.progress.metrics == {"numbers.0.calls": 6, "numbers.1.calls": 2}


def test_the_last_batch_is_noticed(driver: Driver) -> None:
    driver.take(1, ("report", MAP, report()))
    assert not driver.inbox.finished.is_set()
    driver.take(2, ("report", MAP, report(last=True)))
    assert driver.inbox.finished.is_set()


def test_records_are_collected_until_the_end(driver: Driver) -> None:
    driver.take(1, ("collect", COLLECT, [1, 2]), ("collect", COLLECT, [3]))
    driver.take(1, ("collect", COLLECT, [1, 2]))
    driver.take(2, ("collect", COLLECT, [None]))
    driver.inbox.end(None)
    assert list(driver.inbox.collect("channel")) == [1, 2, 3, None]
    assert list(driver.inbox.collect("channel")) == []


def test_a_failure_comes_after_the_records_before_it(driver: Driver) -> None:
    driver.take(1, ("collect", COLLECT, [1]))
    driver.inbox.end(ValueError("failed"))
    records = driver.inbox.collect("channel")
    assert next(records) == 1
    with pytest.raises(ValueError, match="failed"):
        next(records)


def test_a_slow_reader_slows_the_job(driver: Driver) -> None:
    many = [("collect", COLLECT, [n]) for n in range(1000)]
    taking = threading.Thread(target=lambda: driver.take(1, *many), daemon=True)
    taking.start()
    taking.join(0.2)
    assert taking.is_alive()
    records = driver.inbox.collect("channel")
    assert [next(records) for _ in range(1000)] == list(range(1000))
    taking.join(60)
    assert not taking.is_alive()


def test_cancelling_frees_a_job_whose_reader_is_gone(driver: Driver) -> None:
    taking = threading.Thread(
        target=lambda: driver.take(1, *[("collect", COLLECT, [n]) for n in range(1000)]), daemon=True
    )
    taking.start()
    time.sleep(0.05)
    driver.inbox.cancelled.set()
    taking.join(60)
    assert not taking.is_alive()


def test_the_end_does_not_wait_for_a_reader(driver: Driver) -> None:
    driver.take(1, *[("collect", COLLECT, [n]) for n in range(256)])
    ending = threading.Thread(target=lambda: driver.inbox.end(None), daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive()
    assert list(driver.inbox.collect("channel")) == list(range(256))
