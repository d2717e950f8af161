"""A job, pickled for the processes that work for it."""

from __future__ import annotations

from dataclasses import replace

from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.job_spec import JobSpec

__all__ = ["pack_job", "slim"]


def slim(job: JobSpec) -> JobSpec:
    """The job without what only the coordinator needs, such as the elements of a collection."""
    stream = job.graph.graph
    nodes = {
        node_id: replace(node, spec=replace(node.spec, enumerator=None)) if isinstance(node.spec, SourceSpec) else node
        for node_id, node in stream.nodes.items()
    }
    return replace(job, graph=replace(job.graph, graph=replace(stream, nodes=nodes)))


def pack_job(job: JobSpec, paths: tuple[str, ...]) -> tuple[JobPayload, JobPayload]:
    """The job as its tasks need it and the whole of it, or an error that names what cannot travel."""
    return pickle_job(slim(job), paths), pickle_job(job, paths)
