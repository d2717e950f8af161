"""A source inside a task of stage 0: reads its share of the batch and pushes it into the chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.source import Records, SideRecords, SplitRange
from firesteel.durable.headers import OperatorHeader
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.event_time import EventTime
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.pace import Pace

__all__ = ["SourceOperator"]

Piece = tuple[list[Any], list[int] | None]


def _same_type(one: TypeInformation | None, other: TypeInformation | None) -> bool:
    """Also by the names of fields, which equality leaves out."""
    return one is not None and one == other and repr(one) == repr(other)


@handles(SourceSpec)
class SourceOperator(Operator):
    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        if _same_type(self.spec.reader.produces, self.node.output_type):
            self.out.trust()
        strategy = self.spec.strategy
        # Without a strategy event time is the source's own, and so are the watermarks that it puts between records.
        self._own_time = strategy is None
        self.event_time = EventTime(self, strategy or WatermarkStrategy.no_watermarks(), self.spec.interval)
        self.splits: tuple[list[str], list[str]] | None = None
        """Set before ``begin``: the splits with records before the batch's end, and those with records after it."""
        self.paused = False
        """Set before ``begin``: whether the source may not read, so that silence means nothing."""

    def open(self) -> None:
        try:
            self.spec.reader.open(self.context)
        except Exception as error:
            raise self.failure(error) from error

    def close(self) -> None:
        try:
            self.spec.reader.close()
        except Exception as error:
            raise self.failure(error) from error

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        self.event_time.begin(header.event_time, self.splits, self.paused)

    def read(self, ranges: Sequence[SplitRange[Any]], ended: bool, pace: Pace, step: int = 0) -> Iterator[int | None]:
        """Reads one subtask's share of a batch piece by piece. Yields the number of records of each, and None after
        each ``step`` of so many records, unless it was the last (0: there are no steps)."""
        if ranges:
            self._begin(ranges)
        turns = self._turns(ranges, pace, step)
        while turns:
            for turn in list(turns):
                for piece in turn:
                    if piece is None:
                        break
                    values, timestamps = piece
                    if self._own_time:
                        self.out.emit(values, timestamps)
                    else:
                        self.event_time.process(values, timestamps)
                    yield len(values)
                else:
                    turns.remove(turn)
            if turns:
                yield None
        if ended:
            self.event_time.end()

    def _turns(self, ranges: Sequence[SplitRange[Any]], pace: Pace, step: int) -> list[Iterator[Piece | None]]:
        """What is read in turn: each range by itself, or all of them in a row."""
        if step and len(ranges) > 1 and self.spec.reader.interleaves:
            return [self._pieces([one], pace, -(-step // len(ranges))) for one in ranges]
        return [self._pieces(ranges, pace, step)]

    def _pieces(self, ranges: Sequence[SplitRange[Any]], pace: Pace, turn: int) -> Iterator[Piece | None]:
        """The records of some ranges, with None after each turn of so many (0: all of them are one turn)."""
        left = turn
        for split, start, end, name in ranges:
            for part in self._parts(split, start, end):
                if name is not None:
                    # Here and not before: others may have had their turn meanwhile.
                    self.event_time.switch(name)
                if isinstance(part, int):
                    if self._own_time:
                        self.event_time.take(part)
                    continue
                if isinstance(part, SideRecords):
                    self.out.emit_side(*part)
                    continue
                values, timestamps = part
                begun, size = 0, len(values)
                while begun < size:
                    if turn and not left:
                        yield None
                        left = turn
                        if name is not None:
                            self.event_time.switch(name)
                    count = min(pace.records, size - begun)
                    if turn:
                        count = min(count, left)
                        left -= count
                    if count == size:
                        yield values, timestamps
                    else:
                        piece = slice(begun, begun + count)
                        yield values[piece], None if timestamps is None else timestamps[piece]
                    begun += count

    def _begin(self, ranges: Sequence[SplitRange[Any]]) -> None:
        try:
            self.spec.reader.begin(ranges)
        except Exception as error:
            raise self.failure(error) from error

    def _parts(self, split: Any, start: Any, end: Any) -> Iterator[Records[Any] | SideRecords | int]:
        try:
            for part in self.spec.reader.read(split, start, end):
                if not isinstance(part, Records | SideRecords | int):
                    raise ProgramError(
                        "A reader yields Records(values, timestamps), SideRecords(tag, values, timestamps), or "
                        f"watermarks as ints; got {short_repr(part, 80)}."
                    )
                yield part
        except Exception as error:
            raise self.failure(error) from error

    def finish(self, last: bool) -> None:
        self.event_time.finish()
