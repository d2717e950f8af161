"""A savepoint or checkpoint, to look into."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.durable.state_tables import StateTable
from firesteel.engine.manifest import is_checkpoint
from firesteel.engine.savepoints.manifest import OperatorEntry, SavepointManifest, StateEntry
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.restoring import load_manifest
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.savepoints.tables import Tables, read_tables
from firesteel.engine.scratch import scratch_folder
from firesteel.errors import SavepointError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from firesteel.state_processor.editing import SavepointEditor
    from firesteel.state_processor.shown_state import ShownState

__all__ = ["Savepoint", "StateColumn", "StateInfo"]


@dataclass(frozen=True)
class StateColumn:
    """One column of a query's state."""

    name: str
    type: str
    """In SQL."""
    role: str
    """key; window; place: where a row stands in an order, or in a match; row: a column of a stored row; aggregate: the
    result of a function, accumulator: a part of its state; time; count: what else is known of a row, such as how often
    it is there."""


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
    meaning: str = ""
    """What a row is, if the operator is one of a query."""


class Savepoint:
    """What a savepoint has, operator by operator. Nothing is read before it is asked for."""

    def __init__(self, place: Place, manifest: SavepointManifest, tables: Tables, kept: Any = None) -> None:
        self._place = place
        self._manifest = manifest
        self._tables = tables
        self._kept = kept
        """What must live as long as this does."""

    @staticmethod
    def load(path: str) -> Savepoint:
        """A savepoint, or the checkpoint folder of a job that does not run.

        A checkpoint's state is in Spark's state store: it is copied out of it first, into a temporary savepoint.
        """
        if not is_checkpoint(path):
            place = Place.of(path)
            return Savepoint(place, load_manifest(place), read_tables(place))
        from firesteel.engine.spark.savepoints import savepoint_of_checkpoint
        from firesteel.engine.spark.state_frames import own_session

        folder = tempfile.TemporaryDirectory(prefix="state-", dir=scratch_folder())
        place = Place.of(folder.name).inside("savepoint")
        savepoint_of_checkpoint(own_session(), path, place)
        return Savepoint(place, load_manifest(place), read_tables(place), kept=folder)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._place.address

    @property
    def job(self) -> str:
        """The name of the job that it was taken of."""
        return self._manifest.job

    @property
    def created(self) -> int:
        """When it was taken, in milliseconds."""
        return self._manifest.created

    def operators(self) -> list[str]:
        """The uids of all operators."""
        return [entry.uid for entry in self._manifest.operators]

    def operator_name(self, uid: str) -> str:
        """What an operator is called."""
        return self._manifest.operator(uid).name

    def meaning(self, uid: str) -> str:
        """What an operator of a query does, as an execution plan says it; nothing of other operators."""
        self._manifest.operator(uid)
        tables = self._tables.get(uid)
        return "" if tables is None else tables.meaning

    def position(self, uid: str) -> Any:
        """How far a source was read."""
        return self._manifest.operator(uid).position

    def read_position(self, uid: str) -> pa.Table:
        """How far a source was read, as an Arrow table: a row for each partition, or for each file of the last batch;
        no rows of an operator that is none."""
        from firesteel.state_processor.positions import position_table

        position = self.position(uid)
        table = position_table(position)
        return table if position is not None else table.slice(0, 0)

    def watermark(self, uid: str) -> int | None:
        """How far event time was in an operator."""
        return self._manifest.operator(uid).watermark

    def states(self) -> list[StateInfo]:
        """All states."""
        return [self._info(entry, state) for entry in self._manifest.operators for state in entry.states]

    def _info(self, entry: OperatorEntry, state: StateEntry) -> StateInfo:
        table = self._table(entry.uid, state)
        kind = state.declared if state.kind in ("value", "list", "map") else state.kind
        type = str(state.state(entry.uid).schema.type)
        if table is not None:
            type = f"ROW<{', '.join(f'`{column.name}` {column.type}' for column in table.columns)}>"
        meaning = "" if table is None else table.meaning
        return StateInfo(entry.uid, entry.name, state.name, kind, type, state.rows, state.bytes, meaning)

    def columns(self, uid: str, state: str) -> list[StateColumn]:
        """The columns of a query's state: names and types of SQL. Nothing of other states, and of a savepoint that was
        taken by a version that did not describe them."""
        table = self._table(uid, self._state(uid, state))
        return [] if table is None else [StateColumn(one.name, one.type, one.role) for one in table.columns]

    def read(self, uid: str, state: str, stored: bool = False) -> DataFrame:
        """The rows of a state as a Spark DataFrame.

        Columns are ``key`` and ``value``; of a list also ``position``, of a map ``map_key``. What has no declared type
        is pickled, in columns that end in ``_pickle``. A query's state has the columns that :meth:`columns` lists;
        with ``stored`` it is as it is stored, too.
        """
        from firesteel.engine.spark.state_frames import read_frame

        entry = self._state(uid, state)
        files = [self._place.inside(*file.path.split("/")).address for file in entry.files]
        shown = None if stored else self._shown(uid, entry)
        return read_frame(files, RowFormat(entry.state(uid)).schema, shown)

    def read_arrow(self, uid: str, state: str, stored: bool = False) -> pa.Table:
        """The rows of a state as an Arrow table, without Spark: ``read_arrow(…).to_pandas()``. Columns are those of
        :meth:`read`."""
        import pyarrow as pa

        entry = self._state(uid, state)
        shown = None if stored else self._shown(uid, entry)
        table = self._stored(uid, entry)
        if shown is None:
            return table
        return pa.Table.from_batches([shown.batch(batch) for batch in table.to_batches()], shown.schema)

    def _stored(self, uid: str, entry: StateEntry) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

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
        for batch in self._stored(uid, self._state(uid, state)).to_batches():
            found.extend(zip(*form.rows(batch), strict=True))
        return found

    def edit(self) -> SavepointEditor:
        """Changes to be saved as another savepoint."""
        from firesteel.state_processor.editing import SavepointEditor

        return SavepointEditor(self._place, self._manifest, self._tables)

    def _table(self, uid: str, entry: StateEntry) -> StateTable | None:
        from firesteel.state_processor.shown_state import shown_table

        return shown_table(self._tables.get(uid), entry.state(uid))

    def _shown(self, uid: str, entry: StateEntry) -> ShownState | None:
        from firesteel.state_processor.shown_state import ShownState

        table = self._table(uid, entry)
        return None if table is None else ShownState(self._tables[uid], table, entry.state(uid))

    def _state(self, uid: str, state: str) -> StateEntry:
        entry = self._manifest.operator(uid)
        for known in entry.states:
            if known.name == state:
                return known
        names = ", ".join(repr(known.name) for known in entry.states) or "none"
        raise SavepointError(f"Operator {uid!r} has no state {state!r} in the savepoint {self.path}. It has: {names}.")

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r}, job {self.job!r}, {len(self.states())} states)"
