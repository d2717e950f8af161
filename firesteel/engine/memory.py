"""The engine without Spark: the same tasks and frames in one process, stage after stage.

For tests and for trying a program out. State lives in dicts for the length of the job.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from firesteel.engine.coordinator import Coordinator
from firesteel.engine.job import EngineJob
from firesteel.engine.pickling import pickle_job
from firesteel.engine.submission import Submission
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.frames import DRIVER, Frame
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import SourceShare, StageTask

__all__ = ["MemoryJob"]


class MemoryJob(EngineJob):
    """A job in this process."""

    def __init__(self, submission: Submission) -> None:
        super().__init__(submission)
        self._stores: dict[tuple[int, int], MemoryStore] = {}
        self._tasks: dict[tuple[int, int], StageTask] = {}
        self._coordinator: Coordinator | None = None

    def prepare(self) -> str:
        # Through pickle, as on a cluster: functions are copied, and what cannot be pickled is found here too.
        self._job = pickle_job(self.spec).load()
        self._directory = tempfile.TemporaryDirectory(prefix="firesteel-")
        self._coordinator = Coordinator(self._job.graph, self.settings, self._directory.name, self.inbox.word)
        return "one process in memory"

    def run(self) -> None:
        assert self._coordinator is not None
        try:
            if self.spec.batch_mode:
                self._run_batch(0, self._coordinator.everything())
                return
            offset = self._coordinator.initial()
            while not offset["last"] and not self.cancelled:
                end = self._coordinator.next(offset)
                if end is not offset:
                    self._run_batch(end["batch"], self._coordinator.plan(offset, end))
                    offset = end
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    def _run_batch(self, batch: int, shares: list[SourceShare]) -> None:
        cells: list[Frame] = []
        for share in shares:
            cells.extend(self._task(0, share.subtask).run_source(share))
        for stage in self._job.graph.stages[1:]:
            cells = list(self._run_stage(stage.index, cells))
        self.inbox.take(batch, [frame.to_bytes() for frame in cells if frame.stage == DRIVER])

    def _run_stage(self, stage: int, frames: list[Frame]) -> Iterator[Frame]:
        by_subtask: dict[int, list[bytes]] = {}
        for frame in frames:
            if frame.stage == stage:
                by_subtask.setdefault(frame.target, []).append(frame.to_bytes())
            else:
                yield frame
        for subtask in sorted(by_subtask):
            store = self._stores.setdefault((stage, subtask), MemoryStore())
            yield from self._task(stage, subtask).run(by_subtask[subtask], store)

    def _task(self, stage: int, subtask: int) -> StageTask:
        task = self._tasks.get((stage, subtask))
        if task is None:
            # Each task has functions of its own, as if it ran in a process of its own.
            task = StageTask(pickle_job(self.spec).load(), stage, subtask)
            self._tasks[stage, subtask] = task
        return task

    def interrupt(self) -> None:
        """The loop looks at ``cancelled`` after every batch."""

    def clean_up(self) -> None:
        for task in self._tasks.values():
            # After the last batch there is nothing left to close; after a failure or a cancellation there is.
            self._guarded(task.close)
        if self._coordinator is not None:
            self._coordinator.stop()
            self._directory.cleanup()
