"""The port between keyed state and where it is kept: a map of bytes to bytes, read and written in bulk.

Two adapters: a dict here, and Spark's state store in :mod:`firesteel.runtime.state.spark_store`. Everything above
(pages, timers, watermarks) sees only this port, so the same tests run on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

__all__ = ["MemoryStore", "StateStore"]


class StateStore(Protocol):
    """One subtask's state of one stage."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of some keys in their order, None where there is none."""

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Puts values; None removes."""


class MemoryStore:
    """A store in a dict.

    >>> store = MemoryStore()
    >>> store.write([(b"a", b"1"), (b"b", b"2")])
    >>> store.write([(b"a", None)])
    >>> store.get_many([b"a", b"b"])
    [None, b'2']
    """

    def __init__(self, content: dict[bytes, bytes] | None = None) -> None:
        self.content: dict[bytes, bytes] = {} if content is None else content

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.content.get(key) for key in keys]

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in changes:
            if value is None:
                self.content.pop(key, None)
            else:
                self.content[key] = value
