"""Takes the savepoints that a job on Spark is asked for."""

from __future__ import annotations

import logging
import math
import time

from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.requests import SavepointRequest
from firesteel.engine.savepoints.taking import abandon, copy_sources, outline
from firesteel.engine.spark.attempt import SharedByAttempts, StreamingAttempt
from firesteel.errors import SavepointError

__all__ = ["SparkSavepoints"]

logger = logging.getLogger("firesteel")

BATCH_MAY_TAKE = 5.0
"""Seconds that a batch gets to end when its job is suspended."""


class SparkSavepoints:
    """Serves the requests of one job, in the job's thread, while an attempt runs."""

    def __init__(self, shared: SharedByAttempts) -> None:
        self._shared = shared
        self._context = shared.context
        self._link = shared.link
        self.stopped = False
        """Whether the job has ended with a savepoint."""

    def serve(self, attempt: StreamingAttempt) -> None:
        """The next request, if there is one."""
        folder, requests = self._shared.folder, self._context.savepoints
        request = requests.take(begun=lambda: folder.last_commit is not None)
        if request is None:
            return
        if request.drain:
            # Taken when the last batch is done: see ``drained``.
            self._link.drain()
        elif request.stop:
            # 1. No batch begins any more. 2. The one under way ends. 3. The savepoint. 4. If it failed, all goes on.
            if self._wait_on_hold(attempt):
                self.stopped = self._answer(request, attempt)
            else:
                requests.gave_up(request)
                request.result.set_exception(SavepointError("The job ended before it could be stopped."))
            if not self.stopped:
                self._link.resume()
        else:
            self._answer(request, attempt)

    def drained(self, attempt: StreamingAttempt) -> None:
        """The last batch is done. If it was to drain the job, the savepoint is due."""
        stopping = self._context.savepoints.stopping
        if self._link.draining and stopping is not None:
            self._answer(stopping, attempt, drained=True)

    def wait_until_idle(self, attempt: StreamingAttempt) -> None:
        """For a job that is being suspended: no batch begins, and the one under way may end, if that is soon."""
        if not self._wait_on_hold(attempt, BATCH_MAY_TAKE):
            logger.info("the batch under way takes longer than %.0f s and is given up", BATCH_MAY_TAKE)
            # It comes again when the job is started again.
            self._context.cancel.set()

    def _wait_on_hold(self, attempt: StreamingAttempt, seconds: float | None = None) -> bool:
        """Returns whether the query stands still between two batches; waits for that no longer than told, or than until
        the job is suspended."""
        context = self._context
        self._link.hold()
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while attempt.active and not context.cancelled and time.monotonic() < deadline:
            if context.suspending and seconds is None:
                return False
            if self._link.on_hold or context.inbox.finished.is_set():
                return True
            time.sleep(0.02)
        return False

    def _answer(self, request: SavepointRequest, attempt: StreamingAttempt, drained: bool = False) -> bool:
        return self._context.savepoints.fulfil(request, lambda target: self._take(target, attempt, drained))

    def _take(self, target: Place, attempt: StreamingAttempt, drained: bool) -> None:
        """Writes all state of the last batch that is done."""
        batch = self._first_commit(attempt)
        try:
            self._write(batch, target, drained)
        except Exception as error:
            # A job that goes on removes files: of a checkpoint where few are retained, of a source once they are read.
            vanished = isinstance(error, FileNotFoundError) and not self._link.on_hold
            went_on = self._shared.folder.last_commit != batch
            if not (vanished or went_on) or not self._wait_on_hold(attempt):
                raise
            logger.info("the job waits for its savepoint: batch %d could not be read while it ran (%s)", batch, error)
            abandon(target)
            try:
                self._write(self._first_commit(attempt), target, drained)
            finally:
                self._link.resume()

    def _write(self, batch: int, target: Place, drained: bool) -> None:
        # Loads Arrow, which the start of a job need not wait for.
        from firesteel.engine.savepoints.tables import tables_of
        from firesteel.engine.savepoints.writing import complete
        from firesteel.engine.spark.savepoints import write_state

        context, folder = self._context, self._shared.folder
        # What the batch prepared is not in the savepoint: it must be visible before one can begin with it.
        context.commits.settle()
        offset = folder.offset(batch)
        known, stages = folder.manifest, len(context.spec.graph.stages) - 1
        if copy_sources(folder.sources, target) and folder.last_commit != batch:
            # A source forgets what came before a batch once a later one is done.
            raise SavepointError(f"Batch {folder.last_commit} was done before the sources' files were copied.")
        parts = write_state(self._shared.session, folder.query, batch, stages, known.width, target, context.spec.tables)
        progress = context.inbox.progress
        if progress.batch_time == offset["time"]:
            # The offset knows event time as it was before the batch, the driver as it was after it.
            offset = {**offset, "kept": {**offset.get("kept", {}), **progress.kept}}
        manifest = outline(known, context.job_id, batch, offset, drained)
        complete(target, manifest, parts, tables_of(context.spec.graph))

    def _first_commit(self, attempt: StreamingAttempt) -> int:
        """The last batch in Spark's log; waits for the first one."""
        while True:
            batch = self._shared.folder.last_commit
            if batch is not None:
                return batch
            if self._context.cancelled or not attempt.active:
                raise SavepointError("The job ended before its first batch was done.")
            time.sleep(0.05)
