"""The driver's part of a source: Spark computes a DataFrame into Parquet files that tasks read.

A DataFrame that ends is computed once, when the job first begins. One that does not end is a query of its own:

1. **Compute.** Each of its micro-batches is written aside, and forced to disk.
2. **Publish**, by a rename, under the number that Spark gave the micro-batch. *Crash before it:* Spark repeats the
   micro-batch from its offset log, which lies beside the batches.
3. **Log** (Spark). *Crash before it:* Spark repeats a micro-batch that is published already. What was published counts,
   and the repetition is dropped.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from typing import Any

from firesteel.connectors.spark.errors import as_connector_error
from firesteel.connectors.spark.staging import QUERY, Staged
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["Feeder", "compute_once"]

logger = logging.getLogger("firesteel.connectors")

MOST_WAITING = 2_000_000
"""So many rows may wait; then Spark computes no more until they are read."""
ROW_GROUP_BYTES = 8 << 20
"""Small enough that a task which needs the end of one need not decode much before it."""
LOOK = 0.05


def compute_once(frame: Any, staged: Staged, secrets: list[Any]) -> None:
    """Computes a DataFrame that ends, unless that was done before."""
    if staged.batches:
        return
    draft = staged.draft(0)
    try:
        _write(frame, draft)
    except Exception as error:
        raise as_connector_error(error, "compute the DataFrame of a source", secrets) from None
    staged.publish(0, draft)


def _write(frame: Any, draft: str) -> None:
    written = frame.write.mode("overwrite").option("compression", "zstd")
    written.option("parquet.block.size", str(ROW_GROUP_BYTES)).parquet(f"file://{os.path.abspath(draft)}")


class Feeder:
    """A query that computes a DataFrame that does not end."""

    def __init__(self, frame: Any, staged: Staged, trigger: dict[str, Any], mode: str, secrets: list[Any]) -> None:
        self._staged, self._secrets = staged, secrets
        self._stopping = threading.Event()
        self._failure: ConnectorError | None = None
        """What went wrong in the driver: of that Spark knows a trace of Python's."""
        staged.recovered()
        self._clear_unless_begun()
        writer = frame.writeStream.foreachBatch(self._take).outputMode(mode)
        if trigger:
            writer = writer.trigger(**trigger)
        try:
            self._query = writer.option("checkpointLocation", self._checkpoint()).start()
        except Exception as error:
            raise as_connector_error(error, "start the query of a source", secrets) from None
        self._watcher = threading.Thread(target=self._watch, name="firesteel-spark-source", daemon=True)
        self._watcher.start()

    def _checkpoint(self) -> str:
        return f"file://{os.path.abspath(os.path.join(self._staged.directory, QUERY))}"

    def _clear_unless_begun(self) -> None:
        """Spark takes half-written files of its own first start for somebody else's, and refuses to begin there."""
        query = os.path.join(self._staged.directory, QUERY)
        logs = [os.path.join(query, log) for log in ("offsets", "commits")]
        if not any(name.isdigit() for log in logs if os.path.isdir(log) for name in os.listdir(log)):
            shutil.rmtree(query, ignore_errors=True)

    def _take(self, frame: Any, number: int) -> None:
        try:
            self._publish(frame, number)
        except Exception as error:
            self._failure = as_connector_error(error, "go on with the query of a source", self._secrets)
            raise self._failure from None

    def _publish(self, frame: Any, number: int) -> None:
        staged = self._staged
        staged.look()
        if staged.batches and number <= staged.batches[-1].number:
            return
        if staged.batches and number != staged.batches[-1].number + 1:
            raise ConnectorError(
                f"Spark's query goes on with micro-batch {number}, but {staged.batches[-1].number} was published last. "
                f"Its checkpoint in {staged.directory} is not that of this source.",
                kind=FailureKind.PERMANENT,
            )
        while staged.waiting() > MOST_WAITING and not self._stopping.wait(LOOK):
            pass
        if self._stopping.is_set():
            raise ConnectorError("The job has ended.")
        draft = staged.draft(number)
        _write(frame, draft)
        staged.publish(number, draft)

    def _watch(self) -> None:
        try:
            self._query.awaitTermination()
        except Exception as error:
            if not self._stopping.is_set():
                failure = self._failure or as_connector_error(error, "go on with the query of a source", self._secrets)
                logger.warning("%s", failure)
                with contextlib.suppress(OSError):
                    self._staged.fail(str(failure), failure.kind is FailureKind.PERMANENT)

    def stop(self) -> None:
        self._stopping.set()
        # With the JVM the query is gone, too.
        with contextlib.suppress(Exception):
            self._query.stop()
        self._watcher.join(10)
