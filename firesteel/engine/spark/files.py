"""The files by which the driver hands a job to the processes of its source."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.common.private_files import open_private
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job
from firesteel.engine.settings import Settings
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.snapshots.saved import StateChunk
from firesteel.runtime.task import JobSpec

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore

__all__ = ["pack_job", "slim", "write_job"]


def slim(job: JobSpec) -> JobSpec:
    """The job without what only the coordinator needs, such as the elements of a collection."""
    stream = job.graph.graph
    nodes = {
        node_id: replace(node, spec=replace(node.spec, source=node.spec.source.for_tasks()))
        if isinstance(node.spec, SourceSpec)
        else node
        for node_id, node in stream.nodes.items()
    }
    return replace(job, graph=replace(job.graph, graph=replace(stream, nodes=nodes)))


def pack_job(job: JobSpec, paths: tuple[str, ...]) -> tuple[JobPayload, JobPayload]:
    """The job as its tasks need it and the whole of it, or an error that names what cannot travel."""
    return pickle_job(slim(job), paths), pickle_job(job, paths)


def write_job(
    directory: str,
    for_tasks: JobPayload,
    whole: JobPayload,
    settings: Settings,
    durable: str,
    restore: Restore | None = None,
    union_lists: Sequence[StateChunk] = (),
) -> None:
    """Leaves a job where the source's processes find it."""
    # What is Spark's may hold secrets, and the coordinator does not need it.
    planning = replace(settings, spark={})
    for name, content in (
        ("tasks.pkl", for_tasks),
        ("coordinator.pkl", (whole, planning, durable, restore, union_lists)),
    ):
        with open_private(os.path.join(directory, name), "wb") as file:
            pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)
