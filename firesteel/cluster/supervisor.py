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

import contextlib
import logging
import os
import select
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from firesteel.cluster.driver import CRASHED, Assignment
from firesteel.cluster.driver_control import DriverControl
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.job_table import JobTable
from firesteel.cluster.launching import DriverLivesError, Launcher, Plan, adopted
from firesteel.cluster.managed import ManagedJob, crash_text, now_ms
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.program_store import ProgramStore, StoredProgram
from firesteel.cluster.registry import ENDED, AttemptRow, JobRow, Registry, RegistryUnreachableError, StaleEpochError
from firesteel.cluster.settings import ClusterSettings
from firesteel.engine.facade import Cancel, Command, JobFacade
from firesteel.engine.facade.encoding import encoded
from firesteel.errors import FiresteelError, JobCommandError, in_a_line

__all__ = ["Supervisor"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_SUSPEND = 90.0
SECONDS_TO_TRY_AGAIN = 2.0


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
        self._work = ThreadPoolExecutor(8, thread_name_prefix="firesteel-work")
        self._wake_end, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._over = False
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
            with self._lock:
                running = [(job, job.process) for job in self._jobs.values() if job.process is not None]
            for job, process in running:
                self._drivers.terminate(job, process)
            deadline = time.monotonic() + SECONDS_TO_SUSPEND
            while time.monotonic() < deadline and self._with_driver():
                time.sleep(0.05)
        self._over = True
        self._nudge()
        if self._thread.ident is not None:
            self._thread.join(10)
        self._work.shutdown(wait=True, cancel_futures=True)
        for job in self._jobs.values():
            job.close()

    def _with_driver(self) -> bool:
        with self._lock:
            return any(job.process is not None for job in self._jobs.values())

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
        noted = Process(row.pid, row.pid_started)
        elsewhere = self._drivers.of_another_machine(row)
        if elsewhere is not None:
            logger.info("job %s (%s) is adopted: its driver is process %d elsewhere", row.id, row.name, elsewhere.pid)
            job.process, job.remote = elsewhere, True
            return
        process = adopted(self.folder.job(row.id), row.driver, noted)
        if process is not None:
            logger.info("job %s (%s) is adopted: its driver is process %d", row.id, row.name, process.pid)
            self._attach(job, process)
        elif not row.pid and self._drivers.outcome(job) is None:
            # The job manager before this one ended before it had started the driver.
            job.due = time.monotonic()
        else:
            job.process = noted
            job.ending = True
            self._work.submit(self._logged, self._after_driver, job, noted)

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
            if job.process is None:
                job.due = None
                self._end(job, "CANCELED")
                return
            self._become(job, "CANCELLING")
            job.kill_at = time.monotonic() + self.settings.cancel_ms / 1000
            process = job.process
        self._work.submit(self._logged, self._cancel_driver, job, process)
        self._nudge()

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

    def _nudge(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake, b"x")

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
        while not self._over:
            self._logged(self._turn)

    def _turn(self) -> None:
        watched = select.poll()
        watched.register(self._wake_end, select.POLLIN)
        with self._lock:
            by_descriptor = {
                job.descriptor: job for job in self._jobs.values() if job.descriptor is not None and not job.ending
            }
            for descriptor in by_descriptor:
                watched.register(descriptor, select.POLLIN)
        found = [descriptor for descriptor, _ in watched.poll(self._until_next() * 1000)]
        if self._wake_end in found:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_end, 4096)
        now = time.monotonic()
        with self._lock:
            for descriptor in found:
                job = by_descriptor.get(descriptor)
                if job is not None and job.process is not None and not job.ending:
                    job.ending = True
                    self._work.submit(self._logged, self._after_driver, job, job.process)
            if self._over or self._stopping:
                return
            for job in list(self._jobs.values()):
                self._look_after(job, now)
            self._fill_slots()

    def _until_next(self) -> float:
        with self._lock:
            moments = [job.due for job in self._jobs.values()] + [job.kill_at for job in self._jobs.values()]
        now = time.monotonic()
        return max(0.01, min([self.settings.poll_ms / 1000, *(one - now for one in moments if one is not None)]))

    def _look_after(self, job: ManagedJob, now: float) -> None:
        if job.due is not None and now >= job.due:
            job.due = None
            self._start_driver(job)
        if job.kill_at is not None and now >= job.kill_at and job.process is not None:
            job.kill_at = None
            logger.warning("job %s did not end in time: its driver is killed", job.id)
            self._work.submit(self._logged, self._drivers.kill, job, job.process)
        if job.process is not None and not job.asking and not job.ending:
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
        waiting = [job for job in self._jobs.values() if job.row.state == "CREATED"]
        for job in waiting[: self.free_slots]:
            self._start_driver(job)

    # Drivers

    def _start_driver(self, job: ManagedJob) -> None:
        """The next driver of a job: the first one, or one after a crash."""
        row = job.row
        again = bool(row.started)
        number, attempt = (row.driver + 1, row.attempt + 1) if again else (0, 0)
        row = self._become(
            job,
            "RESTARTING" if again else "INITIALIZING",
            driver=number,
            attempt=attempt,
            pid=0,
            pid_started="",
            started=row.started or now_ms(),
        )
        job.reached = False
        program = self.programs.find(row.program)
        if program is None:
            self._end(job, "FAILED", f"The program {row.program} is no longer there.")
            return
        folder = self.folder.job(row.id)
        settings = {
            **row.settings,
            "firesteel.job.id": row.id,
            "firesteel.job.attempt": str(attempt),
            "firesteel.job.records": str(folder.records),
            "firesteel.progress": "false",
        }
        task = Assignment(
            row.id,
            str(program.path),
            row.arguments,
            str(folder.path),
            number,
            epoch=self.registry.epoch,
            lease=self.registry.assign_driver(row.id, number),
        )
        try:
            process = self._launcher.start(folder, task, settings)
        except StaleEpochError:
            raise
        except DriverLivesError as error:
            logger.warning("%s It is waited for.", error)
            job.due = time.monotonic() + SECONDS_TO_TRY_AGAIN
            return
        except Exception as error:
            logger.exception("the driver of job %s could not be started", row.id)
            self._end(job, "FAILED", f"The driver could not be started: {in_a_line(error)}")
            return
        self.registry.put_attempt(AttemptRow(row.id, number, process.pid, now_ms()))
        logger.info("job %s (%s): driver %d is process %d", row.id, row.name, number, process.pid)
        self._attach(job, process)

    def _attach(self, job: ManagedJob, process: Process) -> None:
        with self._lock:
            job.row = self.registry.update_job(job.id, pid=process.pid, pid_started=process.started)
            job.process, job.ending = process, False
            job.close()
            job.descriptor = process.open()
            if job.descriptor is None:
                # It has ended already.
                job.ending = True
                self._work.submit(self._logged, self._after_driver, job, process)
            elif job.row.state == "CANCELLING":
                job.kill_at = time.monotonic() + self.settings.cancel_ms / 1000
                self._work.submit(self._logged, self._cancel_driver, job, process)

    def _after_driver(self, job: ManagedJob, process: Process) -> None:
        """A driver has ended: finds out how, and decides what follows."""
        status = None if job.remote else process.reap()
        left = 0 if job.remote else end_session(process)
        if left:
            logger.info("job %s: %d processes that its driver left behind were ended", job.id, left)
        outcome = self._drivers.outcome(job)
        self._further.driver_ended(job, f"The driver (process {process.pid}) has ended.")
        with self._lock:
            job.close()
            job.process, job.kill_at, job.remote = None, None, False
            job.reached = False
            self._decide(job, process, outcome, status)
        self._nudge()

    def _decide(self, job: ManagedJob, process: Process, outcome: dict[str, Any] | None, status: int | None) -> None:
        row = job.row
        how = "crashed" if outcome is None or outcome["status"] == CRASHED else str(outcome["status"])
        if how == "SUSPENDED" and not self._stopping:
            # A signal of somebody else ended the driver.
            how, message = "crashed", f"The driver (process {process.pid}) was ended by a signal."
        elif outcome is None:
            message = crash_text(process.pid, status)
        else:
            message = str((outcome or {}).get("failure", ""))
        attempt = AttemptRow(row.id, row.driver, process.pid, outcome=how, message=message, ended=now_ms())
        before = [one for one in self.registry.attempts(row.id) if one.number == row.driver]
        failures = () if job.snapshot is None else job.snapshot.exceptions.failures
        attempt = replace(
            attempt,
            started=before[0].started if before else row.started,
            failures=tuple(encoded(one) for one in failures) if how == "crashed" else (),
        )
        self.registry.put_attempt(attempt)
        if row.state == "CANCELLING" and how != "FINISHED":
            self._end(job, "CANCELED")
        elif how in ENDED:
            self._end(job, how, message)
        elif how == "SUSPENDED":
            self._become(job, "SUSPENDED", pid=0, pid_started="")
        else:
            pause = job.restarts.after(attempt.ended / 1000)
            if pause is None:
                logger.warning("job %s (%s) has failed: %s", row.id, row.name, message)
                self._end(job, "FAILED", message)
                return
            logger.warning("job %s (%s) is started again in %.1f s: %s", row.id, row.name, pause, message)
            job.due = time.monotonic() + pause
            self._become(job, "RESTARTING", pid=0, pid_started="")

    # Ends

    def _end(self, job: ManagedJob, state: str, failure: str = "") -> None:
        self._table.end(job, state, failure, self._drivers.record(job))

    def _has_ended(self, row: JobRow) -> None:
        logger.info("job %s (%s) has ended: %s", row.id, row.name, row.state)
        self._work.submit(self._logged, self._after_end, row)

    def _after_end(self, row: JobRow) -> None:
        self._ended_listener(row)
        self._table.forget_old(self.settings.history)
