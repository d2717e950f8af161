"""One attempt of a job on Spark: a streaming query, or in BATCH mode a batch job, with the driver's part of each batch.

An attempt is complete once it is constructed: its line to the workers, its files and its query are there. After a
failure the next attempt is another object, which goes on from what the checkpoint folder holds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from firesteel.common.private_files import make_private_folder
from firesteel.engine.commit_watcher import CommitWatcher
from firesteel.engine.driver_sources import DriverSources
from firesteel.engine.imports import JobFiles
from firesteel.engine.job_context import JobContext
from firesteel.engine.job_log import working_for
from firesteel.engine.manifest import CheckpointFolder
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job_to_keep
from firesteel.engine.savepoints.tables import tables_of
from firesteel.engine.spark.callbacks import BatchFailed, CallbackConnection
from firesteel.engine.spark.context import forget_files_of_settings
from firesteel.engine.spark.coordinator_link import CoordinatorLink
from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.job_files import CoordinatorJob, write_job
from firesteel.engine.spark.lifeline import Lifeline
from firesteel.engine.spark.masters import is_local
from firesteel.engine.spark.packing import pack_job
from firesteel.engine.spark.query_progress import durations_of, is_reported, progress_after, sizes_of
from firesteel.engine.spark.session import import_paths, keep_to_df
from firesteel.engine.spark.stage import batch_stage, streaming_stage
from firesteel.engine.spark.warm_spark import level_for_workers
from firesteel.errors import JobExecutionError
from firesteel.runtime.driver_results import remove_results
from firesteel.runtime.snapshots.restoring import union_lists
from firesteel.runtime.snapshots.saved import StateChunk

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore
    from firesteel.engine.spark.savepoint_service import SparkSavepoints

__all__ = ["Attempt", "BatchAttempt", "SharedByAttempts", "StreamingAttempt", "begin_attempt"]

logger = logging.getLogger("firesteel")

POLL_SECONDS, IDLE_POLL_SECONDS, IDLE_AFTER_SECONDS = 0.05, 0.2, 10.0
"""How often the driver looks at what is asked of the job; how often when the job is idle; and how long after the end of
a batch it counts as idle."""

SECONDS_TO_LOG = 30.0
"""How long Spark may take to log the last batch once its tasks are done."""


@dataclass(frozen=True)
class SharedByAttempts:
    """What all attempts of a job have in common."""

    context: JobContext
    session: SparkSession
    folder: CheckpointFolder
    directory: str
    """A folder of this machine that goes with the job: what the source's processes read."""
    files: JobFiles | None
    """The Python files that the job brings."""
    link: CoordinatorLink
    restore: Restore | None
    """The savepoint that the job begins with."""
    sources: DriverSources
    batch_done: threading.Event = field(default_factory=threading.Event)
    """In BATCH mode: set when the one batch is done. Then it is never repeated."""

    def logged(self, batch: int) -> bool:
        """Whether Spark has logged a batch. It deletes old entries, and a later one says the same."""
        if self.context.spec.batch_mode:
            return self.batch_done.is_set()
        newest = self.folder.last_commit
        return newest is not None and newest >= batch


