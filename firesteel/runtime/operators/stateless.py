"""map, flat_map, filter and process on streams without keys: a chunk at a time, in C loops where possible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, repeat
from typing import Any

from firesteel.graph.specs import ProcessSpec
from firesteel.runtime.calls import times_of_results
from firesteel.runtime.context import ElementContext, UnkeyedTimerService
from firesteel.runtime.copies import detached
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.results import SUSPICIOUS
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = [
    "FilterOperator",
    "FlatMapCalls",
    "FlatMapOperator",
    "MapOperator",
    "ProcessCalls",
    "ProcessOperator",
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
        value = produced = None
        try:
            for value in values:
                produced = flat_map(value)
                if produced is not None:
                    extend(produced)
                if timed:
                    end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        if produced.__class__ in SUSPICIOUS:
            self.look_at(produced, value)
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
        value = produced = None
        try:
            for value, clock.timestamp in zip(values, timestamps or repeat(MIN_TIMESTAMP), strict=False):
                produced = process(value, context)
                if produced is not None:
                    extend(map(detached, produced) if self.shared else produced)
                end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        if produced.__class__ in SUSPICIOUS:
            self.look_at(produced, value)
        self.out.emit_tagged(results, None if timestamps is None else times_of_results(timestamps, ends))


@handles(ProcessSpec)
class ProcessOperator(ProcessCalls):
    """A ProcessFunction on a stream without keys."""

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.process_element, values, timestamps)
