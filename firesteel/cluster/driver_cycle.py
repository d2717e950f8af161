"""The drivers of a job, one after another: each is started, watched, asked to cancel, and followed by the next one if
the restart strategy says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from firesteel.cluster.background import Background
from firesteel.cluster.driver_control import DriverControl
from firesteel.cluster.driver_ends import DriverEnd
from firesteel.cluster.driver_starts import DriverStarts
from firesteel.cluster.job_table import JobTable
from firesteel.cluster.launching import DriverLivesError, Launcher
from firesteel.cluster.managed import ManagedJob, now_ms
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.registry import ENDED, AttemptRow, Registry, RegistryUnreachableError, StaleEpochError
from firesteel.engine.facade import Cancel
from firesteel.errors import FiresteelError, in_a_line

__all__ = ["DriverCycle"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_TRY_AGAIN = 2.0


class DriverCycle:
    """Gives jobs their drivers, and decides what follows when one has ended."""

    def __init__(
        self,
        registry: Registry,
        programs: ProgramStore,
        launcher: Launcher,
        table: JobTable,
        starts: DriverStarts,
        control: DriverControl,
        background: Background,
        wake: Callable[[], None],
        cancel_seconds: float,
    ) -> None:
        """``wake``: called when the one who watches jobs has to look at them again."""
        self._registry, self._programs, self._launcher = registry, programs, launcher
        self._table, self._starts, self._control = table, starts, control
        self._background, self._wake = background, wake
        self._cancel_seconds = cancel_seconds

    # Starting

    def begin(self, job: ManagedJob) -> None:
        """The next driver of a job: the first one, or one after a crash. Started by another thread: the one before it
        may hold its lock for a while."""
        job.due, job.starting = None, True
        self._background.do(self._start, job)

    def _start(self, job: ManagedJob) -> None:
        process = None
        try:
            process = self._launched(job)
            if process is not None:
                # Watched first, noted then: a registry that does not answer leaves no driver alone.
                self.attach(job, process)
        except BaseException:
            job.due = time.monotonic() + SECONDS_TO_TRY_AGAIN
            raise
        finally:
            job.starting = False
            self._wake()
        if process is not None:
            logger.info("job %s (%s): driver %d is process %d", job.id, job.row.name, job.row.driver, process.pid)
            self._until_noted(job, lambda: self._note_process(job, process))

    def _launched(self, job: ManagedJob) -> Process | None:
        """The driver, if one could be started."""
        with self._table.lock:
            if self._background.stopping or self._background.over.is_set():
                job.due = time.monotonic()
                return None
            if job.row.state == "CANCELLING":
                self.end(job, "CANCELED")
                return None
            row = self._starts.number(job)
            program = self._programs.find(row.program)
            if program is None:
                self.end(job, "FAILED", f"The program {row.program} is no longer there.")
                return None
        folder, task, settings = self._starts.task(row, program)
        try:
            process = self._launcher.start(folder, task, settings, row.configuration)
        except StaleEpochError:
            raise
        except DriverLivesError as error:
            logger.warning("%s It is waited for.", error)
            job.due = time.monotonic() + SECONDS_TO_TRY_AGAIN
            return None
        except OSError as error:
            # No memory, no room, too many processes: that may pass.
            job.unstarted = False
            with self._table.lock:
                self._decide(job, DriverEnd(0, "crashed", f"The driver could not be started: {in_a_line(error)}"))
            return None
        except Exception as error:
            logger.exception("the driver of job %s could not be started", row.id)
            self.end(job, "FAILED", f"The driver could not be started: {in_a_line(error)}")
            return None
        job.unstarted = False
        return process

    def attach(self, job: ManagedJob, process: Process) -> None:
        """A driver that runs is the job's, and is watched from now on."""
        with self._table.lock:
            job.process, job.ending, job.remote = process, False, False
            job.close()
            job.descriptor = process.open()
            if job.descriptor is None:
                # It has ended already.
                self.has_ended(job, process)
            elif job.row.state == "CANCELLING":
                self.begin_to_cancel(job, process)

    def _note_process(self, job: ManagedJob, process: Process) -> None:
        if job.process is process:
            self._registry.put_attempt(AttemptRow(job.id, job.row.driver, process.pid, now_ms()))
            job.row = self._registry.update_job(job.id, pid=process.pid, pid_started=process.started)

    # Cancelling

    def begin_to_cancel(self, job: ManagedJob, process: Process) -> None:
        """Asks a driver to end; it is killed when it takes too long."""
        job.kill_at = time.monotonic() + self._cancel_seconds
        self._background.do(self._cancel, job, process)

    def _cancel(self, job: ManagedJob, process: Process) -> None:
        self._registry.check()
        remote = self._control.facade(job, self._cancel_seconds)
        if remote is None:
            # It has not come so far that it can be asked, and so has nothing to lose.
            self._control.terminate(job, process)
            return
        try:
            remote.execute(Cancel())
        except (FiresteelError, OSError) as error:
            if job.remote or process.alive:
                logger.warning("job %s could not be asked to cancel: %s", job.id, error)
                self._control.terminate(job, process)

    # Ending

    def has_ended(self, job: ManagedJob, process: Process) -> None:
        """Another thread looks after what a driver that has ended leaves."""
        job.ending = True
        self._background.do(self.after, job, process)

    def after(self, job: ManagedJob, process: Process) -> None:
        """A driver has ended: finds out how, and decides what follows."""
        status = None if job.remote else process.reap()
        left = 0 if job.remote else end_session(process)
        if left:
            logger.info("job %s: %d processes that its driver left behind were ended", job.id, left)
        end = DriverEnd.of(job, process, self._control.outcome(job), status, self._background.stopping)

        def decide() -> None:
            self._end_further(job, process)
            self._decide(job, end)
            job.close()
            job.process, job.kill_at, job.remote, job.reached, job.ending = None, None, False, False, False

        self._until_noted(job, decide)
        self._wake()

    def _end_further(self, job: ManagedJob, process: Process) -> None:
        try:
            self._table.further.driver_ended(job, f"The driver (process {process.pid}) has ended.")
        except (StaleEpochError, RegistryUnreachableError):
            raise
        except Exception:
            # What is wrong with them holds up nothing else.
            logger.exception("further jobs of the program of job %s could not be ended", job.id)

    def _until_noted(self, job: ManagedJob, action: Callable[[], None]) -> None:
        """Does what writes to the registry, and again where that failed: nobody else would."""
        while True:
            try:
                with self._table.lock:
                    action()
                return
            except StaleEpochError:
                raise
            except Exception as error:
                logger.error("job %s: what became of its driver could not be noted: %s", job.id, in_a_line(error))
            if self._background.over.wait(SECONDS_TO_TRY_AGAIN):
                return

    def _decide(self, job: ManagedJob, end: DriverEnd) -> None:
        # Whatever the driver is still up to, it commits nothing after this.
        self._registry.close_driver(job.id, job.row.driver, force=True)
        row = job.row
        self._registry.put_attempt(end.attempt(job, self._registry.attempts(row.id)))
        if row.state == "CANCELLING" and end.how != "FINISHED":
            self.end(job, "CANCELED")
        elif end.how in ENDED:
            self.end(job, end.how, end.message)
        elif end.how == "SUSPENDED":
            self._table.become(job, "SUSPENDED", pid=0, pid_started="")
        else:
            pause = end.pause(job)
            if pause is None:
                self.end(job, "FAILED", end.message)
                logger.warning("job %s (%s) has failed: %s", row.id, row.name, end.message)
                return
            self._table.become(job, "RESTARTING", pid=0, pid_started="")
            logger.warning("job %s (%s) is started again in %.1f s: %s", row.id, row.name, pause, end.message)
            job.due = time.monotonic() + pause

    def end(self, job: ManagedJob, state: str, failure: str = "") -> None:
        """The job gets no driver any more."""
        self._registry.close_driver(job.id, job.row.driver, force=True)
        self._table.end(job, state, failure, self._control.record(job))
