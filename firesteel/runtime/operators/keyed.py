"""Operators on keyed streams: state under the current key, timers, and one key after the other in BATCH mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from firesteel.datastream.accumulate import Accumulate
from firesteel.datastream.time_domain import TimeDomain
from firesteel.durable.cells import timer_prefix
from firesteel.durable.headers import OperatorHeader
from firesteel.graph.specs import FilterSpec, FlatMapSpec, KeyedProcessSpec, MapSpec, ReduceSpec
from firesteel.runtime.calls import times_of_results
from firesteel.runtime.context import ElementContext, KeyedTimerService
from firesteel.runtime.copies import detached, may_change
from firesteel.runtime.grouping import KeyGroups
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from firesteel.runtime.results import SUSPICIOUS
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = [
    "TIMERS_AT_ONCE",
    "Firing",
    "KeyedCalls",
    "KeyedOperator",
    "KeyedProcessOperator",
    "ReduceOperator",
    "either",
]

TIMERS_AT_ONCE = 4096
"""For so many keys state is read in one go before their timers fire."""


class Firing(NamedTuple):
    """What stands for the element in a failure of on_timer."""

    time: int
    key: Any

    def __repr__(self) -> str:
        return f"timer {self.time} of key {self.key!r}"


class KeyedOperator(Operator):
    """What keyed operators share: bulk reads of the state that a chunk needs, and grouping in BATCH mode."""

    keyed = True
    backend: KeyedStateBackend

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        assert self.backend is not None
        self._groups = KeyGroups() if placement.batch_mode else None

    def process_keyed(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        if self._groups is not None:
            self._groups.add(keys, values, timestamps)
            return
        self.backend.prepare(keys)
        self.run(keys, values, timestamps)

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        """Records whose keys' state is in memory."""
        raise NotImplementedError(type(self).__name__)  # pragma: no cover - every keyed operator overrides it

    def run_group(self, key: Any, values: list[Any], timestamps: list[int] | None) -> None:
        """All records of one key, in BATCH mode."""
        self.backend.prepare([key])
        self.run([key] * len(values), values, timestamps)

    def on_watermark(self, watermark: int) -> None:
        if self._groups is None or watermark != MAX_WATERMARK:
            self.fire_event_timers(watermark)
            return
        self.run_groups(self._groups)

    def run_groups(self, groups: KeyGroups) -> None:
        """One key after the other, in BATCH mode. Each lives through all of event time, as if it were alone."""
        for key, values, timestamps in groups.groups():
            self.clock.watermark = MIN_TIMESTAMP
            self.run_group(key, values, timestamps)
            self.end_group(key)

    def end_group(self, key: Any) -> None:
        """The last record of a key was seen, in BATCH mode."""
        self.clock.watermark = MAX_WATERMARK
        self.fire_last_timers()
        self.backend.forget(key)

    def fire_last_timers(self) -> None:
        """What is left of a key's timers, in BATCH mode."""

    def fire_event_timers(self, watermark: int) -> None:
        """Timers up to the watermark."""

    def fire_processing_timers(self, now: int) -> None:
        """Timers up to the processing time."""

    def prepared(self, queue: TimerQueue, limit: int) -> Iterator[int]:
        """Cuts the timers up to a limit, whose keys come first in what they belong to, into stretches, and reads the
        state of all keys of a stretch in one go before it is given out as the time of its last timer."""
        if not self.backend.lazy:
            yield limit
            return
        for until, places in queue.stretches(limit, TIMERS_AT_ONCE):
            self.backend.prepare([place[0] for place in places])
            yield until

    def on_processing_time(self, now: int) -> None:
        if self._groups is None:
            self.fire_processing_timers(now)


