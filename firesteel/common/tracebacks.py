"""How much of a failure people see: its text and their own frames, or all of it."""

from __future__ import annotations

import os
from typing import TypeVar

from firesteel.common.configuration import Configuration
from firesteel.errors import FULL_TRACE, FiresteelError

__all__ = ["shortened", "wants_full_traces"]

KEY = "firesteel.errors.full-trace"

AnyError = TypeVar("AnyError", bound=BaseException)


def wants_full_traces(configuration: Configuration) -> bool:
    """Whether the setting, or else the environment variable, asks for the whole trace of a failure.

    >>> wants_full_traces(Configuration.from_dict({"firesteel.errors.full-trace": "true"}))
    True
    """
    return configuration.get_boolean(KEY, os.environ.get(FULL_TRACE, "").lower() in ("1", "true", "yes", "on"))


def shortened(error: AnyError, full: bool) -> AnyError:
    """An exception as it should be raised towards the user.

    What Firesteel raises says all that matters in its own text, which stands after pages of frames inside Firesteel,
    PySpark and the JVM if the exception keeps its traceback and its causes. So both are dropped, unless ``full``.

    >>> inner = FiresteelError("short")
    >>> inner.__cause__ = ValueError("a page of Java")
    >>> shortened(inner, full=False).__cause__ is None
    True
    """
    if full or not isinstance(error, FiresteelError):
        return error
    error.__cause__ = None
    error.__suppress_context__ = True
    return error.with_traceback(None)
