"""A submitted job and the client that watches and steers it."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.engine.backends import table_factory
from firesteel.engine.inbox import Inbox
from firesteel.engine.progress import ProgressLine
from firesteel.engine.settings import Settings
from firesteel.engine.submission import Submission
from firesteel.errors import JobCancelledError, ProgramError
from firesteel.runtime.task import JobSpec

__all__ = ["EngineJob"]

logger = logging.getLogger("firesteel")


class EngineJob(JobClient):
    """One run of a job. Subclasses say how it is run; this says how it is watched."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.settings = Settings.of(submission.configuration)
        self.job_id = uuid.uuid4().hex
        self.spec = JobSpec(
            job_id=self.job_id,
            name=submission.name,
            graph=submission.graph,
            batch_mode=submission.batch_mode,
            job_parameters=submission.job_parameters,
            tables=table_factory(
                submission.configuration, submission.state_backend, submission.graph, self.processes_stay
            ),
            frames_memory=self.settings.frames_memory,
        )
        self.inbox = Inbox(self.spec)
        self._status = JobStatus.CREATED
        self._result: Future[JobExecutionResult] = Future()
        self._cancel = self.inbox.cancelled
        self._deciding = threading.Lock()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._main, name=f"firesteel-{submission.name}", daemon=True)

    # How it is run

    @property
    def processes_stay(self) -> bool:
        """Whether a subtask finds what its last batch left in memory."""
        return True

    @abstractmethod
    def prepare(self) -> str:
        """Gets everything ready; returns a few words on where the job runs."""

    @abstractmethod
    def run(self) -> None:
        """Runs the job to its end, or until ``cancelled``."""

    @abstractmethod
    def interrupt(self) -> None:
        """Makes a ``run`` that is under way return soon."""

    def clean_up(self) -> None:
        """Called once at the end, whatever it was."""

    @property
    def cancelled(self) -> bool:
        return self._cancel.is_set()

    def start(self) -> EngineJob:
        """Prepares in the caller's thread, where errors belong, then runs in the background."""
        try:
            where = self.prepare()
        except BaseException:
            self.clean_up()
            raise
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
        self._thread.start()
        return self

    def _main(self) -> None:
        error: BaseException | None = None
        line = ProgressLine(self.spec.name, self.inbox.progress, self.settings.progress)
        line.start()
        try:
            self.run()
        except BaseException as failure:
            error = failure
        finally:
            line.stop()
        self._guarded(self.clean_up)
        runtime = int((time.monotonic() - self._began) * 1000)
        cancelled = self._settle(error)
        self._say_goodbye(runtime)
        self.inbox.end(None if cancelled else error)
        if cancelled:
            error = JobCancelledError(f"Job {self.spec.name!r} was cancelled.")
        if error is not None:
            self._result.set_exception(error)
        else:
            self._result.set_result(JobExecutionResult(JobID(self.job_id), runtime, dict(self.inbox.progress.metrics)))

    def _settle(self, error: BaseException | None) -> bool:
        """Decides once how the job ended. Returns whether it was cancelled."""
        with self._deciding:
            if self.cancelled:
                self._status = JobStatus.CANCELED
            else:
                self._status = JobStatus.FINISHED if error is None else JobStatus.FAILED
        return self._status is JobStatus.CANCELED

    def _say_goodbye(self, runtime: int) -> None:
        records = self.inbox.progress.records
        rate = records / max(runtime / 1000, 0.001)
        logger.info(
            "job %r %s after %.1f s: %s records, %s records/s, %d batches",
            self.spec.name,
            self._status.name.lower(),
            runtime / 1000,
            f"{records:,}",
            f"{rate:,.0f}",
            self.inbox.progress.batches,
        )

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
            running = self._status is JobStatus.RUNNING
            if running:
                self._status = JobStatus.CANCELLING
                self._cancel.set()
        if running:
            self.interrupt()
        if self._thread.is_alive():
            self._thread.join()
        done.set_result(None)
        return CompletableFuture(done)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        done: Future[dict[str, Any]] = Future()
        done.set_result(dict(self.inbox.progress.metrics))
        return CompletableFuture(done)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        raise ProgramError("Savepoints are not part of this version. Use cancel().")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        raise ProgramError("Savepoints are not part of this version.")

    def collect(self, channel: str) -> Iterator[Any]:
        """The records of an ``execute_and_collect``."""
        yield from self.inbox.collect(channel)

    def stop_collecting(self) -> None:
        """Nobody reads any longer: ends the job if it still runs."""
        if self._thread.is_alive():
            self.cancel()
