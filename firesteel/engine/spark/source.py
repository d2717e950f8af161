"""All sources of a job as one Python data source: its offsets are the coordinator's, its rows are frames."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from firesteel.engine.coordinator import Coordinator
from firesteel.engine.pickling import JobPayload
from firesteel.engine.settings import Settings
from firesteel.engine.spark import worker
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.task import JobSpec, SourceShare

__all__ = ["CONTROL", "FRAME_SCHEMA", "FiresteelDataSource", "slim", "write_job"]

FRAME_SCHEMA = "r int, f binary"
_ARROW = pa.schema([("r", pa.int32()), ("f", pa.binary())])

CONTROL = "control.json"
"""What the driver tells the coordinator between batches: when the next processing-time timer is due."""


class _Share(InputPartition):
    """What one task reads, pickled: the functions of a share's records are known in the worker only."""

    def __init__(self, share: SourceShare) -> None:
        super().__init__(None)
        self.pickled = pickle.dumps(share, pickle.HIGHEST_PROTOCOL)


def read(payload: JobPayload, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _Share)
    for token, cell in worker.run_source(payload, pickle.loads(partition.pickled)):
        yield pa.RecordBatch.from_arrays([pa.array([token], pa.int32()), pa.array([cell], pa.binary())], schema=_ARROW)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._payload: JobPayload = _load(directory, "tasks.pkl")
        self._coordinator: Coordinator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_directory": self._directory, "_payload": self._payload, "_coordinator": None}

    def _running(self) -> Coordinator:
        """Made on first use: of the processes that hold a reader only one plans batches."""
        if self._coordinator is None:
            payload, settings, durable = _load(self._directory, "coordinator.pkl")
            control = _Control(os.path.join(self._directory, CONTROL))
            self._coordinator = Coordinator(payload.load().graph, settings, durable, control.wake_at)
        return self._coordinator

    def initialOffset(self) -> dict[str, Any]:
        return self._running().initial()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return self._running().next(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Share(share) for share in self._running().plan(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._payload, partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._running().committed(end)

    def stop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.stop()


class _BatchReader(DataSourceReader):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._payload: JobPayload = _load(directory, "tasks.pkl")

    def partitions(self) -> list[InputPartition]:
        payload, settings, durable = _load(self._directory, "coordinator.pkl")
        coordinator = Coordinator(payload.load().graph, settings, durable)
        try:
            return [_Share(share) for share in coordinator.everything()]
        finally:
            coordinator.stop()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._payload, partition)


class FiresteelDataSource(DataSource):
    """``spark.readStream.format("firesteel")``: the option ``directory`` names what :func:`write_job` wrote."""

    @classmethod
    def name(cls) -> str:
        return "firesteel"

    def schema(self) -> str:
        return FRAME_SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _StreamReader(self.options["directory"])

    def reader(self, schema: Any) -> DataSourceReader:
        return _BatchReader(self.options["directory"])


class _Control:
    """Reads the driver's word, and only when it changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = 0
        self._wake_at: int | None = None

    def wake_at(self) -> int | None:
        try:
            changed = os.stat(self._path).st_mtime_ns
            if changed != self._seen:
                with open(self._path, encoding="utf-8") as file:
                    self._wake_at = json.load(file)["wake_at"]
                self._seen = changed
        except (OSError, ValueError):
            # Not written yet, or being replaced: the next look will do.
            return self._wake_at
        return self._wake_at


def write_job(directory: str, job: JobSpec, settings: Settings, durable: str, paths: tuple[str, ...]) -> JobPayload:
    """Leaves a job where the source's processes find it. Returns what travels to the tasks."""
    for_tasks = JobPayload.dumps(slim(job), paths)
    whole = JobPayload.dumps(job, paths)
    for name, content in (("tasks.pkl", for_tasks), ("coordinator.pkl", (whole, settings, durable))):
        with open(os.path.join(directory, name), "wb") as file:
            pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)
    return for_tasks


def _load(directory: str, name: str) -> Any:
    with open(os.path.join(directory, name), "rb") as file:
        return pickle.load(file)


def slim(job: JobSpec) -> JobSpec:
    """The job without what only the coordinator needs, such as the elements of a collection."""
    stream = job.graph.graph
    nodes = {
        node_id: replace(node, spec=SourceSpec(node.spec.source.for_tasks()))
        if isinstance(node.spec, SourceSpec)
        else node
        for node_id, node in stream.nodes.items()
    }
    graph: JobGraph = replace(job.graph, graph=replace(stream, nodes=nodes))
    return replace(job, graph=graph)
