"""A savepoint or checkpoint, to look into."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.engine.manifest import is_checkpoint
from firesteel.engine.savepoints.manifest import SavepointManifest, StateEntry
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.restoring import load_manifest
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.scratch import scratch_folder
from firesteel.errors import SavepointError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from firesteel.state_processor.editing import SavepointEditor

__all__ = ["Savepoint", "StateInfo"]


@dataclass(frozen=True)
class StateInfo:
    """One state of a savepoint."""

    uid: str
    operator: str
    name: str
    kind: str
    """value, list, map, reducing or aggregating; timers; split, union, raw or broadcast for state without keys."""
    type: str
    rows: int
    bytes: int


class Savepoint:
    """What a savepoint has, operator by operator. Nothing is read before it is asked for."""

    def __init__(self, place: Place, manifest: SavepointManifest, kept: Any = None) -> None:
        self._place = place
        self._manifest = manifest
        self._kept = kept
        """What must live as long as this does."""

    @staticmethod
    def load(path: str) -> Savepoint:
        """A savepoint, or the checkpoint folder of a job that does not run.

        A checkpoint's state is in Spark's state store: it is copied out of it first, into a temporary savepoint.
        """
        if not is_checkpoint(path):
            place = Place.of(path)
            return Savepoint(place, load_manifest(place))
        from firesteel.engine.spark.savepoints import savepoint_of_checkpoint
        from firesteel.engine.spark.state_frames import own_session

        folder = tempfile.TemporaryDirectory(prefix="state-", dir=scratch_folder())
        place = Place.of(folder.name).inside("savepoint")
        savepoint_of_checkpoint(own_session(), path, place)
        return Savepoint(place, load_manifest(place), kept=folder)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._place.address

    @property
    def job(self) -> str:
        """The name of the job that it was taken of."""
        return self._manifest.job

    def operators(self) -> list[str]:
        """The uids of all operators."""
        return [entry.uid for entry in self._manifest.operators]

    def position(self, uid: str) -> Any:
        """How far a source was read."""
        return self._manifest.operator(uid).position

    def watermark(self, uid: str) -> int | None:
        """How far event time was in an operator."""
        return self._manifest.operator(uid).watermark

    def states(self) -> list[StateInfo]:
        """All states."""
        return [
            StateInfo(
                entry.uid,
                entry.name,
                state.name,
                state.declared if state.kind in ("value", "list", "map") else state.kind,
                str(state.state(entry.uid).schema.type),
                state.rows,
                state.bytes,
            )
            for entry in self._manifest.operators
            for state in entry.states
        ]

    def read(self, uid: str, state: str) -> DataFrame:
        """The rows of a state as a Spark DataFrame.

        Columns are ``key`` and ``value``; of a list also ``position``, of a map ``map_key``. What has no declared type
        is pickled, in columns that end in ``_pickle``.
        """
        from firesteel.engine.spark.state_frames import read_frame

        entry = self._state(uid, state)
        files = [self._place.inside(*file.path.split("/")).address for file in entry.files]
        return read_frame(files, RowFormat(entry.state(uid)).schema)

    def read_arrow(self, uid: str, state: str) -> pa.Table:
        """The rows of a state as an Arrow table, without Spark: ``read_arrow(…).to_pandas()``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        entry = self._state(uid, state)
        schema = RowFormat(entry.state(uid)).schema
        tables = []
        for file in entry.files:
            place = self._place.inside(*file.path.split("/"))
            tables.append(pq.read_table(place.path, filesystem=place.filesystem, schema=schema))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def items(self, uid: str, state: str) -> list[tuple[Any, Any]]:
        """The rows of a state as Python objects, pickled ones too: (key, value) pairs, of a list (key, (position,
        element)), of a map (key, (map key, value))."""
        form = RowFormat(self._state(uid, state).state(uid))
        found: list[tuple[Any, Any]] = []
        for batch in self.read_arrow(uid, state).to_batches():
            found.extend(zip(*form.rows(batch), strict=True))
        return found

    def edit(self) -> SavepointEditor:
        """Changes to be saved as another savepoint."""
        from firesteel.state_processor.editing import SavepointEditor

        return SavepointEditor(self._place, self._manifest)

    def _state(self, uid: str, state: str) -> StateEntry:
        entry = self._manifest.operator(uid)
        for known in entry.states:
            if known.name == state:
                return known
        names = ", ".join(repr(known.name) for known in entry.states) or "none"
        raise SavepointError(f"Operator {uid!r} has no state {state!r} in the savepoint {self.path}. It has: {names}.")

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r}, job {self.job!r}, {len(self.states())} states)"
