"""Inside a Spark Python worker: one batch of one task.

A worker process serves many batches. A task's operators are opened once, not per batch: see :mod:`.tasks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firesteel.engine.imports import IMPORTS
from firesteel.engine.payload import JobPayload
from firesteel.engine.spark.tasks import TASKS
from firesteel.runtime.failures import carried
from firesteel.runtime.frames import DRIVER, Frame
from firesteel.runtime.job_spec import SourceShare
from firesteel.runtime.partitions import partition_tokens
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.task import StageTask

__all__ = ["run_source", "run_stage"]

Cell = tuple[int, bytes]


def run_source(payload: JobPayload, share: SourceShare) -> Iterator[Cell]:
    """A task of stage 0."""
    with carried():
        task = TASKS.get(payload, 0, share.subtask)
        with TASKS.running((payload.job_id, 0, share.subtask)):
            yield from _as_cells(task, share.subtask, task.run_source(share))


def run_stage(
    payload: JobPayload, stage: int, subtask: int, cells: Iterable[bytes], store: StateStore
) -> Iterator[Cell]:
    """A task of a later stage."""
    IMPORTS.switch(payload.files)
    with carried():
        task = TASKS.get(payload, stage, subtask)
        if task.outdated(store):
            task = TASKS.renew(payload, stage, subtask)
        with TASKS.running((payload.job_id, stage, subtask)):
            yield from _as_cells(task, subtask, task.run(cells, store))


def _as_cells(task: StageTask, subtask: int, frames: Iterator[Frame]) -> Iterator[Cell]:
    """Frames as rows: each with the token that brings it to its target's partition."""
    tokens = partition_tokens(task.job_parallelism)
    for frame in frames:
        target = subtask if frame.stage == DRIVER else frame.target
        for cell in frame.cells():
            yield tokens[target], cell