class Attempt(ABC):
    """What attempts of both modes do."""

    def __init__(self, shared: SharedByAttempts, payload: JobPayload, lifeline: Lifeline | None) -> None:
        self.shared = shared
        self.context = shared.context
        self._results = payload.results
        self._lifeline = lifeline
        self._taken_at = time.monotonic()
        """When the last batch was taken, or the attempt began."""

    @abstractmethod
    def run(self, savepoints: SparkSavepoints) -> None:
        """Runs until the job's input has ended, or the job is stopped, cancelled or suspended. Raises what failed."""

    @abstractmethod
    def interrupt(self) -> None:
        """Makes a ``run`` in another thread return soon."""

    def update_statistics(self) -> None:  # noqa: B027 - optional to override
        """Adds to the log of checkpoints what Spark knows of them."""

    def end(self) -> None:
        """When nothing runs any more: the functions in the workers are closed."""
        self.shared.sources.end()
        if self._lifeline is not None:
            # After the last batch there is nothing left to close; after a failure or a cancellation there is.
            for failed in self._lifeline.end():
                logger.warning("closing the functions of job %r: %s", self.context.name, failed)

    def take(self, frame: DataFrame, batch: int) -> None:
        """The end of a micro-batch. A single action: touching the frame twice would compute the batch twice."""
        context, folder = self.context, self.shared.folder
        folder.check_lock()
        # Spark has logged the batch before, or it would not begin this one.
        context.commits.settle()
        context.checkpoints.completed(**context.inbox.of_checkpoint())
        context.checkpoints.began(batch)
        context.batches.began(batch, context.spec.attempt)
        with context.batches.part("tasks"):
            # As it is: choosing a column would be one more plan for Spark to make.
            cells = frame.toArrow().column("f").to_pylist()
        with context.batches.part("results"):
            context.inbox.take(batch, cells)
            if self._results is not None:
                remove_results(self._results)
            self.shared.link.report(context.inbox.feedback())
            if context.checkpointing.folder is not None:
                folder.begun(context.inbox.progress.union_lists)
        context.batches.ended(**context.inbox.of_batch())
        self._taken_at = time.monotonic()


class BatchAttempt(Attempt):
    """BATCH mode: one batch job."""

    def __init__(self, shared: SharedByAttempts, payload: JobPayload, lifeline: Lifeline | None) -> None:
        super().__init__(shared, payload, lifeline)
        graph = self.context.spec.graph
        frame = shared.session.read.format("firesteel").option("directory", shared.directory).load()
        for stage in graph.stages[1:]:
            frame = batch_stage(frame, payload, stage.index, graph.parallelism)
        self._frame = frame

    def run(self, savepoints: SparkSavepoints) -> None:
        try:
            self._run()
        except Exception as error:
            raise translate(error, self.shared.folder.query) from error

    def _run(self) -> None:
        """What is done is not done again where only a sink's commit failed."""
        context, done = self.context, self.shared.batch_done
        if not done.is_set():
            # A group of its own, so that cancelling this job cancels no other.
            self.shared.session.sparkContext.setJobGroup(context.job_id, context.name, interruptOnCancel=True)
            self.take(self._frame, 0)
            done.set()
            context.checkpoints.completed(**context.inbox.of_checkpoint())
        context.commits.settle()

    def interrupt(self) -> None:
        self.shared.session.sparkContext.cancelJobGroup(self.context.job_id)


