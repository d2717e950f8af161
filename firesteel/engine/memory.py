"""The engine without Spark: the same tasks and frames in one process, stage after stage.

For tests and for trying a program out. State lives in dicts for the length of the job.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from firesteel.engine.backends import backend_name
from firesteel.engine.coordinator import Coordinator, CoordinatorFeedback
from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.engine.job import EngineJob
from firesteel.engine.manifest import COMMITS, Manifest
from firesteel.engine.pickling import pickle_job
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.taking import copy_sources, outline
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.shipping import gather
from firesteel.engine.submission import Submission
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.frames import DRIVER, Frame
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.snapshots.restoring import union_lists
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import SourceShare, StageTask

__all__ = ["MemoryJob", "VersionedStore"]


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


class MemoryJob(EngineJob):
    """A job in this process."""

    SUSPENDED_WITHIN = 5.0
    # Nothing can interrupt a function that is called in this process.

    def __init__(self, submission: Submission) -> None:
        super().__init__(submission)
        self._stores: dict[tuple[int, int], VersionedStore] = {}
        self._tasks: dict[tuple[int, int], StageTask] = {}
        self._coordinator: Coordinator | None = None
        self._files: JobFiles | None = None
        self._stopped = False
        self._planned: tuple[int, list[SourceShare]] | None = None
        """The batch that is decided and not done: after a failure it comes again, as it was."""
        self._done = -1
        """The last batch that is done."""

    def prepare(self) -> str:
        self._directory = tempfile.TemporaryDirectory(prefix="job-", dir=scratch_folder())
        self.restore = self.find_restore()
        # Through pickle, as on a cluster: functions are copied, and what cannot be pickled is found here too.
        self._files = gather(self.submission)
        IMPORTS.hold(self._files, runs_here=True)
        self._job = pickle_job(self.spec).load_here()
        self._coordinator = Coordinator(
            self._job.graph, self.settings, self._directory.name, self._feedback, restore=self.restore
        )
        self._offset = self._coordinator.initial()
        self._start_commits()
        return "one process in memory"

    def _start_commits(self) -> None:
        folder = os.path.join(self._directory.name, COMMITS)
        try:
            self.commits.start(self.spec, folder, lambda batch: batch <= self._done)
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    def run(self) -> None:
        assert self._coordinator is not None
        try:
            if self.spec.batch_mode:
                # It may be done already, if what failed was a sink's commit.
                if self._done < 0:
                    self._run_batch(0, self._coordinator.everything())
                return
            if self._planned is not None:
                self._run_batch(*self._planned)
            while not (self._offset["last"] or self.cancelled or self.suspending or self._stopped):
                self._serve_savepoints()
                end = self._coordinator.next(self._offset)
                if end is not self._offset:
                    shares = self._coordinator.plan(self._offset, end)
                    self._offset = end
                    self._run_batch(end["batch"], shares)
            if self.savepoints.stopping is not None and self._feedback().drain:
                self.answer(self.savepoints.stopping, drained=True)
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    def _feedback(self) -> CoordinatorFeedback:
        stopping = self.savepoints.stopping
        return replace(self.inbox.feedback(), drain=stopping is not None and stopping.drain, hold=self._stopped)

    def _serve_savepoints(self) -> None:
        request = self.savepoints.take(begun=lambda: self._done >= 0)
        # One that drains is taken when the last batch is done.
        if request is not None and not request.drain:
            self._stopped = self.answer(request) and request.stop

    def take_savepoint(self, target: Place, drained: bool) -> None:
        # Loads Arrow, which most jobs need not wait for.
        from firesteel.engine.savepoints.writing import SubtaskPart, complete, write_subtask

        parts: list[SubtaskPart] = []
        for (_, subtask), store in sorted(self._stores.items()):
            parts.extend(write_subtask(StoredSubtask(store, self.spec.tables), subtask, target))
        backend = backend_name(self.submission.configuration, self.submission.state_backend)
        checkpoint = Manifest.of(self.spec.name, self.spec.graph, backend)
        copy_sources(self._directory.name, target)
        complete(target, outline(checkpoint, self.job_id, self._offset["batch"], self._offset_now(), drained), parts)

    def _offset_now(self) -> dict[str, Any]:
        """The last batch's offset, with event time as that batch left it."""
        return {**self._offset, "kept": {**self._offset.get("kept", {}), **self.inbox.progress.kept}}

    def _run_batch(self, batch: int, shares: list[SourceShare]) -> None:
        # 1. From here on the batch is decided, as if it were logged.
        self._planned = (batch, shares)
        self.checkpoints.began(batch)
        # 2. The tasks, stage after stage.
        cells: list[Frame] = []
        for share in shares:
            cells.extend(self._task(0, share.subtask).run_source(share))
        for stage in self._job.graph.stages[1:]:
            cells = list(self._run_stage(stage.index, cells))
        # 3. What sinks prepared is logged, and people see what came out.
        self.inbox.take(batch, [cell for frame in cells if frame.stage == DRIVER for cell in frame.cells()])
        # 4. The batch is done: nothing goes back behind it.
        self.checkpoints.completed(
            **self.known_of_batch(),
            checkpointed_size=sum(store.written for store in self._stores.values()),
        )
        for store in self._stores.values():
            store.commit()
        self._planned, self._done = None, batch
        # 5. Sinks commit.
        self.commits.settle()

    def _run_stage(self, stage: int, frames: list[Frame]) -> Iterator[Frame]:
        by_subtask: dict[int, list[bytes]] = {}
        for frame in frames:
            if frame.stage == stage:
                by_subtask.setdefault(frame.target, []).extend(frame.cells())
            else:
                yield frame
        for subtask in sorted(by_subtask):
            store = self._stores.setdefault((stage, subtask), VersionedStore())
            yield from self._task(stage, subtask).run(by_subtask[subtask], store)

    def _task(self, stage: int, subtask: int) -> StageTask:
        task = self._tasks.get((stage, subtask))
        if task is None:
            # Each task has functions of its own, as if it ran in a process of its own.
            task = StageTask(pickle_job(self.spec).load_here(), stage, subtask)
            self._tasks[stage, subtask] = task
        return task

    def end_attempt(self) -> None:
        # Tasks go, with all that their functions held, and so does what the failed batch wrote.
        for task in self._tasks.values():
            self._guarded(task.close)
        self._tasks = {}
        for store in self._stores.values():
            store.roll_back()

    def restart(self) -> None:
        super().restart()
        self._start_commits()
        chunks = union_lists([StoredSubtask(store) for _, store in sorted(self._stores.items())], self.spec.graph)
        if chunks and self._planned is not None:
            # The batch that failed comes again, and brings each subtask the lists of all.
            batch, shares = self._planned
            self._planned = batch, [replace(shares[0], restored=chunks), *shares[1:]]

    def interrupt(self) -> None:
        """The loop looks at ``cancelled`` after every batch."""

    def clean_up(self) -> None:
        for task in self._tasks.values():
            # After the last batch there is nothing left to close; after a failure or a cancellation there is.
            self._guarded(task.close)
        self.commits.end()
        IMPORTS.release(self._files)
        if self._coordinator is not None:
            self._coordinator.stop()
            self._directory.cleanup()
