"""The tasks of one micro-batch in one process, stage after stage: what Spark does on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.frames import DRIVER, Frame
from firesteel.runtime.job_spec import SourceShare
from firesteel.runtime.state.store import StateStore

__all__ = ["Task", "run_stages"]


class Task(Protocol):
    """What the loop needs of a :class:`~firesteel.runtime.task.StageTask`."""

    def run_source(self, share: SourceShare) -> Iterator[Frame]: ...

    def run(self, cells: Iterable[bytes], store: StateStore) -> Iterator[Frame]: ...


def run_stages(
    graph: JobGraph,
    shares: Iterable[SourceShare],
    task: Callable[[int, int], Task],
    store: Callable[[int, int], StateStore],
) -> list[bytes]:
    """Runs a batch. ``task`` and ``store`` are those of a stage and a subtask. Returns what was sent to the driver."""
    frames = [frame for share in shares for frame in task(0, share.subtask).run_source(share)]
    for stage in graph.stages[1:]:
        frames = list(_run_stage(stage.index, frames, task, store))
    return [cell for frame in frames if frame.stage == DRIVER for cell in frame.cells()]


def _run_stage(
    stage: int, frames: list[Frame], task: Callable[[int, int], Task], store: Callable[[int, int], StateStore]
) -> Iterator[Frame]:
    by_subtask: dict[int, list[bytes]] = {}
    for frame in frames:
        if frame.stage == stage:
            by_subtask.setdefault(frame.target, []).extend(frame.cells())
        else:
            # For a later stage, or for the driver.
            yield frame
    for subtask in sorted(by_subtask):
        yield from task(stage, subtask).run(by_subtask[subtask], store(stage, subtask))
