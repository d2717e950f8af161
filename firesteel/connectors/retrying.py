"""Doing something again that failed for a reason which may pass: after the time that was named, or with back-off."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from firesteel.errors import BackPressureError, ConnectorError, FailureKind

if TYPE_CHECKING:
    from tenacity import RetryCallState

__all__ = ["retried"]

logger = logging.getLogger("firesteel.connectors")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds, where nobody says when to try again: each pause is twice as long as the one before."""

Result = TypeVar("Result")


def retried(
    action: Callable[[], Result],
    seconds: float,
    doing: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Does something that may be repeated until it succeeds, for so many seconds; then its last error stands.

    Repeated is what a :class:`ConnectorError` says may pass. A :class:`BackPressureError` names the pause itself.

    >>> answers = [BackPressureError("too many requests", retry_after=5), ConnectorError("gone"), None]
    >>> def ask():
    ...     answer = answers.pop(0)
    ...     if answer is not None:
    ...         raise answer
    ...     return "done"
    >>> retried(ask, 60, "asking", sleep=lambda seconds: print("waits", seconds))
    waits 5.0
    waits 0.2
    'done'
    """
    try:
        return action()
    except ConnectorError as error:
        if error.kind is not FailureKind.PASSING:
            raise
        failures = [error]
    # Only those who need it wait for it to load, and to be set up.
    from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_exponential

    back_off = wait_exponential(FIRST_PAUSE, LONGEST_PAUSE)

    def pause(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        return max(0.0, error.retry_after) if isinstance(error, BackPressureError) else back_off(state)

    def say(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        logger.warning("%s is tried again in %.1f s: %s", doing, state.upcoming_sleep, error)

    retrying = Retrying(
        stop=stop_before_delay(seconds),
        wait=pause,
        retry=retry_if_exception(_may_pass),
        before_sleep=say,
        sleep=sleep,
        reraise=True,
    )

    def again() -> Result:
        # What was tried already counts.
        if failures:
            raise failures.pop()
        return action()

    try:
        return retrying(again)
    except BackPressureError as error:
        if error.kind is not FailureKind.PASSING or error.retry_after < seconds:
            raise
        # To ask earlier than it was told to would only make it worse.
        raise BackPressureError(
            f"{error} It is to be tried again after {error.retry_after:g} s, but {doing} is tried for {seconds:g} s "
            "only: set retry_seconds to more than that.",
            retry_after=error.retry_after,
        ) from error


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ConnectorError) and error.kind is FailureKind.PASSING
