"""Event time by a strategy, on any stream."""

from __future__ import annotations

from typing import Any

from firesteel.durable.headers import OperatorHeader
from firesteel.graph.specs import TimestampsSpec
from firesteel.runtime.event_time import EventTime
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.watermarks import MAX_WATERMARK

__all__ = ["TimestampsOperator"]


@handles(TimestampsSpec)
class TimestampsOperator(Operator):
    """Assigns timestamps; its watermark goes out after each step of a batch, or after every record if asked to.

    A watermark from upstream does not pass (as in Flink), except the last one.
    """

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self.event_time = EventTime(self, self.spec.strategy, self.spec.interval)
        self.paused = False
        """Set before ``begin``: whether records are kept back from this operator, so that silence means nothing."""

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        self.event_time.begin(header.event_time, paused=self.paused)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.event_time.process(values, timestamps)

    def receive_watermark(self, channel: tuple[int, int, int], value: int | None) -> None:
        if value == MAX_WATERMARK and self._inputs_ended(channel):
            self.event_time.end()

    def receive_watermarks(self, levels: list[tuple[tuple[int, int, int], int]]) -> None:
        for channel, value in levels:
            self.receive_watermark(channel, value)

    def _inputs_ended(self, channel: tuple[int, int, int]) -> bool:
        if self.valve is None:
            # A source that has ended says so in every batch, so all of them are heard in the last one.
            self.origin_levels[channel[2]] = MAX_WATERMARK
            return self.placement.origins <= self.origin_levels.keys()
        return self.valve.advance(channel, MAX_WATERMARK) == MAX_WATERMARK

    def receive_activity(self, channel: tuple[int, int, int], idle_timeout: int | None) -> None:
        """Idleness is this operator's own to tell."""

    def finish(self, last: bool) -> None:
        self.event_time.finish()
