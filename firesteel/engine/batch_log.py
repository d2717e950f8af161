"""A job's micro-batches as they come: how long each took, and what it spent its time on. Written by the job's threads,
read by whoever asks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from firesteel.engine.facade.answers import BatchSummary, JobBatches

__all__ = ["BatchLog"]

REMEMBERED = 300


class BatchLog:
    """The last micro-batches of one job.

    >>> log = BatchLog()
    >>> log.began(0, planning=0.002)
    >>> with log.part("tasks"):
    ...     pass
    >>> log.ended(records=5)
    >>> log.add_part(0, "sink_commit", 0.25)
    >>> (batch,) = log.batches().batches
    >>> batch.number, batch.records, sorted(batch.parts), batch.parts["sink_commit"]
    (0, 5, ['planning', 'sink_commit', 'tasks'], 250.0)
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._lock = threading.RLock()
        self._history: deque[BatchSummary] = deque(maxlen=remembered)
        self._current: BatchSummary | None = None
        self._began = 0.0

    def began(self, number: int, attempt: int = 0, **seconds: float) -> None:
        """A batch starts; ``seconds`` are parts of it that are over already."""
        with self._lock:
            before = sum(seconds.values())
            self._began = time.monotonic() - before
            moment = int((time.time() - before) * 1000)
            parts = {name: _milliseconds(value) for name, value in seconds.items()}
            self._current = BatchSummary(number, moment, attempt=attempt, parts=parts)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Around a part of the batch that is under way."""
        began = time.monotonic()
        yield
        spent = time.monotonic() - began
        with self._lock:
            if self._current is not None:
                self._current = _with_part(self._current, name, spent)

    def ended(self, **known: Any) -> None:
        """All tasks of the batch are done, and the driver has what they gave."""
        self._end(completed=True, **known)

    def failed(self) -> None:
        """The batch under way, if there is one, failed."""
        self._end(completed=False)

    def _end(self, **known: Any) -> None:
        with self._lock:
            if self._current is not None:
                duration = _milliseconds(time.monotonic() - self._began)
                self._history.append(replace(self._current, duration_ms=duration, **known))
                self._current = None

    def add_part(self, number: int, name: str, seconds: float) -> None:
        """What was done for a batch after its end, or in the middle of another one."""
        self._change(number, lambda one: _with_part(one, name, seconds))

    def add_statistics(self, number: int, duration_ms: float, parts: Mapping[str, float]) -> None:
        """What the engine knows of a batch. ``parts`` may hold others: what was measured within them is taken off."""
        self._change(
            number, lambda one: replace(one, duration_ms=duration_ms, parts={**one.parts, **_rest(one, parts)})
        )

    def _change(self, number: int, change: Any) -> None:
        with self._lock:
            for place in range(len(self._history) - 1, -1, -1):
                if self._history[place].number == number:
                    self._history[place] = change(self._history[place])
                    return

    def batches(self, after: int = -1) -> JobBatches:
        with self._lock:
            return JobBatches(tuple(one for one in self._history if one.number > after))

    @property
    def last(self) -> BatchSummary | None:
        with self._lock:
            return self._history[-1] if self._history else None


def _rest(known: BatchSummary, parts: Mapping[str, float]) -> dict[str, float]:
    """The engine's ``add_batch`` is all that the driver did for the batch, tasks included."""
    inside = sum(known.parts.get(name, 0.0) for name in ("tasks", "results"))
    return {name: round(max(0.0, ms - inside), 2) if name == "add_batch" else ms for name, ms in parts.items()}


def _with_part(batch: BatchSummary, name: str, seconds: float) -> BatchSummary:
    known = batch.parts.get(name, 0.0)
    return replace(batch, parts={**batch.parts, name: round(known + _milliseconds(seconds), 2)})


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 2)
