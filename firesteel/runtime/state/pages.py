"""A table from user keys to values that reads what a batch touches, kept in pages.

A call to Spark's state store costs tens of microseconds, a dict look-up tens of nanoseconds. So the store
holds pages, each with all entries whose hash falls into it, and a batch reads each page it needs once and writes each
page it changed once. The table grows and shrinks by linear hashing: single pages are split or joined, so that no batch
rewrites what it has nothing to do with, and its cost depends on what it touches, not on the size of the state.

How large pages are depends on how they are used. Where a batch touches a good part of every page (a million records
on a million keys), large pages save calls. Where it touches one entry here and there, small ones save copying: with ten
million keys and little memory every record reads a page and writes it again.

    hash ──► page number ──► one cell of the store ──► keys and values ──► entries in ``live``

A page is written as a list of keys and one of values. What a batch changed of it is put behind that as another such
pair, in which None stands for what was removed, until the page has half as many bytes again: making bytes of entries
costs more than writing them.

An entry's home is its page's number plus one. A key that was asked for and has no value has an entry all the same,
which remembers that there is none. What was read stays until memory is short, if the store has not changed in between
(see ``KeyedStateBackend``). Then entries go first: a page as the store has it takes a fifth of the memory, and making
entries of it again a tenth of the time of reading it.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

from firesteel.durable.cells import PAGE, damaged, encode
from firesteel.runtime.keys import stable_hashes
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import KEEP, NEW, Entry, ExpiryCheck, Table
from firesteel.runtime.state.weight import Scale

__all__ = ["PagedTable", "pages_of", "scan_pages", "slot"]

SMALL_PAGE = 16
LARGE_PAGE = 1024
LARGE_PAGE_OUTGROWN = 64
"""The largest page of a table that was too large for memory: its batches may turn out small, and large pages then cost
much until they are split."""
TOUCHES_TO_ENTRIES = 16
"""A page may have this many times the entries that a batch touches in it: what is copied for nothing stays bounded."""
JOINED_FROM = 4
"""Pages are joined where there are so many times as many as there should be: batches are not all alike."""
PAGE_BYTES = 256 * 1024
GROWTH = 1.5
"""A page is written anew when what is behind it has made it so many times as long."""
_READ_AT_ONCE = 256
_PAGE_OVERHEAD = 500


def slot(number: int, pages: int) -> int:
    """Linear hashing: as many low bits of a number as lead to a page that exists.

    >>> [slot(number, pages=3) for number in range(4)]
    [0, 1, 2, 1]
    """
    top = 1 << (pages - 1).bit_length()
    page = number & (top - 1)
    return page if page < pages else page & ((top >> 1) - 1)


def pages_of(keys: Collection[Any], pages: int) -> list[int]:
    """The page of each key. The low bits of its hash already chose the subtask, so the high ones are mixed in."""
    top = 1 << (pages - 1).bit_length()
    mask, half = top - 1, (top >> 1) - 1
    found = [(hashed ^ (hashed >> 15)) & mask for hashed in stable_hashes(list(keys))]
    return [page if page < pages else page & half for page in found]


class PagedTable(Table):
    """One state of one operator in one subtask, as much of it as is needed.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), {}
    >>> table = PagedTable(b"counts", store, shape)
    >>> table.load(["a"])
    >>> table.put("a", 1)
    >>> store.write(table.changes())
    >>> later = PagedTable(b"counts", store, shape)
    >>> later.load(["a", "b"])
    >>> later.get("a"), later.get("b")
    (1, None)
    """

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> None:
        self.live = {}
        self.dirty = []
        self._prefix = prefix + b"\0"
        self._members: dict[int, list[Entry]] = {}
        """The entries of every page in memory, with a value or not."""
        self._stored: dict[int, int] = {}
        """Entries of every page in memory as the store has it."""
        self._cells: dict[int, bytes] = {}
        """Pages as the store has them (nothing for one that it does not have), what was used last at the end."""
        self._plain: dict[int, int] = {}
        """How many bytes every page in memory had when it was written anew."""
        self._bytes = 0
        """How many bytes there are in ``_cells``."""
        self._scale = Scale()
        self._walks = 0
        """How many go through all pages just now: then no page may move behind them."""
        self.reopen(store, shape)

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store, self._shape = store, shape
        shape.setdefault("entries", 0)
        shape.setdefault("pages", 1)
        self.dirty.clear()

    @property
    def entries(self) -> int:
        stored: int = self._shape["entries"]
        return stored

    def adopt(self, live: dict[Any, Entry], dirty: list[Entry]) -> None:
        """Begins with all entries of a table that outgrew memory: they are on one page, which is to be written."""
        self.live, self.dirty = live, dirty
        for key in [key for key, entry in live.items() if entry[0] is None]:
            del live[key]
        self._shape["largest"] = LARGE_PAGE_OUTGROWN
        self._read([0])
        self._members[0] = list(live.values())
        dirty[:] = self._members[0]
        for entry in dirty:
            entry[1] = ~1

    @property
    def releasable_bytes(self) -> int:
        return self._bytes + self._scale.of(len(self.live)) + _PAGE_OVERHEAD * len(self._cells)

    def relieve(self, keep: int = 0) -> None:
        assert not self.dirty, "changes() comes before relieve()"
        for part in (self.live, self._members, self._stored, self._plain):
            part.clear()
        oldest = iter(list(self._cells))
        while self._cells and self.releasable_bytes > keep:
            self._bytes -= len(self._cells.pop(next(oldest)))

    def load(self, keys: Iterable[Hashable]) -> None:
        live, members = self.live, self._members
        new = list(dict.fromkeys([key for key in keys if key not in live]))
        if not new:
            return
        numbers = pages_of(new, self._shape["pages"])
        self._read(set(numbers).difference(members))
        for key, number in zip(new, numbers, strict=True):
            if key not in live:
                entry = live[key] = [None, number + 1, key]
                members[number].append(entry)

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        self.load(keys)
        return [self.get(key) for key in keys]

    def every_key(self) -> Iterator[list[Any]]:
        self._walks += 1
        try:
            for start in range(0, pages := self._shape["pages"], _READ_AT_ONCE):
                window = range(start, min(start + _READ_AT_ONCE, pages))
                # A page that was split meanwhile gave entries to new ones. They are visited with it, or were before.
                numbers = [*window, *(n for n in range(pages, self._shape["pages"]) if slot(n, pages) in window)]
                self._read(set(numbers).difference(self._members))
                yield [entry[2] for number in numbers for entry in self._members[number] if entry[0] is not None]
        finally:
            self._walks -= 1

    def forget(self, key: Hashable) -> None:
        entry = self.live.get(key)
        if entry is not None and entry[1] != NEW:
            number = max(entry[1], ~entry[1]) - 1
            self._members[number] = [other for other in self._members[number] if other is not entry]
        super().forget(key)

    def _read(self, numbers: Iterable[int]) -> None:
        wanted = sorted(numbers)
        for start in range(0, len(wanted), _READ_AT_ONCE):
            window = wanted[start : start + _READ_AT_ONCE]
            missing = [number for number in window if number not in self._cells]
            found: Sequence[bytes | None] = [None] * len(missing)
            if self._shape["entries"]:
                found = self._store.get_many([self._cell(n) for n in missing])
            for number, cell in zip(missing, found, strict=True):
                self._keep(number, cell or b"")
            for number in window:
                keys, values, self._plain[number] = _parts(self._cells[number])
                home = number + 1
                entries = [[value, home, key] for key, value in zip(keys, values, strict=True)]
                self._members[number] = entries
                self._stored[number] = len(entries)
                if not self._scale.calibrated:
                    self._scale.learn(entries)
                self.live.update(zip(keys, entries, strict=True))

    def _keep(self, number: int, cell: bytes) -> int:
        """Remembers a page as the store has it. Returns by how many bytes it has grown."""
        growth = len(cell) - len(self._cells.pop(number, b""))
        self._cells[number] = cell
        self._bytes += growth
        return growth

    def _cell(self, number: int) -> bytes:
        return self._prefix + PAGE.pack(number)

    # Writing

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        if not self.dirty:
            return
        dirty = self.dirty[:]
        self.dirty.clear()
        self._scale.learn(dirty)
        self._settle([entry for entry in dirty if entry[1] == NEW])
        for entry in dirty:
            if entry[1] < 0:
                entry[1] = ~entry[1]
        touched: dict[int, list[Entry]] = {}
        for entry in dirty:
            if entry[1] > 0:
                touched.setdefault(entry[1] - 1, []).append(entry)
        if not touched:
            return
        changed = {number: self._content(number) for number in touched}
        self._shape["entries"] += sum(len(page) - self._stored[number] for number, page in changed.items())
        for number in self._reshape(changed, self._wanted_pages(len(dirty), changed)):
            # All of it is to be written, whatever was touched.
            touched[number] = changed[number]
        for number in sorted(changed):
            page = changed[number]
            self._stored[number] = len(page)
            cell = self._encode(number, page, touched[number])
            growth = self._keep(number, cell)
            self._shape["bytes"] = self._shape.get("bytes", 0) + growth
            if number >= self._shape["pages"]:
                for part in (self._members, self._stored, self._plain, self._cells):
                    del part[number]
            yield self._cell(number), cell or None

    def _encode(self, number: int, page: list[Entry], touched: list[Entry]) -> bytes:
        """What the store should have of a page of which some entries were touched."""
        if 2 * len(touched) < len(page):
            cell = self._cells[number] + _dumps(touched)
            if len(cell) < GROWTH * self._plain[number]:
                return cell
        cell = _dumps(page) if page else b""
        self._plain[number] = len(cell)
        return cell

    def _settle(self, strays: list[Entry]) -> None:
        """Finds the page of entries whose keys nobody asked for before they were put."""
        here = [entry for entry in strays if self.live.get(entry[2]) is entry]
        for entry in here:
            del self.live[entry[2]]
        self.load([entry[2] for entry in here])
        for entry in here:
            known = self.live[entry[2]]
            known[0] = entry[0]
            entry[1] = known[1]

    def _content(self, number: int) -> list[Entry]:
        """A page of memory as the store should have it. Keys without a value are no longer remembered."""
        members = self._members[number]
        page = [entry for entry in members if entry[0] is not None]
        if len(page) < len(members):
            for entry in members:
                if entry[0] is None:
                    del self.live[entry[2]]
            self._members[number] = page
        return page

    def _wanted_pages(self, touched: int, changed: dict[int, Any]) -> int:
        """How many pages the table should have, at most about as many more or less as the batch changed."""
        pages: int = self._shape["pages"]
        entries: int = self._shape["entries"]
        largest: int = self._shape.get("largest", LARGE_PAGE)
        room = min(max(touched / len(changed) * TOUCHES_TO_ENTRIES, SMALL_PAGE), largest)
        known = sum(self._stored[number] for number in changed)
        if known:
            # Large entries make large pages: what a page costs to read and write is bounded in bytes, too.
            room = min(room, max(1, PAGE_BYTES * known // max(1, sum(len(self._cells[number]) for number in changed))))
        wanted = max(1, math.ceil(entries / room))
        reach = len(changed) + touched // SMALL_PAGE
        if wanted > pages:
            return min(wanted, pages + reach)
        if wanted * JOINED_FROM <= pages and not self._walks:
            return max(wanted, pages - reach)
        return pages

    def _reshape(self, changed: dict[int, list[Entry]], wanted: int) -> set[int]:
        """Adds or takes away pages and moves what belongs elsewhere then. Returns the pages that have to do with it."""
        before = self._shape["pages"]
        if wanted == before:
            return set()
        fewer, more = min(before, wanted), max(before, wanted)
        # What is on the last pages of the larger table is, in the smaller one, on those that their numbers lead to.
        last = range(fewer, more)
        sources = {slot(number, fewer) for number in last}.union(last if wanted == fewer else ())
        self._read(sources.difference(self._members))
        self._shape["pages"] = wanted
        old = [self._content(number) for number in sources]
        for number in sources.union(last):
            changed[number] = self._members[number] = []
            self._stored.setdefault(number, 0)
        for page in old:
            for entry, number in zip(page, pages_of([entry[2] for entry in page], wanted), strict=True):
                entry[1] = number + 1
                changed[number].append(entry)
        return sources.union(last)

    # Time to live

    def sweep(self, entries: int, expiry_check: ExpiryCheck) -> None:
        """Pages that are in memory to be written are checked whole, and some more in turn, read for this alone."""
        pages, next_page = self._shape["pages"], self._shape.get("swept", 0)
        numbers = {~entry[1] - 1 for entry in self.dirty if entry[1] != NEW}
        in_turn = max(1, entries * pages // max(1, self._shape["entries"]))
        numbers.update((next_page + n) % pages for n in range(min(in_turn, pages)))
        self._shape["swept"] = (next_page + in_turn) % pages
        self._read(numbers.difference(self._members))
        for number in sorted(numbers):
            for entry in self._members[number]:
                remaining = KEEP if entry[0] is None else expiry_check(entry[2], entry[0])
                if remaining is not KEEP:
                    self.put(entry[2], remaining)


def scan_pages(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """All entries of a stored table as keys and values, without a table: page after page."""
    for start in range(0, pages := shape.get("pages", 0), _READ_AT_ONCE):
        numbers = range(start, min(start + _READ_AT_ONCE, pages))
        for cell in store.get_many([prefix + b"\0" + PAGE.pack(number) for number in numbers]):
            if cell is not None:
                keys, values, _ = _parts(cell)
                yield keys, values


def _dumps(entries: list[Entry]) -> bytes:
    return encode(([entry[2] for entry in entries], [entry[0] for entry in entries]))


def _parts(cell: bytes) -> tuple[list[Any], list[Any], int]:
    """Keys and values of a page as the store has it, and the length of its first part."""
    if not cell:
        return [], [], 0
    file = BytesIO(cell)
    try:
        keys, values = pickle.load(file)
        plain = file.tell()
        if plain == len(cell):
            return keys, values, plain
        known = dict(zip(keys, values, strict=True))
        while file.tell() < len(cell):
            known.update(zip(*pickle.load(file), strict=True))
    except MemoryError:
        raise
    except Exception as error:
        raise damaged(b"page", error) from error
    keys = [key for key, value in known.items() if value is not None]
    return keys, [known[key] for key in keys], plain
