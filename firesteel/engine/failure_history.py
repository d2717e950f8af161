"""The failures of a job, for those who ask afterwards."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from dataclasses import replace

from firesteel.engine.facade.answers import JobExceptions, JobFailure
from firesteel.errors import JobExecutionError, in_a_line

__all__ = ["FailureHistory"]

REMEMBERED = 16
"""As many as Flink remembers by default."""
LONGEST_TRACE = 20_000
LONGEST_MESSAGE = 4_000


class FailureHistory:
    """Written by the job's thread, read by whoever asks.

    >>> history = FailureHistory()
    >>> history.add(JobExecutionError("Operator 'Map' failed.", operator="Map", cause_class="builtins.ValueError"), 0)
    >>> history.restarted()
    >>> history.add(OSError("disk full"), attempt=1)
    >>> [(one.attempt, one.operator, one.exception, one.restarted) for one in history.history().failures]
    [(1, None, 'builtins.OSError', False), (0, 'Map', 'builtins.ValueError', True)]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: deque[JobFailure] = deque(maxlen=REMEMBERED)
        self._count = 0
        self.last: str | None = None
        """The last one, in a line."""

    def add(self, error: BaseException, attempt: int) -> None:
        """An attempt has failed."""
        failure = _described(error, attempt)
        with self._lock:
            self._failures.append(failure)
            self._count += 1
            self.last = in_a_line(error)

    def restarted(self) -> None:
        """The job goes on after the last failure."""
        with self._lock:
            self._failures[-1] = replace(self._failures[-1], restarted=True)

    def history(self) -> JobExceptions:
        with self._lock:
            return JobExceptions(tuple(reversed(self._failures)), truncated=self._count > len(self._failures))


def _described(error: BaseException, attempt: int) -> JobFailure:
    known = error if isinstance(error, JobExecutionError) else JobExecutionError()
    trace = known.cause_text or "".join(traceback.format_exception(error))
    kind = type(error)
    return JobFailure(
        timestamp=int(time.time() * 1000),
        attempt=attempt,
        message=(str(error) or kind.__name__)[:LONGEST_MESSAGE],
        exception=known.cause_class or f"{kind.__module__}.{kind.__qualname__}",
        operator=known.operator or None,
        subtask=known.subtask,
        built_at=None if known.built_at is None else str(known.built_at),
        raised_at=known.raised_at,
        element=known.element,
        # What is innermost stands at the end.
        trace=trace[-LONGEST_TRACE:],
    )
