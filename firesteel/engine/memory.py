"""The engine without Spark: the same tasks and frames in one process, stage after stage.

For tests and for trying a program out. State lives in dicts for the length of the job.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.engine.backends import backend_name
from firesteel.engine.clean_up import guarded
from firesteel.engine.coordinator import Coordinator, CoordinatorFeedback
from firesteel.engine.driver_sources import DriverSources
from firesteel.engine.imports import IMPORTS
from firesteel.engine.job_context import JobContext
from firesteel.engine.job_run import Engine, JobRun
from firesteel.engine.manifest import COMMITS, Manifest, is_checkpoint
from firesteel.engine.pickling import pickle_job
from firesteel.engine.savepoints.beginning import find_restore
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.requests import SavepointRequest
from firesteel.engine.savepoints.taking import copy_sources, outline
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.shipping import gather
from firesteel.errors import SavepointError
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.job_spec import SourceShare
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.snapshots.restoring import union_lists
from firesteel.runtime.stage_loop import run_stages
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import StageTask

if TYPE_CHECKING:
    from firesteel.engine.payload import JobPayload
    from firesteel.engine.savepoints.restoring import Restore
    from firesteel.runtime.job_spec import JobSpec

__all__ = ["MemoryEngine", "MemoryJob", "VersionedStore"]


class VersionedStore(MemoryStore):
    """A store in a dict that can go back to its last commit. A batch costs what it touches.

    >>> store = VersionedStore()
    >>> store.write([(b"a", b"1")])
    >>> store.commit()
    >>> store.write([(b"a", None), (b"b", b"2")])
    >>> store.roll_back()
    >>> store.content
    {b'a': b'1'}
    """

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[bytes, bytes | None] = {}
        self.written = 0
        """Bytes that were written since the last commit."""

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in changes:
            self._before.setdefault(key, self.content.get(key))
            self.written += len(value or b"")
            super().write([(key, value)])

    def commit(self) -> None:
        self._before.clear()
        self.written = 0

    def roll_back(self) -> None:
        super().write(self._before.items())
        self.commit()


class MemoryEngine(Engine):
    """Jobs in this process."""

    name = "memory"
    suspends_within = 5.0
    # Nothing can interrupt a function that is called in this process.

    def prepare(self, context: JobContext) -> MemoryJob:
        directory = tempfile.TemporaryDirectory(prefix="job-", dir=scratch_folder())
        context.at_end.add(directory.cleanup)
        restore = find_restore(context, _readable)
        # Through pickle, as on a cluster: functions are copied, and what cannot be pickled is found here too.
        files = gather(context.submission.dependencies, context.spec.storage)
        IMPORTS.hold(files, runs_here=True)
        context.at_end.add(lambda: IMPORTS.release(files))
        context.bring(files)
        return MemoryJob(context, directory.name, restore)


def _readable(path: str) -> str:
    if is_checkpoint(path):
        raise SavepointError(
            f"{path} is a checkpoint. Its state is in Spark's state store, which the engine in memory cannot read."
        )
    return path


class MemoryJob(JobRun):
    """A job in this process."""

    where = "one process in memory"

    def __init__(self, context: JobContext, directory: str, restore: Restore | None) -> None:
        super().__init__(context)
        self._directory = directory
        self._stores: dict[tuple[int, int], VersionedStore] = {}
        self._tasks: dict[tuple[int, int], StageTask] = {}
        self._stopped = False
        self._planned: tuple[int, list[SourceShare]] | None = None
        """The batch that is decided and not done: after a failure it comes again, as it was."""
        self._done = -1
        """The last batch that is done."""
        self._shipped: tuple[JobSpec, JobPayload] | None = None
        """The job of this attempt and what its tasks get of it, until all of them have it."""
        self._graph = self._payload().load_here().graph
        self._coordinator = Coordinator(self._graph, context.settings, directory, self._feedback, restore=restore)
        context.at_end.add(self._coordinator.stop)
        self._sources = DriverSources(context.spec.graph.graph, directory, restore)
        context.at_end.add(self._sources.end)
        context.at_end.add(context.commits.end)
        context.at_end.add(self._close_tasks)
        self._offset = self._coordinator.initial()
        self._begin()

    def _begin(self) -> None:
        """Before an attempt: sinks settle what is left of the one before, and the driver does its part for sources."""
        folder = os.path.join(self._directory, COMMITS)
        try:
            self.context.commits.start(self.context.spec, folder, lambda batch: batch <= self._done)
            self._sources.begin()
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    def run(self) -> None:
        context = self.context
        try:
            if context.spec.batch_mode:
                # It may be done already, if what failed was a sink's commit.
                if self._done < 0:
                    self._run_batch(0, self._coordinator.everything())
                return
            if self._planned is not None:
                self._run_batch(*self._planned)
            while not (self._offset["last"] or context.cancelled or context.suspending or self._stopped):
                self._serve_savepoints()
                asked = time.monotonic()
                end = self._coordinator.next(self._offset)
                if end is not self._offset:
                    decided = time.monotonic()
                    shares = self._coordinator.plan(self._offset, end)
                    self._offset = end
                    self._run_batch(end["batch"], shares, decided - asked, time.monotonic() - decided)
            stopping = context.savepoints.stopping
            if stopping is not None and stopping.drain:
                self._answer(stopping, drained=True)
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    def _feedback(self) -> CoordinatorFeedback:
        stopping = self.context.savepoints.stopping
        drain = stopping is not None and stopping.drain
        return replace(self.context.inbox.feedback(), drain=drain, hold=self._stopped)

    def _serve_savepoints(self) -> None:
        request = self.context.savepoints.take(begun=lambda: self._done >= 0)
        # One that drains is taken when the last batch is done.
        if request is not None and not request.drain:
            self._stopped = self._answer(request) and request.stop

    def _answer(self, request: SavepointRequest, drained: bool = False) -> bool:
        return self.context.savepoints.fulfil(request, lambda target: self._save(target, drained))

    def _save(self, target: Place, drained: bool) -> None:
        """Writes all state of the last batch that is done."""
        # Loads Arrow, which most jobs need not wait for.
        from firesteel.engine.savepoints.tables import tables_of
        from firesteel.engine.savepoints.writing import SubtaskPart, complete, write_subtask

        context = self.context
        parts: list[SubtaskPart] = []
        for (_, subtask), store in sorted(self._stores.items()):
            parts.extend(write_subtask(StoredSubtask(store, context.spec.tables), subtask, target))
        backend = backend_name(context.submission.configuration, context.submission.state_backend)
        checkpoint = Manifest.of(context.name, context.spec.graph, backend)
        copy_sources(self._directory, target)
        manifest = outline(checkpoint, context.job_id, self._offset["batch"], self._offset_now(), drained)
        complete(target, manifest, parts, tables_of(context.spec.graph))

    def _offset_now(self) -> dict[str, Any]:
        """The last batch's offset, with event time as that batch left it."""
        return {**self._offset, "kept": {**self._offset.get("kept", {}), **self.context.inbox.progress.kept}}

    def _run_batch(
        self, batch: int, shares: list[SourceShare], latest_offset: float = 0.0, planning: float = 0.0
    ) -> None:
        """``latest_offset``, ``planning``: how many seconds it took to decide what the batch reads."""
        context = self.context
        context.batches.began(batch, context.spec.attempt, latest_offset=latest_offset, planning=planning)
        # 1. From here on the batch is decided, as if it were logged.
        self._planned = (batch, shares)
        context.checkpoints.began(batch)
        # 2. The tasks, stage after stage.
        with context.batches.part("tasks"):
            cells = list(run_stages(self._graph, shares, self._task, self._store))
        # All tasks are there; the records of a collection may be many.
        self._shipped = None
        # 3. What sinks prepared is logged, and people see what came out.
        with context.batches.part("results"):
            context.inbox.take(batch, cells)
        # 4. The batch is done: nothing goes back behind it.
        context.checkpoints.completed(
            **context.inbox.of_checkpoint(),
            checkpointed_size=sum(store.written for store in self._stores.values()),
        )
        for store in self._stores.values():
            store.commit()
        context.batches.ended(**context.inbox.of_batch())
        self._planned, self._done = None, batch
        # 5. Sinks commit.
        context.commits.settle()
        # 6. Sources may let go of what lies before it.
        self._coordinator.committed(self._offset)

    def _store(self, stage: int, subtask: int) -> VersionedStore:
        return self._stores.setdefault((stage, subtask), VersionedStore())

    def _task(self, stage: int, subtask: int) -> StageTask:
        task = self._tasks.get((stage, subtask))
        if task is None:
            # Each task has functions of its own, as if it ran in a process of its own.
            task = StageTask(self._payload().load_here(), stage, subtask)
            self._tasks[stage, subtask] = task
        return task

    def _payload(self) -> JobPayload:
        """The job as it is now, pickled once for all tasks of an attempt."""
        spec = self.context.spec
        if self._shipped is None or self._shipped[0] is not spec:
            self._shipped = spec, pickle_job(spec)
        return self._shipped[1]

    def _close_tasks(self) -> None:
        # After the last batch there is nothing left to close; after a failure or a cancellation there is.
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            guarded(task.close)

    def end_attempt(self) -> None:
        # Tasks go, with all that their functions held, and so does what the failed batch wrote.
        self._close_tasks()
        self._sources.end()
        for store in self._stores.values():
            store.roll_back()

    def begin_attempt(self) -> None:
        self._begin()
        graph = self.context.spec.graph
        chunks = union_lists([StoredSubtask(store) for _, store in sorted(self._stores.items())], graph)
        if chunks and self._planned is not None:
            # The batch that failed comes again, and brings each subtask the lists of all.
            batch, shares = self._planned
            self._planned = batch, [replace(shares[0], restored=chunks), *shares[1:]]

    def interrupt(self) -> None:
        """The loop looks whether the job is cancelled after every batch."""
