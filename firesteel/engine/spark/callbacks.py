"""The connection by which the JVM calls the driver at the end of each batch.

Py4J gives every thread of the JVM that calls Python a connection of its own, with a thread in Python behind it, and
keeps both when the JVM's thread has ended. A query is such a thread, so a session would gather one pair a job.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

__all__ = ["BatchFailed", "CallbackConnection", "not_a_failed_batch"]


class BatchFailed(RuntimeError):
    """What Spark sees of a batch that failed in the driver, which keeps the reason."""

    def __init__(self) -> None:
        super().__init__("the batch failed, and the driver knows why")


def not_a_failed_batch(record: logging.LogRecord) -> bool:
    """A filter for Py4J's log: it reports every exception of a call from the JVM, and this one is reported by the job.

    >>> not_a_failed_batch(logging.makeLogRecord({"exc_info": (BatchFailed, BatchFailed(), None)}))
    False
    """
    return not (record.exc_info and isinstance(record.exc_info[1], BatchFailed))


class CallbackConnection:
    """The connection of one query, which is known once the query has called."""

    def __init__(self) -> None:
        self._connection: Any = None

    def note(self, session: SparkSession) -> None:
        """In a call from the JVM: remembers by which connection it came."""
        if self._connection is None:
            # A Py4J without connections per thread has nothing to be closed here.
            with contextlib.suppress(Exception):
                server = JavaObject("GATEWAY_SERVER", session.sparkContext._gateway._gateway_client)
                self._connection = server.getCallbackClient().getPerThreadConnection()

    def close(self) -> None:
        """After the query has ended, when nobody calls any more. The thread in Python ends with it."""
        connection, self._connection = self._connection, None
        # The JVM may be gone, and the connection with it.
        with contextlib.suppress(Exception):
            if connection is not None:
                connection.shutdown()
