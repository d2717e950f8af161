"""A table that lives in memory and keeps a log in the store.

All entries are in ``live``. A batch appends what it changed to the store as *segments*, each a pickled dict, so writing
costs what the batch touched, however large the state is, and reading happens only when a task starts anew.

    batch 1 ──► segment 0 {a: 1, b: 1, c: 1}
    batch 2 ──► segment 1 {b: 2}                  ``newest``: a → 0, b → 1, c → 0
    batch 3 ──► segment 2 {b: 3, c: GONE}

Old versions are waste. ``newest`` knows which segment holds the valid version of each key, so a segment's waste is
known without reading it. Cleaning moves the valid rest of a segment into the one being written and deletes it:

1. A segment without a valid entry is deleted.
2. Where small ones pile up, they are joined.
3. Where more than half of all entries are waste, the segments with the most of it are cleaned.
4. A mark of removal (GONE) is needed only as long as an older segment may hold the key: where there are more of them
   than keys, the oldest segments are cleaned.

A batch cleans at most about as much as it writes, so no batch pays for the size of the state.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import KEEP, Judge

__all__ = ["LogTable"]

_CELL = struct.Struct(">Q")

SEGMENT = 16384
"""The most entries of a segment."""
SEGMENT_BYTES = 512 * 1024
PILE = 16
"""How many segments may lie around that are not half full; below a sixteenth of that they are a pile of their own."""
SLACK = 1024
"""Entries of waste that are never worth cleaning."""
CLEANED_AT_LEAST = 4096
"""Entries that a batch may clean however little it writes."""
_READ_AT_ONCE = 8


class _Gone:
    """Stands for a removed entry in a segment."""

    def __reduce__(self) -> str:
        return "GONE"


GONE = _Gone()


class LogTable:
    """One state of one operator in one subtask.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), {}
    >>> table = LogTable(b"counts", store, shape)
    >>> table.live["a"] = 1
    >>> table.dirty.add("a")
    >>> store.write(table.changes())
    >>> LogTable(b"counts", store, shape).live
    {'a': 1}
    """

    held = 0
    """Everything must stay in memory."""

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> None:
        self.live: dict[Any, Any] = {}
        self.dirty: set[Any] = set()
        self._prefix = prefix + b"\0"
        self._store = store
        self._shape = shape
        self._sizes: dict[int, int] = shape.setdefault("segments", {})
        """Entries of each segment, valid or not, from old to new."""
        self._newest: dict[Any, int] = {}
        self._valid: Counter[int] = Counter()
        self._per_segment = 1024
        self._swept: Iterator[Any] = iter(())
        self._read_all()

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store, self._shape, self._sizes = store, shape, shape.setdefault("segments", {})
        self.dirty.clear()

    def load(self, keys: Iterable[Hashable]) -> None:
        """Everything is here already."""

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        return [self.live.get(key) for key in keys]

    def every_key(self) -> Iterator[list[Any]]:
        yield list(self.live)

    def forget(self, key: Hashable) -> None:
        self.live.pop(key, None)
        self.dirty.discard(key)

    def relieve(self) -> None:
        """Everything must stay in memory."""

    # Reading

    def _read_all(self) -> None:
        numbers = list(self._sizes)
        for start in range(0, len(numbers), _READ_AT_ONCE):
            window = numbers[start : start + _READ_AT_ONCE]
            for number, segment in zip(window, self._segments(window), strict=True):
                self.live.update(segment)
                self._newest.update(dict.fromkeys(segment, number))
        for key in [key for key, entry in self.live.items() if entry is GONE]:
            del self.live[key]
        self._valid = Counter(self._newest.values())

    def _segments(self, numbers: list[int]) -> Iterator[dict[Any, Any]]:
        for number, cell in zip(numbers, self._store.get_many([self._cell(n) for n in numbers]), strict=True):
            if cell is None:
                raise RuntimeError(f"Segment {number} of state {self._prefix!r} is missing in Spark's state store.")
            yield pickle.loads(cell)

    def _cell(self, number: int) -> bytes:
        return self._prefix + _CELL.pack(number)

    # Writing

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        live, newest, valid, sizes = self.live, self._newest, self._valid, self._sizes
        if not self.dirty:
            return
        if not live:
            yield from ((self._cell(number), None) for number in sizes)
            sizes.clear()
            valid.clear()
            newest.clear()
            self.dirty.clear()
            return
        look = live.get
        written = {key: look(key, GONE) for key in self.dirty}
        self.dirty.clear()
        before = Counter(map(newest.get, written))
        if before.pop(None, 0):
            # What came and went within the batch leaves no trace.
            for key in [key for key, entry in written.items() if entry is GONE and key not in newest]:
                del written[key]
        valid.subtract(before)  # type: ignore[arg-type]
        cleaned = list(self._to_clean(len(written)))
        for number, segment in zip(cleaned, self._segments(cleaned), strict=True):
            oldest = number == next(iter(sizes))
            for key in segment:
                if key not in written and newest.get(key) == number:
                    entry = look(key, GONE)
                    if entry is GONE and oldest:
                        del newest[key]
                    else:
                        written[key] = entry
            self._drop(number)
            yield self._cell(number), None
        yield from self._append(written)
        for number in [n for n in sizes if valid[n] <= 0]:
            self._drop(number)
            yield self._cell(number), None

    def _drop(self, number: int) -> None:
        del self._sizes[number]
        del self._valid[number]

    def _append(self, written: dict[Any, Any]) -> Iterator[tuple[bytes, bytes]]:
        shape, rest = self._shape, iter(written.items())
        while segment := dict(islice(rest, self._per_segment)):
            number = shape["next"] = shape.get("next", -1) + 1
            cell = pickle.dumps(segment, pickle.HIGHEST_PROTOCOL)
            self._sizes[number] = self._valid[number] = len(segment)
            self._newest.update(dict.fromkeys(segment, number))
            fitting = SEGMENT_BYTES * len(segment) // max(1, len(cell))
            self._per_segment = min(max(fitting, 16), SEGMENT, self._per_segment * 4)
            yield self._cell(number), cell

    def _to_clean(self, writing: int) -> Iterator[int]:
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
        small = [number for number, size in sizes.items() if size < full // PILE]
        middle = [number for number, size in sizes.items() if full // PILE <= size < full]
        for pile in (small, middle):
            if len(pile) >= PILE:
                all(map(choose, pile))
        gone = len(self._newest) - len(self.live)
        if gone > len(self.live) + SLACK and budget > 0:
            all(map(choose, sizes))
        waste = sum(sizes.values()) - len(self._newest)
        if waste > len(self._newest) + SLACK and budget > 0:
            all(map(choose, sorted(sizes, key=lambda number: valid[number] / sizes[number])))
        return iter(sorted(chosen))

    # Time to live

    def sweep(self, entries: int, judge: Judge) -> None:
        live = self.live
        for _ in range(2):
            for key in islice(self._swept, entries):
                entries -= 1
                entry = live.get(key)
                if entry is None:
                    continue
                verdict = judge(key, entry)
                if verdict is not KEEP:
                    self.dirty.add(key)
                    if verdict is None:
                        del live[key]
                    else:
                        live[key] = verdict
            if entries <= 0:
                return
            # The round is complete: the next one looks at the keys that are here now.
            self._swept = iter(list(live))
