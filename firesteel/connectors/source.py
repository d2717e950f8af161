"""The port that every source implements: positions, shares, and reading a share.

Positions are small JSON values. Spark writes them into its offset log before a batch runs, so a replayed batch reads
exactly what the first attempt read. ``plan`` and ``latest`` run in the driver, ``read`` runs in tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["CHUNK_RECORDS", "Chunk", "Chunks", "Split", "SplitSource"]

CHUNK_RECORDS = 8192
"""Records that a source hands over at once."""

Chunk = tuple[list[Any], list[int] | None]
Chunks = Iterator[Chunk]


@dataclass(frozen=True)
class Split:
    """Among what a source reads: the chunks that follow are of this split."""

    name: str


class SplitSource(ABC):
    """A source of records that can be read again from any position it reported."""

    bounded: bool = True
    """Whether the source ends by itself."""
    splittable: bool = True
    """Whether one batch of it can be read by several tasks, each a block of its own."""

    keeps_files: bool = False
    """Whether the source writes files of its own into the directory that ``start`` gets."""

    def start(self, directory: str) -> None:  # noqa: B027 - optional to override
        """Called once in the driver before anything else; ``directory`` is durable with the job's checkpoint."""

    def stop(self) -> None:  # noqa: B027 - optional to override
        """Called once in the driver at the end."""

    def for_tasks(self) -> SplitSource:
        """What travels to the tasks: only what ``read`` needs."""
        return self

    def ends_within(self, records: int) -> bool:
        """Whether it is known, before the source starts, to have no more than so many records."""
        return False

    @abstractmethod
    def initial(self) -> Any:
        """The position before the first record."""

    @abstractmethod
    def latest(self, position: Any, max_records: int) -> Any:
        """The position after at most ``max_records`` more records that are there now; the same if there are none."""

    @abstractmethod
    def ended(self, position: Any) -> bool:
        """Whether nothing can come after this position."""

    @abstractmethod
    def count(self, start: Any, end: Any) -> int:
        """How many records lie between two positions (an estimate is enough)."""

    def size(self, start: Any, end: Any) -> int | None:
        """About how many bytes lie between two positions, where the source knows it before it reads them. A batch is
        limited by bytes as well as by records. A source that answers must answer ``latest`` the same when it is asked
        again for fewer records."""
        return None

    @abstractmethod
    def plan(self, start: Any, end: Any, parallelism: int) -> list[Any]:
        """What each subtask reads between two positions, in order: subtask 0 the first block, and so on."""

    def splits(self, position: Any, parallelism: int) -> list[list[str]] | None:
        """The splits that may bring records after a position, per subtask that reads them.

        A split is a part of the source with an event time of its own: a partition, or a file of several that are read
        side by side. A watermark strategy on the source works on each by itself, and the slowest of them decides. So a
        split must be named here as long as others have to wait for it, whether a batch has records of it or not. It
        stays with its subtask as long as there are as many of them.
        None is for a source whose subtasks read one piece each.
        """
        return None

    def open(self, context: Any) -> None:  # noqa: B027 - optional to override
        """Called once in each task before its first share, with the task's runtime context."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once in each task that opened it, after the last share or when the job ends otherwise."""

    @abstractmethod
    def read(self, share: Any) -> Iterator[Chunk | int | Split]:
        """The records of a share, in chunks, each with its timestamps or None.

        A source that has :meth:`splits` says of which one the following chunks are. A source that knows event time
        itself may put watermarks between them, as plain ints.
        """

    def processing_time(self, position: Any) -> int | None:
        """The processing time of the batch that ends at this position, where the source decides it: a script of
        a test, or a recording that is played again. None leaves it to the clock."""
        return None

    def committed(self, position: Any) -> None:  # noqa: B027 - optional to override
        """The batch that ended at this position is complete; what lies before will never be asked for again."""
