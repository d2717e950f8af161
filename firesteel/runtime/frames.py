"""Frames: how records travel between stages.

Records never cross Spark as rows. A task packs what it has for one target subtask into frames, each one binary cell
of about a megabyte: a small header and a pickle of a list of *elements*:

* a chunk ``(keys or None, values, timestamps or None)``: parallel lists. Keys travel with their records, so a key
  selector runs once a record; where the key is part of the record, pickle's memo makes it a two-byte reference.
* a :class:`Watermark` that stands between records.
* a :class:`Mark`: the end of what one upstream subtask sent in this batch.

The header's (edge, upstream subtask, sequence number) gives the receiver one order, whatever order Spark delivers in.
"""

from __future__ import annotations

import pickle
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

__all__ = [
    "DRIVER",
    "FRAMES_MEMORY",
    "Chunk",
    "Element",
    "Frame",
    "FrameSpool",
    "Mark",
    "Watermark",
    "decode",
    "encode",
    "first_unpicklable",
    "header_of",
]

DRIVER = 0xFF
"""The target stage of what goes to the driver: committables, printed lines, statistics."""

FRAMES_MEMORY = 64 << 20
"""Bytes of a batch's frames that a subtask holds in memory, where no setting says otherwise."""

_HEADER = struct.Struct("<BHHHIq")

Chunk = tuple[list[Any] | None, list[Any], list[int] | None]


class Watermark(NamedTuple):
    """A watermark between two records. Its origin is the operator that made it (see :mod:`.watermarks`)."""

    origin: int
    value: int


class Mark(NamedTuple):
    """The last element of a channel in a batch."""

    watermarks: dict[int, tuple[int | None, int | None]]
    """Per origin: its watermark (None where this batch brought none: the receiver keeps the older one), and its
    idle timeout if no record came through it in this batch (None where one did, or where it is never idle)."""
    last: bool
    """Whether this batch ends the job's input."""


Element = Chunk | Watermark | Mark


@dataclass(frozen=True, slots=True)
class Frame:
    """One cell on its way from a subtask to a subtask (or to the driver)."""

    stage: int
    target: int
    edge: int
    upstream: int
    sequence: int
    time: int
    """The batch's processing time: every task of a batch, and of its replay, sees the same one."""
    payload: bytes

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(self.stage, self.target, self.edge, self.upstream, self.sequence, self.time)
        return header + self.payload


def header_of(cell: bytes) -> tuple[int, int, int, int, int, int]:
    """(stage, target, edge, upstream, sequence, time) of a cell."""
    header: tuple[int, int, int, int, int, int] = _HEADER.unpack_from(cell)
    return header


def encode(elements: list[Any]) -> bytes:
    return pickle.dumps(elements, pickle.HIGHEST_PROTOCOL)


def first_unpicklable(values: list[Any]) -> Any:
    """The value that keeps a list of them from being pickled; the list itself if only all together do.

    >>> first_unpicklable([1, "a", None])
    [1, 'a', None]
    """
    for value in values:
        try:
            encode([value])
        except Exception:
            return value
    return values


def decode(cell: bytes | memoryview) -> list[Any]:
    """The elements of a cell.

    >>> frame = Frame(1, 0, 7, 2, 0, 0, encode([(None, ["a"], None)]))
    >>> decode(frame.to_bytes())
    [(None, ['a'], None)]
    """
    elements: list[Any] = pickle.loads(memoryview(cell)[_HEADER.size :])
    return elements


class FrameSpool:
    """Collects a subtask's frames of a batch and gives them back in order.

    Frames arrive in no useful order, so all must be seen before the first is processed. Beyond ``limit`` bytes they
    wait in a temporary file: a worker's memory does not grow with the batch.

    >>> spool = FrameSpool(limit=10)
    >>> for sequence in (1, 0):
    ...     spool.add(Frame(1, 0, 0, 0, sequence, 0, encode([sequence])).to_bytes())
    >>> [decode(cell) for cell in spool.in_order()]
    [[0], [1]]
    """

    def __init__(self, limit: int = FRAMES_MEMORY) -> None:
        self._limit = limit
        self._held = 0
        self._cells: list[tuple[tuple[int, int, int], bytes | tuple[int, int]]] = []
        self._file: IO[bytes] | None = None

    def add(self, cell: bytes) -> None:
        order = header_of(cell)[2:5]
        if self._held + len(cell) <= self._limit:
            self._held += len(cell)
            self._cells.append((order, cell))
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="firesteel-spool-")  # noqa: SIM115 - closed by close()
        start = self._file.tell()
        self._file.write(cell)
        self._cells.append((order, (start, len(cell))))

    def __bool__(self) -> bool:
        return bool(self._cells)

    def in_order(self) -> Iterator[bytes]:
        # Reversed, so that each cell can be let go as soon as it was handed out.
        self._cells.sort(key=lambda entry: entry[0], reverse=True)
        while self._cells:
            where = self._cells.pop()[1]
            if isinstance(where, bytes):
                yield where
                continue
            assert self._file is not None
            self._file.seek(where[0])
            yield self._file.read(where[1])
        self.close()

    def close(self) -> None:
        self._cells = []
        if self._file is not None:
            self._file.close()
            self._file = None
