"""A job on Spark: one streaming query (or, in BATCH mode, one batch job) and the driver's part of each batch."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from firesteel.common.checkpoint_statistics import CheckpointStatistics
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_status import JobStatus
from firesteel.common.private_files import make_private_folder, open_private
from firesteel.engine.backends import backend_name
from firesteel.engine.commit_log import job_id_of
from firesteel.engine.commit_watcher import CommitWatcher
from firesteel.engine.control import ControlSocket, RunningJob
from firesteel.engine.coordinator import CoordinatorFeedback
from firesteel.engine.folder_lock import Holder
from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.engine.job import EngineJob
from firesteel.engine.manifest import CheckpointFolder, Manifest, is_checkpoint
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job_to_keep
from firesteel.engine.processes import jvm_process
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.taking import abandon, copy_sources, outline
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.shipping import gather
from firesteel.engine.spark import affinity
from firesteel.engine.spark.callbacks import CallbackConnection
from firesteel.engine.spark.data_source import CONTROL, ON_HOLD, STEER, FiresteelDataSource
from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.files import pack_job, write_job
from firesteel.engine.spark.hadoop import HadoopStorage
from firesteel.engine.spark.lifeline import Lifeline
from firesteel.engine.spark.masters import is_local
from firesteel.engine.spark.query_progress import sizes
from firesteel.engine.spark.session import get_session, import_paths, ship_files
from firesteel.engine.spark.stage import batch_stage, streaming_stage
from firesteel.engine.storage import LOCAL, Storage, is_remote
from firesteel.engine.submission import Submission
from firesteel.errors import CheckpointError, ConfigurationError, JobExecutionError, SavepointError
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.driver_results import remove_results
from firesteel.runtime.snapshots.restoring import union_lists
from firesteel.runtime.snapshots.saved import StateChunk

__all__ = ["SparkJob"]

logger = logging.getLogger("firesteel")

FEW_RECORDS = 100_000
"""With no more than so many records of each source, a job is over before it would gain from a slower start."""


BATCH_MAY_TAKE = 5.0
"""Seconds that a batch gets to end when its job is suspended."""


class SparkJob(EngineJob):
    """A job whose stages are Spark's, whose state is in Spark's state store, whose log is Spark's checkpoint."""

    def __init__(self, submission: Submission) -> None:
        super().__init__(submission)
        self._directory: str | None = None
        self._results: str | None = None
        """Where tasks leave large results for the driver."""
        self._query: Any = None
        self._failure: BaseException | None = None
        self._session: SparkSession | None = None
        self._lifeline: Lifeline | None = None
        self._folder: CheckpointFolder | None = None
        self._control: ControlSocket | None = None
        self._files: JobFiles | None = None
        self._callbacks = CallbackConnection()
        self._hold = self._drain = self._stopped = False
        self._batch_done = False
        """In BATCH mode: whether the one batch is done. Then it is never repeated."""

    @property
    def processes_stay(self) -> bool:
        return affinity.available()

    @property
    def starting(self) -> str:
        return "starting Spark"

    def prepare(self) -> str:
        # 1. The job's local folder: what the source's processes read. It goes with the job.
        self._directory = tempfile.mkdtemp(prefix="job-", dir=scratch_folder())
        # 2. What cannot be pickled, and a checkpoint of another job, are found before Spark is started.
        self._files = gather(self.submission)
        IMPORTS.hold(self._files, runs_here=False)
        packed = pack_job(self.spec, import_paths(self.settings))
        remote = is_remote(self.checkpointing.folder or "")
        changed = not remote and self._claim_folder(LOCAL)
        # 3. Spark. A folder on a file system that only Spark knows can be looked at from now on.
        lasting = not all(source.ends_within(FEW_RECORDS) for source in self.spec.graph.graph.sources)
        session = self._session = get_session(self.settings, self.spec.name, lasting)
        if remote:
            changed = self._claim_folder(HadoopStorage(session))
        if changed:
            packed = pack_job(self.spec, import_paths(self.settings))
        ship_files(session, self._files)
        session.dataSource.register(FiresteelDataSource)
        # 4. The state to begin with, if there is one, and the query.
        self.restore = self.find_restore()
        if self.restore is not None:
            packed = pack_job(self.spec, import_paths(self.settings))
        self._launch(*packed)
        self._control = ControlSocket(RunningJob(self.job_id, self.spec.name, os.getpid(), time.time()), self.control)
        address = session.sparkContext.uiWebUrl
        return f"{session.sparkContext.master}" + (f", Spark's page at {address}" if address else "")

    def _claim_folder(self, storage: Storage) -> bool:
        """Makes the folder this job's. Returns whether that changed what tasks must know of the job."""
        assert self._directory is not None
        durable = self.checkpointing.folder
        backend = backend_name(self.submission.configuration, self.submission.state_backend)
        manifest = Manifest.of(self.spec.name, self.spec.graph, backend)
        sources = None
        if storage is not LOCAL:
            # Sources run beside the driver and write plain files.
            sources = os.path.join(self._directory, "sources")
            self._refuse_sources_with_files()
        place = durable or os.path.join(self._directory, "checkpoint")
        self._folder = CheckpointFolder(place, manifest, storage, sources)
        if durable is not None:
            # Before anything is looked at, let alone changed: another job may be at work there.
            jvm = jvm_process()
            self._folder.lock(Holder.here(self.spec.name, self.job_id, None if jvm is None else jvm.pid))
        if durable is not None and self._folder.claim():
            if self.restores:
                raise CheckpointError(
                    f"The job should begin with a savepoint, but its checkpoint folder {durable} holds the state of an "
                    "earlier run. Leave the savepoint out to go on from there, or name another folder, or delete it."
                )
            self.checkpoints.restored()
            self.spec = replace(self.spec, restored=True)
            if self._folder.finished:
                logger.warning(
                    "job %r had finished before: nothing is left to do from its checkpoint in %s, and this start reads "
                    "nothing. To run the job again, delete that folder or name another one.",
                    self.spec.name,
                    self._folder.path,
                )
        if durable is not None and self.commits.used:
            self.spec = replace(self.spec, lineage=job_id_of(self._folder.commits, self.job_id, storage))
        return self.spec.restored or bool(self.spec.lineage)

    def _refuse_sources_with_files(self) -> None:
        for node in self.spec.graph.graph.nodes.values():
            if isinstance(node.spec, SourceSpec) and node.spec.source.keeps_files:
                raise ConfigurationError(
                    f"Source {node.name!r} keeps what it has read in the checkpoint folder, which must be a folder of "
                    f"this machine, or mounted on it, then; it is {self.checkpointing.folder}."
                )

    def _logged(self, batch: int) -> bool:
        """Whether Spark has logged a batch. It deletes old entries, and a later one says the same."""
        assert self._folder is not None
        if self.spec.batch_mode:
            return self._batch_done
        newest = self._folder.last_commit
        return newest is not None and newest >= batch

    def _launch(self, payload: JobPayload, whole: JobPayload) -> None:
        """One attempt: its line to the workers, its files, and a query that goes on from what the folder holds."""
        session, folder = self._session, self._folder
        assert session is not None
        assert folder is not None
        assert self._directory is not None
        self._lifeline = _lifeline(session)
        # By another name than the attempt before: what is left of that in a worker is not this one's.
        payload = replace(payload, job_id=f"{self.job_id}-{self.spec.attempt}", files=self._files)
        whole = replace(whole, files=self._files)
        if self._lifeline is not None:
            payload = replace(payload, lifeline=self._lifeline.address)
        if is_local(session.sparkContext.master):
            # Tasks run on this machine.
            self._results = os.path.join(self._directory, "results")
            make_private_folder(self._results)
            payload = replace(payload, results=self._results)
        write_job(self._directory, payload, whole, self.settings, folder.sources, self.restore, self._united())
        self._steer()
        folder.clear_unless_begun()
        if self.checkpointing.folder is not None:
            folder.keep_job(pickle_job_to_keep(self.spec, whole))
        width = self.spec.graph.parallelism
        try:
            # What earlier attempts have left is settled before this one adds to it.
            self.commits.start(self.spec, folder.commits, self._logged, folder.storage, folder.check_lock)
            if self.spec.batch_mode:
                frame = session.read.format("firesteel").option("directory", self._directory).load()
                for stage in self.spec.graph.stages[1:]:
                    frame = batch_stage(frame, payload, stage.index, width)
                self._batch = frame
            else:
                session.conf.set("spark.sql.shuffle.partitions", str(width))
                folder.make_query_folder()
                frame = session.readStream.format("firesteel").option("directory", self._directory).load()
                for stage in self.spec.graph.stages[1:]:
                    frame = streaming_stage(frame, payload, stage.index, width)
                self._query = (
                    frame.writeStream.foreachBatch(self._take_for_query)
                    .option("checkpointLocation", folder.query)
                    .outputMode("update")
                    .queryName(f"{self.spec.name}-{self.job_id[:8]}")
                    .start()
                )
        except Exception as error:
            raise translate(error, None if self._folder is None else self._folder.query) from error

    def _united(self) -> list[StateChunk]:
        """What union lists hold in the last checkpoint when the job goes on from it."""
        folder = self._folder
        assert folder is not None
        assert self._session is not None
        batch = folder.last_commit
        if batch is None or not (folder.manifest.union_lists or self.inbox.progress.union_lists):
            return []
        from firesteel.engine.spark.savepoints import read_subtasks

        stages = len(self.spec.graph.stages) - 1
        stored = read_subtasks(self._session, folder.query, batch, stages, self.spec.graph.parallelism)
        return union_lists(stored, self.spec.graph)

    def _take(self, frame: DataFrame, batch: int) -> None:
        """The end of a micro-batch. A single action: touching the frame twice would compute the batch twice."""
        if self._folder is not None:
            self._folder.check_lock()
        # Spark has logged the batch before, or it would not begin this one.
        self.commits.settle()
        self.checkpoints.completed(**self.known_of_batch())
        self.checkpoints.began(batch)
        cells = frame.select("f").toArrow().column("f").to_pylist()
        self.inbox.take(batch, cells)
        if self._results is not None:
            remove_results(self._results)
        self._tell_coordinator()
        if self._folder is not None and self.checkpointing.folder is not None:
            self._folder.begun(self.inbox.progress.union_lists)

    def _take_for_query(self, frame: DataFrame, batch: int) -> None:
        """``_take`` as Spark calls it. What goes wrong is kept here, and Spark gets a short message: it searches an
        exception's text for interruptions by a pattern that overflows the stack on a text as long as a JVM trace,
        and then the query would end without saying anything."""
        try:
            self._callbacks.note(frame.sparkSession)
            self._take(frame, batch)
        except BaseException as error:
            self._fail(error)
            raise RuntimeError("the batch failed, and the driver knows why") from None

    def _fail(self, error: BaseException) -> None:
        """The first one counts: what comes after it may be its doing."""
        self._failure = self._failure or error

    def _tell_coordinator(self) -> None:
        assert self._folder is not None
        # Beside what the sources keep: a driver that starts anew goes on from there.
        make_private_folder(self._folder.sources)
        _put(os.path.join(self._folder.sources, CONTROL), json.dumps(_without_steering(self.inbox.feedback())))

    def _steer(self) -> None:
        """Tells the coordinator whether it may go on. That is not for a driver that starts anew."""
        assert self._directory is not None
        _put(os.path.join(self._directory, STEER), json.dumps({"hold": self._hold, "drain": self._drain}))

    def run(self) -> None:
        assert self._folder is not None
        watcher = CommitWatcher(self.commits, self._fail)
        try:
            if self.spec.batch_mode:
                self._run_batch()
                return
            watcher.start()
            while not self.inbox.finished.wait(0.05):
                if self.cancelled or self._stopped or self._failure is not None or not self._query.isActive:
                    break
                if self.suspending:
                    self._come_to_rest()
                    break
                self._serve_savepoints()
                self._folder.check_lock()
            self._wait_until_logged()
            self._settle_checkpoint()
            failure = self._failure or self._query.exception()
            if failure is not None:
                raise failure
            self.commits.settle()
            if self._drain and self.savepoints.stopping is not None and self.inbox.finished.is_set():
                self.answer(self.savepoints.stopping, drained=True)
            if not (self.inbox.finished.is_set() or self.cancelled or self.suspending or self._stopped):
                raise JobExecutionError("Spark's query ended before the job's input did, and did not say why.")
            if self.commits.pending and not self.cancelled:
                raise JobExecutionError(
                    "Spark has not logged the last batch in time, so its results are not committed."
                )
        except Exception as error:
            raise translate(error, None if self._folder is None else self._folder.query) from error
        finally:
            watcher.stop()
            self._stop_query()

    def _stop_query(self) -> None:
        if self._query is not None:
            # With the JVM the query is gone, too, and what ended the job is known already.
            with contextlib.suppress(OSError, Py4JError):
                self._query.stop()

    def _serve_savepoints(self) -> None:
        assert self._folder is not None
        folder = self._folder
        request = self.savepoints.take(begun=lambda: folder.last_commit is not None)
        if request is None:
            return
        if request.drain:
            # Taken when the last batch is done.
            self._drain = True
            self._steer()
        elif request.stop:
            # 1. No batch begins any more. 2. The one under way ends. 3. The savepoint. 4. If it failed, all goes on.
            if self._wait_on_hold():
                self._stopped = self.answer(request)
            else:
                self.savepoints.gave_up(request)
                request.result.set_exception(SavepointError("The job ended before it could be stopped."))
            self._hold = self._stopped
            self._steer()
        else:
            self.answer(request)

    def _come_to_rest(self) -> None:
        """For a job that is being suspended: no batch begins, and the one under way may end, if that is soon."""
        if not self._wait_on_hold(BATCH_MAY_TAKE):
            logger.info("the batch under way takes longer than %.0f s and is given up", BATCH_MAY_TAKE)
            # It comes again when the job is started again.
            self._cancel.set()

    def _wait_on_hold(self, seconds: float | None = None) -> bool:
        """Returns whether the query stands still between two batches; waits for that no longer than told, or than until
        the job is suspended."""
        assert self._directory is not None
        on_hold = os.path.join(self._directory, ON_HOLD)
        if os.path.exists(on_hold):
            os.remove(on_hold)
        self._hold = True
        self._steer()
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while self._query.isActive and not self.cancelled and time.monotonic() < deadline:
            if self.suspending and seconds is None:
                return False
            if os.path.exists(on_hold) or self.inbox.finished.is_set():
                return True
            time.sleep(0.02)
        return False

    def take_savepoint(self, target: Place, drained: bool) -> None:
        assert self._folder is not None
        batch = self._first_commit()
        try:
            self._save(batch, target, drained)
        except Exception as error:
            if self._folder.last_commit == batch or not self._wait_on_hold():
                raise
            # The job has gone on, and where few checkpoints are retained this one's files are gone by now.
            logger.info("the job waits for its savepoint: batch %d could not be read while it ran (%s)", batch, error)
            abandon(target)
            try:
                self._save(self._first_commit(), target, drained)
            finally:
                self._hold = False
                self._steer()

    def _save(self, batch: int, target: Place, drained: bool) -> None:
        folder, session = self._folder, self._session
        assert folder is not None
        assert session is not None
        # Loads Arrow, which the start of a job need not wait for.
        from firesteel.engine.savepoints.writing import complete
        from firesteel.engine.spark.savepoints import write_state

        # What the batch prepared is not in the savepoint: it must be visible before one can begin with it.
        self.commits.settle()
        offset = folder.offset(batch)
        known = folder.manifest
        stages = len(self.spec.graph.stages) - 1
        parts = write_state(session, folder.query, batch, stages, known.width, target, self.spec.tables)
        copy_sources(folder.sources, target)
        if self.inbox.progress.batch_time == offset["time"]:
            # The offset knows event time as it was before the batch, the driver as it was after it.
            offset = {**offset, "kept": {**offset.get("kept", {}), **self.inbox.progress.kept}}
        complete(target, outline(known, self.job_id, batch, offset, drained), parts)

    def _first_commit(self) -> int:
        """The last batch in Spark's log; waits for the first one."""
        assert self._folder is not None
        while True:
            batch = self._folder.last_commit
            if batch is not None:
                return batch
            if self.cancelled or not self._query.isActive:
                raise SavepointError("The job ended before its first batch was done.")
            time.sleep(0.05)

    def readable(self, path: str) -> str:
        assert self._directory is not None
        assert self._session is not None
        storage = HadoopStorage(self._session) if is_remote(path) else LOCAL
        if not is_checkpoint(path, storage):
            return path
        from firesteel.engine.spark.savepoints import savepoint_of_checkpoint

        target = Place.of(os.path.join(self._directory, "restored"))
        savepoint_of_checkpoint(self._session, path, target, storage)
        return target.address

    def _run_batch(self) -> None:
        """BATCH mode. What is done is not done again where only a sink's commit failed."""
        if not self._batch_done:
            assert self._session is not None
            # A group of its own, so that cancelling this job cancels no other.
            self._session.sparkContext.setJobGroup(self.job_id, self.spec.name, interruptOnCancel=True)
            self._take(self._batch, 0)
            self._batch_done = True
            self._settle_checkpoint(0)
        self.commits.settle()

    def _wait_until_logged(self) -> None:
        """The last batch is taken, but the query still has to write it into its commit log, and to tell of it. After a
        failed commit the same: the next batch, if one begins, fails before its tasks run."""
        deadline = time.monotonic() + 30
        while self._query.isActive and not self.cancelled and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"] and all(map(self._logged, self.commits.pending)):
                return
            time.sleep(0.01)

    def _settle_checkpoint(self, committed: int | None = None) -> None:
        """Whether the batch that was taken last is in Spark's log, too."""
        assert self._folder is not None
        if committed is None:
            committed = self._folder.last_commit
        current = self.checkpoints.current
        if current is not None and committed is not None and current <= committed:
            self.checkpoints.completed(**self.known_of_batch())
        self._learn_sizes()

    def _learn_sizes(self) -> None:
        if self._query is not None:
            for batch, known in sizes(self._query).items():
                self.checkpoints.learnt(batch, **known)

    def get_checkpoint_statistics(self) -> CompletableFuture[CheckpointStatistics]:
        if self._thread.is_alive():
            self._learn_sizes()
        return super().get_checkpoint_statistics()

    def restartable(self, error: BaseException) -> bool:
        return super().restartable(error) and self._spark_lives()

    def _spark_lives(self) -> bool:
        """A job cannot bring back the JVM that it runs in."""
        try:
            return self._session is not None and not self._session.sparkContext._jsc.sc().isStopped()
        except Exception:
            return False

    def end_attempt(self) -> None:
        self._end_line()
        self._callbacks.close()

    def restart(self) -> None:
        super().restart()
        self._failure = None
        self._launch(*pack_job(self.spec, import_paths(self.settings)))

    def interrupt(self) -> None:
        if self._query is not None:
            self._stop_query()
        elif self._session is not None:
            self._session.sparkContext.cancelJobGroup(self.job_id)

    def _end_line(self) -> None:
        line, self._lifeline = self._lifeline, None
        if line is not None:
            # After the last batch there is nothing left to close; after a failure or a cancellation there is.
            for failed in line.end():
                logger.warning("closing the functions of job %r: %s", self.spec.name, failed)

    def clean_up(self) -> None:
        if self._query is not None:
            # Still active only where the start itself was interrupted.
            with contextlib.suppress(Exception):
                self._query.stop()
        if self._control is not None:
            self._control.close()
        self._end_line()
        # Now that nothing runs any more.
        self._callbacks.close()
        self.commits.end()
        IMPORTS.release(self._files)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def dispose(self, status: JobStatus) -> None:
        if self._folder is None or self.checkpointing.folder is None or self.checkpointing.stays(status):
            return
        if self.commits.pending:
            logger.warning("job %r leaves results that are not committed; %s stays", self.spec.name, self._folder.path)
            return
        self._folder.check_lock()
        self._folder.delete()
        if status is JobStatus.CANCELED:
            logger.warning(
                "job %r was cancelled, and its checkpoint in %s was deleted. RETAIN_ON_CANCELLATION would keep it.",
                self.spec.name,
                self._folder.path,
            )

    def release(self) -> None:
        if self._folder is not None:
            self._folder.release()

    @property
    def kept_in(self) -> str | None:
        return self.checkpointing.folder


def _without_steering(feedback: CoordinatorFeedback) -> dict[str, Any]:
    return {name: value for name, value in asdict(feedback).items() if name not in ("hold", "drain")}


def _put(path: str, text: str) -> None:
    with open_private(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _lifeline(session: SparkSession) -> Lifeline | None:
    """On the address by which Spark's executors reach the driver. Jobs run without it, too."""
    conf = session.sparkContext.getConf()
    host = str(conf.get("spark.driver.host", "127.0.0.1"))
    try:
        return Lifeline(host, str(conf.get("spark.driver.bindAddress", host)))
    except OSError as error:
        logger.warning("cannot listen on %s (%s): close() will not be called if the job is cancelled", host, error)
        return None
