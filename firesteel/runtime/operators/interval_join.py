"""The interval join: pairs of records of one key whose times lie within bounds of each other.

Each side keeps its records in buckets of time, a map state each, so that a record looks only where partners can be. A
bucket goes when the watermark says that nothing can find it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.state import MapStateDescriptor
from firesteel.durable.cells import timer_prefix
from firesteel.durable.headers import OperatorHeader
from firesteel.errors import ProgramError
from firesteel.graph.specs import IntervalJoinSpec
from firesteel.runtime.copies import detached
from firesteel.runtime.operators.base import Placement, handles
from firesteel.runtime.operators.connected import KeyedTwoInputs
from firesteel.runtime.operators.keyed import Firing
from firesteel.runtime.operators.windows import LATE_METRIC
from firesteel.runtime.state.backend import NO_KEY
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = ["IntervalJoinOperator"]

_FAMILY = "interval-join"
_BUCKETS_IN_RANGE = 8
"""About how many buckets a record looks into."""


class _Context(ProcessJoinFunction.Context):
    left = right = 0

    def get_left_timestamp(self) -> int:
        return self.left

    def get_right_timestamp(self) -> int:
        return self.right

    def get_timestamp(self) -> int:
        return max(self.left, self.right)


class _Side:
    """What one side keeps, and how it finds its partners on the other one."""

    def __init__(self, operator: IntervalJoinOperator, name: str, lower: int, upper: int) -> None:
        self.name = f"interval-join-{name}"
        pickled = Types.PICKLED_BYTE_ARRAY()
        self.buckets = operator.backend.state(MapStateDescriptor(self.name, Types.LONG(), pickled))
        self.lower, self.upper = lower, upper
        """Where partners are, from this side's record on."""
        self.useful = max(upper, 0)
        """For how long after its time a record can still find, or be found by, a partner."""


@handles(IntervalJoinSpec)
class IntervalJoinOperator(KeyedTwoInputs):
    timers_of = "place"

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        spec: IntervalJoinSpec = self.spec
        self._left = _Side(self, "left", spec.lower, spec.upper)
        self._right = _Side(self, "right", -spec.upper, -spec.lower)
        # How wide buckets are and how long they stay follows from the bounds.
        self.layout = f"{_FAMILY} from {spec.lower} to {spec.upper}"
        self._width = max(1, (spec.upper - spec.lower) // _BUCKETS_IN_RANGE)
        self.backend.reserve(self._left.name, self._right.name)
        self._context = _Context()
        self._late = self.context.metrics.counter(LATE_METRIC)
        self._results: list[Any] = []
        self._times: list[int] = []

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        self._timers = TimerQueue(timer_prefix(self.node.uid, event_time=True), store, header.event_timers)
        if self.found_layout != self.layout:
            self._convert()

    def takes_over(self, saved: str, header: OperatorHeader) -> bool:
        return saved.startswith(_FAMILY)

    def _convert(self) -> None:
        """Puts records that were kept for other bounds (or for ones that were not known yet) into the buckets of these,
        once."""
        for _ in self._timers.take(MAX_WATERMARK):
            pass
        backend = self.backend
        for side in (self._left, self._right):
            for keys in side.buckets.table.every_key():
                backend.prepare(keys)
                for backend.key in keys:
                    records = [record for _, bucket in side.buckets.items() for record in bucket]
                    side.buckets.clear()
                    for time, value in records:
                        self._put(side, value, time)
        backend.key = NO_KEY

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        return chain(super().changes(), self._timers.changes())

    def method(self, ordinal: int) -> Callable[..., Any]:
        return self._from_left if ordinal == 0 else self._from_right

    def call(
        self, method: Callable[..., Any], keys: list[Any], values: list[Any], timestamps: list[int] | None
    ) -> None:
        value: Any = None
        try:
            if timestamps is None:
                raise ProgramError(
                    "An interval join needs timestamps on both streams. Call assign_timestamps_and_watermarks() first."
                )
            for self.backend.key, value, time in zip(keys, values, timestamps, strict=True):
                method(value, time)
        except Exception as error:
            raise self.failure(error, value) from error
        self._flush()

    def _from_left(self, value: Any, time: int) -> None:
        if self._keep(self._left, value, time, self.spec.left_late_tag):
            for other_time, other in self._partners(self._left, self._right, time):
                self._pair(value, other, time, other_time)

    def _from_right(self, value: Any, time: int) -> None:
        if self._keep(self._right, value, time, self.spec.right_late_tag):
            for other_time, other in self._partners(self._right, self._left, time):
                self._pair(other, value, other_time, time)

    def _keep(self, side: _Side, value: Any, time: int, late_tag: Any) -> bool:
        """Keeps a record for partners to come. Returns whether it came in time."""
        if self.clock.watermark not in (MIN_TIMESTAMP, MAX_WATERMARK) and time < self.clock.watermark:
            if late_tag is None:
                self._late.inc()
            else:
                self._results.append((late_tag, value))
                self._times.append(time)
            return False
        self._put(side, value, time)
        return True

    def _put(self, side: _Side, value: Any, time: int) -> None:
        bucket = time // self._width
        kept = side.buckets.get(bucket)
        if kept is None:
            kept = []
            last = (bucket + 1) * self._width - 1
            self._timers.register(last + side.useful, (self.backend.key, side is self._left, bucket))
        kept.append((time, value))
        side.buckets.put(bucket, kept)

    def _partners(self, side: _Side, other: _Side, time: int) -> list[tuple[int, Any]]:
        # Buckets go as a whole; a record in one of them that is of no use any longer must not be found either.
        low, high = max(time + side.lower, self.clock.watermark - other.useful + 1), time + side.upper
        buckets = range(low // self._width, high // self._width + 1)
        return [
            (there, value)
            for bucket in buckets
            for there, value in other.buckets.get(bucket) or ()
            if low <= there <= high
        ]

    def _pair(self, left: Any, right: Any, left_time: int, right_time: int) -> None:
        context = self._context
        context.left, context.right = left_time, right_time
        produced = self.spec.function.process_element(left, right, context)
        if produced is not None:
            before = len(self._results)
            self._results.extend(map(detached, produced))
            self._times += [max(left_time, right_time)] * (len(self._results) - before)

    def _flush(self) -> None:
        if self._results:
            results, self._results = self._results, []
            times, self._times = self._times, []
            self.out.emit_tagged(results, times)

    def fire_event_timers(self, watermark: int) -> None:
        # Nothing that happens here sets a timer.
        for until in self.prepared(self._timers, watermark):
            for time, places in self._timers.take(until):
                for key, is_left, bucket in places:
                    self.backend.key = key
                    try:
                        (self._left if is_left else self._right).buckets.remove(bucket)
                    except Exception as error:
                        raise self.failure(error, Firing(time, key)) from error

    def fire_last_timers(self) -> None:
        self.fire_event_timers(MAX_WATERMARK)
