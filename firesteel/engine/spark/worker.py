"""Inside a Spark Python worker: jobs and tasks that stay between batches.

A worker process serves many batches. The job is unpickled once, and a task's operators are opened once, not per batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from firesteel.engine.payload import JobPayload
from firesteel.runtime.frames import DRIVER, Frame
from firesteel.runtime.partitions import partition_tokens
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.task import JobSpec, SourceShare, StageTask

__all__ = ["run_source", "run_stage"]

_JOBS: dict[str, JobSpec] = {}
_TASKS: dict[tuple[str, int, int], StageTask] = {}
_JOBS_KEPT = 4

Cell = tuple[int, bytes]


def _task(payload: JobPayload, stage: int, subtask: int) -> StageTask:
    key = (payload.job_id, stage, subtask)
    task = _TASKS.get(key)
    if task is None:
        if payload.job_id not in _JOBS:
            _forget_old_jobs()
            _JOBS[payload.job_id] = payload.load()
        # Each task has copies of the functions, as if it had a process of its own.
        task = _TASKS[key] = StageTask(payload.load(), stage, subtask)
    return task


def _forget_old_jobs() -> None:
    while len(_JOBS) >= _JOBS_KEPT:
        oldest = next(iter(_JOBS))
        del _JOBS[oldest]
        for key in [key for key in _TASKS if key[0] == oldest]:
            # A job that was cancelled left its functions open.
            with contextlib.suppress(Exception):
                _TASKS.pop(key).close()


def run_source(payload: JobPayload, share: SourceShare) -> Iterator[Cell]:
    """A task of stage 0."""
    task = _task(payload, 0, share.subtask)
    yield from _guarded(payload, 0, share.subtask, task.run_source(share))


def run_stage(
    payload: JobPayload, stage: int, subtask: int, cells: Iterable[bytes], store: StateStore
) -> Iterator[Cell]:
    """A task of a later stage."""
    task = _task(payload, stage, subtask)
    yield from _guarded(payload, stage, subtask, task.run(cells, store))


def _guarded(payload: JobPayload, stage: int, subtask: int, frames: Iterator[Frame]) -> Iterator[Cell]:
    """Frames as rows. A task that did not get to its end is not used again: its operators are in between batches'
    states, so a retry must start from what the store knows."""
    tokens = partition_tokens(_JOBS[payload.job_id].graph.parallelism)
    done = False
    try:
        for frame in frames:
            target = subtask if frame.stage == DRIVER else frame.target
            yield tokens[target], frame.to_bytes()
        done = True
    finally:
        if not done:
            task = _TASKS.pop((payload.job_id, stage, subtask), None)
            # Whatever close() has to say, what ended the task says more.
            with contextlib.suppress(Exception):
                if task is not None:
                    task.close()
