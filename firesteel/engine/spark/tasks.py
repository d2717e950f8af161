"""The tasks that live in this process between batches, and how they end.

Tasks belong to the main thread: the users' functions are opened, called and closed there. That a job is over is
learnt in another thread, so a signal brings it to the main one. It finds the main thread

* inside a task of that job: then an exception unwinds it, and its functions are closed on the way;
* anywhere else: then the job's functions are closed at once.

Both are bounded. A function that neither ends nor lets itself be interrupted ends with its process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.engine.payload import JobPayload
from firesteel.engine.spark.lifeline import CLOSE_SECONDS, keep_connection
from firesteel.engine.spark.worker_log import LINE, WorkerLog
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.task import StageTask

__all__ = ["TASKS", "JobOver", "Tasks"]

Key = tuple[str, int, int]
"""Job, stage, subtask."""

_SIGNAL = getattr(signal, "SIGUSR2", None)
_JOBS_WITHOUT_LINE = 4
"""Jobs whose end nobody tells are forgotten when there are more of them than this."""


class JobOver(BaseException):
    """Raised inside a task whose job has ended. Not an ``Exception``: users' code must not take it for one of its."""


class Tasks:
    """All tasks of this process."""

    def __init__(self, log: WorkerLog | None = None) -> None:
        """``log``: what the functions' log and output go to."""
        self._log = log
        self._tasks: dict[Key, StageTask] = {}
        self._lines: dict[str, bool] = {}
        """The jobs that are known here, oldest first, and whether each has a line to its driver."""
        self._files: dict[str, JobFiles | None] = {}
        """The Python files that each of these jobs brought."""
        self._over: set[str] = set()
        self._running: str | None = None
        """The job whose task the main thread is in."""
        self._closing = False
        self._failed: list[str] = []
        self._leaving = False
        self._notes: int | None = None
        self._noted: Key | None = None

    def get(self, payload: JobPayload, stage: int, subtask: int) -> StageTask:
        """The task, made where there is none yet."""
        key = (payload.job_id, stage, subtask)
        task = self._tasks.get(key)
        if task is None:
            if payload.job_id not in self._lines:
                self._meet(payload)
            # Each task has copies of the functions, as if it had a process of its own.
            task = self._tasks[key] = StageTask(payload.load(), stage, subtask, payload.results)
        return task

    def renew(self, payload: JobPayload, stage: int, subtask: int) -> StageTask:
        """A new task in place of one whose functions know of a batch that the store does not."""
        self._discard((payload.job_id, stage, subtask))
        return self.get(payload, stage, subtask)

    def _discard(self, key: Key) -> None:
        task = self._tasks.pop(key, None)
        # Whatever close() has to say, what ended the task says more.
        with contextlib.suppress(Exception):
            if task is not None:
                task.close()

    def _meet(self, payload: JobPayload) -> None:
        unwatched = [job for job, watched in self._lines.items() if not watched]
        for job in unwatched[: max(0, len(unwatched) - _JOBS_WITHOUT_LINE + 1)]:
            self._close(job)
        in_main = threading.current_thread() is threading.main_thread()
        watched = payload.lifeline is not None and _SIGNAL is not None and in_main
        self._lines[payload.job_id] = watched
        self._files[payload.job_id] = payload.files
        if payload.lifeline is not None and watched:
            signal.signal(_SIGNAL, self._called)  # type: ignore[arg-type]
            if self._log is not None:
                self._log.expect(payload.log_levels)
            keep_connection(payload.lifeline, self._ending(payload.job_id), self._log)

    @contextlib.contextmanager
    def running(self, key: Key) -> Iterator[None]:
        """Around one batch of a task. A task that did not get to its end is not used again: its operators are in
        between two batches' states, so a retry must start from what the store knows."""
        done = False
        self._note(key)
        try:
            try:
                self._running = key[0]
                yield
                done = True
            finally:
                self._running = None
        finally:
            if not done:
                self._discard(key)
            if self._over:
                self._close_over()

    def note_in(self, descriptor: int) -> None:
        """A file for what this process works at, for those who find it dead."""
        self._notes = descriptor

    def _note(self, key: Key) -> None:
        if self._notes is not None and self._noted != key and key in self._tasks:
            self._noted = key
            with contextlib.suppress(OSError):
                os.ftruncate(self._notes, 0)
                os.pwrite(self._notes, self._tasks[key].description.encode(), 0)

    # The end of a job

    def _ending(self, job: str) -> Callable[[], list[str]]:
        def end() -> list[str]:
            self._over.add(job)
            if not self._call_main(lambda: job not in self._over):
                os._exit(1)
            failed, self._failed = self._failed, []
            return failed

        return end

    def _call_main(self, done: Callable[[], bool]) -> bool:
        """Brings the news to the main thread. Returns whether it was done there in time."""
        deadline = time.monotonic() + CLOSE_SECONDS
        again = 0.0
        while not done() and time.monotonic() < deadline:
            if time.monotonic() >= again:
                # Repeated, because a handler that comes at a bad moment may have been lost in a user's ``except``.
                again = time.monotonic() + 0.5
                signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)  # type: ignore[arg-type]
            time.sleep(0.01)
        return done()

    def _called(self, *_: object) -> None:
        """The signal's handler, in the main thread."""
        if self._closing:
            return
        if self._running is not None:
            if self._leaving or self._running in self._over:
                raise JobOver
        elif self._leaving:
            self.close_all()
            os._exit(1)
        self._close_over()

    def _close_over(self) -> None:
        for job in list(self._over):
            if job != self._running:
                self._close(job)
                self._over.discard(job)

    def _close(self, job: str) -> None:
        self._lines.pop(job, None)
        self._closing = True
        # Perhaps in the middle of another job's task.
        with IMPORTS.of(self._files.pop(job, None)):
            for key in [key for key in self._tasks if key[0] == job]:
                try:
                    self._tasks.pop(key).close()
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                    if isinstance(error, OperatorFailure):
                        text = error.failure.render()
                    # One line each on the way to the driver.
                    self._failed.append(" ".join(text.split()))
        self._closing = False

    # The end of this process

    def leave(self) -> None:
        """Called in another thread than the main one: interrupts that, closes all there is and ends the process."""
        self._leaving = True
        if self._lines:
            self._call_main(lambda: False)
        os._exit(1)

    @property
    def leaving(self) -> bool:
        return self._leaving

    def close_all(self) -> None:
        for job in {key[0] for key in self._tasks}:
            self._close(job)

    def forget(self) -> None:
        """In a forked child: the tasks are the parent's."""
        if self._log is not None:
            self._log.forget()
        self.__init__(self._log)  # type: ignore[misc]


TASKS = Tasks(LINE)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TASKS.forget)
