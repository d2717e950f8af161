"""Event time inside a task: channels, the minimum over them, and the generators at their start.

A *channel* is (edge, upstream subtask, origin). The origin is the operator that made the watermark. Behind a source
nothing keeps state yet, so operators of stage 0 do not combine watermarks: each travels under its origin's name, and
the first stage with state keeps one watermark per channel and takes the minimum. From there on an operator is the
origin of its own watermark.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
    expect_generator,
)
from firesteel.durable.headers import ValveHeader

__all__ = [
    "MAX_WATERMARK",
    "MIN_TIMESTAMP",
    "CuttingAssigner",
    "TimestampGenerator",
    "UsersGenerator",
    "WatermarkValve",
]

MIN_TIMESTAMP = -(1 << 63)
MAX_WATERMARK = (1 << 63) - 1

Channel = tuple[int, int, int]


class WatermarkValve:
    """The watermarks of an operator's input channels; the slowest decides, idle ones are left out.

    >>> valve = WatermarkValve([(0, 0, 1), (0, 1, 1)], ValveHeader())
    >>> valve.advance((0, 0, 1), 100), valve.advance((0, 1, 1), 70), valve.advance((0, 0, 1), 90)
    (None, 70, None)
    """

    def __init__(self, channels: Iterable[Channel], kept: ValveHeader) -> None:
        self._kept = kept
        if kept.watermark is None:
            kept.watermark = MIN_TIMESTAMP
        self.watermark, self._levels, self._idle = kept.watermark, kept.levels, kept.idle
        """Channels without records lately: since when, and after how long they count as idle."""
        for channel in channels:
            self._levels.setdefault(channel, MIN_TIMESTAMP)
        # An operator of the same task says in every batch that it is idle; others tell by their marks.
        for channel in [channel for channel in self._idle if channel[0] < 0]:
            del self._idle[channel]

    def advance(self, channel: Channel, watermark: int | None) -> int | None:
        """A channel's new watermark. Returns the operator's, if it moved."""
        if watermark is not None and watermark > self._levels[channel]:
            self._levels[channel] = watermark
        return self._combine()

    def advance_all(self, levels: Iterable[tuple[Channel, int]], now: int) -> int | None:
        """New watermarks of several channels at once: the operator's moves once. Channels that were idle when the last
        batch ended are left out, unless they have had records since (see ``wake``)."""
        for channel, watermark in levels:
            if watermark > self._levels[channel]:
                self._levels[channel] = watermark
        return self._combine(now)

    def wake(self, edge: int, upstream: int) -> None:
        """Records have come through a channel, so it is not idle."""
        if self._idle:
            for channel in [one for one in self._idle if one[0] == edge and one[1] == upstream]:
                del self._idle[channel]

    def activity(self, channel: Channel, idle_timeout: int | None, now: int) -> int | None:
        """Whether records came through a channel in this batch (``idle_timeout`` None) or not."""
        if idle_timeout is None:
            self._idle.pop(channel, None)
        else:
            self._idle.setdefault(channel, (now, idle_timeout))
        return self._combine(now)

    def idle(self, now: int) -> bool:
        """Whether all channels are idle, so that the operator's own output is."""
        return len(self._idle) == len(self._levels) and all(self._is_idle(c, now) for c in self._levels)

    def _is_idle(self, channel: Channel, now: int) -> bool:
        since = self._idle.get(channel)
        return since is not None and now - since[0] >= since[1]

    def _combine(self, now: int | None = None) -> int | None:
        levels = self._levels
        if now is not None and self._idle:
            active = [level for channel, level in levels.items() if not self._is_idle(channel, now)]
        else:
            active = list(levels.values())
        # As in Flink: once all are idle nothing can be late, so the furthest decides.
        lowest = min(active) if active else max(levels.values(), default=MIN_TIMESTAMP)
        if lowest <= self.watermark:
            return None
        self.watermark = self._kept.watermark = lowest
        return lowest


class CuttingAssigner(TimestampAssigner):
    """Timestamps of elements that hold many rows. Where a watermark is asked for after every record, it is to follow
    every row, so such elements are cut."""

    now = 0
    """The processing time of the micro-batch, in milliseconds."""

    @abstractmethod
    def cut(self, value: Any) -> list[Any]:
        """The element in pieces: each ends with a row that moves event time on."""


class TimestampGenerator:
    """Timestamps and the watermark of one subtask, from a strategy.

    >>> from firesteel.common.time import Duration
    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    >>> generator = TimestampGenerator(strategy)
    >>> generator.observe([100, 40])
    >>> generator.watermark()
    89
    """

    def __init__(self, strategy: WatermarkStrategy) -> None:
        self._delay = strategy.max_out_of_orderness_ms if strategy.kind == "bounded" else 0
        self._emits = strategy.kind != "none"
        self._highest = MIN_TIMESTAMP

    def observe(self, timestamps: list[int]) -> None:
        if timestamps:
            highest = max(timestamps)
            self._highest = max(self._highest, highest)

    def watermark(self) -> int | None:
        """One below the smallest timestamp that may still come, or None before the first record."""
        if not self._emits or self._highest == MIN_TIMESTAMP:
            return None
        return max(self._highest - self._delay - 1, MIN_TIMESTAMP)

    def reset(self) -> None:
        """Forgets the batch: its watermark is kept by whoever received it."""
        self._highest = MIN_TIMESTAMP


class UsersGenerator(WatermarkOutput):
    """A user's generator, asked in turn for what it emits."""

    def __init__(self, generator: WatermarkGenerator) -> None:
        expect_generator(generator)
        self._generator = generator
        self._emitted: int | None = None
        self.idle = False

    def on_event(self, event: Any, timestamp: int) -> int | None:
        """The watermark that an element gave rise to, or None."""
        self.idle = False
        self._generator.on_event(event, timestamp, self)
        return self._taken()

    def on_periodic_emit(self) -> int | None:
        self._generator.on_periodic_emit(self)
        return self._taken()

    def _taken(self) -> int | None:
        emitted, self._emitted = self._emitted, None
        return emitted

    def emit_watermark(self, timestamp: int) -> None:
        timestamp = int(timestamp)
        self._emitted = timestamp if self._emitted is None else max(self._emitted, timestamp)

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False
