"""When a query counts as done with its last batch."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.engine.spark import attempt
from firesteel.engine.spark.attempt import StreamingAttempt

LAST = 3


class Query:
    """A query whose coordinator never answers after the last batch: its trigger stays active."""

    def __init__(self, reports: list[int | None]) -> None:
        self._reports = reports
        self._jsq = self
        self.looks = 0

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": True}

    def lastProgress(self) -> Any:
        self.looks += 1
        report = self._reports.pop(0)
        return None if report is None else SimpleNamespace(batchId=lambda: report)


def waiting(query: Query, finished: bool, logged: bool = True) -> StreamingAttempt:
    """An attempt that waits for the end of a query, and gives up after a few looks."""
    made = StreamingAttempt.__new__(StreamingAttempt)
    event = threading.Event()
    if finished:
        event.set()
    made.context = SimpleNamespace(  # type: ignore[assignment]
        inbox=SimpleNamespace(finished=event), cancelled=False, commits=SimpleNamespace(pending=[LAST])
    )
    made.shared = SimpleNamespace(logged=lambda batch: logged)  # type: ignore[assignment]
    made._query, made._last_batch = query, LAST
    return made


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return sum(slept)

        @staticmethod
        def sleep(seconds: float) -> None:
            slept.append(seconds)

    monkeypatch.setattr(attempt, "time", Clock)
    monkeypatch.setattr(StreamingAttempt, "active", True)
    monkeypatch.setattr(attempt, "SECONDS_TO_LOG", 0.1)
    return slept


def test_a_finished_job_does_not_wait_for_the_trigger_after_its_last_batch(sleeps: list[float]) -> None:
    query = Query([None, LAST - 1, LAST])
    waiting(query, finished=True)._wait_until_logged()
    assert query.looks == 3
    assert len(sleeps) == 2


def test_a_job_that_goes_on_waits_for_the_trigger(sleeps: list[float]) -> None:
    waiting(Query([LAST] * 100), finished=False)._wait_until_logged()
    assert sum(sleeps) >= 0.1


def test_a_batch_that_is_not_logged_is_waited_for(sleeps: list[float]) -> None:
    waiting(Query([LAST] * 100), finished=True, logged=False)._wait_until_logged()
    assert sum(sleeps) >= 0.1
