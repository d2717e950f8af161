"""The life of jobs: submitted, started when there is a slot, watched, started again after a crash, ended.

*Submit*: 1. the program is stored under its hash; 2. it is planned in a process of its own; 3. the job's row is
committed; 4. its driver is started in a session of its own; 5. the driver's process is noted; 6. it is watched through
a pidfd, and asked through its control socket; 7. it leaves its outcome, forced to disk, and exits.

*A driver ends without an outcome*: that is a crash. What is left of its session is ended, the restart strategy is
asked, and the next driver has the same job id and so the same checkpoint.

*The job manager is started again*: drivers whose number and start match are adopted, the rest is recovered.

A thread of its own watches the drivers. What may take long (asking a job, ending a session, starting a driver) is done
by other threads. ``job_table`` has the jobs and their rows.
"""

from __future__ import annotations

import logging
import select
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from firesteel.cluster.driver_control import DriverControl
from firesteel.cluster.driver_ends import DriverEnd
from firesteel.cluster.driver_starts import DriverStarts
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.job_table import JobTable
from firesteel.cluster.launching import DriverLivesError, Launcher, Plan
from firesteel.cluster.managed import ManagedJob, now_ms
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.program_store import ProgramStore, StoredProgram
from firesteel.cluster.registry import ENDED, AttemptRow, JobRow, Registry, RegistryUnreachableError, StaleEpochError
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.wake_pipe import WakePipe
from firesteel.engine.facade import Cancel, Command, JobFacade
from firesteel.errors import FiresteelError, JobCommandError, in_a_line

