"""map, flat_map, filter and process on streams without keys: a chunk at a time, in C loops where possible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, repeat
from typing import Any

from firesteel.graph.specs import ProcessSpec, TimestampsSpec
from firesteel.runtime.calls import times_of_results
from firesteel.runtime.context import ElementContext, UnkeyedTimerService
from firesteel.runtime.copies import detached
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP, TimestampGenerator, UsersGenerator

__all__ = [
    "FilterOperator",
    "FlatMapCalls",
    "FlatMapOperator",
    "MapOperator",
    "ProcessCalls",
    "ProcessOperator",
    "TimestampsOperator",
]


class MapOperator(Operator):
    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._map = getattr(self.spec.function, "func", None) or self.spec.function.map

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.out.emit(self.apply_to_all(self._map, values), timestamps)


class FlatMapCalls(Operator):
    """Calls a flat map for each value of a chunk."""

    def call(self, flat_map: Callable[[Any], Any], values: list[Any], timestamps: list[int] | None) -> None:
        results: list[Any] = []
        ends: list[int] = []
        extend, end, timed = results.extend, ends.append, timestamps is not None
        value: Any = None
        try:
            for value in values:
                produced = flat_map(value)
                if produced is not None:
                    extend(produced)
                if timed:
                    end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        self.out.emit(results, None if timestamps is None else times_of_results(timestamps, ends))


class FlatMapOperator(FlatMapCalls):
    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._flat_map = getattr(self.spec.function, "func", None) or self.spec.function.flat_map

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self._flat_map, values, timestamps)


class FilterOperator(Operator):
    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._filter = getattr(self.spec.function, "func", None) or self.spec.function.filter

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        if timestamps is not None:
            chosen = self.apply_to_all(self._filter, values)
            self.out.emit(list(compress(values, chosen)), list(compress(timestamps, chosen)))
            return
        keep, source = self._filter, iter(values)
        try:
            kept = [value for value in source if keep(value)]
        except Exception as error:
            taken = len(values) - source.__length_hint__()  # type: ignore[attr-defined]
            raise self.failure(error, values[taken - 1]) from error
        self.out.emit(kept, None)


class ProcessCalls(Operator):
    """Calls a process function without keys for each value of a chunk: time may be read, timers may not be set."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._context = ElementContext(self.clock, UnkeyedTimerService(self.clock), None)
        self.shared = False
        """Whether results may be objects that a state holds."""

    def call(self, process: Callable[..., Any], values: list[Any], timestamps: list[int] | None) -> None:
        context, clock = self._context, self.clock
        results: list[Any] = []
        ends: list[int] = []
        extend, end = results.extend, ends.append
        value: Any = None
        try:
            for value, clock.timestamp in zip(values, timestamps or repeat(MIN_TIMESTAMP), strict=False):
                produced = process(value, context)
                if produced is not None:
                    extend(map(detached, produced) if self.shared else produced)
                end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        self.out.emit_tagged(results, None if timestamps is None else times_of_results(timestamps, ends))


@handles(ProcessSpec)
class ProcessOperator(ProcessCalls):
    """A ProcessFunction on a stream without keys."""

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.process_element, values, timestamps)


