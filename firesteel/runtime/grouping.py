"""Records by key for BATCH mode, where an operator sees one key after the other.

In memory up to a limit, then in a number of temporary files by hash, each small enough to be grouped in memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import IO, Any, NamedTuple

from firesteel.runtime.keys import stable_hash
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["KeyGroups"]

Group = tuple[Any, list[Any], list[int] | None]
MergedGroup = tuple[Any, list[int], list[Any], list[int] | None]


class _Chunk(NamedTuple):
    keys: list[Any]
    values: list[Any]
    times: list[int] | None
    ordinal: int

    def part(self, chosen: list[int]) -> _Chunk:
        return _Chunk(
            [self.keys[i] for i in chosen],
            [self.values[i] for i in chosen],
            None if self.times is None else [self.times[i] for i in chosen],
            self.ordinal,
        )


class _Records(NamedTuple):
    """What one input has of one key."""

    values: list[Any]
    times: list[int]

    def in_order(self) -> _Records:
        order = sorted(range(len(self.values)), key=self.times.__getitem__)
        return _Records([self.values[i] for i in order], [self.times[i] for i in order])


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
        self._chunks: list[_Chunk] = []
        self._buffered = 0

    def add(self, keys: list[Any], values: list[Any], timestamps: list[int] | None, ordinal: int = 0) -> None:
        """Takes records of one input, the first or (``ordinal`` 1) the second one."""
        self._chunks.append(_Chunk(keys, values, timestamps, ordinal))
        self._buffered += len(keys)
        if self._buffered > self._limit:
            self._spill()

    def _spill(self) -> None:
        if not self._spilled:
            self._spilled = [
                tempfile.TemporaryFile(prefix="firesteel-keys-")  # noqa: SIM115 - closed when it was read
                for _ in range(self._files)
            ]
        for chunk in self._chunks:
            parts: dict[int, list[int]] = {}
            for index, key in enumerate(chunk.keys):
                # The low bits chose the subtask already.
                parts.setdefault((stable_hash(key) >> 16) % self._files, []).append(index)
            for number, chosen in parts.items():
                pickle.dump(tuple(chunk.part(chosen)), self._spilled[number], pickle.HIGHEST_PROTOCOL)
        self._chunks, self._buffered = [], 0

    def groups(self) -> Iterator[Group]:
        """(key, values, timestamps) of all that was added."""
        for chunks in self._portions():
            (found, _), timed = _by_key(chunks)
            for key, records in found.items():
                if timed:
                    yield key, *records.in_order()
                else:
                    yield key, records.values, None

    def merged_groups(self) -> Iterator[MergedGroup]:
        """(key, input of each record, values, timestamps) of all that was added, both inputs in one order.

        >>> groups = KeyGroups()
        >>> groups.add(["a", "a"], ["left", "last"], [10, 30], ordinal=0)
        >>> groups.add(["a"], ["right"], [20], ordinal=1)
        >>> list(groups.merged_groups())
        [('a', [0, 1, 0], ['left', 'right', 'last'], [10, 20, 30])]
        """
        nothing = _Records([], [])
        for chunks in self._portions():
            (first, second), timed = _by_key(chunks)
            for key in first | second:
                one, two = first.get(key, nothing), second.get(key, nothing)
                if timed:
                    one, two = one.in_order(), two.in_order()
                ordinals = _turns(one.times, two.times)
                sides = iter(one.values), iter(two.values)
                clocks = iter(one.times), iter(two.times)
                values = [next(sides[ordinal]) for ordinal in ordinals]
                yield key, ordinals, values, [next(clocks[ordinal]) for ordinal in ordinals] if timed else None

    def _portions(self) -> Iterator[Iterable[_Chunk]]:
        """Chunks that fit into memory together; all records of a key are in one portion."""
        if not self._spilled:
            chunks, self._chunks = self._chunks, []
            yield chunks
            return
        self._spill()
        for file in self._spilled:
            file.seek(0)
            yield self._read(file)
            file.close()
        self._spilled = []

    @staticmethod
    def _read(file: IO[bytes]) -> Iterator[_Chunk]:
        while True:
            try:
                yield _Chunk(*pickle.load(file))
            except EOFError:
                return


def _by_key(chunks: Iterable[_Chunk]) -> tuple[tuple[dict[Any, _Records], dict[Any, _Records]], bool]:
    """The records of each input by key, and whether any of them has a timestamp."""
    found: tuple[dict[Any, _Records], dict[Any, _Records]] = ({}, {})
    timed = False
    for keys, values, times, ordinal in chunks:
        timed = timed or times is not None
        of_input = found[ordinal]
        # A union may bring records with and without timestamps.
        for key, value, time in zip(keys, values, times or repeat(MIN_TIMESTAMP), strict=False):
            records = of_input.get(key)
            if records is None:
                records = of_input[key] = _Records([], [])
            records[0].append(value)
            records[1].append(time)
    return found, timed


def _turns(first: list[int], second: list[int]) -> list[int]:
    """Which input is next, until both are through: the one with the earlier record, in turn where they are equal.

    >>> _turns([10, 20, 20], [20, 20, 30])
    [0, 1, 0, 1, 0, 1]
    """
    if not first or not second:
        return [0] * len(first) + [1] * len(second)
    turns: list[int] = []
    one = two = 0
    while one < len(first) and two < len(second):
        # After the first input's record it is the second one's turn. Flink alternates in the same way.
        ahead = first[one] < second[two] or (first[one] == second[two] and not (turns and turns[-1] == 0))
        turns.append(0 if ahead else 1)
        one, two = (one + 1, two) if ahead else (one, two + 1)
    return turns + [0] * (len(first) - one) + [1] * (len(second) - two)