__all__ = ["Supervisor"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_SUSPEND = 90.0
SECONDS_TO_TRY_AGAIN = 2.0
SECONDS_TO_KILL_AGAIN = 5.0


class Supervisor:
    """All jobs of one job manager."""

    def __init__(
        self,
        settings: ClusterSettings,
        folder: ClusterFolder,
        registry: Registry,
        programs: ProgramStore,
        ended: Callable[[JobRow], None] = lambda row: None,
        launcher: Launcher | None = None,
    ) -> None:
        """``ended``: called for each job that has ended for good."""
        self._launcher = launcher or Launcher(settings.plan_ms / 1000, settings.log_size, settings.log_files)
        self.settings, self.folder, self.registry, self.programs = settings, folder, registry, programs
        self._ended_listener = ended
        self._drivers = DriverControl(folder, registry)
        self._table = JobTable(folder, registry, self._has_ended)
        self._lock, self._jobs, self._further = self._table.lock, self._table.jobs, self._table.further
        self._become = self._table.become
        self._starts = DriverStarts(folder, registry, self._table)
        self._work = ThreadPoolExecutor(8, thread_name_prefix="firesteel-work")
        self._pipe = WakePipe()
        self._nudge = self._pipe.wake
        self._over = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._watch, name="firesteel-watch", daemon=True)

    # The supervisor's own life

    def start(self) -> None:
        """Adopts what runs, recovers the rest, and begins to watch."""
        for job in self._table.load():
            self._recover(job)
        self._thread.start()
        self._nudge()

    def stop(self, leave_jobs: bool) -> None:
        """Ends the supervisor. Jobs run on, or are suspended: then they go on when it is started again."""
        self._stopping = not leave_jobs
        if self._stopping:
            self.registry.check()
            told: set[Process] = set()
            deadline = time.monotonic() + SECONDS_TO_SUSPEND
            while time.monotonic() < deadline and self._with_driver():
                with self._lock:
                    running = [(job, job.process) for job in self._jobs.values() if job.process is not None]
                # One that was being started comes later than the others.
                for job, process in running:
                    if process not in told:
                        told.add(process)
                        self._drivers.terminate(job, process)
                self._nudge()
                time.sleep(0.05)
        self._over.set()
        self._nudge()
        if self._thread.ident is not None:
            self._thread.join(10)
        self._work.shutdown(wait=True, cancel_futures=True)
        for job in self._jobs.values():
            job.close()
        if not self._thread.is_alive():
            self._pipe.close()

    def _with_driver(self) -> bool:
        with self._lock:
            return any(job.process is not None or job.starting for job in self._jobs.values())

    def _recover(self, job: ManagedJob) -> None:
        row = job.row
        if row.state == "CREATED":
            return
        if row.state == "SUSPENDED":
            if job.keeps_checkpoint or job.restarts.possible:
                logger.info("job %s (%s) goes on after it was suspended", row.id, row.name)
                job.due = time.monotonic()
                self._become(job, "RESTARTING")
            else:
                self._end(job, "FAILED", "The job was stopped with the job manager, and keeps no checkpoint.")
            return
        found = self._drivers.find(row)
        if found.process is None:
            # The job manager before this one ended before the driver had begun, and it will not any more.
            job.due = time.monotonic()
        elif found.remote:
            logger.info("job %s (%s) is adopted: its driver is process %d elsewhere", *_named(row), found.process.pid)
            job.process, job.remote = found.process, True
            if row.state == "CANCELLING":
                self._begin_to_cancel(job, found.process)
        elif found.alive:
            logger.info("job %s (%s) is adopted: its driver is process %d", *_named(row), found.process.pid)
            job.row = self.registry.update_job(row.id, pid=found.process.pid, pid_started=found.process.started)
            self._attach(job, found.process)
        else:
            job.process, job.ending = found.process, True
            self._work.submit(self._logged, self._after_driver, job, found.process)

    # Submitting

    def submit(
        self,
        program: StoredProgram,
        arguments: tuple[str, ...] = (),
        settings: Mapping[str, str] | None = None,
        job_id: str | None = None,
    ) -> JobRow:
        """Plans a program, and starts it as soon as there is a slot. A ProgramError says why it cannot run."""
        settings = dict(settings or {})
        if job_id is not None:
            self._table.refuse(job_id)
        plan = self.plan(program, arguments, settings)
        job_id = job_id or uuid.uuid4().hex
        if plan.checkpointing and plan.checkpoint_folder is None:
            # Or a driver that is started again would find nothing to go on from.
            settings["execution.checkpointing.dir"] = str(self.folder.checkpoints / job_id)
        if not plan.savepoint_folder:
            settings["execution.checkpointing.savepoint-dir"] = str(self.folder.savepoints)
        row = plan.row(job_id, program.id, tuple(arguments), settings, now_ms())
        self._table.add(row)
        logger.info("job %s (%s) was submitted", row.id, row.name)
        self._nudge()
        return row

    def plan(self, program: StoredProgram, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Plan:
        return self._launcher.plan(program.path, tuple(arguments), settings)

    # Looking

    def rows(self) -> list[JobRow]:
        """All jobs, those that have ended, too; each with the state that it has now."""
        return self._table.rows()

    def row(self, job_id: str) -> JobRow:
        return self._table.row(job_id)

    def managed(self, job_id: str) -> ManagedJob | None:
        """The job, if it has not ended."""
        return self._table.managed(job_id)

    @property
    def free_slots(self) -> int:
        with self._lock:
            return max(0, self.settings.slots - sum(job.holds_slot for job in self._jobs.values()))

    # Steering

    def ask(self, job_id: str, command: Command[Any], seconds: float | None = None) -> Any:
        """Asks the driver of a job. A JobCommandError says that there is none at the moment."""
        return self._driver(job_id, seconds).execute(command)

    def _driver(self, job_id: str, seconds: float | None) -> JobFacade:
        row, job = self.row(job_id), self.managed(job_id)
        remote = self._drivers.facade(job, seconds) if job is not None else None
        if remote is None:
            raise JobCommandError(f"Job {row.name!r} ({row.id}) cannot be asked now: it is {row.state}.")
        return remote

    def cancel(self, job_id: str) -> None:
        """Begins to end a job. One that has no driver ends at once."""
        further = self._further.get(job_id)
        if further is not None:
            self._driver(job_id, self.settings.cancel_ms / 1000).execute(Cancel())
            return
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                row = self.row(job_id)
                raise JobCommandError(
                    f"Job {row.name!r} ({row.id}) has ended ({row.state}): there is nothing to cancel."
                )
            if job.row.state == "CANCELLING":
                return
            if job.process is None and not job.starting:
                self._end(job, "CANCELED")
                return
            self._become(job, "CANCELLING")
            # One that is being started is cancelled as soon as it is there.
            if job.process is not None:
                self._begin_to_cancel(job, job.process)
        self._nudge()

    def _begin_to_cancel(self, job: ManagedJob, process: Process) -> None:
        job.kill_at = time.monotonic() + self.settings.cancel_ms / 1000
        self._work.submit(self._logged, self._cancel_driver, job, process)

    def _cancel_driver(self, job: ManagedJob, process: Process) -> None:
        self.registry.check()
        remote = self._drivers.facade(job, self.settings.cancel_ms / 1000)
        if remote is None:
            # It has not come so far that it can be asked, and so has nothing to lose.
            self._drivers.terminate(job, process)
            return
        try:
            remote.execute(Cancel())
        except (FiresteelError, OSError) as error:
            if job.remote or process.alive:
                logger.warning("job %s could not be asked to cancel: %s", job.id, error)
                self._drivers.terminate(job, process)

    # Watching

    def _logged(self, action: Callable[..., object], *arguments: Any) -> None:
        try:
            action(*arguments)
        except StaleEpochError:
            logger.error("another job manager has taken over: this one does nothing any more")
        except RegistryUnreachableError as error:
            logger.error("%s", error)
        except Exception:
            logger.exception("the supervisor failed in %s", getattr(action, "__name__", action))

    def _watch(self) -> None:
        while not self._over.is_set():
            self._logged(self._turn)

    def _turn(self) -> None:
        watched = select.poll()
        watched.register(self._pipe.reading, select.POLLIN)
        with self._lock:
            by_descriptor = {
                job.descriptor: job for job in self._jobs.values() if job.descriptor is not None and not job.ending
            }
            for descriptor in by_descriptor:
                watched.register(descriptor, select.POLLIN)
        found = [descriptor for descriptor, _ in watched.poll(self._until_next() * 1000)]
        if self._pipe.reading in found:
            self._pipe.clear()
        now = time.monotonic()
        with self._lock:
            for descriptor in found:
                job = by_descriptor.get(descriptor)
                if job is not None and job.process is not None and not job.ending:
                    job.ending = True
                    self._work.submit(self._logged, self._after_driver, job, job.process)
            if self._over.is_set():
                return
            for job in list(self._jobs.values()):
                self._look_after(job, now)
            if not self._stopping:
                self._fill_slots()

    def _until_next(self) -> float:
        with self._lock:
            jobs = [job for job in self._jobs.values() if not job.ending]
            moments = [job.kill_at for job in jobs] + ([] if self._stopping else [job.due for job in jobs])
        now = time.monotonic()
        return max(0.01, min([self.settings.poll_ms / 1000, *(one - now for one in moments if one is not None)]))

    def _look_after(self, job: ManagedJob, now: float) -> None:
        if job.due is not None and now >= job.due and not self._stopping:
            self._begin_driver(job)
        if job.process is None or job.ending:
            return
        if job.kill_at is not None and now >= job.kill_at:
            # And again, until it is gone: a request to another machine may be lost.
            job.kill_at = now + SECONDS_TO_KILL_AGAIN
            logger.warning("job %s did not end in time: its driver is killed", job.id)
            self._work.submit(self._logged, self._drivers.kill, job, job.process)
        # The end of a driver of another machine is found out by asking, also while all of them are ended.
        if not job.asking and (job.remote or not self._stopping):
            job.asking = True
            self._work.submit(self._logged, self._ask, job, job.process)

    def _ask(self, job: ManagedJob, process: Process) -> None:
        try:
            if job.remote and self._drivers.lease_is_over(job):
                job.ending = True
                self._after_driver(job, process)
                return
            remote = self._drivers.facade(job, 5.0)
            attempt = job.row.attempt
            if remote is not None:
                snapshot = remote.snapshot()
                with self._lock:
                    if job.process is not process or snapshot.status.pid != process.pid:
                        return
                    job.snapshot, job.reached, attempt = snapshot, True, snapshot.status.attempt
            others = not job.remote and self._further.look(job, process)
            # The first job of a program may be over before it could be asked, while the program goes on.
            with self._lock:
                lives = (remote is not None or others) and job.process is process
                if lives and job.row.state in ("INITIALIZING", "RESTARTING"):
                    self._become(job, "RUNNING", attempt=attempt)
        except (FiresteelError, OSError) as error:
            logger.debug("job %s did not answer: %s", job.id, error)
        finally:
            job.asking = False

    def _fill_slots(self) -> None:
        waiting = [job for job in self._jobs.values() if not job.holds_slot and job.row.state == "CREATED"]
        for job in waiting[: self.free_slots]:
            self._begin_driver(job)

    # Drivers

    def _begin_driver(self, job: ManagedJob) -> None:
        """The next driver of a job: the first one, or one after a crash. Started by another thread: the one before it
        may hold its lock for a while."""
        job.due, job.starting = None, True
        self._work.submit(self._logged, self._start_driver, job)

    def _start_driver(self, job: ManagedJob) -> None:
        process = None
        try:
            process = self._launched(job)
            if process is not None:
                # Watched first, noted then: a registry that does not answer leaves no driver alone.
                self._attach(job, process)
        except BaseException:
            job.due = time.monotonic() + SECONDS_TO_TRY_AGAIN
            raise
        finally:
            job.starting = False
            self._nudge()
        if process is not None:
            logger.info("job %s (%s): driver %d is process %d", job.id, job.row.name, job.row.driver, process.pid)
            self._until_noted(job, lambda: self._note_process(job, process))

    def _launched(self, job: ManagedJob) -> Process | None:
        """The driver, if one could be started."""
        with self._lock:
            if self._stopping or self._over.is_set():
                job.due = time.monotonic()
                return None
            if job.row.state == "CANCELLING":
                self._end(job, "CANCELED")
                return None
            row = self._starts.number(job)
            program = self.programs.find(row.program)
            if program is None:
                self._end(job, "FAILED", f"The program {row.program} is no longer there.")
                return None
        folder, task, settings = self._starts.task(row, program)
        try:
            process = self._launcher.start(folder, task, settings)
        except StaleEpochError:
            raise
        except DriverLivesError as error:
            logger.warning("%s It is waited for.", error)
            job.due = time.monotonic() + SECONDS_TO_TRY_AGAIN
            return None
        except OSError as error:
            # No memory, no room, too many processes: that may pass.
            job.unstarted = False
            with self._lock:
                self._decide(job, DriverEnd(0, "crashed", f"The driver could not be started: {in_a_line(error)}"))
            return None
        except Exception as error:
            logger.exception("the driver of job %s could not be started", row.id)
            self._end(job, "FAILED", f"The driver could not be started: {in_a_line(error)}")
            return None
        job.unstarted = False
        return process

    def _attach(self, job: ManagedJob, process: Process) -> None:
        with self._lock:
            job.process, job.ending, job.remote = process, False, False
            job.close()
            job.descriptor = process.open()
            if job.descriptor is None:
                # It has ended already.
                job.ending = True
                self._work.submit(self._logged, self._after_driver, job, process)
            elif job.row.state == "CANCELLING":
                self._begin_to_cancel(job, process)

    def _note_process(self, job: ManagedJob, process: Process) -> None:
        if job.process is process:
            self.registry.put_attempt(AttemptRow(job.id, job.row.driver, process.pid, now_ms()))
            job.row = self.registry.update_job(job.id, pid=process.pid, pid_started=process.started)

    def _after_driver(self, job: ManagedJob, process: Process) -> None:
        """A driver has ended: finds out how, and decides what follows."""
        status = None if job.remote else process.reap()
        left = 0 if job.remote else end_session(process)
        if left:
            logger.info("job %s: %d processes that its driver left behind were ended", job.id, left)
        end = DriverEnd.of(job, process, self._drivers.outcome(job), status, self._stopping)

        def decide() -> None:
            self._end_further(job, process)
            self._decide(job, end)
            job.close()
            job.process, job.kill_at, job.remote, job.reached, job.ending = None, None, False, False, False

        self._until_noted(job, decide)
        self._nudge()

    def _end_further(self, job: ManagedJob, process: Process) -> None:
        try:
            self._further.driver_ended(job, f"The driver (process {process.pid}) has ended.")
        except (StaleEpochError, RegistryUnreachableError):
            raise
        except Exception:
            # What is wrong with them holds up nothing else.
            logger.exception("further jobs of the program of job %s could not be ended", job.id)

    def _until_noted(self, job: ManagedJob, action: Callable[[], None]) -> None:
        """Does what writes to the registry, and again where that failed: nobody else would."""
        while True:
            try:
                with self._lock:
                    action()
                return
            except StaleEpochError:
                raise
            except Exception as error:
                logger.error("job %s: what became of its driver could not be noted: %s", job.id, in_a_line(error))
            if self._over.wait(SECONDS_TO_TRY_AGAIN):
                return

    def _decide(self, job: ManagedJob, end: DriverEnd) -> None:
        # Whatever the driver is still up to, it commits nothing after this.
        self.registry.close_driver(job.id, job.row.driver, force=True)
        row = job.row
        self.registry.put_attempt(end.attempt(job, self.registry.attempts(row.id)))
        if row.state == "CANCELLING" and end.how != "FINISHED":
            self._end(job, "CANCELED")
        elif end.how in ENDED:
            self._end(job, end.how, end.message)
        elif end.how == "SUSPENDED":
            self._become(job, "SUSPENDED", pid=0, pid_started="")
        else:
            pause = end.pause(job)
            if pause is None:
                self._end(job, "FAILED", end.message)
                logger.warning("job %s (%s) has failed: %s", row.id, row.name, end.message)
                return
            self._become(job, "RESTARTING", pid=0, pid_started="")
            logger.warning("job %s (%s) is started again in %.1f s: %s", row.id, row.name, pause, end.message)
            job.due = time.monotonic() + pause

    # Ends

    def _end(self, job: ManagedJob, state: str, failure: str = "") -> None:
        self.registry.close_driver(job.id, job.row.driver, force=True)
        self._table.end(job, state, failure, self._drivers.record(job))

    def _has_ended(self, row: JobRow) -> None:
        logger.info("job %s (%s) has ended: %s", row.id, row.name, row.state)
        self._work.submit(self._logged, self._after_end, row)

    def _after_end(self, row: JobRow) -> None:
        self._ended_listener(row)
        self._table.forget_old(self.settings.history)


def _named(row: JobRow) -> tuple[str, str]:
    return row.id, row.name
