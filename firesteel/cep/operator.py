"""The operator around the matcher: keys, time, state, output."""

from __future__ import annotations

import heapq
import time as clock
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from firesteel.cep.automaton import compile_pattern
from firesteel.cep.errors import TooManyPartialMatchesError
from firesteel.cep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.cep.matching import Match, Matcher, Runs
from firesteel.cep.pattern import Pattern
from firesteel.cep.stored import from_plain, to_plain
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.time_domain import TimeDomain
from firesteel.errors import ProgramError

__all__ = ["MatchPattern", "PatternOperator"]

LATE_METRIC = "numLateRecordsDropped"


@dataclass(frozen=True)
class MatchPattern:
    """Looks for a pattern among the events of each key."""

    pattern: Pattern
    function: PatternProcessFunction
    processing_time: bool = False
    comparator: Callable[[Any, Any], int] | None = None
    late_tag: OutputTag | None = None
    limit: int | None = None
    """How many partial matches a key may have."""


class _Key:
    """What a key has under way, while a micro-batch is worked on."""

    __slots__ = ("changed", "due", "gone", "runs", "touched", "waiting")

    def __init__(self, runs: Runs, waiting: dict[int, list[Any]]) -> None:
        self.runs = runs
        self.waiting = waiting
        """Events that time has not come to, by their time."""
        self.changed = False
        """Whether the runs differ from what is stored."""
        self.touched: set[int] = set()
        """Times whose waiting events differ from what is stored."""
        self.gone: set[int] = set()
        """Stored times that have passed."""
        self.due: int | None = None


class _Context(PatternProcessFunction.Context):
    def __init__(self, emit: Callable[[OutputTag, Any, int], None]) -> None:
        self.time = 0
        self._emit = emit

    def timestamp(self) -> int:
        return self.time

    def current_processing_time(self) -> int:
        return int(clock.time() * 1000)

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self._emit(output_tag, value, self.time)


