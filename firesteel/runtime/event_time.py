"""Event time where it is made: timestamps and watermarks by a strategy, one generator per split of a source.

What has no splits is one split. The slowest split decides, idle ones are left out, and those that are read to their
end leave. What must last to the next batch is in a dict of plain data: in a later stage the store keeps it, and in
stage 0, which has no store, the driver's feedback and the offsets carry it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.errors import ProgramError
from firesteel.runtime.watermarks import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    CuttingAssigner,
    TimestampGenerator,
    UsersGenerator,
)

if TYPE_CHECKING:
    from firesteel.runtime.operators.base import Operator

__all__ = ["EventTime"]

WHOLE = ""
"""The only split of what has none."""


class SplitTime:
    """One split: its generator, how far it is, and since when it has been silent."""

    def __init__(self, strategy: WatermarkStrategy) -> None:
        factory = strategy.generator_factory
        self.generator = TimestampGenerator(strategy)
        self.users = UsersGenerator(factory()) if factory is not None else None
        self._timeout = strategy.idle_timeout_ms
        self._ingestion = strategy.kind == "ingestion"
        self.begin(MIN_TIMESTAMP, None)

    def begin(self, level: int, silent_since: int | None) -> None:
        """A batch starts from what was kept, not from what is in memory: it may be a replay."""
        self.level = level
        self.silent_since = silent_since
        self.seen = False
        self.generator.reset()

    def periodic(self, now: int) -> int | None:
        if self._ingestion:
            # Time passes with or without records.
            return now - 1
        return self.generator.watermark() if self.users is None else self.users.on_periodic_emit()

    def end_batch(self, now: int, paused: bool) -> None:
        """Silence begins with the first batch without records, unless somebody keeps the records back."""
        if self.seen or paused or self._timeout is None:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = now

    def idle(self, now: int) -> bool:
        if self.users is not None and self.users.idle:
            return True
        if self.seen or self._timeout is None or self.silent_since is None:
            return False
        return now - self.silent_since >= self._timeout


class EventTime:
    """What an operator does for a watermark strategy, in one subtask."""

    def __init__(self, operator: Operator, strategy: WatermarkStrategy, interval: int) -> None:
        self._operator = operator
        self._strategy = strategy
        assigner = strategy.timestamp_assigner
        self._extract = assigner.extract_timestamp if assigner is not None else None
        self._ingestion = strategy.kind == "ingestion"
        self._interval = interval
        self._each_record = interval == 1 and strategy.kind != "none"
        self._of_rows = assigner if isinstance(assigner, CuttingAssigner) else None
        self._cutter = self._of_rows if self._each_record else None
        self._splits: dict[str, SplitTime] = {}
        self._current: SplitTime | None = None
        self._named = False
        self._after: Iterable[str] = (WHOLE,)
        self._paused = False
        self._kept: dict[str, Any] = {}

    # A batch

    def begin(
        self, kept: dict[str, Any], splits: tuple[list[str], list[str]] | None = None, paused: bool = False
    ) -> None:
        """``kept`` is what the last batch left. ``splits``: those that have records before the batch ends, and those
        that may have some after it. ``paused``: whether records are kept back, so that silence means nothing."""
        self._kept = kept
        self._paused = paused
        self._named = splits is not None
        self._operator.clock.watermark = kept.get("own", MIN_TIMESTAMP)
        if splits is None:
            before, self._after = [WHOLE], [WHOLE]
            known = {WHOLE: (self._operator.clock.watermark, kept.get("since"))}
        else:
            before, self._after = splits
            known = kept.get("splits", {})
        found = {name: self._splits.get(name) or self._make() for name in dict.fromkeys([*before, *self._after])}
        for name, split in found.items():
            split.begin(*known.get(name, (MIN_TIMESTAMP, None)))
        self._splits = found
        self._current = found.get(WHOLE)

    def _make(self) -> SplitTime:
        try:
            return SplitTime(self._strategy)
        except Exception as error:
            raise self._operator.failure(error) from error

    def switch(self, split: str) -> None:
        """The records that follow are of this split."""
        if split not in self._splits:
            self._splits[split] = self._make()
        self._current = self._splits[split]

    def step(self) -> None:
        """The records of a step of the batch were seen: event time moves as far as they say."""
        # As in Flink, an interval of 0 leaves nothing but the last watermark.
        if self._interval:
            for split in self._splits.values():
                split.level = max(split.level, self._periodic(split))
            self._combine()

    def finish(self) -> None:
        """All records of the batch were seen."""
        operator, now = self._operator, self._operator.clock.processing_time
        for split in self._splits.values():
            if self._interval:
                split.level = max(split.level, self._periodic(split))
            split.end_batch(now, self._paused)
        self._splits = {name: split for name, split in self._splits.items() if name in self._after}
        self._combine()
        idle = all(split.idle(now) for split in self._splits.values()) and operator.clock.watermark < MAX_WATERMARK
        if idle:
            operator.out.idle(operator.node.id, 0)
        self._keep(idle)

    def _keep(self, idle: bool) -> None:
        """Plain data, and none where there is nothing to say."""
        lasting: dict[str, Any] = {"idle": idle or None, "since": None}
        if self._named:
            lasting["splits"] = {name: [split.level, split.silent_since] for name, split in self._splits.items()}
        else:
            lasting["since"] = self._splits[WHOLE].silent_since
        for name, value in lasting.items():
            if value is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = value

    # Records

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        split, out = self._split(), self._operator.out
        split.seen = split.seen or bool(values)
        if self._of_rows is not None:
            self._of_rows.now = self._operator.clock.processing_time
        if self._cutter is not None:
            pieces = self._operator.apply_to_all(self._cutter.cut, values)
            values, timestamps = [piece for each in pieces for piece in each], None
        assigned = self._assign(values, timestamps)
        if split.users is not None:
            self._by_generator(split, split.users, values, assigned)
        elif not self._each_record:
            if assigned is not None:
                split.generator.observe(assigned)
            out.emit(values, assigned)
        else:
            for index, value in enumerate(values):
                time = assigned[index] if assigned is not None else MIN_TIMESTAMP
                out.emit([value], None if assigned is None else [time])
                split.generator.observe([time])
                self._advance(split, self._periodic(split))

    def _split(self) -> SplitTime:
        if self._current is None:
            error = ProgramError("A source with splits must say of which one its records are.")
            raise self._operator.failure(error)
        return self._current

    def _by_generator(
        self, split: SplitTime, generator: UsersGenerator, values: list[Any], assigned: list[int] | None
    ) -> None:
        """Records up to each one after which the generator gave a watermark, then that watermark."""
        begun, out = 0, self._operator.out
        times = assigned if assigned is not None else [MIN_TIMESTAMP] * len(values)
        for index, value in enumerate(values):
            try:
                watermark = generator.on_event(value, times[index])
                if self._each_record:
                    watermark = generator.on_periodic_emit() if watermark is None else watermark
            except Exception as error:
                raise self._operator.failure(error, value) from error
            if watermark is not None:
                out.emit(values[begun : index + 1], None if assigned is None else assigned[begun : index + 1])
                begun = index + 1
                self._advance(split, watermark)
        out.emit(values[begun:], None if assigned is None else assigned[begun:])

    def _assign(self, values: list[Any], timestamps: list[int] | None) -> list[int] | None:
        if self._ingestion:
            return [self._operator.clock.processing_time] * len(values)
        if self._extract is None:
            return timestamps
        before = timestamps if timestamps is not None else [MIN_TIMESTAMP] * len(values)
        assigned = self._operator.apply_to_all(self._extract, values, before)
        if not all(type(time) is int for time in assigned):
            index = next(i for i, time in enumerate(assigned) if type(time) is not int)
            error_ = TypeError(
                f"A timestamp assigner must return an int (milliseconds), it returned {assigned[index]!r}."
            )
            raise self._operator.failure(error_, values[index])
        return assigned

    # Watermarks

    def _periodic(self, split: SplitTime) -> int:
        try:
            watermark = split.periodic(self._operator.clock.processing_time)
        except Exception as error:
            raise self._operator.failure(error) from error
        return MIN_TIMESTAMP if watermark is None else watermark

    def take(self, watermark: int) -> None:
        """A watermark that a source has of its own, for the split that it reads."""
        self._advance(self._split(), watermark)

    def _advance(self, split: SplitTime, watermark: int) -> None:
        if watermark > split.level:
            split.level = watermark
            self._combine()

    def _combine(self) -> None:
        now = self._operator.clock.processing_time
        if len(self._splits) == 1:
            # Nobody else is there to wait or to be waited for.
            lowest = next(iter(self._splits.values())).level
        else:
            lowest = min((s.level for s in self._splits.values() if not s.idle(now)), default=MIN_TIMESTAMP)
        if lowest > self._operator.clock.watermark:
            self._emit(lowest)

    def _emit(self, watermark: int) -> None:
        self._operator.clock.watermark = self._kept["own"] = watermark
        self._operator.out.watermark(self._operator.node.id, watermark)

    def repeat(self) -> None:
        """Whoever is chained to the operator sees event time as it was, and goes on from there."""
        if "own" in self._kept:
            self._emit(self._kept["own"])

    def end(self) -> None:
        """Nothing can follow. Said in every batch after the end, since those who hear it may remember nothing."""
        self._emit(MAX_WATERMARK)
