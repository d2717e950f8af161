"""All sources of a job as one Python data source: its offsets are the coordinator's, its rows are frames."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from firesteel.common.private_files import make_private_folder, replace_file
from firesteel.engine.imports import IMPORTS
from firesteel.engine.payload import JobPayload
from firesteel.engine.spark.coordinator_link import DriverLink
from firesteel.engine.spark.job_files import job_for_coordinator, job_for_tasks
from firesteel.engine.spark.masters import is_local
from firesteel.runtime.failures import carried

# Three processes that Spark starts for a source import this module and only one of them plans batches.
if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.engine.coordinator import Coordinator
    from firesteel.engine.settings import Settings
    from firesteel.runtime.job_spec import SourceShare

__all__ = ["FRAME_SCHEMA", "FiresteelDataSource"]

FRAME_SCHEMA = "r int, f binary"

SHARES = "shares"
"""The folder of shares that are too large for the JVM's heap, where tasks run on this machine."""

_INLINE = 1 << 20

PATIENCE = 0.2
"""How long the coordinator looks for records, in seconds, before Spark's query hears that there are none. A query that
is stopped waits for it, unless the coordinator is told that it may leave."""


class _Share(InputPartition):
    """What one task reads, pickled: the functions of a share's records are known in the worker only.

    Spark has the shares of a batch in the JVM's heap, several times over. So a large one goes into a file instead, by
    its batch's number: a batch that is planned again writes the same."""

    def __init__(self, share: SourceShare, batch: int, folder: str | None) -> None:
        super().__init__(None)
        self.pickled = pickle.dumps(share, pickle.HIGHEST_PROTOCOL)
        self.path: str | None = None
        if folder is not None and len(self.pickled) > _INLINE:
            make_private_folder(folder)
            self.path = os.path.join(folder, f"{batch}-{share.subtask}")
            replace_file(self.path, self.pickled)
            self.pickled = b""

    def load(self) -> SourceShare:
        if self.path is None:
            share: SourceShare = pickle.loads(self.pickled)
            return share
        with open(self.path, "rb") as file:
            stored: SourceShare = pickle.load(file)
        return stored


def _let_go(folder: str | None, batch: int) -> None:
    """Deletes the shares of batches that are done."""
    if folder is not None and os.path.isdir(folder):
        for name in os.listdir(folder):
            # One that begins with a dot was not written to its end.
            if not name.startswith(".") and int(name.split("-")[0]) <= batch:
                os.unlink(os.path.join(folder, name))


def read(payload: JobPayload, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from firesteel.engine.spark import worker
    from firesteel.engine.spark.stage import together

    assert isinstance(partition, _Share)
    schema = pa.schema([("r", pa.int32()), ("f", pa.binary())])
    IMPORTS.switch(payload.files)
    for tokens, cells in together(worker.run_source(payload, partition.load())):
        arrays = [pa.array(tokens, pa.int32()), pa.array(cells, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._payload: JobPayload = job_for_tasks(directory)
        self._coordinator: Coordinator | None = None
        self._shares: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_directory": self._directory, "_payload": self._payload, "_coordinator": None, "_shares": None}

    def _running(self) -> Coordinator:
        """Made on first use: of the processes that hold a reader only one plans batches."""
        if self._coordinator is None:
            from firesteel.engine.coordinator import Coordinator
            from firesteel.engine.folder_lock import hold_as_coordinator

            job = job_for_coordinator(self._directory)
            self._shares = _shares(self._directory, job.settings)
            self._lock = hold_as_coordinator(os.path.dirname(job.sources))
            link = DriverLink(self._directory, job.sources)
            self._coordinator = Coordinator(
                job.payload.load().graph,
                job.settings,
                job.sources,
                link.feedback,
                on_hold=link.confirm_hold,
                restore=job.restore,
                union_lists=job.union_lists,
                patience=PATIENCE,
            )
        return self._coordinator

    def initialOffset(self) -> dict[str, Any]:
        with carried():
            return self._running().initial()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        with carried():
            return self._running().next(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with carried():
            shares = self._running().plan(start, end)
            return [_Share(share, end["batch"], self._shares) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._payload, partition)

    def commit(self, end: dict[str, Any]) -> None:
        with carried():
            self._running().committed(end)
            _let_go(self._shares, end["batch"])

    def stop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.stop()
        if isinstance(sys.exception(), (EOFError, ConnectionError)):
            # The query has ended and closed the line, or reset it if something was still to be read. PySpark's loop
            # would take that for a failure and print a trace. What fails in here does not come as one of these: see
            # carried().
            os._exit(0)


class _BatchReader(DataSourceReader):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._payload: JobPayload = job_for_tasks(directory)

    def partitions(self) -> list[InputPartition]:
        from firesteel.engine.coordinator import Coordinator

        with carried():
            job = job_for_coordinator(self._directory)
            coordinator = Coordinator(job.payload.load().graph, job.settings, job.sources)
            try:
                folder = _shares(self._directory, job.settings)
                return [_Share(share, 0, folder) for share in coordinator.everything()]
            finally:
                coordinator.stop()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._payload, partition)


class FiresteelDataSource(DataSource):
    """``spark.readStream.format("firesteel")``: the option ``directory`` names what :mod:`.job_files` wrote."""

    @classmethod
    def name(cls) -> str:
        return "firesteel"

    def schema(self) -> str:
        return FRAME_SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _StreamReader(self.options["directory"])

    def reader(self, schema: Any) -> DataSourceReader:
        return _BatchReader(self.options["directory"])


def _shares(directory: str, settings: Settings) -> str | None:
    return os.path.join(directory, SHARES) if is_local(settings.master) else None
