"""The port that every source implements: an enumerator, which plans, and a reader, which reads.

A :class:`SplitEnumerator` runs once per job, beside the driver. It says how far a batch reads, as a *position*, and
which ranges of which splits that are. Positions are small JSON values. Spark writes them into its offset log before a
batch runs, so a batch that is repeated reads exactly what its first attempt read. A :class:`SourceReader` runs in each
task and reads the ranges that its subtask gets. docs/writing-a-source.md shows both at work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from firesteel.common.typeinfo import TypeInformation

if TYPE_CHECKING:
    # Loading it here would load the builder, which loads the specs, which load this module.
    from firesteel.datastream.output_tag import OutputTag

__all__ = ["CHUNK_RECORDS", "Position", "Records", "SideRecords", "SourceReader", "SplitEnumerator", "SplitRange"]

CHUNK_RECORDS = 8192
"""Records that a reader hands over at once, unless they are large."""

Position = Any
"""A JSON value."""

SplitT = TypeVar("SplitT")
T = TypeVar("T")
S = TypeVar("S")


class Records(NamedTuple, Generic[T]):
    """Some records in a row, with a timestamp each where the source knows event time.

    >>> Records(["a", "b"])
    Records(values=['a', 'b'], timestamps=None)
    """

    values: list[T]
    timestamps: list[int] | None = None
    """In milliseconds."""


class SideRecords(NamedTuple):
    """Some records for a side output of the source: ``stream.get_side_output(tag)`` has them.

    >>> from firesteel.datastream import OutputTag
    >>> SideRecords(OutputTag("odd"), ["?"])
    SideRecords(tag=OutputTag('odd', PICKLED_BYTE_ARRAY), values=['?'], timestamps=None)
    """

    tag: OutputTag
    values: list[Any]
    timestamps: list[int] | None = None
    """In milliseconds."""


class SplitRange(NamedTuple, Generic[S]):
    """What a task reads of one split in one batch: from ``start`` up to, and not including, ``end``."""

    split: S
    """What the reader needs to know of the split. It is pickled."""
    start: Position
    end: Position
    name: str | None = None
    """The split's name, if it has an event time of its own: see :meth:`SplitEnumerator.splits`."""


class SplitEnumerator(ABC, Generic[SplitT]):
    """Plans what each batch reads. It travels to the process that plans before ``start`` is called: connections and
    threads are made there, not in the constructor.

    This is the general contract, for sources whose positions are of their own kind. For one that consists of
    partitions there is :class:`~firesteel.connectors.partitions.PartitionEnumerator`, which keeps a position for each.
    """

    bounded: bool = True
    """Whether the source ends by itself."""
    splittable: bool = True
    """Whether one batch of it can be cut into a block for each of any number of tasks."""
    keeps_files: bool = False
    """Whether it writes files of its own into the directory that ``start`` gets."""
    needs_driver: bool = False
    """Whether the driver has something to do for it: ``begin_in_driver`` and ``end_in_driver``."""

    def begin_in_driver(self, directory: str) -> None:
        """Called in the driver before each attempt of the job, with the directory that ``start`` gets in the process
        that plans: for what only the driver can do, such as a query in its Spark session. What it leaves in the
        directory is all that the other process learns of it."""

    def end_in_driver(self) -> None:
        """Called in the driver when the attempt is over."""

    def start(self, directory: str) -> None:
        """Called once before anything else; ``directory`` is durable with the job's checkpoint."""

    def stop(self) -> None:
        """Called once at the end."""

    def ends_within(self, records: int) -> bool:
        """Whether it is known, before the source starts, to have no more than so many records."""
        return False

    @abstractmethod
    def initial(self) -> Position:
        """The position before the first record."""

    @abstractmethod
    def latest(self, position: Position, max_records: int) -> Position:
        """The position after at most ``max_records`` more records that are there now; the same if there are none."""

    @abstractmethod
    def ended(self, position: Position) -> bool:
        """Whether nothing can come after this position."""

    @abstractmethod
    def count(self, start: Position, end: Position) -> int:
        """How many records lie between two positions (an estimate is enough)."""

    def size(self, start: Position, end: Position) -> int | None:
        """About how many bytes lie between two positions, where the source knows it before it reads them. A batch is
        limited by bytes as well as by records. A source that answers must answer ``latest`` the same when it is asked
        again for fewer records."""
        return None

    def pending(self, position: Position) -> int | None:
        """About how many records were there behind this position when ``latest`` was last asked, for those who watch
        the job; None where the source does not know. Nothing is asked anew for it."""
        return None

    @abstractmethod
    def plan(self, start: Position, end: Position, parallelism: int) -> list[list[SplitRange[SplitT]]]:
        """What each subtask reads between two positions, in order. Two calls with the same positions give the same."""

    def splits(self, position: Position, parallelism: int) -> list[list[str]] | None:
        """The names of the splits that may bring records after a position, per subtask that reads them.

        These are splits with an event time of their own: partitions, or files that are read side by side. A
        watermark strategy on the source works on each by itself, and the slowest of them decides. So a split must be
        named here as long as others have to wait for it, whether a batch has records of it or not. It stays with its
        subtask as long as there are as many of them. None is for a source whose subtasks read one piece each.
        """
        return None

    def processing_time(self, position: Position) -> int | None:
        """The processing time of the batch that ends at this position, where the source decides it: a script of
        a test, or a recording that is played again. None leaves it to the clock."""
        return None

    @property
    def learns_of_checkpoints(self) -> bool:
        """Whether the source does something in ``committed``."""
        return type(self).committed is not SplitEnumerator.committed

    def committed(self, position: Position) -> None:
        """The batch that ended at this position is complete; what lies before will never be asked for again."""


class SourceReader(ABC, Generic[SplitT, T]):
    """Reads ranges of splits in one subtask. It serves many batches; after a failure there is a new one.

    It travels to the task before ``open`` is called: connections are made there, not in the constructor.
    """

    interleaves: bool = False
    """Whether a range may be begun while others have not been read to their end. Then the ranges of a batch are read in
    turn, some records of each, and event time moves in all of them side by side."""

    produces: TypeInformation | None = None
    """The type that all values are known to have, because the reader has checked or made them so. Where it is the one
    that the stream declares, they are not checked again."""

    def open(self, context: Any) -> None:
        """Called once before the first range, with the task's runtime context."""

    def begin(self, ranges: Sequence[SplitRange[SplitT]]) -> None:
        """Called before the ranges of a batch are read, with all of them: a chance to fetch them together."""

    @abstractmethod
    def read(self, split: SplitT, start: Position, end: Position) -> Iterator[Records[T] | SideRecords | int]:
        """The records of a range, in pieces of some thousand. The same range gives the same records, however often it
        is read. A source that knows event time itself may put watermarks between them, as plain ints."""

    def close(self) -> None:
        """Called once if it was opened, after the last range or when the job ends otherwise."""
