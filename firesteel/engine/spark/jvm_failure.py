"""What is to be said when Spark's JVM has ended, or has no memory left.

The driver talks to the JVM over a socket, so the end of the JVM looks like a refused connection. What ended it is known
from its process.
"""

from __future__ import annotations

import re
import signal
import subprocess

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from firesteel.engine.processes import jvm_process

__all__ = ["NO_MEMORY", "MemoryFailures", "jvm_failure"]

WAIT_SECONDS = 5.0
"""A JVM whose connection broke is about to end, and is given so long for it."""

OUT_OF_MEMORY = 52
"""With this code Spark ends a JVM in which a task found no memory."""

NO_MEMORY = "java.lang.OutOfMemoryError"
"""The class of the cause of a failure that comes from too little memory in the JVM."""

ADVICE = (
    "Give it more with spark.driver.memory (on a cluster spark.executor.memory, too), or let a batch have fewer bytes "
    "with firesteel.batch.max-bytes. With a checkpoint folder, a program that is started again goes on from its last "
    "checkpoint."
)


class MemoryFailures:
    """Whether a job fails for memory at the same place again.

    Frames travel in pieces and wait in files, so what the JVM holds of a batch does not depend on how large the batch
    is, and smaller steps would change nothing. What does not fit is one value of state, or something beside the job
    that took the memory. Against the latter one more attempt may help, against the former none.

    >>> failures = MemoryFailures()
    >>> [failures.again(NO_MEMORY, batch) for batch in (7, 8, 8)], failures.again("builtins.ValueError", 8)
    ([False, False, True], False)
    """

    def __init__(self) -> None:
        self._last: tuple[int | None] | None = None

    def again(self, cause_class: str | None, batch: int | None) -> bool:
        """Told of a failure behind the last batch that is complete; None if there is none yet."""
        before, self._last = self._last, (batch,) if cause_class == NO_MEMORY else None
        return self._last is not None and self._last == before


def jvm_failure(error: BaseException, text: str) -> str | None:
    """The reason of a failure, if it is the JVM itself. ``text`` is all that the exception says."""
    code = _ended(WAIT_SECONDS if _connection_broke(error) else 0.0)
    if code == OUT_OF_MEMORY or re.search(r"OutOfMemory(Error|Exception)\b", text):
        return f"Spark's JVM ran out of memory; its heap is {_heap()}. {ADVICE}"
    if code is None:
        return None
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        by_system = " Perhaps the system did so, because memory was short: see its log." if code == -9 else ""
        return f"Spark's JVM has ended: it was killed ({name}).{by_system}"
    return f"Spark's JVM has ended, with code {code}. What it said stands above, on standard error."


def _connection_broke(error: BaseException) -> bool:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        # Py4J has the plain class for calls that got no answer, and others for what the JVM answered.
        if isinstance(cause, Py4JNetworkError | ConnectionError | EOFError) or type(cause) is Py4JError:
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def _ended(wait: float) -> int | None:
    """The code with which the JVM has ended; None while it lives, or if it is not ours."""
    process = jvm_process()
    if process is None:
        return None
    try:
        code: int = process.wait(wait)
    except subprocess.TimeoutExpired:
        return None
    return code


def _heap() -> str:
    context = SparkContext._active_spark_context
    conf = getattr(context, "_conf", None)
    return str(conf.get("spark.driver.memory", "1g")) if conf is not None else "1g"