class StreamingAttempt(Attempt):
    """STREAMING mode: one query."""

    def __init__(self, shared: SharedByAttempts, payload: JobPayload, lifeline: Lifeline | None) -> None:
        super().__init__(shared, payload, lifeline)
        self._failure: BaseException | None = None
        self._looking = threading.Lock()
        self._batches = 0
        """How many were taken."""
        self._last_batch = -1
        self._known = -1
        """The last batch whose report by Spark was read."""
        self._callbacks = CallbackConnection()
        graph, session = self.context.spec.graph, shared.session
        session.conf.set("spark.sql.shuffle.partitions", str(graph.parallelism))
        shared.folder.make_query_folder()
        frame = session.readStream.format("firesteel").option("directory", shared.directory).load()
        for stage in graph.stages[1:]:
            frame = streaming_stage(frame, payload, stage.index, graph.parallelism)
        self._query: Any = (
            frame.writeStream.foreachBatch(self._take_for_query)
            .option("checkpointLocation", shared.folder.query)
            .outputMode("update")
            .queryName(f"{self.context.name}-{self.context.job_id[:8]}")
            .start()
        )

    @property
    def active(self) -> bool:
        """Whether the query still runs."""
        return bool(self._query.isActive)

    def _take_for_query(self, frame: DataFrame, batch: int) -> None:
        """``take`` as Spark calls it. What goes wrong is kept here, and Spark gets a short text only: it searches an
        exception's text for interruptions by a pattern that overflows the stack on a text as long as a JVM trace,
        and then the query would end without saying anything."""
        try:
            keep_to_df()
            self._callbacks.note(frame.sparkSession)
            with working_for(self.context.job_id):
                # Before: with the results of the last batch the job counts as finished.
                self._last_batch = batch
                self.take(frame, batch)
            self._batches += 1
            if self._batches == 2:
                forget_files_of_settings(frame.sparkSession.sparkContext)
        except BaseException as error:
            self._fail(error)
            raise BatchFailed from None

    def _fail(self, error: BaseException) -> None:
        """The first one counts: what comes after it may be its doing."""
        self._failure = self._failure or error

    def run(self, savepoints: SparkSavepoints) -> None:
        watcher = CommitWatcher(self.context.commits, self._fail)
        try:
            watcher.start()
            self._watch(savepoints)
            self._wait_until_logged()
            self._settle_checkpoint()
            failure = self._failure or self._query.exception()
            if failure is not None:
                raise failure
            self._end_in_order(savepoints)
            if self.context.inbox.finished.is_set():
                self._wait_until_sources_know()
        except Exception as error:
            raise translate(error, self.shared.folder.query) from error
        finally:
            watcher.stop()
            self._stop_query()

    def _watch(self, savepoints: SparkSavepoints) -> None:
        """While the query runs: savepoints are taken, and the hold on the folder is looked at."""
        context = self.context
        looks = 0
        while not context.inbox.finished.wait(
            POLL_SECONDS if time.monotonic() - self._taken_at < IDLE_AFTER_SECONDS else IDLE_POLL_SECONDS
        ):
            looks += 1
            # Asking Spark is most of what an idle job costs here.
            ended = looks % 5 == 0 and not self.active
            if context.cancelled or savepoints.stopped or self._failure is not None or ended:
                return
            if context.suspending:
                savepoints.wait_until_idle(self)
                return
            savepoints.serve(self)
            self.shared.folder.check_lock()

    def _wait_until_logged(self) -> None:
        """The last batch is taken, but the query still has to write it into its commit log, and to report it. After a
        failed commit the same: the next batch, if one begins, fails before its tasks run."""
        deadline = time.monotonic() + SECONDS_TO_LOG
        while self.active and not self.context.cancelled and time.monotonic() < deadline:
            pending = self.context.commits.pending
            if all(map(self.shared.logged, pending)) and self._is_at_rest():
                return
            time.sleep(0.01)

    def _is_at_rest(self) -> bool:
        # After its last batch a query asks the coordinator for one more, which takes its time over the answer.
        if self.context.inbox.finished.is_set() and is_reported(self._query, self._last_batch):
            return True
        return not self._query.status["isTriggerActive"]

    def _wait_until_sources_know(self) -> None:
        """Sources that acknowledge what was read, such as Kafka's, learn of the last batch when the coordinator is
        asked for one more. Spark stops the coordinator's process without a notice."""
        enumerators = self.context.spec.graph.graph.enumerators.values()
        if not any(enumerator.learns_of_checkpoints for enumerator in enumerators):
            return
        self.shared.link.hold()
        deadline = time.monotonic() + SECONDS_TO_LOG
        while self.active and not self.shared.link.on_hold and time.monotonic() < deadline:
            time.sleep(0.01)

    def _settle_checkpoint(self) -> None:
        """Whether the batch that was taken last is in Spark's log, too."""
        checkpoints, committed = self.context.checkpoints, self.shared.folder.last_commit
        if checkpoints.current is not None and committed is not None and checkpoints.current <= committed:
            checkpoints.completed(**self.context.inbox.of_checkpoint())
        self.update_statistics()

    def _end_in_order(self, savepoints: SparkSavepoints) -> None:
        context = self.context
        context.commits.settle()
        if context.inbox.finished.is_set():
            savepoints.drained(self)
        elif not (context.cancelled or context.suspending or savepoints.stopped):
            raise JobExecutionError("Spark's query ended before the job's input did, and did not say why.")
        if context.commits.pending and not context.cancelled:
            raise JobExecutionError("Spark has not logged the last batch in time, so its results are not committed.")

    def update_statistics(self) -> None:
        with self._looking:
            for batch, report in progress_after(self._query, self._known).items():
                self._known = max(self._known, batch)
                self.context.checkpoints.add_statistics(batch, **sizes_of(report))
                self.context.batches.add_statistics(batch, *durations_of(report))

    def interrupt(self) -> None:
        self._stop_query()

    def _stop_query(self) -> None:
        # Without it a query is stopped as well, only later.
        with contextlib.suppress(OSError):
            self.shared.link.leave()
        # With the JVM the query is gone, too, and what ended the job is known already.
        with contextlib.suppress(OSError, Py4JError):
            self._query.stop()

    def end(self) -> None:
        # Still active only where the start of the job was interrupted.
        with contextlib.suppress(Exception):
            self._query.stop()
        super().end()
        # Now that nobody calls any more.
        self._callbacks.close()


