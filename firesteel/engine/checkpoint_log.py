"""Counts a job's checkpoints as they come. Written by the job's thread, read by whoever asks."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

from firesteel.common.checkpoint_statistics import CheckpointStatistics, CheckpointSummary

__all__ = ["CheckpointLog"]

REMEMBERED = 20


class CheckpointLog:
    """The checkpoints of one job.

    >>> log = CheckpointLog()
    >>> log.began(0); log.completed(records=5)
    >>> log.began(1); log.failed("ValueError: bad")
    >>> statistics = log.statistics()
    >>> statistics.completed, statistics.failed, statistics.latest_completed.records
    (1, 1, 5)
    >>> log.began(2)
    >>> log.statistics().under_way.checkpoint_id
    2
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._completed = self._failed = self._restored = 0
        self._history: deque[CheckpointSummary] = deque(maxlen=REMEMBERED)
        self._current: tuple[int, int, float] | None = None

    def began(self, number: int) -> None:
        """A batch starts."""
        with self._lock:
            self._current = (number, int(time.time() * 1000), time.monotonic())

    @property
    def current(self) -> int | None:
        """The batch that began and has neither completed nor failed."""
        return None if self._current is None else self._current[0]

    def completed(self, **known: Any) -> None:
        """All of the batch that began last is committed."""
        with self._lock:
            self._completed += self._end(completed=True, **known)

    def failed(self, cause: str) -> None:
        """The batch under way, if there is one, failed."""
        with self._lock:
            self._failed += self._end(completed=False, failure=cause)

    def restored(self) -> None:
        """The job goes on from the last one."""
        with self._lock:
            self._restored += 1

    def add_statistics(self, number: int, **known: Any) -> None:
        """More is known of a completed one."""
        with self._lock:
            for place, one in enumerate(self._history):
                if one.completed and one.checkpoint_id == number:
                    self._history[place] = replace(one, **known)

    def statistics(self) -> CheckpointStatistics:
        with self._lock:
            return CheckpointStatistics(
                self._completed, self._failed, self._restored, tuple(self._history), self._under_way()
            )

    def _under_way(self) -> CheckpointSummary | None:
        if self._current is None:
            return None
        number, moment, began = self._current
        return CheckpointSummary(number, False, moment, int((time.monotonic() - began) * 1000))

    def _end(self, completed: bool, **known: Any) -> int:
        if self._current is None:
            return 0
        (number, moment, began), self._current = self._current, None
        duration = int((time.monotonic() - began) * 1000)
        self._history.append(CheckpointSummary(number, completed, moment, duration, **known))
        return 1
