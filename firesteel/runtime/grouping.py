"""Records by key for BATCH mode, where an operator sees one key after the other.

In memory up to a limit, then in a number of temporary files by hash, each small enough to be grouped in memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from firesteel.runtime.keys import stable_hash
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["KeyGroups"]

Group = tuple[Any, list[Any], list[int] | None]


class KeyGroups:
    """Collects records, gives them back grouped by key and, where they have timestamps, in order of time.

    >>> groups = KeyGroups(limit=2)
    >>> groups.add(["a", "b", "a"], [1, 2, 3], [30, 20, 10])
    >>> sorted(groups.groups())
    [('a', [3, 1], [10, 30]), ('b', [2], [20])]
    """

    def __init__(self, limit: int = 500_000, files: int = 64) -> None:
        self._limit = limit
        self._files = files
        self._spilled: list[IO[bytes]] = []
        self._batches: list[tuple[list[Any], list[Any], list[int] | None]] = []
        self._held = 0

    def add(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        self._batches.append((keys, values, timestamps))
        self._held += len(keys)
        if self._held > self._limit:
            self._spill()

    def _spill(self) -> None:
        if not self._spilled:
            self._spilled = [
                tempfile.TemporaryFile(prefix="firesteel-keys-")  # noqa: SIM115 - closed when it was read
                for _ in range(self._files)
            ]
        for keys, values, times in self._batches:
            parts: dict[int, list[int]] = {}
            for index, key in enumerate(keys):
                # The low bits chose the subtask already.
                parts.setdefault((stable_hash(key) >> 16) % self._files, []).append(index)
            for number, chosen in parts.items():
                part = (
                    [keys[i] for i in chosen],
                    [values[i] for i in chosen],
                    None if times is None else [times[i] for i in chosen],
                )
                pickle.dump(part, self._spilled[number], pickle.HIGHEST_PROTOCOL)
        self._batches, self._held = [], 0

    def groups(self) -> Iterator[Group]:
        if not self._spilled:
            batches, self._batches = self._batches, []
            yield from self._group(iter(batches))
            return
        self._spill()
        for file in self._spilled:
            file.seek(0)
            yield from self._group(self._read(file))
            file.close()
        self._spilled = []

    @staticmethod
    def _read(file: IO[bytes]) -> Iterator[tuple[list[Any], list[Any], list[int] | None]]:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return

    @staticmethod
    def _group(batches: Iterator[tuple[list[Any], list[Any], list[int] | None]]) -> Iterator[Group]:
        found: dict[Any, tuple[list[Any], list[int]]] = {}
        timed = False
        for keys, values, times in batches:
            timed = timed or times is not None
            for index, key in enumerate(keys):
                group = found.get(key)
                if group is None:
                    group = found[key] = ([], [])
                group[0].append(values[index])
                # A union may bring records with and without timestamps.
                group[1].append(MIN_TIMESTAMP if times is None else times[index])
        for key, (values, stamps) in found.items():
            if not timed:
                yield key, values, None
                continue
            order = sorted(range(len(values)), key=stamps.__getitem__)
            yield key, [values[i] for i in order], [stamps[i] for i in order]