def begin_attempt(shared: SharedByAttempts, packed: tuple[JobPayload, JobPayload] | None = None) -> Attempt:
    """One more attempt, from what the checkpoint folder holds. ``packed``: the job as its tasks need it and the whole
    of it, where that is pickled already."""
    context, folder = shared.context, shared.folder
    payload, whole = packed or pack_job(context.spec, import_paths(context.settings))
    with contextlib.ExitStack() as undo:
        lifeline = _lifeline(shared)
        if lifeline is not None:
            undo.callback(lifeline.end)
            context.log.send_to_workers = lifeline.send
        # By another name than the attempt before: what is left of that in a worker is not this one's.
        payload = replace(
            payload,
            job_id=f"{context.job_id}-{context.spec.attempt}",
            files=shared.files,
            lifeline=None if lifeline is None else lifeline.address,
            results=_results_folder(shared),
            log_levels={**level_for_workers(), **context.log.levels},
        )
        whole = replace(whole, files=shared.files)
        planned = CoordinatorJob(whole, context.settings, folder.sources, shared.restore, _union_lists(shared))
        write_job(shared.directory, payload, planned)
        shared.link.begin_attempt()
        folder.clear_unless_begun()
        if context.checkpointing.folder is not None:
            folder.keep_job(pickle_job_to_keep(context.spec, whole))
            folder.keep_tables(tables_of(context.spec.graph))
        try:
            # What earlier attempts have left is settled before this one adds to it.
            context.commits.start(context.spec, folder.commits, shared.logged, folder.storage, folder.check_lock)
            shared.sources.begin()
            undo.callback(shared.sources.end)
            kind = BatchAttempt if context.spec.batch_mode else StreamingAttempt
            attempt = kind(shared, payload, lifeline)
        except Exception as error:
            raise translate(error, folder.query) from error
        undo.pop_all()
    return attempt


def _results_folder(shared: SharedByAttempts) -> str | None:
    """Where tasks leave large results for the driver: only where they run on this machine."""
    if not is_local(shared.session.sparkContext.master):
        return None
    folder = os.path.join(shared.directory, "results")
    make_private_folder(folder)
    return folder


def _union_lists(shared: SharedByAttempts) -> list[StateChunk]:
    """What union lists hold in the last checkpoint, which every subtask gets all of when the job goes on from there."""
    folder, context = shared.folder, shared.context
    batch = folder.last_commit
    if batch is None or not (folder.manifest.union_lists or context.inbox.progress.union_lists):
        return []
    # Loads what most jobs never need.
    from firesteel.engine.spark.savepoints import read_subtasks

    graph = context.spec.graph
    stored = read_subtasks(shared.session, folder.query, batch, len(graph.stages) - 1, graph.parallelism)
    return union_lists(stored, graph)


def _lifeline(shared: SharedByAttempts) -> Lifeline | None:
    """On the address by which Spark's executors reach the driver. Jobs run without it, too."""
    conf = shared.session.sparkContext.getConf()
    host = str(conf.get("spark.driver.host", "127.0.0.1"))
    try:
        return Lifeline(host, str(conf.get("spark.driver.bindAddress", host)), shared.context.log.take)
    except OSError as error:
        logger.warning("cannot listen on %s (%s): close() will not be called if the job is cancelled", host, error)
        return None