@handles(TimestampsSpec)
class TimestampsOperator(Operator):
    """Assigns timestamps; its watermark goes out at the end of the batch, or after every record if asked to.

    A watermark from upstream does not pass (as in Flink), except the last one.
    """

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        strategy = self.spec.strategy
        assigner = strategy.timestamp_assigner
        self._extract = assigner.extract_timestamp if assigner is not None else None
        self._generator = TimestampGenerator(strategy)
        self._users_generator: UsersGenerator | None = None
        self._idle_timeout = strategy.idle_timeout_ms
        self._each_record = self.spec.interval == 1 and strategy.kind != "none"
        self._seen = 0
        self._kept: dict[str, Any] = {}

    def open(self) -> None:
        super().open()
        factory = self.spec.strategy.generator_factory
        if factory is None:
            return
        try:
            self._users_generator = UsersGenerator(factory())
        except Exception as error:
            raise self.failure(error) from error

    def begin(self, store: Any, header: dict[str, Any], now: int) -> None:
        super().begin(store, header, now)
        self._kept = header
        self.clock.watermark = header.get("own", MIN_TIMESTAMP)
        self._seen = 0
        self._generator.reset()

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._seen += len(values)
        assigned = self._assign(values, timestamps)
        if self._users_generator is not None:
            self._process_by_generator(self._users_generator, values, assigned)
            return
        if not self._each_record:
            if assigned is not None:
                self._generator.observe(assigned)
            self.out.emit(values, assigned)
            return
        for index, value in enumerate(values):
            time = assigned[index] if assigned is not None else MIN_TIMESTAMP
            self.out.emit([value], None if assigned is None else [time])
            self._generator.observe([time])
            self._emit_watermark()

    def _process_by_generator(self, generator: UsersGenerator, values: list[Any], assigned: list[int] | None) -> None:
        """Records up to each one after which the generator gave a watermark, then that watermark."""
        begun = 0
        times = assigned if assigned is not None else [MIN_TIMESTAMP] * len(values)
        for index, value in enumerate(values):
            try:
                watermark = generator.on_event(value, times[index])
                if self._each_record:
                    watermark = generator.on_periodic_emit() if watermark is None else watermark
            except Exception as error:
                raise self.failure(error, value) from error
            if watermark is not None:
                self.out.emit(values[begun : index + 1], None if assigned is None else assigned[begun : index + 1])
                begun = index + 1
                self._advance(watermark)
        self.out.emit(values[begun:], None if assigned is None else assigned[begun:])

    def _assign(self, values: list[Any], timestamps: list[int] | None) -> list[int] | None:
        if self._extract is None:
            return timestamps
        before = timestamps if timestamps is not None else [MIN_TIMESTAMP] * len(values)
        assigned = self.apply_to_all(self._extract, values, before)
        if not all(type(time) is int for time in assigned):
            index = next(i for i, time in enumerate(assigned) if type(time) is not int)
            error_ = TypeError(
                f"A timestamp assigner must return an int (milliseconds), it returned {assigned[index]!r}."
            )
            raise self.failure(error_, values[index])
        return assigned

    def _emit_watermark(self) -> None:
        try:
            users = self._users_generator
            watermark = self._generator.watermark() if users is None else users.on_periodic_emit()
        except Exception as error:
            raise self.failure(error) from error
        if watermark is not None:
            self._advance(watermark)

    def _advance(self, watermark: int) -> None:
        if watermark > self.clock.watermark:
            self.clock.watermark = self._kept["own"] = watermark
            self.out.watermark(self.node.id, watermark)

    def receive_watermark(self, channel: tuple[int, int, int], value: int | None) -> None:
        if value == MAX_WATERMARK and self._inputs_ended(channel):
            self._advance(MAX_WATERMARK)

    def _inputs_ended(self, channel: tuple[int, int, int]) -> bool:
        if self.valve is None:
            # A source that has ended says so in every batch, so all of them are heard in the last one.
            self.origin_levels[channel[2]] = MAX_WATERMARK
            return self.placement.origins <= self.origin_levels.keys()
        return self.valve.advance(channel, MAX_WATERMARK) == MAX_WATERMARK

    def receive_activity(self, channel: tuple[int, int, int], idle_timeout: int | None) -> None:
        """Idleness is this operator's own to tell."""

    def finish(self, last: bool) -> None:
        if self.spec.interval:
            # As in Flink, an interval of 0 leaves nothing but the last watermark.
            self._emit_watermark()
        if self._idle_timeout is not None and not self._seen:
            self.out.idle(self.node.id, self._idle_timeout)
        elif self._users_generator is not None and self._users_generator.idle:
            self.out.idle(self.node.id, 0)
