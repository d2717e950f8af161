"""A table that lives in memory and keeps a log in the store.

All entries are in ``live``. A batch appends what it changed to the store as *segments*, each a list of keys and one of
values, so writing costs what the batch touched, however large the state is, and reading happens only when a task
starts anew.

    batch 1 ──► segment 1 {a: 1, b: 1, c: 1}
    batch 2 ──► segment 2 {b: 2}                  homes: a → 1, b → 3, c is gone → 3
    batch 3 ──► segment 3 {b: 3, c: GONE}

Old versions are waste. An entry's home is the segment with its valid version, so a segment's waste is known without
reading it. Cleaning moves the valid rest of a segment into the one being written and deletes it:

1. A segment without a valid entry is deleted.
2. Where small ones pile up, they are joined.
3. Where more than half of all entries are waste, the segments with the most of it are cleaned.
4. A mark of removal (GONE) is needed only as long as an older segment may hold the key: where there are more of them
   than keys, the oldest segments are cleaned.

A batch cleans at most about as much as it writes, so no batch pays for the size of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from firesteel.durable.cells import SEGMENT as NUMBER
from firesteel.durable.cells import damaged, decode, encode
from firesteel.runtime.pace import about
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import KEEP, NEW, Entry, ExpiryCheck, Table

__all__ = ["LogTable", "scan_log"]

SEGMENT = 16384
"""The most entries of a segment."""
SEGMENT_BYTES = 512 * 1024
LARGEST_SEGMENT = 4 << 20
PILE = 16
"""How many segments may lie around that are not half full; below a sixteenth of that they are a pile of their own."""
SLACK = 1024
"""Entries of waste that are never worth cleaning."""
CLEANED_AT_LEAST = 4096
"""Entries that a batch may clean however little it writes."""
_READ_AT_ONCE = 8


class _Gone:
    """Stands for a removed value in memory. In the store a segment of removed keys has no values; it had this in
    version 1, under this name."""

    def __reduce__(self) -> str:
        return "GONE"


GONE = _Gone()


class LogTable(Table):
    """One state of one operator in one subtask.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), {}
    >>> table = LogTable(b"counts", store, shape)
    >>> table.put("a", 1)
    >>> store.write(table.changes())
    >>> LogTable(b"counts", store, shape).get("a")
    1
    """

    releasable_bytes = 0
    """Everything must stay in memory."""

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> None:
        self.live = {}
        self.dirty = []
        self._prefix = prefix + b"\0"
        self._gone: dict[Any, int] = {}
        """The segments of the marks of removal that are valid."""
        self._valid: Counter[int] = Counter()
        self._per_segment = 1024
        self._swept: Iterator[Any] = iter(())
        self.reopen(store, shape)
        self._read_all()

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store, self._shape = store, shape
        self._sizes: dict[int, int] = shape.setdefault("segments", {})
        self._cells: dict[int, int] = shape.setdefault("segment bytes", {})
        """Entries of each segment, valid or not, from old to new."""
        self.dirty.clear()

    def load(self, keys: Iterable[Hashable]) -> None:
        """Everything is here already."""

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        return [self.get(key) for key in keys]

    def every_key(self) -> Iterator[list[Any]]:
        yield [key for key, entry in self.live.items() if entry[0] is not None]

    def relieve(self, keep: int = 0) -> None:
        """Everything must stay in memory."""

    @property
    def cells(self) -> list[bytes]:
        """All that the store has of it."""
        return [self._cell(number) for number in self._sizes]

    # Reading

    def _read_all(self) -> None:
        live, gone = self.live, self._gone
        for number, keys, values in self._segments(list(self._sizes)):
            for key, value in zip(keys, values, strict=True):
                if value is GONE:
                    live.pop(key, None)
                    gone[key] = number
                else:
                    live[key] = [value, number, key]
                    if gone:
                        gone.pop(key, None)
        self._valid = Counter([entry[1] for entry in live.values()])
        self._valid.update(gone.values())

    def _segments(self, numbers: list[int]) -> Iterator[tuple[int, list[Any], list[Any]]]:
        return _read_segments(self._prefix, self._store, numbers)

    def _cell(self, number: int) -> bytes:
        return self._prefix + NUMBER.pack(number)

    # Writing

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        if not self.dirty:
            return
        written, removed = self._collect()
        if not self.live:
            yield from ((cell, None) for cell in self.cells)
            self._sizes.clear()
            self._cells.clear()
            self._shape["bytes"] = 0
            self._valid.clear()
            self._gone.clear()
            return
        cleaned = self._to_clean(len(written) + len(removed))
        for number, keys, _ in self._segments(cleaned):
            self._rescue(number, keys, written, removed)
            self._drop(number)
            yield self._cell(number), None
        yield from self._append(written, removed)
        for number in [n for n in self._sizes if self._valid[n] <= 0]:
            self._drop(number)
            yield self._cell(number), None

    def _collect(self) -> tuple[list[Entry], list[Any]]:
        """What is to be written: entries with a value, and keys that lost theirs."""
        valid, gone, live = self._valid, self._gone, self.live
        dirty = self.dirty[:]
        self.dirty.clear()
        before = Counter([~entry[1] for entry in dirty])
        fresh = before.pop(0, 0)
        valid.subtract(before)
        if fresh and gone:
            for entry in dirty:
                if entry[1] == NEW and entry[2] in gone:
                    # The mark that it was gone holds no longer, but an older segment may still know the key.
                    number = gone.pop(entry[2])
                    valid[number] -= 1
                    entry[1] = ~number
        written = [entry for entry in dirty if entry[0] is not None]
        removed: list[Any] = []
        if len(written) < len(dirty):
            for entry in dirty:
                if entry[0] is None:
                    if live.get(entry[2]) is entry:
                        del live[entry[2]]
                    # What came and went within the batch leaves no trace.
                    if entry[1] != NEW:
                        removed.append(entry[2])
        return written, removed

    def _rescue(self, number: int, keys: list[Any], written: list[Entry], removed: list[Any]) -> None:
        """Takes over what is still valid of a segment that is to go."""
        look, gone = self.live.get, self._gone
        for key in keys:
            entry = look(key)
            if entry is not None:
                if entry[1] == number:
                    entry[1] = ~number
                    written.append(entry)
            elif gone.get(key) == number:
                del gone[key]
                if number != next(iter(self._sizes)):
                    removed.append(key)

    def _drop(self, number: int) -> None:
        del self._sizes[number]
        self._shape["bytes"] = self._shape.get("bytes", 0) - self._cells.pop(number, 0)
        del self._valid[number]

    def _append(self, written: list[Entry], removed: list[Any]) -> Iterator[tuple[bytes, bytes]]:
        at = 0
        while at < len(written):
            chunk = written[at : at + self._per_segment]
            values = [entry[0] for entry in chunk]
            # The JVM has several copies of a cell while it stores it: large values do not share one.
            while len(chunk) > 1 and about(values) > LARGEST_SEGMENT:
                chunk, values = chunk[: len(chunk) // 2], values[: len(chunk) // 2]
            at += len(chunk)
            number, cell = self._segment([entry[2] for entry in chunk], values)
            for entry in chunk:
                entry[1] = number
            yield self._cell(number), cell
        if removed:
            number, cell = self._segment(removed, None)
            self._gone.update(dict.fromkeys(removed, number))
            yield self._cell(number), cell

    def _segment(self, keys: list[Any], values: list[Any] | None) -> tuple[int, bytes]:
        """``values`` None: the keys were removed."""
        number: int = self._shape.get("last", 0) + 1
        self._shape["last"] = number
        cell = encode((keys, values))
        self._sizes[number] = self._valid[number] = len(keys)
        self._cells[number] = len(cell)
        self._shape["bytes"] = self._shape.get("bytes", 0) + len(cell)
        if values is not None:
            fitting = SEGMENT_BYTES * len(keys) // max(1, len(cell))
            self._per_segment = min(max(fitting, 16), SEGMENT, self._per_segment * 4)
        return number, cell

    def _to_clean(self, writing: int) -> list[int]:
        """The segments whose valid entries are to be written again with this batch's, oldest first."""
        sizes, valid = self._sizes, self._valid
        budget = max(writing, CLEANED_AT_LEAST)
        chosen: set[int] = set()

        def choose(number: int) -> bool:
            nonlocal budget
            if number not in chosen:
                chosen.add(number)
                budget -= sizes[number]
            return budget > 0

        full = self._per_segment // 2
        # One of few entries that are large is not small.
        light = [(number, size) for number, size in sizes.items() if self._cells.get(number, 0) < SEGMENT_BYTES]
        small = [number for number, size in light if size < full // PILE]
        middle = [number for number, size in light if full // PILE <= size < full]
        for pile in (small, middle):
            if len(pile) >= PILE:
                all(map(choose, pile))
        needed = len(self.live) + len(self._gone)
        if len(self._gone) > len(self.live) + SLACK and budget > 0:
            all(map(choose, sizes))
        if sum(sizes.values()) - needed > needed + SLACK and budget > 0:
            all(map(choose, sorted(sizes, key=lambda number: valid[number] / sizes[number])))
        return sorted(chosen)

    # Time to live

    def sweep(self, entries: int, expiry_check: ExpiryCheck) -> None:
        for _ in range(2):
            for key in islice(self._swept, entries):
                entries -= 1
                value = self.get(key)
                remaining = KEEP if value is None else expiry_check(key, value)
                if remaining is not KEEP:
                    self.put(key, remaining)
            if entries <= 0:
                return
            # The round is complete: the next one looks at the keys that are here now.
            self._swept = iter(list(self.live))


def scan_log(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """All entries of a stored log as keys and values, without a table: the newest segment comes first, and of what
    was given out only the keys are remembered."""
    numbers = list(shape.get("segments", ()))
    seen: set[Any] = set()
    for number, keys, values in _read_segments(prefix + b"\0", store, numbers[::-1]):
        fresh = [at for at, key in enumerate(keys) if key not in seen and values[at] is not GONE]
        if number != numbers[0]:
            seen.update(keys)
        yield [keys[at] for at in fresh], [values[at] for at in fresh]


def _read_segments(prefix: bytes, store: StateStore, numbers: list[int]) -> Iterator[tuple[int, list[Any], list[Any]]]:
    for start in range(0, len(numbers), _READ_AT_ONCE):
        window = numbers[start : start + _READ_AT_ONCE]
        cells = store.get_many([prefix + NUMBER.pack(number) for number in window])
        for number, cell in zip(window, cells, strict=True):
            if cell is None:
                raise damaged(prefix, f"segment {number} is missing")
            keys, values = decode(cell, prefix)
            yield number, keys, [GONE] * len(keys) if values is None else values
