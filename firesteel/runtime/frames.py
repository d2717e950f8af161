"""Frames: how records travel between stages.

Records never cross Spark as rows. A task packs what it has for one target subtask into frames, each one binary cell
of about a megabyte: a small header and a pickle of a list of *elements*:

* a chunk ``(keys or None, values, timestamps or None)``: parallel lists. Keys travel with their records, so a key
  selector runs once a record; where the key is part of the record, pickle's memo makes it a two-byte reference.
* a :class:`Watermark` that stands between records.
* a :class:`Step`: the end of one part of the batch, with the watermarks that moved in it.
* a :class:`Mark`: the end of what one upstream subtask sent in this batch.

The header's (edge, upstream subtask, sequence number) gives the receiver one order, whatever order Spark delivers in.

A frame with large records is larger than that, and Spark holds several rows at once in the JVM's heap. So a large frame
crosses Spark in *pieces*, each a cell of its own, and is put together again where it is read.
"""

from __future__ import annotations

import pickle
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Any, NamedTuple

__all__ = [
    "DRIVER",
    "FRAMES_MEMORY",
    "MAX_RECORD",
    "PIECE_BYTES",
    "Chunk",
    "Element",
    "Frame",
    "FrameSpool",
    "Mark",
    "Step",
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

PIECE_BYTES = 2 << 20
"""The most that one cell carries. Frames of small records stay below it."""

MAX_RECORD = 512 << 20
"""The largest record, pickled, that may change hands, where no setting says otherwise."""

_HEADER = struct.Struct("<BHHHIqHH")

Chunk = tuple[list[Any] | None, list[Any], list[int] | None]


class Watermark(NamedTuple):
    """A watermark between two records. Its origin is the operator that made it (see :mod:`.watermarks`)."""

    origin: int
    value: int


class Step(NamedTuple):
    """The end of a step. A batch is worked on in steps, so that event time moves while it is: a receiver takes a step
    of each channel, then moves its watermark, then goes on with the next step of each."""

    watermarks: dict[int, int]
    """Per origin the watermark that the step has led to, where it moved."""


class Mark(NamedTuple):
    """The last element of a channel in a batch."""

    watermarks: dict[int, tuple[int | None, int | None]]
    """Per origin: its watermark (None where this batch brought none: the receiver keeps the older one), and its
    idle timeout if no record came through it in this batch (None where one did, or where it is never idle)."""
    last: bool
    """Whether this batch ends the job's input."""


Element = Chunk | Watermark | Step | Mark


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
    piece: int = 0
    pieces: int = 1
    """Which of how many pieces of a frame this is, where it is one that is passed on."""

    def to_bytes(self) -> bytes:
        return self._head(self.piece, self.pieces) + self.payload

    def _head(self, piece: int, pieces: int) -> bytes:
        return _HEADER.pack(self.stage, self.target, self.edge, self.upstream, self.sequence, self.time, piece, pieces)

    def cells(self) -> Iterator[bytes]:
        """The frame as it crosses Spark: one cell, or several where it is large.

        >>> [len(cell) < 3 << 20 for cell in Frame(1, 0, 7, 2, 0, 0, bytes(5 << 20)).cells()]
        [True, True, True]
        """
        size = len(self.payload)
        if size <= PIECE_BYTES:
            yield self.to_bytes()
            return
        # No more than the header can count.
        step = max(PIECE_BYTES, -(-size // 0xFFFF))
        pieces = -(-size // step)
        content = memoryview(self.payload)
        for piece in range(pieces):
            yield b"".join((self._head(piece, pieces), content[piece * step : (piece + 1) * step]))

    @staticmethod
    def of(cell: bytes) -> Frame:
        """A cell on its way to somebody else: a frame, or a piece of one."""
        stage, target, edge, upstream, sequence, time, piece, pieces = _HEADER.unpack_from(cell)
        return Frame(stage, target, edge, upstream, sequence, time, cell[_HEADER.size :], piece, pieces)


def header_of(cell: bytes) -> tuple[int, int, int, int, int, int]:
    """(stage, target, edge, upstream, sequence, time) of a cell."""
    return _HEADER.unpack_from(cell)[:6]


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
    """The elements of a frame's only cell, or of its cells put together.

    >>> frame = Frame(1, 0, 7, 2, 0, 0, encode([(None, ["a"], None)]))
    >>> decode(frame.to_bytes())
    [(None, ['a'], None)]
    """
    elements: list[Any] = pickle.loads(memoryview(cell)[_HEADER.size :])
    return elements


class FrameSpool:
    """Collects a subtask's frames of a batch and gives them back in order, each in one piece.

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
        self._in_memory = 0
        self._cells: list[tuple[tuple[int, ...], bytes | tuple[int, int]]] = []
        """What is sorted by: edge, upstream, sequence, piece, and how many pieces there are; and the cell."""
        self._file: IO[bytes] | None = None

    def add(self, cell: bytes) -> None:
        _, _, edge, upstream, sequence, _, piece, pieces = _HEADER.unpack_from(cell)
        order = (edge, upstream, sequence, piece, pieces)
        if self._in_memory + len(cell) <= self._limit:
            self._in_memory += len(cell)
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
        """All frames, channel after channel."""
        for _, frames in self.channels():
            yield from frames
        self.close()

    def channels(self) -> list[tuple[tuple[int, int], Iterator[bytes]]]:
        """By edge and upstream subtask the frames of each channel, in order. They are read while they are gone through,
        and let go. The caller closes the spool.

        >>> spool = FrameSpool()
        >>> for upstream in (1, 0):
        ...     spool.add(Frame(1, 0, 7, upstream, 0, 0, encode([upstream])).to_bytes())
        >>> [(channel, [decode(frame) for frame in frames]) for channel, frames in spool.channels()]
        [((7, 0), [[0]]), ((7, 1), [[1]])]
        """
        cells, self._cells = self._cells, []
        cells.sort(key=itemgetter(0))
        by_channel = groupby(cells, lambda entry: entry[0][:2])
        # Reversed, so that each cell can be let go as soon as it was handed out.
        return [((edge, upstream), self._frames(list(some)[::-1])) for (edge, upstream), some in by_channel]

    def _frames(self, cells: list[tuple[tuple[int, ...], bytes | tuple[int, int]]]) -> Iterator[bytes]:
        while cells:
            pieces = cells[-1][0][-1]
            if pieces == 1:
                yield self._content(cells.pop()[1])
                continue
            # The first one brings the header.
            parts: list[bytes | memoryview] = [self._content(cells.pop()[1])]
            parts += [memoryview(self._content(cells.pop()[1]))[_HEADER.size :] for _ in range(pieces - 1)]
            whole = b"".join(parts)
            parts.clear()
            yield whole

    def _content(self, where: bytes | tuple[int, int]) -> bytes:
        if isinstance(where, bytes):
            return where
        assert self._file is not None
        self._file.seek(where[0])
        return self._file.read(where[1])

    def close(self) -> None:
        self._cells = []
        if self._file is not None:
            self._file.close()
            self._file = None
