"""Keyed state of one operator in one subtask: the current key, its tables, and the states users hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.durable.cells import table_prefix
from firesteel.durable.headers import StateHeader, TablesHeader
from firesteel.errors import ProgramError
from firesteel.runtime.clock import Clock
from firesteel.runtime.state.evolution import evolution
from firesteel.runtime.state.factories import HashMapTables
from firesteel.runtime.state.lists import LiveListState
from firesteel.runtime.state.maps import LiveMapState
from firesteel.runtime.state.schema import schema_of
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import ColumnTable, Table, TableFactory, name_of
from firesteel.runtime.state.ttl import TTL_HANDLES, expiry_check_of
from firesteel.runtime.state.values import Handle, LiveAggregatingState, LiveReducingState, LiveValueState

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

    from firesteel.runtime.state.columnar.slot_pager import SlotPager

__all__ = ["NO_KEY", "KeyedStateBackend"]

COLUMNS_MEMORY = 64 << 20
"""Bytes that tables of columns which must be in memory may always take, however little the state backend allows."""

_AT_ONCE = 4096

_HANDLES: dict[type[StateDescriptor], type[Any]] = {
    ValueStateDescriptor: LiveValueState,
    ReducingStateDescriptor: LiveReducingState,
    AggregatingStateDescriptor: LiveAggregatingState,
    ListStateDescriptor: LiveListState,
    MapStateDescriptor: LiveMapState,
}


class _NoKey:
    """The current key where there is none. To look something up under it is an error; no look-up pays for it."""

    def __hash__(self) -> int:
        raise ProgramError(
            "Keyed state was used where no record is processed, so there is no current key. "
            "Use it in the methods that get a record or a timer, not in open(), close() or for broadcast records."
        )


NO_KEY: Any = _NoKey()


class KeyedStateBackend:
    """States by name. They outlive a batch (users keep them in attributes). Their tables do too, as a cache, while
    the store is as this backend left it; who calls ``begin`` knows that.

    >>> from firesteel.common.typeinfo import Types
    >>> from firesteel.runtime.state.store import MemoryStore
    >>> backend, store, header = KeyedStateBackend("counter"), MemoryStore(), TablesHeader()
    >>> count = backend.state(ValueStateDescriptor("count", Types.LONG()))
    >>> backend.begin(store, header)
    >>> backend.prepare(["a"])
    >>> backend.key = "a"
    >>> count.update(3)
    >>> store.write(backend.changes())
    >>> backend.begin(store, header)
    >>> backend.prepare(["a"])
    >>> backend.key = "a"
    >>> count.value()
    3
    """

    def __init__(self, uid: str, tables: TableFactory | None = None, clock: Clock | None = None) -> None:
        self.key: Any = NO_KEY
        self.clock = clock or Clock()
        self._factory: TableFactory = tables or HashMapTables()
        self._uid = uid
        self._states: dict[str, tuple[StateDescriptor, Handle]] = {}
        self._tables: dict[str, Table] = {}
        self._columns: dict[str, ColumnTable] = {}
        self._paged: set[str] = set()
        self._pager: SlotPager | None = None
        self._reserved: set[str] = set()
        self.shared = False
        """Whether a state holds objects that can be changed in place, so that results must be copied."""
        self._chunk: Collection[Any] = ()
        """The keys at hand, for states that are asked for only now. Not kept if all is in memory."""
        self._records = 0
        self._store: StateStore | None = None
        self._header = TablesHeader()

    @property
    def size(self) -> int:
        """About how many bytes its tables have in the store."""
        shapes = [shape for state in self._header.states.values() for shape in state.shapes.values()]
        return sum(shape.get("bytes", 0) for shape in shapes)

    @property
    def entries(self) -> int:
        """About how many entries its tables have. What a table of pages holds is known of the batch before."""
        columns = sum(table.entries for table in self._columns.values()) if self._columns else 0
        return sum(table.entries for table in self._tables.values()) + columns

    # States

    def state(self, descriptor: StateDescriptor) -> Any:
        """The state of a descriptor: a new one, or that of the same name and type."""
        if descriptor.name in self._reserved:
            raise ProgramError(
                f"The operator keeps something of its own under the name {descriptor.name!r}: give the state another "
                "name."
            )
        if descriptor.name in self._states:
            known, state = self._states[descriptor.name]
            if type(known) is not type(descriptor) or known.type_info != descriptor.type_info:
                raise ProgramError(
                    f"State {descriptor.name!r} is registered twice in one operator with different types: "
                    f"{schema_of(known).text} and {schema_of(descriptor).text}."
                )
            return state
        handles = TTL_HANDLES if schema_of(descriptor).expires else _HANDLES
        state = handles[type(descriptor)](self, descriptor)
        self.shared = self.shared or state.shared
        self._states[descriptor.name] = (descriptor, state)
        if self._store is not None:
            self._attach(descriptor, state)
        return state

    def reserve(self, *names: str) -> None:
        """Refuses these names to users' states from now on: the operator has tables of that name itself."""
        self._reserved.update(names)

    def table(self, name: str, kind: str = "entries") -> Table:
        """A table of a state in this batch."""
        full = f"{name}\0{kind}"
        table = self._tables.get(full)
        if table is None:
            assert self._store is not None, "state is reachable between begin() and changes() only"
            make = self._factory.table if kind == "entries" else self._factory.blocks
            kept = self._kept(name)
            backend = name_of(self._factory)
            if kept.backend is None:
                kept.backend = backend
            elif kept.backend != backend:
                raise ProgramError(
                    f"State {name!r} was saved by another state backend ({kept.backend}) than this program's "
                    f"({backend}). Go back to that one: state.backend.type, or set_state_backend()."
                )
            table = make(table_prefix(self._uid, name, kind), self._store, kept.shapes.setdefault(kind, {}))
            self._tables[full] = table
            if kind == "entries":
                table.load(self._chunk)
        return table

    def columns(self, name: str, table: ColumnTable, paged: bool = False) -> None:
        """Keeps a table of columns under a name from now on. It has what was stored, also by a savepoint. ``paged``:
        whoever works on it asks for :meth:`pieces` first, so not all of it need be in memory."""
        self.reserve(name)
        self._columns[name] = table
        if paged:
            if self._pager is None:
                # Only here: what has no tables of columns needs no Arrow.
                from firesteel.runtime.state.columnar.slot_pager import SlotPager

                self._pager = SlotPager(self._factory.memory)
            self._pager.add(table)
            self._paged.add(name)
        self._attach_columns(name, table, unchanged=False)

    def pieces(
        self, batch: RecordBatch, keys: Sequence[Array], before_release: Callable[[], None] | None = None
    ) -> Iterable[RecordBatch]:
        """The rows of a batch with these keys, as many at a time as memory has room for what is stored of them.
        ``before_release`` is called before slots of tables become others."""
        if self._pager is None:
            return (batch,)
        assert self._store is not None
        return self._pager.pieces(batch, keys, self._store, before_release)

    def _attach_columns(self, name: str, table: ColumnTable, unchanged: bool) -> None:
        assert self._store is not None, "state is reachable between begin() and changes() only"
        kept = self._kept(name)
        prefix = table_prefix(self._uid, name, "columns")
        if kept.backend not in (None, *table.BACKENDS):
            # A savepoint brings rows, in a table of entries. They are taken over once.
            self._take_over(name, table, prefix, kept)
            return
        table.attach(prefix, self._store, kept.shapes.setdefault("entries", {}), unchanged)
        kept.backend = table.backend

    def _take_over(self, name: str, table: ColumnTable, prefix: bytes, kept: StateHeader) -> None:
        """Makes columns of the entries that a savepoint has brought, some at a time if memory is short."""
        assert self._store is not None
        restored = self.table(name)
        in_pages = "pages" in kept.shapes["entries"]
        kept.shapes["entries"] = {}
        table.attach(prefix, self._store, kept.shapes["entries"])
        for found in restored.every_key():
            for at in range(0, len(found), _AT_ONCE):
                keys = found[at : at + _AT_ONCE]
                table.take_rows(keys, restored.peek(keys))
                if self._pager is not None and name in self._paged:
                    self._pager.make_room(self._store)
            if in_pages:
                restored.relieve()
        for keys in restored.every_key():
            restored.load(keys)
            for key in keys:
                restored.put(key, None)
            self._store.write(restored.changes())
            if in_pages:
                restored.relieve()
        del self._tables[f"{name}\0entries"]
        kept.backend = table.backend

    def _check_columns(self) -> None:
        limit = self._factory.memory
        if limit is None:
            return
        held = sum(table.nbytes for name, table in self._columns.items() if name not in self._paged)
        if held > max(limit, COLUMNS_MEMORY):
            raise ProgramError(
                f"The tables of this operator take {held >> 20} MB, and the state backend allows {limit >> 20} MB a "
                "subtask. All of them must be in memory: raise state.backend.rocksdb.memory.fixed-per-slot, use more "
                "subtasks, let state expire (table.exec.state.ttl), or use the backend hashmap."
            )

    def new_id(self) -> int:
        """A number that no other collection of this operator's subtask has."""
        self._header.last_collection += 1
        return self._header.last_collection

    def _kept(self, name: str) -> StateHeader:
        found = self._header.states.get(name)
        if found is None:
            found = self._header.states[name] = StateHeader()
        return found

    def _attach(self, descriptor: StateDescriptor, state: Handle) -> None:
        kept = self._kept(descriptor.name)
        schema = schema_of(descriptor)
        saved = kept.schema = kept.schema or schema
        renew = None if saved == schema else evolution(saved, schema)
        if saved != schema and renew is None:
            raise ProgramError(
                f"State {descriptor.name!r} is {schema.text} in this program, but what was saved of it is "
                f"{saved.text}. Give the state another name, or go back to the saved type."
            )
        fresh = f"{descriptor.name}\0entries" not in self._tables
        table = self.table(descriptor.name)
        state.attach(table, self.table(descriptor.name, "blocks") if state.has_blocks else None)
        if renew is not None:
            self._renew(descriptor.name, state, renew)
            kept.schema = schema
        expiry_check = expiry_check_of(state)
        config = descriptor.ttl_config
        if (
            fresh
            and expiry_check is not None
            and config is not None
            and config.get_cleanup_strategies().in_full_snapshot()
        ):
            # What memory was just filled with is a snapshot.
            table.sweep(len(table.live), expiry_check)

    def _renew(self, name: str, state: Handle, renew: Callable[[Any], Any]) -> None:
        """Turns what was saved with another type into what it is now, once."""
        for keys in self.table(name).every_key():
            self.prepare(keys)
            for key in keys:
                state.renew(key, renew)

    # Batches

    def begin(self, store: StateStore, header: TablesHeader, unchanged: bool = False) -> None:
        """A batch starts. ``unchanged`` promises that the store is as the last batch of this backend left it."""
        self._store, self._header = store, header
        if unchanged:
            for full, table in self._tables.items():
                name, kind = full.split("\0")
                table.reopen(store, self._kept(name).shapes.setdefault(kind, {}))
        else:
            self._tables = {}
        self._chunk = ()
        for descriptor, state in self._states.values():
            self._attach(descriptor, state)
        for name, columns in self._columns.items():
            self._attach_columns(name, columns, unchanged)

    def prepare(self, keys: Collection[Any]) -> None:
        """Makes sure that the state of these keys is in memory. Called per chunk, so that reads are bulk reads."""
        self._records += len(keys)
        if self._factory.memory is None:
            return
        self._chunk = keys
        self.make_room()
        self._load(keys)

    @property
    def lazy(self) -> bool:
        """Whether ``prepare`` has anything to do."""
        return self._factory.memory is not None

    def ensure(self, key: Any) -> None:
        """Makes sure that one more key's state is in memory."""
        if self._factory.memory is not None:
            self._load((key,))

    def _load(self, keys: Collection[Any]) -> None:
        for full, table in self._tables.items():
            if full.endswith("\0entries"):
                table.load(keys)

    def _short_of_memory(self) -> bool:
        limit = self._factory.memory
        return limit is not None and sum(table.releasable_bytes for table in self._tables.values()) > limit

    def make_room(self) -> None:
        """Lets go of what memory need not hold, if it is short, in the middle of a batch: the store takes part of it
        only if all of the batch succeeds."""
        assert self._store is not None
        if not self._short_of_memory():
            return
        for table in self._tables.values():
            self._store.write(table.changes())
        self._relieve()

    def _relieve(self) -> None:
        """Half of the memory may stay full: the other one is for what comes next."""
        for table in self._tables.values():
            table.relieve((self._factory.memory or 0) // 2 // len(self._tables))

    def forget(self, key: Any) -> None:
        """Drops a key's state without a trace: in BATCH mode no later record can ask for it."""
        for _, state in self._states.values():
            state.forget(key)
        for full, table in self._tables.items():
            if full.endswith("\0entries"):
                table.forget(key)

    def forget_all(self) -> None:
        """Drops all state in memory without a trace."""
        for table in self._tables.values():
            table.live.clear()
            table.dirty.clear()
            table.relieve()

    def apply(self, descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
        """Calls ``function(key, state)`` for every key that has such state."""
        state = self.state(descriptor)
        for keys in self.table(descriptor.name).every_key():
            self.prepare(keys)
            for self.key in keys:
                function(self.key, state)
        self.key = NO_KEY

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        self._sweep()
        for table in self._tables.values():
            yield from table.changes()
        if self._columns:
            self._check_columns()
            for name, columns in self._columns.items():
                if name not in self._paged:
                    yield from columns.changes()
            if self._pager is not None:
                yield from self._pager.changes()
                for name in self._paged:
                    self._kept(name).backend = self._columns[name].backend
        if self._short_of_memory():
            self._relieve()
        self._store = None
        self.key = NO_KEY

    def _sweep(self) -> None:
        """Looks for expired entries, in proportion to what the batch did."""
        for descriptor, state in self._states.values():
            expiry_check = expiry_check_of(state)
            if expiry_check is None or descriptor.ttl_config is None:
                continue
            entries = self._factory.swept(descriptor.ttl_config, self._records)
            if entries:
                self.table(descriptor.name).sweep(entries, expiry_check)
        self._records = 0
