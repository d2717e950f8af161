"""Timers of one operator in one subtask: registered, deleted, and due.

In memory timers are buckets of equal time in a heap. In the store they are *segments*: what one batch registered (or
deleted) for one stretch of about a second, appended and never rewritten until that stretch is due. An index in two
levels says which segments exist, so a watermark reads only what is due, and registering costs what it registers:

    header: {coarse} ──► coarse page: {fine: segments} ──► segment: [(time, keys to add, keys to delete), …]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.durable.cells import TIMERS, decode, encode
from firesteel.runtime.state.store import StateStore

__all__ = ["TimerQueue"]

_FINE = 10
"""Bits of a fine stretch: 1024 ms."""
_COARSE = 20
"""Bits of a coarse stretch: about 17 minutes, at most 1024 fine ones."""
_MAX_SEGMENTS = 16
_LATEST = (1 << 63) - 1

Segment = list[tuple[int, list[Any], list[Any]]]


class TimerQueue:
    """The timers of one time domain during one batch.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, coarse = MemoryStore(), set()
    >>> queue = TimerQueue(b"t", store, coarse)
    >>> queue.register(2000, "a"), queue.register(1000, "b"), queue.register(1000, "b")
    (None, None, None)
    >>> store.write(queue.changes())
    >>> later = TimerQueue(b"t", store, coarse)
    >>> later.next_due(), list(later.due(1500)), later.next_due()
    (1000, [(1000, 'b')], 2000)
    """

    def __init__(self, prefix: bytes, store: StateStore, coarse: set[int]) -> None:
        self._prefix = prefix
        self._store = store
        self._coarse = coarse
        self._added: dict[int, dict[Any, None]] = {}
        self._deleted: dict[int, dict[Any, None]] = {}
        self._heap: list[int] = []
        self._index: dict[int, dict[int, int]] = {}
        self._loaded: dict[int, int] = {}
        """Fine stretches that were read into memory, with the number of segments each has in the store."""

    def register(self, time: int, key: Any) -> None:
        bucket = self._added.get(time)
        if bucket is None:
            bucket = self._added[time] = {}
            heapq.heappush(self._heap, time)
        bucket[key] = None
        if self._deleted and time in self._deleted:
            self._deleted[time].pop(key, None)

    def delete(self, time: int, key: Any) -> None:
        bucket = self._added.get(time)
        if bucket is not None:
            bucket.pop(key, None)
        # The store may hold it too, unless that stretch is in memory already.
        if time >> _COARSE in self._coarse and time >> _FINE not in self._loaded:
            self._deleted.setdefault(time, {})[key] = None

    def holds(self, time: int, key: Any) -> bool:
        """Whether there is this timer. Reads its stretch if need be."""
        if time >> _COARSE in self._coarse and time >> _FINE not in self._loaded:
            self._load([time >> _FINE])
        return key in self._added.get(time, ())

    def due(self, limit: int) -> Iterator[tuple[int, Any]]:
        """Pops the timers up to ``limit`` in order of time. More may be registered meanwhile."""
        self._load_due(limit)
        while self._heap and self._heap[0] <= limit:
            time = self._heap[0]
            bucket = self._added[time]
            for key in list(bucket):
                if key in bucket:
                    del bucket[key]
                    yield time, key
                if self._heap[0] < time:
                    break
            if not bucket and self._heap[0] == time:
                heapq.heappop(self._heap)
                self._added.pop(time, None)

    def take(self, limit: int) -> Iterator[tuple[int, list[Any]]]:
        """Pops the timers up to ``limit`` in order of time, all keys of a time at once. More may be registered."""
        self._load_due(limit)
        while self._heap and self._heap[0] <= limit:
            time = heapq.heappop(self._heap)
            bucket = self._added.pop(time, None)
            if bucket:
                yield time, list(bucket)

    def stretches(self, limit: int, keys_at_once: int) -> Iterator[tuple[int, list[Any]]]:
        """Cuts what is due up to ``limit`` into (time, keys of the timers up to it), so that the state of many keys
        can be read in one go before their timers fire."""
        self._load_due(limit)
        if not self._heap or self._heap[0] > limit:
            return
        keys: dict[Any, None] = {}
        for time in sorted(time for time in self._heap if time <= limit):
            keys.update(self._added.get(time, {}))
            if len(keys) >= keys_at_once:
                yield time, list(keys)
                keys = {}
        yield limit, list(keys)

    def next_due(self) -> int | None:
        """The earliest timer there is, or None."""
        for coarse in sorted(self._coarse):
            for fine in sorted(self._coarse_page(coarse)):
                best = self._earliest_in_memory()
                if best is not None and fine << _FINE > best:
                    return best
                if fine not in self._loaded:
                    self._load([fine])
        return self._earliest_in_memory()

    def pending(self) -> list[tuple[int, Any]]:
        """All timers in order of time. Reads them all: for tests, and for those who look at a job's state."""
        self._load_due(_LATEST)
        return [(time, key) for time in sorted(self._added) for key in self._added[time]]

    def _earliest_in_memory(self) -> int | None:
        while self._heap and not self._added.get(self._heap[0]):
            self._added.pop(heapq.heappop(self._heap), None)
        return self._heap[0] if self._heap else None

    def _load_due(self, limit: int) -> None:
        for coarse in sorted(c for c in self._coarse if c << _COARSE <= limit):
            page = self._coarse_page(coarse)
            self._load(f for f in sorted(page) if f << _FINE <= limit and f not in self._loaded)

    def _load(self, stretches: Iterable[int]) -> None:
        wanted = list(stretches)
        cells = [(fine, number) for fine in wanted for number in range(self._coarse_page_of(fine).get(fine, 0))]
        blobs = self._store.get_many([self._segment_cell(*cell) for cell in cells])
        stored: dict[int, dict[Any, None]] = {}
        for blob in blobs:
            for time, adds, deletes in decode(blob, self._prefix) if blob else ():
                bucket = stored.setdefault(time, {})
                bucket.update(dict.fromkeys(adds))
                for key in deletes:
                    bucket.pop(key, None)
        for fine in wanted:
            self._loaded[fine] = self._coarse_page_of(fine).get(fine, 0)
        for time, bucket in stored.items():
            for key in self._deleted.pop(time, ()):
                bucket.pop(key, None)
            if not bucket:
                continue
            # What the store knew was registered before what this batch added.
            if time in self._added:
                bucket.update(self._added[time])
            else:
                heapq.heappush(self._heap, time)
            self._added[time] = bucket

    def _coarse_page_of(self, fine: int) -> dict[int, int]:
        return self._coarse_page(fine >> (_COARSE - _FINE))

    def _coarse_page(self, coarse: int) -> dict[int, int]:
        page = self._index.get(coarse)
        if page is None:
            page = {}
            if coarse in self._coarse:
                (blob,) = self._store.get_many([self._coarse_cell(coarse)])
                page = decode(blob, self._prefix) if blob else {}
            self._index[coarse] = page
        return page

    def _segment_cell(self, fine: int, number: int) -> bytes:
        return self._prefix + b"\0s" + TIMERS.pack(fine, number)

    def _coarse_cell(self, coarse: int) -> bytes:
        return self._prefix + b"\0c" + TIMERS.pack(coarse, 0)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn of this batch. The queue is spent afterwards."""
        segments: dict[int, Segment] = {}
        for time in sorted(self._added.keys() | self._deleted.keys()):
            adds = list(self._added.get(time, ()))
            # A stretch in memory is written anew, so there is nothing in the store to delete from.
            deletes = [] if time >> _FINE in self._loaded else list(self._deleted.get(time, ()))
            if adds or deletes:
                segments.setdefault(time >> _FINE, []).append((time, adds, deletes))
        crowded = [f for f in segments if self._coarse_page_of(f).get(f, 0) >= _MAX_SEGMENTS]
        if any(fine not in self._loaded for fine in crowded):
            # Many batches added to this stretch: merge what they wrote into one segment again.
            self._load(fine for fine in crowded if fine not in self._loaded)
            yield from self.changes()
            return
        for fine in self._loaded.keys() | segments.keys():
            page = self._coarse_page_of(fine)
            stored = page.get(fine, 0)
            first = 0 if fine in self._loaded else stored
            if fine in segments:
                yield self._segment_cell(fine, first), encode(segments[fine])
                page[fine] = first + 1
            else:
                page.pop(fine, None)
            for number in range(page.get(fine, 0), stored):
                yield self._segment_cell(fine, number), None
        for coarse in {fine >> (_COARSE - _FINE) for fine in self._loaded.keys() | segments.keys()}:
            page = self._index[coarse]
            yield self._coarse_cell(coarse), encode(page) if page else None
            if page:
                self._coarse.add(coarse)
            else:
                self._coarse.discard(coarse)
