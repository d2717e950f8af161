"""A submitted job and the client that watches and steers it."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.common.checkpoint_statistics import CheckpointStatistics
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.common.tracebacks import shortened
from firesteel.engine.backends import table_factory
from firesteel.engine.checkpoint_log import CheckpointLog
from firesteel.engine.checkpointing import Checkpointing
from firesteel.engine.commits import Commits
from firesteel.engine.inbox import Inbox
from firesteel.engine.interrupts import handle_termination, second_signal_ends_at_once, suspended_at_exit
from firesteel.engine.manifest import is_checkpoint
from firesteel.engine.progress import ProgressLine
from firesteel.engine.restarts import restarts_of
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.requests import SavepointRequest, SavepointRequests
from firesteel.engine.savepoints.taking import abandon, new_place
from firesteel.engine.settings import Settings
from firesteel.engine.submission import Submission
from firesteel.errors import FailureKind, JobCancelledError, JobSuspendedError, SavepointError, kind_of
from firesteel.runtime.task import JobSpec

__all__ = ["EngineJob", "job_spec"]

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore

logger = logging.getLogger("firesteel")

RESTORE_PATHS = ("execution.state-recovery.path", "execution.savepoint.path")
IGNORE_UNCLAIMED = ("execution.state-recovery.ignore-unclaimed-state", "execution.savepoint.ignore-unclaimed-state")


def job_spec(submission: Submission, job_id: str = "", processes_stay: bool = True) -> JobSpec:
    """What workers must know of a submission."""
    configuration = submission.configuration
    return JobSpec(
        job_id=job_id,
        name=submission.name,
        graph=submission.graph,
        batch_mode=submission.batch_mode,
        job_parameters=submission.job_parameters,
        tables=table_factory(configuration, submission.state_backend, submission.graph, processes_stay),
        frames_memory=Settings.of(configuration).frames_memory,
        max_record=Settings.of(configuration).max_record,
        crash_points=Settings.of(configuration).crash_points,
    )


class EngineJob(JobClient):
    """One run of a job. Subclasses say how it is run; this says how it is watched."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.settings = Settings.of(submission.configuration)
        self.job_id = uuid.uuid4().hex
        self.spec = job_spec(submission, self.job_id, self.processes_stay)
        self.checkpointing = Checkpointing.of(submission.configuration, submission.name, submission.batch_mode)
        self.restarts = restarts_of(submission.configuration, self.checkpointing.enabled)
        self.checkpoints = CheckpointLog()
        self.commits = Commits(self.spec)
        self.inbox = Inbox(self.spec, self.commits.log)
        self.savepoints = SavepointRequests()
        self.restore: Restore | None = None
        """The savepoint that the job begins with."""
        self._status = JobStatus.CREATED
        self._result: Future[JobExecutionResult] = Future()
        self._cancel = self.inbox.cancelled
        self.suspending = False
        """Whether the job is to come to rest after the batch that is under way."""
        self._deciding = threading.Lock()
        self._began = time.monotonic()
        self._line = ProgressLine(submission.name, self.inbox.progress, self.settings.progress)
        self._thread = threading.Thread(target=self._main, name=f"firesteel-{submission.name}", daemon=True)

    # How it is run

    @property
    def processes_stay(self) -> bool:
        """Whether a subtask finds what its last batch left in memory."""
        return True

    @property
    def starting(self) -> str:
        """What the user waits for while the job is prepared."""
        return "starting"

    @abstractmethod
    def prepare(self) -> str:
        """Gets everything ready; returns a few words on where the job runs."""

    @abstractmethod
    def run(self) -> None:
        """Runs the job to its end, or until ``cancelled``."""

    @abstractmethod
    def interrupt(self) -> None:
        """Makes a ``run`` that is under way return soon."""

    @property
    def restores(self) -> str:
        """The savepoint or checkpoint that the configuration tells to begin with; empty if there is none."""
        configuration = self.submission.configuration
        return next((found for key in RESTORE_PATHS if (found := configuration.get_string(key, ""))), "")

    def find_restore(self) -> Restore | None:
        """The savepoint that the configuration names, checked against the program."""
        configuration, path = self.submission.configuration, self.restores
        if not path:
            return None
        # Loads Arrow, which a job that begins with nothing need not wait for.
        from firesteel.engine.savepoints.restoring import Restore

        if self.spec.batch_mode:
            raise SavepointError("A job in BATCH mode cannot begin with a savepoint: it has no state to go on with.")
        lenient = any(configuration.get_boolean(key, False) for key in IGNORE_UNCLAIMED)
        restore = Restore.of(self.readable(path), self.spec.graph, lenient)
        self.spec = replace(self.spec, restored=True)
        self.checkpoints.restored()
        logger.info("job %r begins with the savepoint %s", self.spec.name, path)
        return restore

    def readable(self, path: str) -> str:
        """The address of a savepoint: ``path`` itself, or one made of the checkpoint that is there."""
        if is_checkpoint(path):
            raise SavepointError(
                f"{path} is a checkpoint. Its state is in Spark's state store, which the engine in memory cannot read."
            )
        return path

    @abstractmethod
    def take_savepoint(self, target: Place, drained: bool) -> None:
        """Writes all state of the last batch that is done."""

    def end_attempt(self) -> None:
        """After a failure that will be followed by a restart: lets go of the attempt's tasks and of what they did."""

    def restart(self) -> None:
        """Gets everything ready for one more ``run``, which goes on from the last checkpoint."""
        self.spec = replace(self.spec, attempt=self.spec.attempt + 1, restored=True)
        self.inbox.restart()
        self.checkpoints.restored()

    def restartable(self, error: BaseException) -> bool:
        """Whether another attempt may end otherwise."""
        return kind_of(error) is FailureKind.PASSING

    def clean_up(self) -> None:
        """Called once at the end, whatever it was."""

    def dispose(self, status: JobStatus) -> None:
        """Called after that, when it is known how the job ended: keeps or deletes what is durable."""

    def release(self) -> None:
        """Called last: others may have what this job held for itself."""

    @property
    def kept_in(self) -> str | None:
        """Where a later start finds what it needs to go on; None where nothing is kept."""
        return None

    @property
    def cancelled(self) -> bool:
        return self._cancel.is_set()

    def start(self) -> EngineJob:
        """Prepares in the caller's thread, where errors belong, then runs in the background."""
        handle_termination()
        self._line.start(self.starting)
        try:
            where = self.prepare()
            self._line.started()
            self._status = JobStatus.RUNNING
            self._began = time.monotonic()
            mode = "BATCH" if self.spec.batch_mode else "STREAMING"
            logger.info(
                "job %r (%s) starts in %s mode, parallelism %d, on %s",
                self.spec.name,
                self.job_id,
                mode,
                self.spec.graph.parallelism,
                where,
            )
            suspended_at_exit(self, running=True)
            self._thread.start()
        except BaseException as error:
            if not self._thread.is_alive():
                with second_signal_ends_at_once():
                    suspended_at_exit(self, running=False)
                    self._line.stop()
                    self._guarded(self.clean_up)
                    self._guarded(self.release)
            raise shortened(error, self.settings.full_trace)  # noqa: B904 - it decides about causes
        return self

    def _main(self) -> None:
        try:
            error = self._attempts()
        finally:
            self._line.stop()
        error = None if error is None else shortened(error, self.settings.full_trace)
        self.savepoints.close(self._how_it_ended(error))
        self._guarded(self.clean_up)
        runtime = int((time.monotonic() - self._began) * 1000)
        stopped = self._settle(error)
        if self.suspending and error is not None:
            # Of a batch that was given up nothing else is to be expected.
            logger.log(
                logging.DEBUG if self.cancelled else logging.WARNING,
                "job %r failed while it was stopped: %s",
                self.spec.name,
                _in_a_line(error),
            )
        self._guarded(lambda: self.dispose(self._status))
        self._guarded(self.release)
        self._report_end(runtime)
        suspended_at_exit(self, running=False)
        self.inbox.end(None if stopped else error)
        error = stopped or error
        if error is not None:
            self._result.set_exception(error)
        else:
            self._result.set_result(JobExecutionResult(JobID(self.job_id), runtime, dict(self.inbox.progress.metrics)))

    def _attempts(self) -> BaseException | None:
        """Runs the job, again after each failure as long as the restart strategy allows. Returns the last error."""
        error = self._attempt(self.run)
        while error is not None and not self.cancelled and not self.suspending:
            self.checkpoints.failed(_in_a_line(error))
            pause = self.restarts.after(time.monotonic()) if self.restartable(error) else None
            if pause is None or not self._turn(JobStatus.RUNNING, JobStatus.RESTARTING):
                break
            logger.warning(
                "job %r failed; attempt %d starts in %.1f s from the last checkpoint. The cause: %s",
                self.spec.name,
                self.spec.attempt + 1,
                pause,
                _in_a_line(error),
            )
            self._guarded(self.end_attempt)
            if self._cancel.wait(pause):
                break
            error = self._attempt(self._run_again)
        return error

    @staticmethod
    def _attempt(run: Callable[[], None]) -> BaseException | None:
        try:
            run()
        except BaseException as failure:
            return failure
        return None

    def _run_again(self) -> None:
        # RUNNING comes first, so that a failure here is a failure of this attempt like any other.
        if self._turn(JobStatus.RESTARTING, JobStatus.RUNNING):
            self.restart()
            self.run()

    def _turn(self, before: JobStatus, after: JobStatus) -> bool:
        """Changes the status, unless somebody was faster and has cancelled the job."""
        with self._deciding:
            if self._status is before:
                self._status = after
        return self._status is after

    def _settle(self, error: BaseException | None) -> JobCancelledError | None:
        """Decides once how the job ended. Returns what those learn who wait for a job that was stopped."""
        name = self.spec.name
        with self._deciding:
            if self.suspending:
                self._status = JobStatus.SUSPENDED
                return JobSuspendedError(f"Job {name!r} was stopped. {self._how_to_go_on()}")
            if self.cancelled:
                self._status = JobStatus.CANCELED
                return JobCancelledError(f"Job {name!r} was cancelled.")
            self._status = JobStatus.FINISHED if error is None else JobStatus.FAILED
        return None

    def _how_it_ended(self, error: BaseException | None) -> str:
        if self.suspending:
            return "was stopped"
        return "was cancelled" if self.cancelled else "has ended" if error is None else "has failed"

    def _how_to_go_on(self) -> str:
        if self.kept_in is None:
            return "It keeps no checkpoint, so a new start begins anew."
        return f"Its checkpoint stays in {self.kept_in}: the same program goes on from there."

    def _report_end(self, runtime: int) -> None:
        records = self.inbox.progress.records
        rate = records / max(runtime / 1000, 0.001)
        text = (
            f"job {self.spec.name!r} {self._status.name.lower()} after {runtime / 1000:.1f} s: {records:,} records, "
            f"{rate:,.0f} records/s, {self.inbox.progress.batches} batches"
        )
        logger.info("%s", text)
        if not logger.isEnabledFor(logging.INFO):
            self._line.summary(text)
        if self._status is JobStatus.SUSPENDED:
            logger.warning("job %r was stopped. %s", self.spec.name, self._how_to_go_on())

    @staticmethod
    def _guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            logger.warning("cleaning up after the job failed", exc_info=True)

    # How it is watched

    def get_job_id(self) -> JobID:
        return JobID(self.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        done: Future[JobStatus] = Future()
        done.set_result(self._status)
        return CompletableFuture(done)

    def cancel(self) -> CompletableFuture[None]:
        done: Future[None] = Future()
        with self._deciding:
            running = self._status in (JobStatus.RUNNING, JobStatus.RESTARTING)
            if running:
                self._status = JobStatus.CANCELLING
                self._cancel.set()
        if running:
            self.interrupt()
        if self._thread.is_alive():
            self._thread.join()
        done.set_result(None)
        return CompletableFuture(done)

    SUSPENDED_WITHIN = 60.0
    """Seconds after which nobody waits any longer for a job to come to rest."""

    def suspend(self) -> None:
        """Stops the job so that a later start goes on from where it is; returns when it has stopped.

        The batch that is under way gets a few seconds to end. Sinks commit what complete batches have prepared, and
        the checkpoint stays, whatever the retention says: that is for jobs that are cancelled.
        """
        with second_signal_ends_at_once():
            with self._deciding:
                if self._status in (JobStatus.RUNNING, JobStatus.RESTARTING):
                    self.suspending = True
                    # Between two attempts no batch is under way, and a BATCH job has nothing to come to rest after.
                    if self._status is JobStatus.RESTARTING or self.spec.batch_mode:
                        self._cancel.set()
            if self.suspending and self.cancelled:
                self.interrupt()
            if self._thread.is_alive():
                self._thread.join(self.SUSPENDED_WITHIN)
            if self._thread.is_alive():
                logger.warning(
                    "job %r did not stop within %.0f s. %s", self.spec.name, self.SUSPENDED_WITHIN, self._how_to_go_on()
                )

    def wait(self) -> JobExecutionResult:
        """Waits for the job's end. A signal that comes meanwhile suspends the job."""
        try:
            return self._result.result()
        except (KeyboardInterrupt, SystemExit) as signalled:
            self.suspend()
            # Where this process happened to wait is of no interest.
            raise signalled.with_traceback(None) from None

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        done: Future[dict[str, Any]] = Future()
        done.set_result(dict(self.inbox.progress.metrics))
        return CompletableFuture(done)

    def known_of_batch(self) -> dict[str, Any]:
        """What the last batch's tasks reported that belongs to its checkpoint."""
        progress = self.inbox.progress
        return {"records": progress.batch_records, "operator_state_sizes": progress.state_sizes}

    def get_checkpoint_statistics(self) -> CompletableFuture[CheckpointStatistics]:
        done: Future[CheckpointStatistics] = Future()
        done.set_result(self.checkpoints.statistics())
        return CompletableFuture(done)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self._request(savepoint_directory, stop=True, drain=advance_to_end_of_event_time)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self._request(savepoint_directory)

    def _request(self, directory: str | None, stop: bool = False, drain: bool = False) -> CompletableFuture[str]:
        if self.spec.batch_mode:
            raise SavepointError("A job in BATCH mode has no savepoints: it has one batch.")
        request = SavepointRequest(new_place(directory, self.submission.configuration, self.job_id), stop, drain)
        self.savepoints.put(request)
        return CompletableFuture(request.result)

    def answer(self, request: SavepointRequest, drained: bool = False) -> bool:
        """Takes a savepoint that was asked for. Returns whether it came about; whoever asked knows it, too."""
        began = time.monotonic()
        try:
            self.take_savepoint(request.target, drained)
        except BaseException as error:
            abandon(request.target)
            logger.warning("the savepoint %s failed: %s", request.target.address, _in_a_line(error))
            self.savepoints.gave_up(request)
            request.result.set_exception(error)
            return False
        logger.info("savepoint %s was taken in %.1f s", request.target.address, time.monotonic() - began)
        request.result.set_result(request.target.address)
        return True

    def control(self, request: dict[str, Any]) -> dict[str, Any]:
        """What another process of this user asks for (see :mod:`firesteel.engine.control`)."""
        command, directory = request["command"], request.get("directory")
        if command == "savepoint":
            return {"path": self.trigger_savepoint(directory).result()}
        if command == "stop":
            return {"path": self.stop_with_savepoint(bool(request.get("drain")), directory).result()}
        if command == "cancel":
            self.cancel()
        progress = self.inbox.progress
        return {"status": self._status.name, "records": progress.records, "batches": progress.batches}

    def collect(self, channel: str) -> Iterator[Any]:
        """The records of an ``execute_and_collect``."""
        yield from self.inbox.collect(channel)

    def stop_collecting(self, interrupted: bool = False) -> None:
        """Nobody reads any longer: ends the job if it still runs. Only an orderly end of the reader cancels it."""
        if self._thread.is_alive():
            if interrupted:
                # What is read by nobody must not hold up the batch under way.
                self.inbox.discard()
                self.suspend()
            else:
                self.cancel()


def _in_a_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 500 else text[:499] + "…"
