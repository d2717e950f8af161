"""The port between states and how their entries are kept: a table that is a dict in memory and cells in the store.

Two families of adapters. :class:`~firesteel.runtime.state.log.LogTable` (backend ``hashmap``) holds everything in
memory and appends to the store what a batch changed. :class:`~firesteel.runtime.state.pages.PagedTable` and
:class:`~firesteel.runtime.state.cells.CellTable` (backend ``rocksdb``) read what a batch needs and let go of it again.
:class:`~firesteel.runtime.state.growing.GrowingTable` is the one and then the other: a log while all of it fits.

An entry is a list [value, home, key]. ``home`` says where in the store it is, and turns negative when the entry is
changed; then it stands in ``dirty``, once. So a change costs no look-up beyond that of the entry, and writing a batch
goes through a plain list. A value of None is no value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from firesteel.datastream.state import StateTtlConfig
from firesteel.runtime.state.store import StateStore

__all__ = ["KEEP", "NEW", "ColumnTable", "Entry", "ExpiryCheck", "Table", "TableFactory", "name_of"]

Entry = list[Any]
"""[value, home, key]"""

NEW = -1
"""The home of an entry that is not in the store yet: dirty from the start."""

KEEP = object()
"""What an expiry check answers if an entry may stay as it is."""

ExpiryCheck = Callable[[Any, Any], Any]
"""Of a key and its value: KEEP, a smaller value, or None if nothing is left of it."""


class Table(ABC):
    """Entries of one state (or of what belongs to one) in one subtask."""

    live: dict[Any, Entry]
    """What the hot path reads and writes. The dict stays the same object as long as the table lives."""
    dirty: list[Entry]
    """Entries that were changed since the last ``changes``. This list, too, stays the same object."""

    # What states do with single entries

    def get(self, key: Hashable) -> Any:
        """The value of a key that is in memory, or None."""
        entry = self.live.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Hashable, value: Any) -> None:
        """Changes the value of a key; None removes it."""
        entry = self.live.get(key)
        if entry is None:
            if value is not None:
                self.insert(key, value)
            return
        entry[0] = value
        if entry[1] >= 0:
            self.mark(entry)

    # Hot paths change an entry's value themselves and call these two: for a key that is not in ``live``, and for an
    # entry that is changed for the first time in a batch, which is ``entry[1] >= 0``. Most changes need neither.

    def insert(self, key: Hashable, value: Any) -> None:
        """Adds the entry of a key that ``live`` does not have."""
        entry = self.live[key] = [value, NEW, key]
        self.dirty.append(entry)

    def mark(self, entry: Entry) -> None:
        """Notes that an entry's value is not the stored one any more. Its home must not be negative."""
        entry[1] = ~entry[1]
        self.dirty.append(entry)

    def forget(self, key: Hashable) -> None:
        """Drops what memory holds of a key, as if it had never been."""
        entry = self.live.pop(key, None)
        if entry is not None:
            entry[0], entry[1] = None, NEW
            # What was used last is forgotten first: BATCH mode goes from key to key.
            while self.dirty and self.dirty[-1][0] is None and self.dirty[-1][1] == NEW:
                self.dirty.pop()

    @property
    def entries(self) -> int:
        """About how many entries there are, in memory and elsewhere."""
        return len(self.live)

    # What adapters do

    @abstractmethod
    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        """Goes on in another batch with what is in memory. The store must be as ``changes`` left it."""

    @abstractmethod
    def load(self, keys: Iterable[Hashable]) -> None:
        """Makes sure that the entries of these keys are in ``live``."""

    @abstractmethod
    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        """The values of these keys (None where there is none), without keeping them in memory."""

    @abstractmethod
    def every_key(self) -> Iterator[list[Any]]:
        """All keys that have a value, some at a time. Entries may be changed and removed meanwhile."""

    @abstractmethod
    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn, to be written by the caller. Memory and store agree afterwards."""

    @abstractmethod
    def sweep(self, entries: int, expiry_check: ExpiryCheck) -> None:
        """Shows about so many entries to ``expiry_check``, going on where the last call stopped."""

    @abstractmethod
    def relieve(self, keep: int = 0) -> None:
        """Lets go of what memory need not hold, but for about so many bytes that save reading the store. Only after
        ``changes``, and between two chunks of records."""

    @property
    @abstractmethod
    def releasable_bytes(self) -> int:
        """About how many bytes of memory the table could let go of."""


class ColumnTable(Protocol):
    """State of many keys as columns, which operators on tables work on directly. What a batch changed goes to the
    store. All of it is in memory, unless the operator asks for the pieces that memory has room for."""

    BACKENDS: tuple[str, ...]
    """What the header of a store may call it."""

    @property
    def backend(self) -> str:
        """And calls it now."""

    def attach(self, prefix: bytes, store: StateStore, shape: dict[str, Any], unchanged: bool = False) -> None:
        """Goes on with what a store has. ``unchanged`` promises that memory has just that."""

    def take_rows(self, keys: Sequence[Any], contents: Sequence[Any]) -> None:
        """Takes what a savepoint has."""

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn. Memory and store agree afterwards."""

    @property
    def entries(self) -> int:
        """How many keys have a value."""

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes."""


class TableFactory(Protocol):
    """What a state backend is to the runtime: how tables are made. Each gets a dict of its own, kept by the header."""

    @property
    def memory(self) -> int | None:
        """How many bytes the tables of one operator may hold before they are relieved; None if they hold all."""

    def table(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        """A table whose keys are users' keys."""

    def blocks(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        """A table of the blocks of big collections, whose keys are pairs of ints."""

    def scan(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
        """All entries that such a table has in a store, as keys and values, for those who read a checkpoint."""

    def swept(self, config: StateTtlConfig, records: int) -> int:
        """How many entries to look at for expired ones after a batch of so many records."""


def name_of(factory: TableFactory) -> str:
    """What the header of a store calls a state backend: ours by a fixed name, a user's by that of its class."""
    name: str = getattr(factory, "NAME", type(factory).__name__)
    return name
