"""A submitted job: runs it in the background, again after failures, and is the client that watches and steers it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.common.checkpoint_statistics import CheckpointStatistics
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.common.private_files import replace_file
from firesteel.common.tracebacks import shortened
from firesteel.engine.clean_up import guarded
from firesteel.engine.control import ControlSocket, RunningJob
from firesteel.engine.facade.commands import COMMANDS
from firesteel.engine.facade.encoding import encoded
from firesteel.engine.facade.local import LocalJob
from firesteel.engine.inbox import Inbox
from firesteel.engine.interrupts import handle_termination, second_signal_ends_at_once, suspended_at_exit
from firesteel.engine.job_context import JobContext
from firesteel.engine.job_log import job_thread, working_for
from firesteel.engine.job_records import record_content, write_record
from firesteel.engine.job_run import Engine, JobRun
from firesteel.engine.lifecycle import Lifecycle
from firesteel.engine.progress import ProgressLine
from firesteel.engine.restarts import restarts_of
from firesteel.engine.savepoints.requests import SavepointRequest
from firesteel.engine.savepoints.taking import new_place
from firesteel.engine.submission import Submission
from firesteel.errors import JobCancelledError, JobSuspendedError, SavepointError, in_a_line

if TYPE_CHECKING:
    from firesteel.engine.reporting import Reporting

__all__ = ["EngineJob"]

logger = logging.getLogger("firesteel")

T = TypeVar("T")


class EngineJob(JobClient):
    """One job from its start to its end. The engine says how it is run; this says when, and how it is watched."""

    def __init__(self, submission: Submission, engine: Engine) -> None:
        self.engine = engine
        self.context = JobContext(submission, engine.processes_stay)
        self.life = Lifecycle()
        self.facade = LocalJob(self)
        """The job as the command line and servers see it."""
        self._restarts = restarts_of(submission.configuration, self.context.checkpointing.enabled)
        self._where = ""
        self.reporting: Reporting | None = None
        """What sends the job's metrics elsewhere, if anything does."""
        self._run: JobRun | None = None
        """What the engine has prepared."""
        self._result: Future[JobExecutionResult] = Future()
        self._began = time.monotonic()
        self._line = ProgressLine(submission.name, self.inbox.progress, self.context.settings.progress)
        self._thread: threading.Thread | None = None
        self._start_is_over = threading.Event()

    @property
    def job_id(self) -> str:
        return self.context.job_id

    @property
    def where(self) -> str:
        """A short description of where the job runs."""
        return self._where

    @property
    def inbox(self) -> Inbox:
        return self.context.inbox

    # How it is run

    def start(self) -> EngineJob:
        """Prepares in the caller's thread, where errors belong, then runs in the background."""
        with working_for(self.job_id):
            return self._start()

    def _start(self) -> EngineJob:
        handle_termination()
        self._line.start(self.engine.starting)
        context = self.context
        try:
            context.log.start()
            run = self._run = self.engine.prepare(context)
            self._where = run.where
            self._line.started()
            self.life.become(JobStatus.RUNNING)
            self._began = time.monotonic()
            logger.info(
                "job %r (%s) starts in %s mode, parallelism %d, on %s",
                context.name,
                self.job_id,
                "BATCH" if context.spec.batch_mode else "STREAMING",
                context.spec.graph.parallelism,
                self._where,
            )
            descriptor = RunningJob(self.job_id, context.name, os.getpid(), time.time(), self.engine.name)
            context.at_release.add(ControlSocket(descriptor, self.facade.answer).close)
            self.reporting = self._start_reporting(run)
            suspended_at_exit(self, running=True)
            self._thread = job_thread(partial(self._main, run), f"firesteel-{context.name}")
            self._thread.start()
        except BaseException as error:
            if not self._works:
                with second_signal_ends_at_once():
                    suspended_at_exit(self, running=False)
                    self._line.stop()
                    context.at_end.run()
                    context.at_release.run()
                    context.log.stop()
            raise shortened(error, context.settings.full_trace)  # noqa: B904 - it decides about causes
        finally:
            self._start_is_over.set()
        return self

    def _start_reporting(self, run: JobRun) -> Reporting | None:
        settings = self.context.submission.configuration.to_dict()
        if not any(key.startswith("metrics.reporter.") for key in settings):
            return None
        # Most jobs have none, and need not wait until it is loaded.
        from firesteel.engine.reporting import Reporting

        reporting = Reporting(self.facade, settings, run.jvm)
        self.context.at_release.add(reporting.close)
        return reporting

    @property
    def _works(self) -> bool:
        """Whether the job's thread has something left to do."""
        return self._thread is not None and self._thread.is_alive()

    def _main(self, run: JobRun) -> None:
        context = self.context
        try:
            error = self._attempts(run)
        finally:
            self._line.stop()
        error = None if error is None else shortened(error, context.settings.full_trace)
        context.savepoints.close(self._how_it_ended(error))
        context.at_end.run()
        runtime = int((time.monotonic() - self._began) * 1000)
        stopped = self._settle(error)
        if context.suspending and error is not None:
            # Of a batch that was given up nothing else is to be expected.
            logger.log(
                logging.DEBUG if context.cancelled else logging.WARNING,
                "job %r failed while it was stopped: %s",
                context.name,
                in_a_line(error),
            )
        guarded(lambda: run.dispose(self.life.status))
        guarded(self._keep_record)
        context.at_release.run()
        self._report_end(runtime)
        guarded(context.log.stop)
        suspended_at_exit(self, running=False)
        self.inbox.end(None if stopped else error)
        error = stopped or error
        if error is not None:
            self._result.set_exception(error)
        else:
            self._result.set_result(JobExecutionResult(JobID(self.job_id), runtime, dict(self.inbox.progress.metrics)))

    def _keep_record(self) -> None:
        """What can be asked of the job when it has ended. Before others learn of its end: they may ask then."""
        asked = (command() for command in COMMANDS.values() if not command.changes and not command.parts)
        answers = {command.name: encoded(self.facade.execute(command)) for command in asked}
        write_record(self.facade.status(), answers)
        if self.context.settings.records_folder:
            # Forced to disk: what the job manager does next depends on it.
            path = os.path.join(self.context.settings.records_folder, f"{self.job_id}.json")
            replace_file(path, record_content(answers), durable=True)

    def _attempts(self, run: JobRun) -> BaseException | None:
        """Runs the job, again after each failure as long as the restart strategy allows. Returns the last error."""
        context = self.context
        error = _failure_of(run.run)
        while error is not None and not context.cancelled and not context.suspending:
            context.checkpoints.failed(in_a_line(error))
            context.batches.failed()
            context.failures.add(error, context.spec.attempt)
            pause = self._restarts.after(time.monotonic()) if run.restartable(error) else None
            if pause is None or not self.life.turn(JobStatus.RUNNING, JobStatus.RESTARTING):
                break
            logger.warning(
                "job %r failed; attempt %d starts in %.1f s from the last checkpoint. The cause: %s",
                context.name,
                context.spec.attempt + 1,
                pause,
                in_a_line(error),
            )
            guarded(run.end_attempt)
            if context.cancel.wait(pause):
                break
            error = _failure_of(lambda: self._run_again(run))
        return error

    def _run_again(self, run: JobRun) -> None:
        # RUNNING comes first, so that a failure here is a failure of this attempt like any other.
        if self.life.turn(JobStatus.RESTARTING, JobStatus.RUNNING):
            context = self.context
            context.spec = replace(context.spec, attempt=context.spec.attempt + 1, restored=True)
            context.inbox.restart()
            context.checkpoints.restored()
            context.failures.restarted()
            run.begin_attempt()
            run.run()

    def _settle(self, error: BaseException | None) -> JobCancelledError | None:
        """Decides once how the job ended. Returns what those learn who wait for a job that was stopped."""
        name = self.context.name
        with self.life.deciding:
            if self.context.suspending:
                self.life.become(JobStatus.SUSPENDED)
                return JobSuspendedError(f"Job {name!r} was stopped. {self._how_to_go_on()}")
            if self.context.cancelled:
                self.life.become(JobStatus.CANCELED)
                return JobCancelledError(f"Job {name!r} was cancelled.")
            self.life.become(JobStatus.FINISHED if error is None else JobStatus.FAILED)
        return None

    def _how_it_ended(self, error: BaseException | None) -> str:
        if self.context.suspending:
            return "was stopped"
        return "was cancelled" if self.context.cancelled else "has ended" if error is None else "has failed"

    def _how_to_go_on(self) -> str:
        kept_in = None if self._run is None else self._run.kept_in
        if kept_in is None:
            return "It keeps no checkpoint, so a new start begins anew."
        return f"Its checkpoint stays in {kept_in}: the same program goes on from there."

    def _report_end(self, runtime: int) -> None:
        progress, status = self.inbox.progress, self.life.status
        rate = progress.records / max(runtime / 1000, 0.001)
        text = (
            f"job {self.context.name!r} {status.name.lower()} after {runtime / 1000:.1f} s: {progress.records:,} "
            f"records, {rate:,.0f} records/s, {progress.batches} batches"
        )
        logger.info("%s", text)
        if not logger.isEnabledFor(logging.INFO):
            self._line.summary(text)
        if status is JobStatus.SUSPENDED:
            logger.warning("job %r was stopped. %s", self.context.name, self._how_to_go_on())

    # How it is watched

    def get_job_id(self) -> JobID:
        return JobID(self.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return _done(self.life.status)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return _done(dict(self.inbox.progress.metrics))

    def get_checkpoint_statistics(self) -> CompletableFuture[CheckpointStatistics]:
        self.update_statistics()
        return _done(self.context.checkpoints.statistics())

    def update_statistics(self) -> None:
        """Before somebody looks at checkpoints or batches: adds what the engine knows of them meanwhile."""
        if self._run is not None and self._works:
            self._run.update_statistics()

    def wait(self) -> JobExecutionResult:
        """Waits for the job's end. A signal that comes meanwhile suspends the job."""
        try:
            return self._result.result()
        except (KeyboardInterrupt, SystemExit) as signalled:
            self.suspend()
            # Where this process happened to wait is of no interest.
            raise signalled.with_traceback(None) from None

    def collect(self, channel: str) -> Iterator[Any]:
        """The records of an ``execute_and_collect``."""
        yield from self.inbox.collect(channel)

    # How it is steered

    def cancel(self) -> CompletableFuture[None]:
        with self.life.deciding:
            running = self.life.alive
            if running:
                self.life.become(JobStatus.CANCELLING)
                self.context.cancel.set()
        if running and self._run is not None:
            self._run.interrupt()
        self._join()
        return _done(None)

    def suspend(self) -> None:
        """Stops the job so that a later start goes on from where it is; returns when it has stopped.

        The batch that is under way gets a few seconds to end. Sinks commit what complete batches have prepared, and
        the checkpoint stays, whatever the retention says: that is for jobs that are cancelled.
        """
        context, seconds = self.context, self.engine.suspends_within
        with second_signal_ends_at_once():
            with self.life.deciding:
                if self.life.alive:
                    context.suspending = True
                    # Between two attempts no batch is under way, and a BATCH job has nothing to come to rest after.
                    if self.life.status is JobStatus.RESTARTING or context.spec.batch_mode:
                        context.cancel.set()
            if context.suspending and context.cancelled and self._run is not None:
                self._run.interrupt()
            self._join(seconds)
            if self._works:
                logger.warning("job %r did not stop within %.0f s. %s", context.name, seconds, self._how_to_go_on())

    def _join(self, seconds: float | None = None) -> None:
        # Commands may come as soon as the job can be reached, which is before its thread runs.
        self._start_is_over.wait(seconds)
        if self._works and self._thread is not None:
            self._thread.join(seconds)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self._request_savepoint(savepoint_directory, stop=True, drain=advance_to_end_of_event_time)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self._request_savepoint(savepoint_directory)

    def _request_savepoint(
        self, directory: str | None, stop: bool = False, drain: bool = False
    ) -> CompletableFuture[str]:
        context = self.context
        if context.spec.batch_mode:
            raise SavepointError("A job in BATCH mode has no savepoints: it has one batch.")
        request = SavepointRequest(
            new_place(directory, context.submission.configuration, self.job_id, context.spec.storage), stop, drain
        )
        context.savepoints.put(request)
        return CompletableFuture(request.result)

    def stop_collecting(self, interrupted: bool = False) -> None:
        """Nobody reads any longer: ends the job if it still runs. Only an orderly end of the reader cancels it."""
        if self._works:
            if interrupted:
                # What is read by nobody must not hold up the batch under way.
                self.inbox.discard()
                self.suspend()
            else:
                self.cancel()


def _failure_of(run: Callable[[], None]) -> BaseException | None:
    try:
        run()
    except BaseException as failure:
        return failure
    return None


def _done(value: T) -> CompletableFuture[T]:
    done: Future[T] = Future()
    done.set_result(value)
    return CompletableFuture(done)