@handles(KeyedProcessSpec)
class KeyedProcessOperator(KeyedOperator):
    """A KeyedProcessFunction: the general keyed operator."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._timers = KeyedTimerService(self.clock, self.backend)
        self._context = ElementContext(self.clock, self._timers, self.backend)

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        uid = self.node.uid
        self._timers.event = TimerQueue(timer_prefix(uid, event_time=True), store, header.event_timers)
        self._timers.processing = TimerQueue(timer_prefix(uid, event_time=False), store, header.processing_timers)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        return chain(super().changes(), self._timers.event.changes(), self._timers.processing.changes())

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.process_element, keys, values, timestamps)

    def call(
        self, process: Callable[..., Any], keys: list[Any], values: list[Any], timestamps: list[int] | None
    ) -> None:
        if timestamps is not None:
            self._call_timed(process, keys, values, timestamps)
            return
        context, backend = self._context, self.backend
        self.clock.timestamp = MIN_TIMESTAMP
        results: list[Any] = []
        extend = results.extend
        value = produced = None
        try:
            for backend.key, value in zip(keys, values, strict=True):
                produced = process(value, context)
                if produced is not None:
                    extend(map(detached, produced) if backend.shared else produced)
        except Exception as error:
            raise self.failure(error, value) from error
        if produced.__class__ in SUSPICIOUS:
            self.look_at(produced, value)
        self.out.emit_tagged(results, None)

    def _call_timed(
        self, process: Callable[..., Any], keys: list[Any], values: list[Any], timestamps: list[int]
    ) -> None:
        context, backend, clock = self._context, self.backend, self.clock
        results: list[Any] = []
        ends: list[int] = []
        extend, end = results.extend, ends.append
        value = produced = None
        try:
            for backend.key, value, clock.timestamp in zip(keys, values, timestamps, strict=True):
                produced = process(value, context)
                if produced is not None:
                    extend(map(detached, produced) if backend.shared else produced)
                end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        if produced.__class__ in SUSPICIOUS:
            self.look_at(produced, value)
        self.out.emit_tagged(results, times_of_results(timestamps, ends))

    def fire_last_timers(self) -> None:
        # As in Flink, timers that these timers set are ignored: a chain of them might never end.
        self._timers.quiet = True
        self.fire_event_timers(MAX_WATERMARK)
        self.fire_processing_timers(MAX_WATERMARK)
        self._timers.quiet = False

    def fire_event_timers(self, watermark: int) -> None:
        self._context.domain = TimeDomain.EVENT_TIME
        self._fire(self._timers.event, watermark, timed=True)

    def fire_processing_timers(self, now: int) -> None:
        self._context.domain = TimeDomain.PROCESSING_TIME
        self._fire(self._timers.processing, now, timed=False)

    def _fire(self, queue: TimerQueue, limit: int, timed: bool) -> None:
        for until, keys in queue.stretches(limit, TIMERS_AT_ONCE):
            self.backend.prepare(keys)
            self._fire_until(queue, until, timed)

    def _fire_until(self, queue: TimerQueue, limit: int, timed: bool) -> None:
        on_timer, context, backend, clock = (
            self.spec.function.on_timer,
            self._context,
            self.backend,
            self.clock,
        )
        results: list[Any] = []
        times: list[int] = []
        for time, key in queue.due(limit):
            # A timer set meanwhile may belong to a key that was not read yet.
            backend.ensure(key)
            backend.key = key
            clock.timestamp = time
            try:
                produced = on_timer(time, context)
                if produced is not None:
                    results.extend(map(detached, produced) if backend.shared else produced)
            except Exception as error:
                raise self.failure(error, Firing(time, key)) from error
            times += [time] * (len(results) - len(times))
        # A timer of processing time says nothing about event time, so its results have none, as in Flink.
        self.out.emit_tagged(results, times if timed else None)

    def next_processing_timer(self) -> int | None:
        return self._timers.processing.next_due()

    def timer_queues(self) -> dict[TimeDomain, TimerQueue]:
        return {TimeDomain.EVENT_TIME: self._timers.event, TimeDomain.PROCESSING_TIME: self._timers.processing}


@handles(ReduceSpec)
class ReduceOperator(KeyedOperator):
    """A running fold per key."""

    STATE = "_reduce"

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._reduce = getattr(self.spec.function, "func", None) or self.spec.function.reduce
        # The sums and extremes of ours change nothing in place.
        ours = isinstance(self.spec.function, Accumulate)
        self.backend.reserve(self.STATE)
        self._copies = not ours and may_change(self.node.output_type)

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        self._table = self.backend.table(self.STATE)

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        reduce, backend, copies = self._reduce, self.backend, self._copies
        get, insert, mark = self._table.live.get, self._table.insert, self._table.mark
        results: list[Any] = []
        value: Any = None
        try:
            for key, value in zip(keys, values, strict=True):
                entry = get(key)
                # A value may be None, so it is kept in a tuple of one.
                if entry is None:
                    insert(key, (value,))
                else:
                    if entry[0] is not None:
                        backend.key = key
                        value = reduce(entry[0][0], value)
                    entry[0] = (value,)
                    if entry[1] >= 0:
                        mark(entry)
                results.append(detached(value) if copies else value)
        except Exception as error:
            raise self.failure(error, value) from error
        self.out.emit(results, timestamps)

    def run_group(self, key: Any, values: list[Any], timestamps: list[int] | None) -> None:
        self.backend.prepare([key])
        self.backend.key = key
        result, value = values[0], values[0]
        try:
            for value in values[1:]:
                result = self._reduce(result, value)
        except Exception as error:
            raise self.failure(error, value) from error
        self.out.emit([result], None if timestamps is None else timestamps[-1:])


class KeyedCalls(KeyedOperator):
    """Calls a function that may use the key's state for each record of a chunk."""

    def call(
        self, function: Callable[[Any], Any], keys: list[Any], values: list[Any], timestamps: list[int] | None
    ) -> None:
        backend, gather = self.backend, self.gather
        results: list[Any] = []
        ends: list[int] = [0]
        end = ends.append
        value: Any = None
        try:
            for backend.key, value in zip(keys, values, strict=True):
                gather(value, function(value), results)
                if backend.shared:
                    results[ends[-1] :] = map(detached, results[ends[-1] :])
                end(len(results))
        except Exception as error:
            raise self.failure(error, value) from error
        self.out.emit(results, None if timestamps is None else times_of_results(timestamps, ends[1:]))

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        """Adds what the function produced for a value to the results."""
        raise NotImplementedError  # pragma: no cover - every operator of this kind overrides it


class _KeyedMap(KeyedCalls):
    """A rich map on a keyed stream."""

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.map, keys, values, timestamps)

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        results.append(produced)


class _KeyedFlatMap(KeyedCalls):
    """A rich flat_map on a keyed stream."""

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.flat_map, keys, values, timestamps)

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        if produced is not None:
            results.extend(produced)


class _KeyedFilter(KeyedCalls):
    """A rich filter on a keyed stream."""

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        self.call(self.spec.function.filter, keys, values, timestamps)

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        if produced:
            results.append(value)


def either(plain: type[Operator], keyed: type[Operator], spec: type[Any]) -> None:
    """Registers the keyed form where the spec is keyed and the plain, faster one elsewhere."""

    def choose(placement: Placement) -> Operator:
        return (keyed if placement.node.spec.stateful else plain)(placement)

    handles(spec)(choose)  # type: ignore[type-var]


either(MapOperator, _KeyedMap, MapSpec)
either(FlatMapOperator, _KeyedFlatMap, FlatMapSpec)
either(FilterOperator, _KeyedFilter, FilterSpec)
