"""How much memory entries take: what pickles to a few bytes may be many small objects."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

from firesteel.runtime.state.tables import Entry

__all__ = ["SAMPLE", "Scale", "mean_weight", "weight"]

ENTRY_OVERHEAD = 200
"""About what an entry takes beside its key and its value: the list that it is, and its place in a dict."""
SAMPLE = 32
_DEPTH = 6


def weight(value: Any, depth: int = _DEPTH) -> int:
    """About how many bytes an object takes with all that is in it. A long collection is known by its first elements.

    >>> weight("a") < 100 < weight(["a", {"b": (1, 2)}]) < 1000
    True
    """
    here = sys.getsizeof(value, 64)
    if not depth:
        return here
    if isinstance(value, dict):
        pairs = list(islice(value.items(), SAMPLE))
        return here + sum(weight(part, depth - 1) for pair in pairs for part in pair) * len(value) // (len(pairs) or 1)
    if isinstance(value, list | tuple | set | frozenset):
        parts = list(islice(value, SAMPLE))
        return here + sum(weight(part, depth - 1) for part in parts) * len(value) // (len(parts) or 1)
    attributes = getattr(value, "__dict__", None)
    return here if attributes is None or isinstance(value, type) else here + weight(attributes, depth - 1)


class Scale:
    """Weighs a few entries of every batch and guesses what all of them take.

    >>> scale = Scale()
    >>> scale.learn([["value", 1, "key"]])
    >>> 200_000 < scale.of(1000) < 400_000
    True
    """

    def __init__(self) -> None:
        self._average = 0.0

    @property
    def calibrated(self) -> bool:
        return self._average > 0

    def learn(self, entries: Sequence[Entry]) -> None:
        sample = entries[:: len(entries) // SAMPLE + 1]
        if sample:
            mean = sum(weight(entry[2]) + weight(entry[0]) for entry in sample) / len(sample)
            # Later batches may differ from the first ones, but no single one decides.
            self._average = self._average * 0.75 + mean * 0.25 if self._average else mean

    def of(self, entries: int) -> int:
        return int(entries * (ENTRY_OVERHEAD + self._average))


def mean_weight(values: Any) -> float:
    """About how many bytes each object of a list or an array takes, by a few of them.

    >>> 50 < mean_weight(["a" * 10] * 1000) < 100
    True
    """
    sample = values[:: len(values) // SAMPLE + 1]
    return sum(map(weight, sample)) / max(1, len(sample))
