"""Enumerators of sources that consist of partitions: topics, shards, tables, one log per device."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.connectors.source import Position, SplitEnumerator, SplitRange, SplitT
from firesteel.errors import ConnectorError, ProgramError, short_repr

__all__ = ["PartitionEnumerator"]

Known = dict[str, list[Position]]
"""By the name of a split where it was begun, and how far it was read."""


class PartitionEnumerator(SplitEnumerator[SplitT]):
    """Plans batches for splits that are each read from a position to a later one, and of which new ones may appear.

    A subclass says which splits there are, where each begins and how far it could be read now. The rest is done here:
    the positions of all splits, an even share of the batch for each, the subtask that reads it, its event time.

    >>> class Letters(PartitionEnumerator[str]):
    ...     bounded = True
    ...     def discover(self): return {"low": "abc", "high": "XYZ"}
    ...     def starts(self, splits, initial): return dict.fromkeys(splits, 0)
    ...     def ends(self, splits, positions): return {name: len(letters) for name, letters in splits.items()}
    ...     def finished(self, split, position): return position == len(split)
    >>> enumerator = Letters()
    >>> first = enumerator.latest(enumerator.initial(), max_records=4)
    >>> first
    {'low': [0, 2], 'high': [0, 2]}
    >>> second = enumerator.latest(first, max_records=4)
    >>> enumerator.plan(first, second, parallelism=2)[1]
    [SplitRange(split='XYZ', start=2, end=3, name='high')]
    >>> enumerator.ended(first), enumerator.ended(second)
    (False, True)
    >>> enumerator.pending(first), enumerator.pending(second)
    (2, 0)

    The positions of splits are usually numbers, such as offsets. For others override ``limit`` and ``record_count``.
    The order of splits is that of their discovery, and decides which subtask reads them; splits that are gone, or read
    to their end, stay in the position. So it is for thousands of splits, not for millions.
    """

    bounded = False
    splittable = False
    discovery_interval: float = 0.0
    """How many seconds an answer of ``discover`` is good for."""

    # What a subclass says

    @abstractmethod
    def discover(self) -> Mapping[str, SplitT]:
        """The splits that there are now, by names that never change. One that is new is read from the next batch on."""

    @abstractmethod
    def starts(self, splits: Mapping[str, SplitT], initial: bool) -> Mapping[str, Position]:
        """Where reading begins in splits that are new. ``initial`` is for those that were found first of all, where a
        user may have asked for the latest records only; what appears later is usually read from its beginning. The
        answer is logged with the batch that reads it, so it may depend on the moment."""

    @abstractmethod
    def ends(self, splits: Mapping[str, SplitT], positions: Mapping[str, Position]) -> Mapping[str, Position]:
        """How far these splits could be read now, from their positions on. One that is left out has nothing new."""

    def finished(self, split: SplitT, position: Position) -> bool:
        """Whether nothing will come after this position of a split. A bounded source ends when all are finished."""
        return False

    def limit(self, split: SplitT, start: Position, end: Position, records: int) -> Position:
        """The position after at most so many records, not behind ``end``."""
        return min(end, start + records)

    def record_count(self, start: Position, end: Position) -> int:
        """How many records lie between two positions of a split (an estimate is enough)."""
        return int(end - start)

    def byte_size(self, split: SplitT, start: Position, end: Position) -> int | None:
        """About how many bytes they are, where it is known before they are read."""
        return None

    def checkpointed(self, positions: Mapping[str, Position]) -> None:
        """A checkpoint with these positions is complete; what lies before them will never be asked for again."""

    # What follows from that

    __known: Mapping[str, SplitT] | None = None
    __asked = 0.0
    __turn = 0
    __ends: Mapping[str, Position] | None = None
    """How far splits could be read when that was asked last."""

    def _discovered(self) -> Mapping[str, SplitT]:
        now = time.monotonic()
        if self.__known is None or now - self.__asked >= self.discovery_interval:
            self.__known, self.__asked = self.discover(), now
        return self.__known

    def leave_out(self, names: Iterable[str]) -> None:
        """For splits that are known to be gone: they do not count any more, unless ``discover`` finds them again."""
        gone = set(names)
        self.__known = {name: split for name, split in self._discovered().items() if name not in gone}

    def initial(self) -> None:
        return None

    def latest(self, position: Known | None, max_records: int) -> Known:
        splits = self._discovered()
        known: Known = dict(position or {})
        new = {name: split for name, split in splits.items() if name not in known}
        if new:
            begun = self.starts(new, position is None)
            known.update((name, [_checked(name, begun), begun[name]]) for name in new)
        readable = {n: split for n, split in splits.items() if not self.finished(split, known[n][1])}
        ends = self.__ends = self.ends(readable, {name: known[name][1] for name in readable})
        waiting = [n for n in readable if n in ends and ends[n] != known[n][1]]
        for name, share in self._shared_out(waiting, known, ends, max_records):
            first, at = known[name]
            known[name] = [first, self.limit(splits[name], at, ends[name], share)]
        return known

    def _shared_out(
        self, names: list[str], known: Known, ends: Mapping[str, Position], records: int
    ) -> list[tuple[str, int]]:
        """How many records each split may bring: all the same, and more where others have less."""
        if records < len(names):
            # One each, and the next time it is the others' turn.
            first = self.__turn % len(names)
            self.__turn += records
            return [(name, 1) for name in (*names[first:], *names[:first])[:records]]
        lengths = {name: self.record_count(known[name][1], ends[name]) for name in names}
        shares, left = [], records
        for index, name in enumerate(sorted(names, key=lengths.__getitem__)):
            share = left // (len(names) - index)
            shares.append((name, share))
            left -= min(share, lengths[name])
        return shares

    def ended(self, position: Known | None) -> bool:
        if not self.bounded or position is None:
            return False
        return all(n in position and self.finished(split, position[n][1]) for n, split in self._discovered().items())

    def count(self, start: Known | None, end: Known | None) -> int:
        return sum(self.record_count(low, high) for _, low, high in _ranges(start, end))

    def pending(self, position: Known | None) -> int | None:
        if self.__ends is None:
            return None
        behind = [(at, self.__ends[name]) for name, (_, at) in (position or {}).items() if name in self.__ends]
        return sum(max(0, self.record_count(at, end)) for at, end in behind)

    def size(self, start: Known | None, end: Known | None) -> int | None:
        splits = self._discovered()
        sizes = [self.byte_size(splits[n], low, high) for n, low, high in _ranges(start, end) if n in splits]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None

    def plan(self, start: Known | None, end: Known | None, parallelism: int) -> list[list[SplitRange[SplitT]]]:
        splits = self._discovered()
        shares: list[list[SplitRange[SplitT]]] = [[] for _ in range(parallelism)]
        owners = _owners(end, parallelism)
        for name, low, high in _ranges(start, end):
            if name not in splits:
                raise ConnectorError(
                    f"The split {name!r} is gone, and a batch that was decided before has to read it from "
                    f"{low} to {high}. Bring it back to go on, or start the job without its checkpoint or savepoint."
                )
            shares[owners[name]].append(SplitRange(splits[name], low, high, name))
        return shares

    def splits(self, position: Known | None, parallelism: int) -> list[list[str]]:
        names: list[list[str]] = [[] for _ in range(parallelism)]
        owners, splits = _owners(position, parallelism), self._discovered()
        for name, (_, at) in (position or {}).items():
            if name in splits and not self.finished(splits[name], at):
                names[owners[name]].append(name)
        return names

    @property
    def learns_of_checkpoints(self) -> bool:
        return type(self).checkpointed is not PartitionEnumerator.checkpointed

    def committed(self, position: Known | None) -> None:
        self.checkpointed({name: at for name, (_, at) in (position or {}).items()})


def _ranges(start: Known | None, end: Known | None) -> list[tuple[str, Any, Any]]:
    """What lies between two positions. A split that is new in the later one is read from where it begins."""
    before = start or {}
    both = [(name, before[name][1] if name in before else first, at) for name, (first, at) in (end or {}).items()]
    return [(name, low, high) for name, low, high in both if low != high]


def _owners(position: Known | None, parallelism: int) -> dict[str, int]:
    """Which subtask reads a split: by turns, in the order of discovery, which later ones do not change."""
    return {name: index % parallelism for index, name in enumerate(position or {})}


def _checked(name: str, begun: Mapping[str, Position]) -> Position:
    """Where a split begins, if that can be logged."""
    if name not in begun:
        raise ProgramError(f"starts() must say where each new split begins; {name!r} is missing.")
    try:
        json.dumps(begun[name])
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"The position of a split is a JSON value, such as a number; split {name!r} begins at "
            f"{short_repr(begun[name], 80)}: {error}."
        ) from None
    return begun[name]
