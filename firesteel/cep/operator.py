"""The operator around the matcher: keys, time, state, output."""

from __future__ import annotations

import heapq
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
_AT_ONCE = 4096
"""How many results of timers wait for each other at most."""
PARTIAL_METRIC = "maxPartialMatchesPerKey"
"""Of the keys that the last micro-batch touched: the one with the most."""


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

    __slots__ = ("changed", "due", "fresh", "runs", "stored_times", "touched", "waiting")

    def __init__(self, runs: Runs, waiting: dict[int, list[Any]]) -> None:
        self.runs = runs
        self.waiting = waiting
        """Events that time has not come to, by their time."""
        self.stored_times = set(waiting)
        self.touched: set[int] = set()
        """Times that got events."""
        self.changed = False
        """Whether the runs differ from what is stored."""
        self.fresh = False
        """Whether there are events that no watermark has seen."""
        self.due: int | None = None
        """When something happens without another event."""


class _Context(PatternProcessFunction.Context):
    def __init__(self, emit: Callable[[OutputTag, Any, int], None]) -> None:
        self.time = self.now = 0
        self._emit = emit

    def timestamp(self) -> int:
        return self.time

    def current_processing_time(self) -> int:
        return self.now

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
        self._fresh: list[tuple[Any, _Key]] = []
        self._agenda: list[tuple[int, int, Any]] = []
        self._appointments = 0
        self._values: list[Any] = []
        self._times: list[int] = []
        self._context = _Context(self._emit_to)
        self._most = 0
        runtime_context.get_metrics_group().gauge(PARTIAL_METRIC, lambda: self._most)
        self._functions = [spec.function, *pattern.functions()]
        for function in self._functions:
            function.open(runtime_context)

    def close(self) -> None:
        for function in self._functions:
            function.close()

    # Events.

    def process(self, records: Records) -> None:
        self._look_at_clock()
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
        keys, fresh = self._keys, self._fresh
        for key, value, time in zip(records.keys or (), records.values, timestamps, strict=True):
            if time <= watermark:
                self._drop_late(value, time)
                continue
            found = keys.get(key)
            if found is None:
                self.context.set_current_key(key)
                found = self._load(key)
            events = found.waiting.get(time)
            if events is None:
                found.waiting[time] = [value]
            else:
                events.append(value)
            found.touched.add(time)
            if not found.fresh:
                found.fresh = True
                fresh.append((key, found))

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
                self._take(key, found, value, now)
            else:
                found.touched.add(now)
                found.waiting.setdefault(now, []).append(value)
                timers.register_processing_time_timer(now + 1)
            self._set_clock(found)

    # Time.

    def _look_at_clock(self) -> None:
        """What conditions and functions see as processing time: the micro-batch's, so that a repeated one gives the
        same."""
        self._matcher.now = self._context.now = self.context.timer_service().current_processing_time()

    def on_watermark(self, watermark: int) -> None:
        self._look_at_clock()
        fresh, self._fresh = self._fresh, []
        for key, found in fresh:
            found.fresh = False
            self._catch_up(key, found, watermark)
        agenda, keys = self._agenda, self._keys
        while agenda and agenda[0][0] <= watermark:
            due, _, key = heapq.heappop(agenda)
            expected = keys.get(key)
            if expected is not None and expected.due == due:
                self._catch_up(key, expected, watermark)
        self._flush()

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        self._look_at_clock()
        key = self.context.get_current_key()
        found = self._keys.get(key) or self._load(key)
        timers = self.context.timer_service()
        if domain is TimeDomain.PROCESSING_TIME:
            self._catch_up(key, found, timers.current_processing_time())
            self._set_clock(found)
            self._flush()
        else:
            self._catch_up(key, found, timers.current_watermark())
            # The watermark comes to all keys, one after the other: what is behind works on many results at once.
            if len(self._values) >= _AT_ONCE:
                self._flush()

    def _catch_up(self, key: Any, found: _Key, time: int) -> None:
        """Works on all events up to a time, then lets it come."""
        waiting = found.waiting
        moments = [one for one in waiting if one <= time]
        if len(moments) > 1:
            moments.sort()
        for moment in moments:
            events = waiting.pop(moment)
            self._advance(found, moment)
            for event in events if self._order is None else sorted(events, key=self._order):
                self._take(key, found, event, moment)
        self._advance(found, time)
        if not self.spec.processing_time:
            self._appoint(key, found)

    def _appoint(self, key: Any, found: _Key) -> None:
        """Notes when something happens to a key without another event."""
        due = self._matcher.deadline(found.runs)
        if found.waiting:
            first = min(found.waiting)
            due = first if due is None else min(first, due)
        if due is not None and due != found.due:
            self._appointments += 1
            heapq.heappush(self._agenda, (due, self._appointments, key))
        found.due = due

    def _set_clock(self, found: _Key) -> None:
        end = self._matcher.deadline(found.runs)
        if end is not None:
            # An event at the very end of a match's time comes first.
            self.context.timer_service().register_processing_time_timer(end + 1)

    def _advance(self, found: _Key, time: int) -> None:
        runs = found.runs
        before = runs.partial
        matches, ended = self._matcher.advance(runs, time)
        if runs.partial is before:
            return
        found.changed = True
        if matches:
            self._emit(matches, time)
        if ended and self._handler is not None:
            for match, end in ended:
                self._context.time = end
                for tag, value in self._handler.process_timed_out_match(match, self._context) or ():
                    self._emit_to(tag, value, end)

    def _take(self, key: Any, found: _Key, event: Any, time: int) -> None:
        runs = found.runs
        before = runs.partial
        matches = self._matcher.process(runs, event, time)
        if runs.partial is before:
            return
        found.changed = True
        limit = self.spec.limit
        if limit is not None and len(runs.partial) - 1 > limit:
            raise TooManyPartialMatchesError(
                f"Key {key!r} has {len(runs.partial) - 1:,} partial matches, more than the {limit:,} that "
                "limit_partial_matches() allows. Give the pattern a shorter within(), or stricter conditions; "
                "followed_by_any() and allow_combinations() multiply them."
            )
        if matches:
            self._emit(matches, time)

    # Output.

    def _emit(self, matches: list[Match], time: int) -> None:
        context, process = self._context, self.spec.function.process_match
        for match in matches:
            context.time = time
            # By this name an error that nobody can go through it is explained: see runtime.results.
            produced: Iterable[Any] | None = process(match, context)
            if produced is not None:
                for result in produced:
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
            self._appoint(key, found)
        return found

    def end_batch(self) -> None:
        # In BATCH mode each key has a watermark of its own, after which no other call comes.
        self._flush()
        timers = self.context.timer_service()
        # What no watermark has seen yet has no appointment.
        for key, found in self._fresh:
            if not self.spec.processing_time:
                self._appoint(key, found)
        self._most = max((len(found.runs.partial.runs) - 1 for found in self._keys.values()), default=self._most)
        for key, found in self._keys.items():
            waiting, stored = found.waiting, found.stored_times
            gone = [time for time in stored if time not in waiting]
            if not (found.changed or gone or waiting or found.due is not None):
                continue
            self.context.set_current_key(key)
            if found.changed:
                if self._matcher.is_idle(found.runs):
                    self._stored.clear()
                else:
                    self._stored.update(to_plain(found.runs))
            for time in gone:
                self._waiting.remove(time)
            for time in found.touched:
                if time in waiting:
                    self._waiting.put(time, waiting[time])
            if found.due is not None:
                timers.register_event_time_timer(found.due)
        self._keys.clear()
        self._agenda.clear()
        self._fresh.clear()