@handles(MatchPattern)
class PatternOperator(StreamOperator[MatchPattern]):
    """One matcher for all keys of a subtask; each key has runs of its own.

    Keys that a micro-batch touches are held as objects until its end, and written once then.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        spec = self.spec
        pattern = spec.pattern
        handler = spec.function if isinstance(spec.function, TimedOutPartialMatchHandler) else None
        self._automaton = compile_pattern(pattern)
        self._matcher = Matcher(self._automaton, pattern.skip_strategy, handler is not None)
        self._handler = handler
        self._order = None if spec.comparator is None else cmp_to_key(spec.comparator)
        self._stored = runtime_context.get_state(ValueStateDescriptor("partial matches", Types.PICKLED_BYTE_ARRAY()))
        self._waiting = runtime_context.get_map_state(
            MapStateDescriptor("waiting events", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        )
        self._late = runtime_context.get_metrics_group().counter(LATE_METRIC)
        self._keys: dict[Any, _Key] = {}
        self._agenda: list[tuple[int, int, Any]] = []
        self._appointments = 0
        self._values: list[Any] = []
        self._times: list[int] = []
        self._context = _Context(self._emit_to)
        spec.function.open(runtime_context)

    def close(self) -> None:
        self.spec.function.close()

    # Events.

    def process(self, records: Records) -> None:
        assert records.keys is not None
        if self.spec.processing_time:
            self._process_now(records)
        elif records.timestamps is None:
            raise ProgramError(
                "Patterns in event time need timestamps. Assign them with assign_timestamps_and_watermarks(), or call "
                "in_processing_time()."
            )
        else:
            self._buffer(records, records.timestamps)
        self._flush()

    def _buffer(self, records: Records, timestamps: list[int]) -> None:
        """Events wait until no earlier one can come."""
        watermark = self.context.timer_service().current_watermark()
        keys = self._keys
        for key, value, time in zip(records.keys or (), records.values, timestamps, strict=True):
            if time <= watermark:
                self._drop_late(value, time)
                continue
            found = keys.get(key)
            if found is None:
                self.context.set_current_key(key)
                found = self._load(key)
            found.touched.add(time)
            found.waiting.setdefault(time, []).append(value)
            if found.due is None or time < found.due:
                self._appoint(key, found, time)

    def _drop_late(self, value: Any, time: int) -> None:
        if self.spec.late_tag is not None:
            self.context.emit_to(self.spec.late_tag, [value], [time])
        else:
            self._late.inc()

    def _process_now(self, records: Records) -> None:
        timers = self.context.timer_service()
        for key, value in zip(records.keys or (), records.values, strict=True):
            self.context.set_current_key(key)
            found = self._keys.get(key) or self._load(key)
            now = timers.current_processing_time()
            if self._order is None:
                self._advance(found, now)
                self._take(found, value, now)
            else:
                found.touched.add(now)
                found.waiting.setdefault(now, []).append(value)
                timers.register_processing_time_timer(now + 1)
            self._set_clock(found)

    # Time.

    def on_watermark(self, watermark: int) -> None:
        agenda, keys = self._agenda, self._keys
        while agenda and agenda[0][0] <= watermark:
            due, _, key = heapq.heappop(agenda)
            found = keys.get(key)
            if found is not None and found.due == due:
                self.context.set_current_key(key)
                self._catch_up(key, found, watermark)
        self._flush()

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        key = self.context.get_current_key()
        found = self._keys.get(key) or self._load(key)
        timers = self.context.timer_service()
        if domain is TimeDomain.PROCESSING_TIME:
            self._catch_up(key, found, timers.current_processing_time())
            self._set_clock(found)
        else:
            self._catch_up(key, found, timers.current_watermark())
        self._flush()

    def _catch_up(self, key: Any, found: _Key, time: int) -> None:
        """Works on all events up to a time, then lets it come."""
        waiting = found.waiting
        for moment in sorted(one for one in waiting if one <= time):
            events = waiting.pop(moment)
            found.gone.add(moment)
            self._advance(found, moment)
            for event in events if self._order is None else sorted(events, key=self._order):
                self._take(found, event, moment)
        self._advance(found, time)
        if not self.spec.processing_time:
            found.due = None
            due = self._due(found)
            if due is not None:
                self._appoint(key, found, due)

    def _due(self, found: _Key) -> int | None:
        """When something happens to a key without another event."""
        ends = [*found.waiting]
        end = self._matcher.deadline(found.runs)
        return min([*ends, end] if end is not None else ends, default=None)

    def _appoint(self, key: Any, found: _Key, time: int) -> None:
        found.due = time
        self._appointments += 1
        heapq.heappush(self._agenda, (time, self._appointments, key))

    def _set_clock(self, found: _Key) -> None:
        end = self._matcher.deadline(found.runs)
        if end is not None:
            # An event at the very end of a match's time comes first.
            self.context.timer_service().register_processing_time_timer(end + 1)

    def _advance(self, found: _Key, time: int) -> None:
        runs = found.runs
        if self._matcher.is_idle(runs):
            return
        before = runs.partial.runs
        matches, ended = self._matcher.advance(runs, time)
        if matches or len(runs.partial) != len(before):
            found.changed = True
        if matches:
            self._emit(matches, time)
        if ended and self._handler is not None:
            for match, end in ended:
                self._context.time = end
                for tag, value in self._handler.process_timed_out_match(match, self._context) or ():
                    self._emit_to(tag, value, end)

    def _take(self, found: _Key, event: Any, time: int) -> None:
        runs = found.runs
        was_idle = self._matcher.is_idle(runs)
        matches = self._matcher.process(runs, event, time)
        if not (was_idle and self._matcher.is_idle(runs)):
            found.changed = True
        limit = self.spec.limit
        if limit is not None and len(runs.partial) - 1 > limit:
            raise TooManyPartialMatchesError(
                f"Key {self.context.get_current_key()!r} has {len(runs.partial) - 1:,} partial matches, more than the "
                f"{limit:,} that limit_partial_matches() allows. Give the pattern a shorter within(), or stricter "
                "conditions; followed_by_any() and allow_combinations() multiply them."
            )
        if matches:
            self._emit(matches, time)

    # Output.

    def _emit(self, matches: list[Match], time: int) -> None:
        context, process = self._context, self.spec.function.process_match
        for match in matches:
            context.time = time
            results: Iterable[Any] = process(match, context) or ()
            for result in results:
                self._values.append(result)
                self._times.append(time)

    def _emit_to(self, tag: OutputTag, value: Any, time: int) -> None:
        self.context.emit_to(tag, [value], None if self.spec.processing_time else [time])

    def _flush(self) -> None:
        if self._values:
            self.context.emit(self._values, None if self.spec.processing_time else self._times)
            self._values, self._times = [], []

    # State.

    def _load(self, key: Any) -> _Key:
        """What the current key has stored."""
        stored = self._stored.value()
        runs = self._matcher.initial()
        if stored is not None:
            runs = from_plain(stored, self._automaton, runs)
        found = self._keys[key] = _Key(runs, {time: list(events) for time, events in self._waiting.items()})
        if not self.spec.processing_time:
            due = self._due(found)
            if due is not None:
                self._appoint(key, found, due)
        return found

    def end_batch(self) -> None:
        timers = self.context.timer_service()
        for key, found in self._keys.items():
            self.context.set_current_key(key)
            if found.changed:
                if self._matcher.is_idle(found.runs):
                    self._stored.clear()
                else:
                    self._stored.update(to_plain(found.runs))
            for time in found.gone | found.touched:
                if time in found.waiting:
                    self._waiting.put(time, found.waiting[time])
                elif self._waiting.contains(time):
                    self._waiting.remove(time)
            if found.due is not None:
                timers.register_event_time_timer(found.due)
        self._keys.clear()
        self._agenda.clear()
