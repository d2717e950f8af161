"""Spark's exceptions as ours, in one place, most specific first."""

from __future__ import annotations

import re

from firesteel.engine.spark.jvm_failure import ADVICE, NO_MEMORY, jvm_failure
from firesteel.engine.spark.state_files import damaged_state
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.runtime.failures import Failure, OperatorFailure, find_failure

__all__ = ["first_lines", "translate"]

_STATE_CLIENTS = ("spark_store.py", "stateful_processor_api_client.py")

NO_STATE_SERVER = (
    "Spark's JVM closed the connection by which a task reads and writes its state. Most often its memory is full."
)


def translate(error: BaseException, query: str | None = None) -> BaseException:
    """What the user should see of an exception. Raise it ``from`` the original, so that the JVM's trace stays.
    ``query`` is where Spark keeps the query's logs and state."""
    if isinstance(error, OperatorFailure):
        return error.failure.to_error()
    if isinstance(error, FiresteelError):
        return error
    text = _whole_text(error)
    failure = find_failure(text)
    if failure is not None and not _lost_jvm(failure):
        return failure.to_error()
    damaged = damaged_state(text, query)
    if damaged is not None:
        return damaged
    reason = jvm_failure(error, text)
    if reason is not None:
        return JobExecutionError(reason, cause_text=text, cause_class=NO_MEMORY if ADVICE in reason else None)
    if failure is not None:
        message = f"{NO_STATE_SERVER} {ADVICE} ({failure.error})"
        return JobExecutionError(message, cause_text=failure.trace, cause_class=NO_MEMORY)
    said = first_lines(text)
    if "Python worker exited unexpectedly" in said:
        # Spark goes on with advice about switches that do not help here.
        said = (
            "SparkException: Python worker exited unexpectedly. A signal killed it (the system does that when memory "
            "runs out), or native code in it crashed; a line in the output names the process, its subtask, its "
            "operators and the signal."
        )
    return JobExecutionError(f"The job failed inside Spark: {said}", cause_text=text)


def _lost_jvm(failure: Failure) -> bool:
    """Whether a task has lost its connection to the state store, which is in the JVM."""
    lost = (EOFError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    broke = failure.cause_class in {f"builtins.{one.__name__}" for one in lost}
    return broke and not failure.operator and any(file in failure.trace for file in _STATE_CLIENTS)


def _whole_text(error: BaseException) -> str:
    parts = [str(error)]
    trace = getattr(error, "_stackTrace", None) or getattr(error, "getStackTrace", lambda: None)()
    if isinstance(trace, str):
        parts.append(trace)
    cause = error.__cause__ or getattr(error, "_cause", None)
    if isinstance(cause, BaseException) and cause is not error:
        parts.append(_whole_text(cause))
    return "\n".join(parts)


def first_lines(text: str) -> str:
    """The part that says something: a Python error's last line if there is one, else the innermost Java exception
    that has a message, else the first line.

    >>> first_lines("calling o1.f.\\n: a.SparkException: outer\\nCaused by: a.SparkException: inner\\nCaused by: EOF")
    'SparkException: inner'
    """
    python: list[str] = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", text, re.MULTILINE)
    ours = [line for line in python if not line.startswith(("org.apache", "java."))]
    if ours:
        return ours[-1]
    causes: list[str] = re.findall(r"^(?:Caused by|): (?:[\w$]+\.)+([\w$]+: .*\S.*)$", text, re.MULTILINE)
    if causes:
        return causes[-1]
    return text.strip().splitlines()[0] if text.strip() else "no message"
