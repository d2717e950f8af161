"""The port between states and how their entries are kept: a table that is a dict in memory and cells in the store.

Two families of adapters. :class:`~firesteel.runtime.state.log.LogTable` (backend ``hashmap``) holds everything in
memory and appends to the store what a batch changed. :class:`~firesteel.runtime.state.pages.PagedTable` and
:class:`~firesteel.runtime.state.cells.CellTable` (backend ``rocksdb``) read what a batch needs and let go of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from firesteel.datastream.state import StateTtlConfig
from firesteel.runtime.state.store import StateStore

__all__ = ["KEEP", "Judge", "Table", "TableFactory"]

KEEP = object()
"""What a judge answers if an entry may stay as it is."""

Judge = Callable[[Any, Any], Any]
"""Of a key and its entry: KEEP, a smaller entry, or None if nothing is left of it."""


class Table(Protocol):
    """Entries of one state (or of what belongs to one) in one subtask."""

    live: dict[Any, Any]
    """What the hot path reads and writes. The dict stays the same object as long as the table lives."""
    dirty: set[Any]
    """Keys that were written or removed since the last ``changes``."""

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        """Goes on in another batch with what is in memory. The store must be as ``changes`` left it."""

    def load(self, keys: Iterable[Hashable]) -> None:
        """Makes sure that the entries of these keys are in ``live``."""

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        """The entries of these keys (None where there is none), without keeping them in memory."""

    def every_key(self) -> Iterator[list[Any]]:
        """All keys that have an entry, some at a time. Entries may be changed and removed meanwhile."""

    def forget(self, key: Hashable) -> None:
        """Drops what memory holds of a key, as if it had never been."""

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn, to be written by the caller. Memory and store agree afterwards."""

    def sweep(self, entries: int, judge: Judge) -> None:
        """Shows about so many entries to ``judge``, going on where the last call stopped."""

    def relieve(self) -> None:
        """Lets go of what memory need not hold. Only after ``changes``, and between two chunks of records."""

    @property
    def held(self) -> int:
        """About how many bytes of memory the table could let go of."""


class TableFactory(Protocol):
    """What a state backend is to the runtime: how tables are made. Each gets a dict of its own, kept by the header."""

    @property
    def memory(self) -> int | None:
        """How many bytes the tables of one operator may hold before they are relieved; None if they hold all."""

    def table(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        """A table whose keys are users' keys."""

    def blocks(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        """A table of the blocks of big collections, whose keys are pairs of ints."""

    def swept(self, config: StateTtlConfig, records: int) -> int:
        """How many entries to look at for expired ones after a batch of so many records."""
