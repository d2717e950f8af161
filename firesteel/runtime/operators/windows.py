"""Windows on keyed streams, with Flink's meaning: any assigner, trigger, evictor and function.

For each record: its windows, each window's contents, the trigger's answer, a timer for the end of the window's life.
For each timer: the trigger's answer again, and at the end of a window's life everything it had is removed.
Windows that merge (sessions) do so before a record is added.

The windows that programs use most take shorter ways to the same results: see :mod:`.time_windows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

from firesteel.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.window import MergingWindowAssigner, TriggerResult
from firesteel.durable.cells import timer_prefix
from firesteel.durable.headers import OperatorHeader
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import WindowSpec
from firesteel.runtime.copies import detached
from firesteel.runtime.operators.base import Placement
from firesteel.runtime.operators.keyed import TIMERS_AT_ONCE, Firing, KeyedOperator
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.windowing.contents import STATE, Contents, TimedElements, contents_of
from firesteel.runtime.windowing.contexts import (
    AssignerContext,
    FunctionContext,
    TriggerContext,
    WindowEvictorContext,
)
from firesteel.runtime.windowing.folds import Fold
from firesteel.runtime.windowing.functions import call_of
from firesteel.runtime.windowing.layouts import WindowLayout, convert
from firesteel.runtime.windowing.merging import NOWHERE, MergingWindows
from firesteel.runtime.windowing.namespaces import pack, unpack
from firesteel.runtime.windowing.sessions import SessionContents, SessionSet

__all__ = ["WindowOperator"]

_CONTINUE = TriggerResult.CONTINUE
LATE_METRIC = "numLateRecordsDropped"


class WindowOperator(KeyedOperator):
    """The general case. ``backend`` holds state of keys, ``windows`` that of windows, under (key, token)."""

    timers_of = "window"

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        spec: WindowSpec = self.spec
        self.windows = KeyedStateBackend(f"{self.node.uid}\1w", placement.tables, self.clock)
        self._assigner, self._trigger, self._evictor = spec.assigner, spec.trigger, spec.evictor
        self._event_time = spec.assigner.is_event_time()
        self._merging = isinstance(spec.assigner, MergingWindowAssigner)
        self._lateness = spec.allowed_lateness
        self._layout = WindowLayout.of(spec)
        self.layout = self._layout.name
        self.contents: Contents = (
            SessionContents(spec.fold)
            if self._layout.inline
            else contents_of(self.windows, spec.fold, timed=spec.evictor is not None)
        )
        self.windows.reserve(STATE)
        self.backend.reserve(self._layout.table)
        self._assigning = AssignerContext(self.clock, self.context)
        self._triggering = TriggerContext(self.clock, self.windows, self.context.metrics)
        self._evicting = WindowEvictorContext(self.clock, self.context.metrics)
        self._processing = FunctionContext(self.clock, self.windows, self.backend, self._merging)
        self.call = call_of(spec.function, self._processing)
        has_clear = isinstance(spec.function, ProcessWindowFunction | ProcessAllWindowFunction)
        self._clear_function = spec.function.clear if has_clear else None
        self._late = self.context.metrics.counter(LATE_METRIC) if spec.late_tag is None else None
        self.results: list[Any] = []
        self.times: list[int] = []

    # Batches

    def open(self) -> None:
        try:
            # A fold may be rich, too.
            if self.spec.fold is not None:
                self.spec.fold.open(self.context)
        except Exception as error:
            raise self.failure(error) from error
        super().open()

    def close(self) -> None:
        try:
            if self.spec.fold is not None:
                self.spec.fold.close()
        except Exception as error:
            raise self.failure(error) from error
        super().close()

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        self.windows.begin(store, header.windows, self.store_unchanged)
        uid = self.node.uid
        self.event = TimerQueue(timer_prefix(uid, event_time=True), store, header.event_timers)
        self.processing = TimerQueue(timer_prefix(uid, event_time=False), store, header.processing_timers)
        self._triggering.event, self._triggering.processing = self.event, self.processing
        self._sets = self.backend.table(self._layout.table) if self._merging else None
        if self.found_layout != self.layout:
            convert(self.found_layout, self._layout, self.backend, self.windows, self.event)

    def takes_over(self, saved: str, header: OperatorHeader) -> bool:
        return self._layout.takes_over(saved, header)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        return chain(super().changes(), self.windows.changes(), self.event.changes(), self.processing.changes())

    def state_size(self) -> int:
        return super().state_size() + self.windows.size

    def state_entries(self) -> int:
        return super().state_entries() + self.windows.entries

    def timer_queues(self) -> dict[TimeDomain, TimerQueue]:
        return {TimeDomain.EVENT_TIME: self.event, TimeDomain.PROCESSING_TIME: self.processing}

    def next_processing_timer(self) -> int | None:
        return self.processing.next_due()

    # Records

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        times = timestamps if timestamps is not None else repeat(MIN_TIMESTAMP, len(values))
        assign, context = self._assigner.assign_windows, self._assigning
        value: Any = None
        try:
            if self.windows.lazy:
                # What a chunk needs is read in one go, so windows are assigned before any of it is processed.
                assigned = []
                for self.backend.key, value, time in zip(keys, values, times, strict=True):
                    assigned.append(assign(value, time, context))
                self._prepare(keys, assigned)
                times = timestamps if timestamps is not None else repeat(MIN_TIMESTAMP, len(values))
                for key, value, time, windows in zip(keys, values, times, assigned, strict=True):
                    self._element(key, value, time, windows)
            else:
                for self.backend.key, value, time in zip(keys, values, times, strict=True):
                    self._element(self.backend.key, value, time, assign(value, time, context))
        except Exception as error:
            raise self.failure(error, value) from error
        self.flush()

    def _prepare(self, keys: list[Any], assigned: list[Any]) -> None:
        places = {(key, pack(window)) for key, windows in zip(keys, assigned, strict=True) for window in windows}
        if self._sets is not None:
            places.update([(key, token) for key, new in places for token in self._set(key).touched(new)])
        self.windows.prepare(places)

    def _element(self, key: Any, value: Any, time: int, windows: Iterable[Any]) -> None:
        self.backend.key = key
        if self._sets is not None:
            taken = self._into_merging(key, value, time, windows)
        else:
            taken = False
            for window in windows:
                if not self._gone(window):
                    taken = True
                    token = pack(window)
                    self._into_window(key, window, token, token, value, time)
        if not taken and self._is_late(time):
            self.too_late(value, time)

    def _into_window(self, key: Any, window: Any, token: Any, place: Any, value: Any, time: int) -> None:
        """Adds a record to a window whose contents are under ``place``."""
        self.contents.add((key, place), value, time)
        self.windows.key = (key, token)
        answer = self._trigger.on_element(value, time, window, self._triggering)
        if answer is not _CONTINUE:
            self._act(answer, key, window, token, place)
        # The end of the window's life.
        end = self._end_of_life(window)
        if end != MAX_WATERMARK:
            (self.event if self._event_time else self.processing).register(end, (key, token))

    def _act(self, answer: Any, key: Any, window: Any, token: Any, place: Any) -> None:
        if not isinstance(answer, TriggerResult):
            raise ProgramError(
                f"{self._trigger!r} must answer with a TriggerResult, such as TriggerResult.CONTINUE, it returned "
                f"{short_repr(answer, 60)}."
            )
        if answer.is_fire():
            self._emit(key, window, token, place)
        if answer.is_purge():
            self.contents.clear((key, place))

    def _into_merging(self, key: Any, value: Any, time: int, windows: Iterable[Any]) -> bool:
        assert self._sets is not None
        taken = False
        windows_of_key = self._set(key)
        for window in windows:
            if self._gone(window):
                self.end_outlived(key, pack(window))
            merged = windows_of_key.add(window, lambda *merge: self._on_merge(key, *merge))
            token = pack(merged)
            if self._gone(merged):
                windows_of_key.retire(token)
                continue
            taken = True
            self._into_window(key, merged, token, windows_of_key.place(token), value, time)
        self._keep_set(key, windows_of_key)
        return taken

    def _keep_set(self, key: Any, windows_of_key: MergingWindows | SessionSet) -> None:
        assert self._sets is not None
        self._sets.put(key, windows_of_key.stored or None)

    def _set(self, key: Any) -> MergingWindows | SessionSet:
        """The windows of a key, where windows merge."""
        assert self._sets is not None
        stored = self._sets.get(key)
        if self._layout.sessions:
            return SessionSet(stored or [], self._layout.inline)
        return MergingWindows(self._assigner, stored or {})

    def _on_merge(self, key: Any, result: Any, merged: list[Any], stay: Any, moved: list[Any]) -> None:
        self._check_merge(result)
        triggering = self._triggering
        self.windows.key = (key, pack(result))
        triggering.merged = merged
        self._trigger.on_merge(result, triggering)
        for window in merged:
            token = pack(window)
            self.windows.key = (key, token)
            self._trigger.clear(window, triggering)
            end = self._end_of_life(window)
            if end != MAX_WATERMARK and window != result:
                (self.event if self._event_time else self.processing).delete(end, (key, token))
        self.contents.merge((key, stay), [(key, token) for token in moved])

    def _check_merge(self, result: Any) -> None:
        latest = result.max_timestamp()
        if self._event_time and latest + self._lateness <= self.clock.watermark:
            raise ProgramError(
                f"Merging windows gave {result}, which ends before the watermark {self.clock.watermark}: a window "
                "assigner must not make windows shorter by merging."
            )
        if not self._event_time and latest <= self.clock.processing_time:
            raise ProgramError(
                f"Merging windows gave {result}, which ends before the processing time {self.clock.processing_time}: "
                "a window assigner must not make windows shorter by merging."
            )

    # Lateness

    def _end_of_life(self, window: Any) -> int:
        latest: int = window.max_timestamp()
        return min(latest + self._lateness, MAX_WATERMARK) if self._event_time else latest

    def _gone(self, window: Any) -> bool:
        """Whether a window's life has ended."""
        return self._event_time and self._end_of_life(window) <= self.clock.watermark

    def end_outlived(self, key: Any, token: Any) -> None:
        """Ends the sessions beside a late record's window that are there only because more lateness was allowed when
        they were opened. The record is too late for them."""
        windows_of_key = self._set(key)
        for other in windows_of_key.beside(token):
            if self._gone(unpack(other)):
                self._end(key, unpack(other), other, windows_of_key.place(other))

    def _is_late(self, time: int) -> bool:
        return self._event_time and time + self._lateness <= self.clock.watermark

    def too_late(self, value: Any, time: int) -> None:
        tag = self.spec.late_tag
        if tag is None:
            assert self._late is not None
            self._late.inc()
        else:
            self.results.append((tag, value))
            self.times.append(time)

    # Results

    def _emit(self, key: Any, window: Any, token: Any, place: Any) -> None:
        if self._evictor is not None:
            self._emit_evicting(key, window, token, place)
            return
        elements = self.contents.get((key, place))
        if elements is not None:
            self._collect(key, window, token, elements)

    def _emit_evicting(self, key: Any, window: Any, token: Any, place: Any) -> None:
        assert isinstance(self.contents, TimedElements)
        elements = self.contents.timed((key, place))
        if not elements:
            return
        self._evictor.evict_before(elements, len(elements), window, self._evicting)
        values = [one.value for one in elements]
        if self.spec.fold is not None:
            values = self._folded(values)
        if values or self.spec.function is not None:
            self._collect(key, window, token, values)
        self._evictor.evict_after(elements, len(elements), window, self._evicting)
        self.contents.keep((key, place), elements)

    def _folded(self, values: list[Any]) -> list[Any]:
        """What an evictor left, folded at last: before, it might still have been taken out."""
        return [Fold(self.spec.fold).all(values)] if values else []

    def _collect(self, key: Any, window: Any, token: Any, elements: list[Any]) -> None:
        self._processing.current = window
        self.windows.key = (key, token)
        produced = self.call(key, window, elements)
        if produced is not None:
            before = len(self.results)
            self.results.extend(map(detached, produced))
            self.times += [window.max_timestamp()] * (len(self.results) - before)

    def flush(self) -> None:
        """Sends what came together, in the order it was produced."""
        if self.results:
            results, self.results = self.results, []
            times, self.times = self.times, []
            self.out.emit_tagged(results, times)

    # Timers

    def fire_event_timers(self, watermark: int) -> None:
        self._fire(self.event, watermark, event=True)

    def fire_processing_timers(self, now: int) -> None:
        self._fire(self.processing, now, event=False)

    def fire_last_timers(self) -> None:
        # As in Flink, timers that these timers set are ignored: a chain of them might never end.
        self._triggering.quiet = True
        self.fire_event_timers(MAX_WATERMARK)
        self.fire_processing_timers(MAX_WATERMARK)
        self._triggering.quiet = False

    def end_group(self, key: Any) -> None:
        super().end_group(key)
        # All of it was this key's, in BATCH mode.
        self.windows.forget_all()

    def _fire(self, queue: TimerQueue, limit: int, event: bool) -> None:
        for until, places in queue.stretches(limit, TIMERS_AT_ONCE):
            if self.windows.lazy:
                self.backend.prepare([key for key, _ in places])
                self._prepare_places(places)
            for time, (key, token) in queue.due(until):
                if self.windows.lazy:
                    self.backend.ensure(key)
                    self._prepare_one(key, token)
                try:
                    self._on_timer(time, key, token, event)
                except Exception as error:
                    raise self.failure(error, Firing(time, key)) from error
            self.flush()

    def _prepare_places(self, places: list[Any]) -> None:
        self.windows.prepare({*places, *chain.from_iterable(self._place_of(key, token) for key, token in places)})

    def _prepare_one(self, key: Any, token: Any) -> None:
        for place in ((key, token), *self._place_of(key, token)):
            self.windows.ensure(place)

    def _place_of(self, key: Any, token: Any) -> list[Any]:
        """Where the contents of a window are, unless that is under its own token, or in the set of its key."""
        if self._sets is None or self._layout.inline:
            return []
        place = self._set(key).place(token)
        return [] if place is NOWHERE else [(key, place)]

    def _on_timer(self, time: int, key: Any, token: Any, event: bool) -> None:
        window = unpack(token)
        place = token
        windows_of_key = None
        if self._sets is not None:
            windows_of_key = self._set(key)
            place = windows_of_key.place(token)
            if place is NOWHERE:
                if event and self._may_be_taken_over(time, window):
                    self._hand_on(time, key, windows_of_key.successor(token))
                return
        self.backend.key = key
        self.windows.key = (key, token)
        trigger = self._trigger.on_event_time if event else self._trigger.on_processing_time
        answer = trigger(time, window, self._triggering)
        if answer is not _CONTINUE:
            self._act(answer, key, window, token, place)
            if windows_of_key is not None:
                self._keep_set(key, windows_of_key)
        if event is self._event_time:
            self._end_if_over(time, key, window, token, place)

    def _may_be_taken_over(self, time: int, window: Any) -> bool:
        """Whether a timer of a window that is part of another one now may be what sessions on the short way left: they
        move the timer of their end only when it fires. Any other such timer is ignored, as in Flink."""
        taken_over: bool = self._layout.inline and self._event_time and time == window.max_timestamp()
        return taken_over

    def _hand_on(self, time: int, key: Any, token: Any) -> None:
        """The end of a session that has become part of another one. If that one was made on the short way, it has no
        timer of its own yet. Otherwise it has one for the end of its life, and this timer was the trigger's."""
        if token is None or token[1] - 1 < time or self.event.holds(self._end_of_life(unpack(token)), (key, token)):
            return
        self.event.register(token[1] - 1, (key, token))

    def _end_if_over(self, time: int, key: Any, window: Any, token: Any, place: Any) -> None:
        end = self._end_of_life(window)
        if time == end:
            self._end(key, window, token, place)
        elif time < end:
            # With another allowed lateness than the one it was opened with, a window has no timer for its end yet …
            if end != MAX_WATERMARK:
                (self.event if self._event_time else self.processing).register(end, (key, token))
        elif self._sets is not None or self.contents.get((key, place)) is not None:
            # … or has outlived it.
            self._end(key, window, token, place)

    def _end(self, key: Any, window: Any, token: Any, place: Any) -> None:
        """Removes everything a window had."""
        self.contents.clear((key, place))
        self.windows.key = (key, token)
        self._trigger.clear(window, self._triggering)
        if self._clear_function is not None:
            self._processing.current = window
            self._clear_function(self._processing)
        if self._sets is not None:
            windows_of_key = self._set(key)
            windows_of_key.retire(token)
            self._keep_set(key, windows_of_key)
