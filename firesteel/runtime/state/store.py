"""The port between keyed state and where it is kept: a map of bytes to bytes, read and written in bulk.

Two adapters: a dict here, and Spark's state store in :mod:`firesteel.runtime.state.spark_store`. Everything above
(pages, timers, watermarks) sees only this port, so the same tests run on both.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from firesteel.errors import CheckpointError

__all__ = ["HEADER", "MemoryStore", "StateStore", "damaged", "unpickled"]

HEADER = b"\0header"
"""The entry of the store that holds all that is not keyed: watermarks, table shapes, timer indexes."""


def unpickled(cell: bytes, where: bytes) -> Any:
    """What a cell of the store holds, or an error that says that it cannot be read: it will not get better.

    >>> unpickled(pickle.dumps([1, 2]), b"count")
    [1, 2]
    """
    try:
        return pickle.loads(cell)
    except MemoryError:
        raise
    except Exception as error:
        raise damaged(where, error) from error


def damaged(where: bytes, error: BaseException | str) -> CheckpointError:
    """State that is there and cannot be read."""
    why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    name = where.decode(errors="replace").strip("\0").replace("\0", "/")
    return CheckpointError(
        f"The stored state {name!r} cannot be read ({why}). It is damaged, or it needs a class that the program no "
        "longer has. Start the program that wrote it, or begin with a savepoint or an older checkpoint."
    )


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
