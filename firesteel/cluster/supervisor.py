"""The life of jobs: submitted, started when there is a slot, watched, started again after a crash, ended.

*Submit*: 1. the program is stored under its hash; 2. it is planned in a process of its own; 3. the job's row is
committed; 4. its driver is started in a session of its own; 5. the driver's process is noted; 6. it is watched through
a pidfd, and asked through its control socket; 7. it leaves its outcome, forced to disk, and exits.

*A driver ends without an outcome*: that is a crash. What is left of its session is ended, the restart strategy is
asked, and the next driver has the same job id and so the same checkpoint.

*The job manager is started again*: drivers whose number and start match are adopted, the rest is recovered.

A thread of its own watches the drivers. What may take long is done by other threads (``background``). ``job_table`` has
the jobs and their rows, ``driver_cycle`` starts and ends their drivers.
"""

from __future__ import annotations

import logging
import select
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from firesteel.cluster.background import Background
from firesteel.cluster.driver_control import DriverControl
from firesteel.cluster.driver_cycle import DriverCycle
from firesteel.cluster.driver_starts import DriverStarts
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.job_table import JobTable
from firesteel.cluster.launching import Launcher
from firesteel.cluster.managed import ManagedJob, now_ms
from firesteel.cluster.planners import Plan
from firesteel.cluster.processes import Process
from firesteel.cluster.program_store import ProgramStore, StoredProgram
from firesteel.cluster.registry import JobRow, Registry
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.wake_pipe import WakePipe
from firesteel.engine.facade import Cancel, Command, JobFacade
from firesteel.errors import FiresteelError, JobCommandError

__all__ = ["Supervisor"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_SUSPEND = 90.0
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
        self.launcher = launcher or Launcher(
            settings.plan_ms / 1000,
            settings.log_size,
            settings.log_files,
            settings.warm_drivers,
            settings.warm_ms / 1000,
        )
        self.settings, self.folder, self.registry, self.programs = settings, folder, registry, programs
        self._ended_listener = ended
        self._drivers = DriverControl(folder, registry)
        self._table = JobTable(folder, registry, self._has_ended)
        self._lock, self._jobs, self._further = self._table.lock, self._table.jobs, self._table.further
        self._become = self._table.become
        self._background = Background()
        self._pipe = WakePipe()
        self._nudge = self._pipe.wake
        self._cycle = DriverCycle(
            registry,
            programs,
            self.launcher,
            self._table,
            DriverStarts(folder, registry, self._table),
            self._drivers,
            self._background,
            self._nudge,
            settings.cancel_ms / 1000,
        )
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
        self._background.stopping = not leave_jobs
        if self._background.stopping:
            self.registry.check()
            notified: set[Process] = set()
            deadline = time.monotonic() + SECONDS_TO_SUSPEND
            while time.monotonic() < deadline and self._with_driver():
                with self._lock:
                    running = [(job, job.process) for job in self._jobs.values() if job.process is not None]
                # One that was being started comes later than the others.
                for job, process in running:
                    if process not in notified:
                        notified.add(process)
                        self._drivers.terminate(job, process)
                self._nudge()
                time.sleep(0.05)
        self._background.over.set()
        self._nudge()
        if self._thread.ident is not None:
            self._thread.join(10)
        self._background.close()
        self.launcher.close()
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
                self._cycle.end(job, "FAILED", "The job was stopped with the job manager, and keeps no checkpoint.")
            return
        found = self._drivers.find(row)
        if found.process is None:
            # The job manager before this one ended before the driver had begun, and it will not any more.
            job.due = time.monotonic()
        elif found.remote:
            logger.info("job %s (%s) is adopted: its driver is process %d elsewhere", *_named(row), found.process.pid)
            job.process, job.remote = found.process, True
            if row.state == "CANCELLING":
                self._cycle.begin_to_cancel(job, found.process)
        elif found.alive:
            logger.info("job %s (%s) is adopted: its driver is process %d", *_named(row), found.process.pid)
            job.row = self.registry.update_job(row.id, pid=found.process.pid, pid_started=found.process.started)
            self._cycle.attach(job, found.process)
        else:
            job.process = found.process
            self._cycle.has_ended(job, found.process)

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
        return self.launcher.plan(program.path, tuple(arguments), settings)

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
                self._cycle.end(job, "CANCELED")
                return
            self._become(job, "CANCELLING")
            # One that is being started is cancelled as soon as it is there.
            if job.process is not None:
                self._cycle.begin_to_cancel(job, job.process)
        self._nudge()

    # Watching

    def _watch(self) -> None:
        while not self._background.over.is_set():
            self._background.logged(self._turn)

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
                    self._cycle.has_ended(job, job.process)
            if self._background.over.is_set():
                return
            for job in list(self._jobs.values()):
                self._look_after(job, now)
            if not self._background.stopping:
                self._fill_slots()
                if self.launcher.warm is not None:
                    self._background.do(self.launcher.warm.tend, self.free_slots)

    def _until_next(self) -> float:
        with self._lock:
            jobs = [job for job in self._jobs.values() if not job.ending]
            moments = [job.kill_at for job in jobs] + ([] if self._background.stopping else [job.due for job in jobs])
        now = time.monotonic()
        return max(0.01, min([self.settings.poll_ms / 1000, *(one - now for one in moments if one is not None)]))

    def _look_after(self, job: ManagedJob, now: float) -> None:
        # Not while the last start is under way: its end would be taken for the end of the next one.
        if job.due is not None and now >= job.due and not job.starting and not self._background.stopping:
            self._cycle.begin(job)
        if job.process is None or job.ending:
            return
        if job.kill_at is not None and now >= job.kill_at:
            # And again, until it is gone: a request to another machine may be lost.
            job.kill_at = now + SECONDS_TO_KILL_AGAIN
            logger.warning("job %s did not end in time: its driver is killed", job.id)
            self._background.do(self._drivers.kill, job, job.process)
        # The end of a driver of another machine is found out by asking, also while all of them are ended.
        if not job.asking and (job.remote or not self._background.stopping):
            job.asking = True
            self._background.do(self._ask, job, job.process)

    def _ask(self, job: ManagedJob, process: Process) -> None:
        try:
            if job.remote and self._drivers.lease_is_over(job):
                job.ending = True
                self._cycle.after(job, process)
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
            self._cycle.begin(job)

    @property
    def warm_drivers(self) -> int:
        """How many drivers are ready and wait for a job."""
        return 0 if self.launcher.warm is None else self.launcher.warm.waiting

    # Ends

    def _has_ended(self, row: JobRow) -> None:
        logger.info("job %s (%s) has ended: %s", row.id, row.name, row.state)
        self._background.do(self._after_end, row)

    def _after_end(self, row: JobRow) -> None:
        self._ended_listener(row)
        self._table.forget_old(self.settings.history)


def _named(row: JobRow) -> tuple[str, str]:
    return row.id, row.name
