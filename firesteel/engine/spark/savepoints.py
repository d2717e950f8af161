"""Reads the state of a committed batch out of Spark's state store and writes a savepoint's files, in Spark tasks.

The streaming query goes on meanwhile: Spark's state reader opens the files of that batch for itself.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from firesteel.durable.cells import HEADER, is_list
from firesteel.durable.folder import checked_feedback
from firesteel.engine.manifest import CheckpointFolder, stored_folder
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.taking import copy_sources, outline
from firesteel.engine.savepoints.writing import SubtaskPart, complete, write_subtask
from firesteel.engine.spark.coordinator_link import feedback_file
from firesteel.errors import SavepointError
from firesteel.filesystems import LOCAL, Storage
from firesteel.runtime.partitions import partition_tokens
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.state.store import MemoryStore, StateStore
from firesteel.runtime.state.tables import TableFactory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SpooledStore", "read_stores", "read_subtasks", "savepoint_of_checkpoint", "write_state"]


def savepoint_of_checkpoint(session: SparkSession, path: str, target: Place, storage: Storage = LOCAL) -> None:
    """Writes the last batch of a job that does not run as a savepoint."""
    folder = stored_folder(path, storage)
    batch = folder.last_commit
    if batch is None:
        raise SavepointError(f"The checkpoint {path} has no completed batch to begin with.")
    pending = [name for name in storage.sizes(folder.commits) if name.isdigit() and int(name) <= batch]
    if pending:
        raise SavepointError(
            f"The checkpoint {path} has results of batch {pending[0]} that its sinks have not committed yet, and only "
            "its own job can. Start that once more and let it end, or stop it with a savepoint."
        )
    known = folder.manifest
    stages = max(entry.stage for entry in known.operators)
    parts = write_state(session, folder.query, batch, stages, known.width, target)
    copy_sources(folder.sources, target)
    manifest = outline(known, "", batch, _after(folder.offset(batch), folder.sources))
    complete(target, manifest, parts, folder.kept_tables())


def _after(offset: dict[str, Any], sources: str) -> dict[str, Any]:
    """A batch's offset with event time as that batch left it, if the driver's last feedback is of that batch."""
    try:
        with open(feedback_file(sources), encoding="utf-8") as file:
            feedback = checked_feedback(json.load(file))
    except (OSError, ValueError):
        return offset
    if feedback.get("time") != offset["time"]:
        return offset
    return {**offset, "kept": {**offset.get("kept", {}), **feedback.get("kept", {})}}


def write_state(
    session: SparkSession,
    query: str,
    batch: int,
    stages: int,
    width: int,
    target: Place,
    custom: TableFactory | None = None,
) -> list[SubtaskPart]:
    """The files of all stages with state, as they were after a batch."""

    def write(subtask: int, store: SpooledStore) -> Iterator[SubtaskPart]:
        return write_subtask(StoredSubtask(store, custom), subtask, target)

    return _of_each_subtask(session, query, batch, stages, width, write)


def read_subtasks(session: SparkSession, query: str, batch: int, stages: int, width: int) -> list[StoredSubtask]:
    """What every subtask keeps besides keyed state, as it was after a batch."""

    def read(subtask: int, store: SpooledStore) -> Iterator[dict[bytes, bytes]]:
        yield store.operator_state()

    found: list[dict[bytes, bytes]] = _of_each_subtask(session, query, batch, stages, width, read)
    return [StoredSubtask(MemoryStore(cells)) for cells in found]


def read_stores(folder: CheckpointFolder, batch: int, stages: int, width: int) -> dict[tuple[int, int], StateStore]:
    """All stores as they were after a batch, brought to this process."""
    from firesteel.engine.settings import Settings
    from firesteel.engine.spark.session import get_session

    session = get_session(Settings(), "replay")
    subtasks = {token: number for number, token in enumerate(partition_tokens(width))}
    found: dict[tuple[int, int], StateStore] = {}
    for operator in range(stages):
        for row in _cells(session, folder.query, operator, batch).toLocalIterator():
            store = found.setdefault((operator + 1, subtasks[row[0]]), SpooledStore())
            assert isinstance(store, SpooledStore)
            store.add(bytes(row[1]), bytes(row[2]))
    return found


def _cells(session: SparkSession, query: str, operator: int, batch: int) -> DataFrame:
    """What a stage's stores had after a batch: the partition's token, a cell's key, its value."""
    return (
        session.read.format("statestore")
        .option("path", query)
        .option("operatorId", operator)
        .option("batchId", batch)
        .option("stateVarName", "state")
        .option("flattenCollectionTypes", "true")
        .load()
        .selectExpr("key.r AS r", "user_map_key.k AS k", "user_map_value.v AS v")
    )


def _of_each_subtask(
    session: SparkSession,
    query: str,
    batch: int,
    stages: int,
    width: int,
    work: Callable[[int, SpooledStore], Iterable[Any]],
) -> list[Any]:
    """Does something with every subtask's store, in a task each, and collects what comes out."""
    found: list[Any] = []
    for operator in range(stages):
        cells = _cells(session, query, operator, batch)
        for row in cells.mapInArrow(_task(width, work), "part binary").collect():
            found.append(pickle.loads(row[0]))
    return found


def _task(
    width: int, work: Callable[[int, SpooledStore], Iterable[Any]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        store = SpooledStore()
        subtask = -1
        subtasks = {token: number for number, token in enumerate(partition_tokens(width))}
        for batch in batches:
            if batch.num_rows:
                subtask = subtasks[batch.column(0)[0].as_py()]
                for key, value in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True):
                    store.add(key, value)
        try:
            if subtask >= 0:
                for part in work(subtask, store):
                    pickled = pa.array([pickle.dumps(part)], pa.binary())
                    yield pa.RecordBatch.from_arrays([pickled], ["part"])
        finally:
            store.close()

    return run


class SpooledStore:
    """A state store to read from, in a file: cells come in no useful order, and are asked for by key.

    >>> store = SpooledStore()
    >>> store.add(b"a", b"1")
    >>> store.get_many([b"a", b"b"])
    [b'1', None]
    """

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="firesteel-savepoint-")  # noqa: SIM115 - see close()
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0

    def add(self, key: bytes, value: bytes) -> None:
        self._file.write(value)
        self._places[key] = (self._end, len(value))
        self._end += len(value)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for key in keys:
            place = self._places.get(key)
            if place is None:
                found.append(None)
            else:
                self._file.seek(place[0])
                found.append(self._file.read(place[1]))
        return found

    def operator_state(self) -> dict[bytes, bytes]:
        """The header and the lists of operators: what is read without the rest."""
        wanted = [key for key in self._places if key == HEADER or is_list(key)]
        return {key: cell for key, cell in zip(wanted, self.get_many(wanted), strict=True) if cell is not None}

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        raise SavepointError("What was saved is not to be changed.")  # pragma: no cover - nobody does

    def close(self) -> None:
        self._file.close()
