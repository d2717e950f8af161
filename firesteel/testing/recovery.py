"""A job in memory that is restarted after a failure, as a job with a checkpoint is."""

from __future__ import annotations

from dataclasses import replace

from firesteel.engine.memory import MemoryJob
from firesteel.engine.submission import Submission
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import SourceShare

__all__ = ["RecoveringJob"]


class RecoveringJob(MemoryJob):
    """Repeats a batch that failed, so many times in all, with new tasks and the state of the batch before."""

    def __init__(self, submission: Submission, restarts: int) -> None:
        super().__init__(submission)
        self._restarts = restarts

    def _run_batch(self, batch: int, shares: list[SourceShare]) -> None:
        before = {place: dict(store.content) for place, store in self._stores.items()}
        try:
            super()._run_batch(batch, shares)
        except OperatorFailure:
            if not self._restarts:
                raise
            self._restarts -= 1
            self._restart(before)
            self._run_batch(batch, shares)

    def _restart(self, before: dict[tuple[int, int], dict[bytes, bytes]]) -> None:
        # 1. Tasks go, with all that their functions held.
        for task in self._tasks.values():
            self._guarded(task.close)
        self._tasks = {}
        # 2. What the failed attempt wrote goes too.
        self._stores = {place: MemoryStore(content) for place, content in before.items()}
        # 3. New tasks know that they are not the first.
        self.spec = replace(self.spec, attempt=self.spec.attempt + 1)
