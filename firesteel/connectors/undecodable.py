"""What becomes of records that cannot be read, in any source that deserialises."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from firesteel.connectors.source import SideRecords
from firesteel.durable.names import stored_as
from firesteel.errors import InputError, ProgramError, short_repr

if TYPE_CHECKING:
    # A worker may load a reader before anything else of this package.
    from firesteel.datastream.output_tag import OutputTag

__all__ = ["Undecodable", "UndecodableRecord", "UndecodableRecords"]

_SHOWN_BYTES = 64


class UndecodableRecord(NamedTuple):
    """A record that could not be read, as a side output has it."""

    place: str
    """Where it is, for people: topic, partition and offset, or file and line."""
    content: bytes | None
    error: str
    """What was wrong."""
    record: Any = None
    """The record as its system has it, where that is more than the content: a ``KafkaRecord``."""


@stored_as("undecodable_record")
def _undecodable_record(place: str, content: bytes | None, error: str, record: Any) -> UndecodableRecord:
    return UndecodableRecord(place, content, error, record)


copyreg.pickle(UndecodableRecord, lambda record: (_undecodable_record, tuple(record)))


@dataclass(frozen=True)
class Undecodable:
    """What a source does with a record that its schema cannot read: ``FAIL``, ``SKIP`` or a side output.

    >>> Undecodable.SKIP
    Undecodable.SKIP
    >>> from firesteel.datastream import OutputTag
    >>> Undecodable.side_output(OutputTag("bad"))
    Undecodable.side_output('bad')
    """

    name: str
    tag: OutputTag | None = None

    FAIL: ClassVar[Undecodable]
    """The job fails, with the place of the record and its first bytes."""
    SKIP: ClassVar[Undecodable]
    """It is left out and counted, in the metric ``undecodableRecords``."""

    @staticmethod
    def side_output(tag: OutputTag) -> Undecodable:
        """It goes to ``stream.get_side_output(tag)`` as an :class:`UndecodableRecord`, and is counted, too."""
        if not hasattr(tag, "tag_id"):
            raise ProgramError(f"Undecodable.side_output() takes an OutputTag, got {short_repr(tag, 60)}.")
        return Undecodable("side_output", tag)

    def __repr__(self) -> str:
        return f"Undecodable.{self.name}" + ("" if self.tag is None else f"({self.tag.tag_id!r})")


Undecodable.FAIL, Undecodable.SKIP = Undecodable("FAIL"), Undecodable("SKIP")


class UndecodableRecords:
    """Does with such records what the user has said. A reader has one."""

    def __init__(self, what: Undecodable) -> None:
        self._what = what
        self._counter: Any = None

    def open(self, context: Any) -> None:
        self._counter = context.get_metrics_group().counter("undecodableRecords")

    def take(self, found: UndecodableRecord, cause: Exception, timestamp: int | None = None) -> SideRecords | None:
        """Fails, or counts the record and returns what the reader yields for it, if anything."""
        if self._what == Undecodable.FAIL:
            raise InputError(
                f"The record at {found.place} {_why(found)}. set_undecodable(Undecodable.SKIP) leaves such records out "
                "and counts them, Undecodable.side_output(tag) puts them aside."
            ) from cause
        self._counter.inc()
        if self._what.tag is None:
            return None
        return SideRecords(self._what.tag, [found], None if timestamp is None else [timestamp])


def _why(found: UndecodableRecord) -> str:
    if found.content is None:
        return "has no value: it marks a key as deleted, and the schema reads values. Use a schema of whole records"
    begins = repr(bytes(found.content[:_SHOWN_BYTES]))
    if begins[:-1] in found.error:
        # Schemas of ours show them.
        return f"cannot be read: {found.error.rstrip('.')}"
    return f"cannot be read: {found.error.rstrip('.')}. It has {len(found.content):,} bytes and begins with {begins}"
