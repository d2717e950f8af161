"""Map state. A small map is one entry of the table; a big one is blocks, so that a put costs a put.

    key → {"a": 1, "b": 2}                             up to SMALL_MAP entries
    key → BigMap(id, entries=5000, blocks=90)          entry k is in block (id, slot of its hash)

The blocks of a big map grow by linear hashing, one split at a time, as the pages of a table do.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.datastream.state import MapState, MapStateDescriptor
from firesteel.durable.names import stored_as
from firesteel.errors import ProgramError
from firesteel.runtime.copies import may_change
from firesteel.runtime.state.pages import pages_of, slot
from firesteel.runtime.state.tables import Table
from firesteel.runtime.state.values import Handle

if TYPE_CHECKING:
    from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["SMALL_MAP", "BigMap", "LiveMapState"]

SMALL_MAP = 256
PER_BLOCK = 64
_READ_AT_ONCE = 32


@dataclass(slots=True)
class BigMap:
    """What the table's entry says of a map whose entries are in blocks."""

    id: int
    entries: int
    blocks: int
    swept: int = 0
    """The block that was last looked through for expired entries."""

    def block_of(self, key: Any) -> tuple[int, int]:
        (number,) = pages_of((key,), self.blocks)
        return self.id, number


@stored_as("big_map")
def _big_map(id: int, entries: int, blocks: int, swept: int) -> BigMap:
    return BigMap(id, entries, blocks, swept)


def _reduce(big: BigMap) -> tuple[Any, ...]:
    return _big_map, (big.id, big.entries, big.blocks, big.swept)


copyreg.pickle(BigMap, _reduce)


