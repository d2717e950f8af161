"""Tables that can be asked for the rows of some keys: what a connector implements for lookup joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["LookupCache", "LookupTable"]


class LookupTable(ABC):
    """A table of a connector, seen from a lookup join. It is pickled with the program and opened in each subtask.

    >>> class Colours(LookupTable):
    ...     def lookup(self, keys):
    ...         rows = {1: "red", 2: "blue"}
    ...         found = [(key, rows[key]) for key in keys.column("id").to_pylist() if key in rows]
    ...         return pa.record_batch([pa.array(column) for column in zip(*found)], names=["id", "colour"])
    >>> Colours().lookup(pa.record_batch({"id": [2, 7]})).to_pylist()
    [{'id': 2, 'colour': 'blue'}]
    """

    def open(self) -> None:  # noqa: B027
        """Connects. Called before the first lookup of a subtask."""

    @abstractmethod
    def lookup(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """All rows of the table whose key is one of these, in any order, with all columns of the table. ``keys`` has a
        column for each column of the table that is asked for, without NULLs, and no key twice."""

    def close(self) -> None:  # noqa: B027
        """Disconnects."""


@dataclass(frozen=True)
class LookupCache:
    """What a lookup join remembers of the answers: options ``lookup.partial-cache.*``."""

    max_rows: int | None = None
    """Keys that are remembered at most; those that were asked for longest ago go first."""
    expire_after_write: int | None = None
    """Milliseconds after which an answer is asked for again."""
    expire_after_access: int | None = None
    """Milliseconds without a question after which an answer is forgotten."""
    cache_missing_key: bool = True
    """Whether it is remembered that there is no row."""
