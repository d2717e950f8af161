"""List state. A small list is one entry of the table; a big one is blocks, so that an append costs an append.

key → ["a", "b"]                                   up to BLOCK elements
key → BigList(id, first=0, end=3, tail=[…])        blocks (id, 0) (id, 1) (id, 2), then the tail
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from firesteel.datastream.state import ListState, ListStateDescriptor
from firesteel.durable.names import stored_as
from firesteel.errors import ProgramError, short_repr
from firesteel.runtime.copies import may_change
from firesteel.runtime.state.tables import Table
from firesteel.runtime.state.values import Handle

if TYPE_CHECKING:
    from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["BLOCK", "BigList", "LiveListState"]

BLOCK = 256
_READ_AT_ONCE = 16


@dataclass(slots=True)
class BigList:
    """What the table's entry says of a list whose elements are in blocks."""

    id: int
    first: int = 0
    end: int = 0
    tail: list[Any] = field(default_factory=list)

    def block_keys(self) -> list[tuple[int, int]]:
        return [(self.id, number) for number in range(self.first, self.end)]


@stored_as("big_list")
def _big_list(id: int, first: int, end: int, tail: list[Any]) -> BigList:
    return BigList(id, first, end, tail)


def _reduce(big: BigList) -> tuple[Any, ...]:
    return _big_list, (big.id, big.first, big.end, big.tail)


copyreg.pickle(BigList, _reduce)


class BigListView:
    """The elements of a big list as it was when it was asked for, read block by block.

    Elements that are added while it is read are left out: an iteration that appends must end. If the list is cleared
    meanwhile, what was not read yet is read before it goes.
    """

    def __init__(self, blocks: Table, whole: BigList) -> None:
        self._blocks = blocks
        self.whole = whole
        self._keys = whole.block_keys()
        self._tail = whole.tail.copy()
        self._rescued: dict[tuple[int, int], Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self._keys), _READ_AT_ONCE):
            for block in self._peek(self._keys[start : start + _READ_AT_ONCE]):
                yield from block or ()
        yield from self._tail

    def _peek(self, keys: list[tuple[int, int]]) -> list[Any]:
        return self._blocks.peek(keys) if self._rescued is None else [self._rescued[key] for key in keys]

    def rescue(self) -> None:
        """Takes all blocks into memory."""
        if self._rescued is None:
            self._rescued = dict(zip(self._keys, self._blocks.peek(self._keys), strict=True))


class LiveListState(Handle, ListState[Any]):
    has_blocks = True

    def __init__(self, backend: KeyedStateBackend, descriptor: ListStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self._fits = descriptor.elem_type_info.checker()
        self._elements = descriptor.elem_type_info
        self.blocks: Table
        self._views: WeakSet[BigListView] = WeakSet()

    @property
    def shared(self) -> bool:
        # Users get copies of the list, never the list.
        return may_change(self._elements)

    def attach(self, table: Table, blocks: Table | None) -> None:
        super().attach(table, blocks)
        assert blocks is not None
        self.blocks = blocks

    def get(self) -> Iterable[Any]:
        return self.elements(self._backend.key)

    def elements(self, key: Any) -> Iterable[Any]:
        """The list of a key that need not be the current one."""
        entry = self.live.get(key)
        known = None if entry is None else entry[0]
        if known is None:
            return []
        if known.__class__ is list:
            return known.copy()
        view = BigListView(self.blocks, known)
        self._views.add(view)
        return view

    def add(self, value: Any) -> None:
        if value is None or (self._fits is not None and not self._fits(value)):
            self._refuse(value)
        key = self._backend.key
        entry = self.live.get(key)
        if entry is not None and entry[0].__class__ is list and len(entry[0]) < BLOCK:
            entry[0].append(value)
            if entry[1] >= 0:
                self.table.mark(entry)
        else:
            self.extend(key, (value,))

    def add_all(self, values: list[Any]) -> None:
        added = self._checked(values)
        if added:
            self.extend(self._backend.key, added)

    def update(self, values: list[Any]) -> None:
        new = self._checked(values)
        self.clear()
        if new:
            self.extend(self._backend.key, new)

    def clear(self) -> None:
        self.remove(self._backend.key)

    def append(self, key: Any, value: Any) -> None:
        """Adds anything to the list of a key that need not be the current one."""
        self.extend(key, (value,))

    def remove(self, key: Any) -> None:
        """Empties the list of a key that need not be the current one."""
        if key in self.live:
            self.drop_blocks(key)
            self.table.put(key, None)

    def merge(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the lists of other keys to one, and empties them."""
        for source in sources:
            moved = list(self.elements(source))
            if moved:
                self.remove(source)
                self.extend(target, moved)

    def renew(self, key: Any, renew: Callable[[Any], Any]) -> None:
        renewed = [renew(element) for element in self.elements(key)]
        self.remove(key)
        self.extend(key, renewed)

    def forget(self, key: Any) -> None:
        known = self.table.get(key)
        if isinstance(known, BigList):
            for block in known.block_keys():
                self.blocks.forget(block)

    def drop_blocks(self, key: Any, until: int | None = None) -> None:
        """Removes the blocks of a big list, all or those before a number."""
        known = self.table.get(key)
        if isinstance(known, BigList):
            for view in [view for view in self._views if view.whole is known]:
                view.rescue()
            end = known.end if until is None else until
            for number in range(known.first, end):
                self.blocks.put((known.id, number), None)
            known.first = end

    def extend(self, key: Any, values: Sequence[Any]) -> None:
        """Adds anything to the list of a key that need not be the current one."""
        known = self.table.get(key)
        if known.__class__ is not BigList:
            if len(known or ()) + len(values) <= BLOCK:
                if known is None:
                    known = list(values)
                else:
                    known.extend(values)
                self.table.put(key, known)
                return
            values = list(chain(known or (), values))
            known = BigList(self._backend.new_id())
        tail = known.tail
        tail.extend(values)
        full = len(tail) - len(tail) % BLOCK
        for start in range(0, full, BLOCK):
            self.blocks.put((known.id, known.end), tail[start : start + BLOCK])
            known.end += 1
        del tail[:full]
        self.table.put(key, known)

    def _checked(self, values: list[Any]) -> list[Any]:
        if values is None:
            raise ProgramError(f"State {self._descriptor.name!r} takes a list of elements, got None.")
        listed = list(values)
        for value in listed:
            if value is None or (self._fits is not None and not self._fits(value)):
                self._refuse(value)
        return listed

    def _refuse(self, value: Any) -> None:
        name = self._descriptor.name
        if value is None:
            raise ProgramError(f"State {name!r}: None cannot be an element of a list state.")
        raise ProgramError(f"State {name!r}, element {short_repr(value, 60)}: {self._elements.explain(value)}")