class LiveMapState(Handle, MapState[Any, Any]):
    has_blocks = True

    def __init__(self, backend: KeyedStateBackend, descriptor: MapStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self._check_key = self.checker(", a key", descriptor.key_type_info)
        self._check_value = self.checker(", a value", descriptor.value_type_info)
        self._shares = may_change(descriptor.value_type_info)
        self.blocks: Table

    @property
    def shared(self) -> bool:
        return self._shares

    def attach(self, table: Table, blocks: Table | None) -> None:
        super().attach(table, blocks)
        assert blocks is not None
        self.blocks = blocks

    # Reading

    def get(self, key: Any) -> Any:
        entry = self.live.get(self._backend.key)
        known = None if entry is None else entry[0]
        if known is None:
            return None
        if known.__class__ is dict:
            return known.get(key)
        return self._block(known.block_of(key)).get(key)

    def contains(self, key: Any) -> bool:
        known = self.table.get(self._backend.key)
        if known is None:
            return False
        if known.__class__ is dict:
            return key in known
        return key in self._block(known.block_of(key))

    def is_empty(self) -> bool:
        # A map that lost its last entry is no entry any more.
        return self.table.get(self._backend.key) is None

    def items(self) -> Iterator[tuple[Any, Any]]:
        known = self.table.get(self._backend.key)
        if known is None:
            return iter(())
        if known.__class__ is dict:
            # A copy, because the user may change the map while going through it.
            return iter(list(known.items()))
        return self._items_in_blocks(known)

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def _items_in_blocks(self, known: BigMap) -> Iterator[tuple[Any, Any]]:
        begun_with = known.blocks
        for start in range(0, begun_with, _READ_AT_ONCE):
            numbers = range(start, min(start + _READ_AT_ONCE, begun_with))
            for number, block in zip(numbers, self._peek(known, numbers), strict=True):
                if known.blocks == begun_with:
                    yield from list(block.items())
                    continue
                # The map grew meanwhile: what a block gave to newer ones belongs to it, as when the iteration began.
                later = [n for n in range(begun_with, known.blocks) if slot(n, begun_with) == number]
                for part in self._peek(known, [number, *later]):
                    yield from list(part.items())

    def _peek(self, known: BigMap, numbers: Any) -> Iterator[dict[Any, Any]]:
        for block in self.blocks.peek([(known.id, number) for number in numbers]):
            yield block or {}

    def _block(self, at: tuple[int, int]) -> dict[Any, Any]:
        if at not in self.blocks.live:
            self.blocks.load((at,))
        found = self.blocks.get(at)
        return {} if found is None else found

    # Writing

    def put(self, key: Any, value: Any) -> None:
        if self._check_key is not None:
            self._check_key(key)
        if self._check_value is not None and value is not None:
            self._check_value(value)
        here = self._backend.key
        entry = self.live.get(here)
        known = None if entry is None else entry[0]
        if entry is not None and known.__class__ is dict:
            known[key] = value
            if entry[1] >= 0:
                self.table.mark(entry)
            if len(known) > SMALL_MAP:
                self.table.put(here, self._in_blocks(known))
        elif known is None:
            self.table.put(here, {key: value})
        else:
            self._put_in_block(known, key, value)
            self.table.put(here, known)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        if not isinstance(dict_value, Mapping):
            raise ProgramError(
                f"State {self._descriptor.name!r}: put_all() takes a dict, got {type(dict_value).__name__}."
            )
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        here = self._backend.key
        known = self.table.get(here)
        if known is None:
            return
        if known.__class__ is dict:
            if key not in known:
                return
            del known[key]
            left = len(known)
        else:
            at = known.block_of(key)
            block = self._block(at)
            if key not in block:
                return
            del block[key]
            self.blocks.put(at, block)
            known.entries -= 1
            left = known.entries
        if left:
            self.table.put(here, known)
        else:
            self.clear()

    def clear(self) -> None:
        known = self.table.get(self._backend.key)
        if isinstance(known, BigMap):
            self.drop_blocks(known)
        super().clear()

    def renew(self, key: Any, renew: Callable[[Any], Any]) -> None:
        known = self.table.get(key)
        if not isinstance(known, BigMap):
            self.table.put(key, {name: renew(value) for name, value in known.items()})
            return
        for number in range(known.blocks):
            block = self._block((known.id, number))
            self.blocks.put((known.id, number), {name: renew(value) for name, value in block.items()} or None)

    def forget(self, key: Any) -> None:
        known = self.table.get(key)
        if isinstance(known, BigMap):
            for number in range(known.blocks):
                self.blocks.forget((known.id, number))

    def keep_in_block(self, at: tuple[int, int], keep: Callable[[Any], bool]) -> int:
        """Removes the entries of one block whose value is not to be kept. Returns how many went."""
        block = self._block(at)
        gone = [key for key, value in block.items() if not keep(value)]
        for key in gone:
            del block[key]
        if gone:
            self.blocks.put(at, block or None)
        return len(gone)

    def drop_blocks(self, known: BigMap) -> None:
        """Removes all that a big map has in blocks."""
        for number in range(known.blocks):
            self.blocks.put((known.id, number), None)

    def _in_blocks(self, entries: dict[Any, Any]) -> BigMap:
        wanted = -(-len(entries) // PER_BLOCK)
        big = BigMap(self._backend.new_id(), len(entries), wanted)
        blocks: list[dict[Any, Any]] = [{} for _ in range(wanted)]
        for (key, value), number in zip(entries.items(), pages_of(entries, wanted), strict=True):
            blocks[number][key] = value
        for number, block in enumerate(blocks):
            self.blocks.put((big.id, number), block)
        return big

    def _put_in_block(self, known: BigMap, key: Any, value: Any) -> None:
        at = known.block_of(key)
        block = self._block(at)
        if key not in block:
            known.entries += 1
        block[key] = value
        self.blocks.put(at, block)
        if known.entries > known.blocks * PER_BLOCK:
            self._split(known)

    def _split(self, known: BigMap) -> None:
        parent, new = (known.id, slot(known.blocks, known.blocks)), (known.id, known.blocks)
        known.blocks += 1
        entries = self._block(parent)
        halves: dict[tuple[int, int], dict[Any, Any]] = {parent: {}, new: {}}
        for (key, value), number in zip(entries.items(), pages_of(entries, known.blocks), strict=True):
            halves[known.id, number][key] = value
        for at, half in halves.items():
            self.blocks.put(at, half)
