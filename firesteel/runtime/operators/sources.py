"""A source inside a task of stage 0: reads its share of the batch and pushes it into the chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.source import Chunk, Split
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.event_time import EventTime
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.pace import Pace

__all__ = ["SourceOperator"]


@handles(SourceSpec)
class SourceOperator(Operator):
    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
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
            self.spec.source.open(self.context)
        except Exception as error:
            raise self.failure(error) from error

    def close(self) -> None:
        try:
            self.spec.source.close()
        except Exception as error:
            raise self.failure(error) from error

    def begin(self, store: Any, header: dict[str, Any], now: int) -> None:
        super().begin(store, header, now)
        self.event_time.begin(header, self.splits, self.paused)

    def read(self, share: Any, ended: bool, pace: Pace) -> Iterator[int]:
        """Reads one subtask's share of a batch piece by piece. Yields the number of records of each."""
        if share is not None:
            for part in self._parts(share):
                if isinstance(part, Split):
                    self.event_time.switch(part.name)
                elif isinstance(part, int):
                    if self._own_time:
                        self.event_time.take(part)
                else:
                    for values, timestamps in _pieces(part, pace):
                        if self._own_time:
                            self.out.emit(values, timestamps)
                        else:
                            self.event_time.process(values, timestamps)
                        yield len(values)
        if ended:
            self.event_time.end()

    def _parts(self, share: Any) -> Iterator[Chunk | int | Split]:
        try:
            yield from self.spec.source.read(share)
        except Exception as error:
            raise self.failure(error) from error

    def finish(self, last: bool) -> None:
        self.event_time.finish()


def _pieces(chunk: Chunk, pace: Pace) -> Iterator[Chunk]:
    values, timestamps = chunk
    if len(values) <= pace.records:
        yield chunk
        return
    start = 0
    while start < len(values):
        piece = slice(start, start + pace.records)
        yield values[piece], None if timestamps is None else timestamps[piece]
        start = piece.stop
