"""Shorter ways for the windows that programs use most: event time, the default trigger, a fold.

They give what :class:`~.windows.WindowOperator` gives, with one dict look-up and one call of the user's per record and
window. Records that are late, or whose window has fired already, take the general way.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from firesteel.graph.specs import WindowSpec
from firesteel.runtime.copies import detached
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.operators.keyed import Firing
from firesteel.runtime.operators.windows import WindowOperator
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.windowing.contents import Aggregated, Reduced
from firesteel.runtime.windowing.folds import Fold
from firesteel.runtime.windowing.sessions import PURGED, Session, holding, near

__all__ = ["AlignedWindowOperator", "SessionWindowOperator"]

Box = list[Any]
"""A list of one: the folded value of a window, changed in place."""


class AlignedWindowOperator(WindowOperator):
    """Tumbling windows, and sliding ones whose size is a multiple of their slide."""

    contents: Reduced | Aggregated

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        assigner = self.spec.assigner
        self._size: int = assigner.size
        self._slide: int = getattr(assigner, "slide", assigner.size)
        self._offset: int = assigner.offset
        self._fold = Fold(self.spec.fold)
        if self._fold.result is None and self._slide < self._size:
            # A function may change what it has folded in place, and the record is in other windows, too.
            self._fold.first = detached
        self._tokens: dict[int, list[tuple[int, int]]] = {}
        """By the start of a slide the windows that a record of it is in, the latest first."""

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        if timestamps is None or min(timestamps) <= MIN_TIMESTAMP:
            # The assigner says what is wrong.
            super().run(keys, values, timestamps)
            return
        size, slide, offset, tokens = self._size, self._slide, self._offset, self._tokens
        starts = [time - (time - offset) % slide for time in timestamps]
        for start in set(starts).difference(tokens):
            tokens[start] = [(s, s + size) for s in range(start, start - size, -slide)]
        if tokens[min(starts)][-1][1] - 1 <= self.clock.watermark:
            super().run(keys, values, timestamps)
            return
        if self.windows.lazy:
            self.windows.prepare({(key, t) for key, start in zip(keys, starts, strict=True) for t in tokens[start]})
        if size == slide:
            self._fold_tumbling(keys, values, starts)
        else:
            self._fold_sliding(keys, values, starts)
        if len(tokens) > 4096:
            tokens.clear()

    def _fold_tumbling(self, keys: list[Any], values: list[Any], starts: list[int]) -> None:
        state, fold = self.contents.state, self._fold
        get, put, mark = state.live.get, state.table.put, state.table.mark
        add, first = fold.add, fold.first
        tokens = {start: self._tokens[start][0] for start in set(starts)}
        value: Any = None
        try:
            for key, value, start in zip(keys, values, starts, strict=True):
                place = (key, tokens[start])
                entry = get(place)
                if entry is None or entry[0] is None:
                    put(place, [first(value)])
                    self._expect(place)
                    continue
                box = entry[0]
                box[0] = add(box[0], value)
                if entry[1] >= 0:
                    mark(entry)
        except Exception as error:
            raise self.failure(error, value) from error

    def _fold_sliding(self, keys: list[Any], values: list[Any], starts: list[int]) -> None:
        state, fold, tokens = self.contents.state, self._fold, self._tokens
        get, put, mark = state.live.get, state.table.put, state.table.mark
        add, first = fold.add, fold.first
        value: Any = None
        try:
            for key, value, start in zip(keys, values, starts, strict=True):
                for token in tokens[start]:
                    place = (key, token)
                    entry = get(place)
                    if entry is None or entry[0] is None:
                        put(place, [first(value)])
                        self._expect(place)
                        continue
                    box = entry[0]
                    box[0] = add(box[0], value)
                    if entry[1] >= 0:
                        mark(entry)
        except Exception as error:
            raise self.failure(error, value) from error

    def _expect(self, place: tuple[Any, tuple[int, int]]) -> None:
        """Timers of a new window: for its result and, where late records may still come, for the end of its life."""
        end = place[1][1] - 1
        self.event.register(end, place)
        if self._lateness and end + self._lateness < MAX_WATERMARK:
            self.event.register(end + self._lateness, place)

    def fire_event_timers(self, watermark: int) -> None:
        if self._lateness or self._clear_function is not None:
            super().fire_event_timers(watermark)
            return
        # A window that fires is over. Nothing that happens then sets a timer.
        table = self.contents.state.table
        for time, places in self.event.take(watermark):
            for start in range(0, len(places), 8192):
                chunk = places[start : start + 8192]
                if self.windows.lazy:
                    self.windows.prepare(chunk)
                    self.backend.prepare([key for key, _ in chunk])
                # One that has fired already was kept for late records by an earlier program.
                boxes = [table.get(place) if place[1][1] == time + 1 else None for place in chunk]
                for place in chunk:
                    table.put(place, None)
                self._fire_boxes(time, chunk, boxes)
                self.flush()

    def _fire_boxes(self, time: int, places: list[Any], boxes: list[Box | None]) -> None:
        result = self._fold.result
        key: Any = None
        try:
            if self.spec.function is None:
                folded = [box[0] for box in boxes if box is not None]
                self.results += folded if result is None else map(result, folded)
                self.times += [time] * len(folded)
                return
            for place, box in zip(places, boxes, strict=True):
                if box is not None:
                    key = self.backend.key = place[0]
                    elements = box if result is None else [result(box[0])]
                    self._collect(key, TimeWindow(*place[1]), place[1], elements)
        except Exception as error:
            raise self.failure(error, Firing(time, key)) from error


class SessionWindowOperator(WindowOperator):
    """Sessions with a fixed gap. A record most often falls into the one session that its key has, and a timer is moved
    when it fires, not when the session's end moves. What is stored is what every operator of sessions stores."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._gap: int = self.spec.assigner.session_gap
        self._fold = Fold(self.spec.fold)

    def run(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        if timestamps is None or min(timestamps) <= MIN_TIMESTAMP:
            # The assigner says what is wrong.
            super().run(keys, values, timestamps)
            return
        table, gap, add, too_late = self._sets, self._gap, self._fold.add, self.clock.watermark - self._gap + 1
        assert table is not None
        if min(timestamps) <= too_late:
            for key, time in zip(keys, timestamps, strict=True):
                if time <= too_late:
                    self.end_outlived(key, (time, time + gap))
        get, mark = table.live.get, table.mark
        value: Any = None
        try:
            for key, value, time in zip(keys, values, timestamps, strict=True):
                entry = get(key)
                sessions = None if entry is None else entry[0]
                if entry is not None and sessions is not None and len(sessions) == 1:
                    session = sessions[0]
                    if session[0] <= time <= session[1] and session[2] is not PURGED:
                        session[2] = add(session[2], value)
                        if time + gap > session[1]:
                            session[1] = time + gap
                        if entry[1] >= 0:
                            mark(entry)
                        continue
                if sessions is None:
                    sessions = []
                self._join(key, sessions, value, time)
                table.put(key, sessions or None)
        except Exception as error:
            raise self.failure(error, value) from error
        self.flush()

    def _join(self, key: Any, sessions: list[Session], value: Any, time: int) -> None:
        """A record that opens a session, or joins several, or reaches back before one."""
        fold, end = self._fold, time + self._gap
        where = near(sessions, time, end)
        if where.start == where.stop:
            if end - 1 <= self.clock.watermark:
                self.too_late(value, time)
                return
            sessions.insert(where.start, [time, end, fold.first(value)])
            self.event.register(end - 1, (key, (time, end)))
            return
        whole, *others = sessions[where]
        # The timers of all of them lead to the whole.
        whole[0], whole[1] = min(whole[0], time), max(sessions[where.stop - 1][1], end)
        del sessions[where.start + 1 : where.stop]
        self.contents.merge((key, whole), [(key, other) for other in others])
        self.contents.add((key, whole), value, time)

    def fire_event_timers(self, watermark: int) -> None:
        assert self._sets is not None
        get, register, lazy = self._sets.live.get, self.event.register, self.backend.lazy
        key: Any = None
        time = watermark
        try:
            for until in self.prepared(self.event, watermark):
                for time, places in self.event.take(until):
                    for place in places:
                        key, (start, end) = place
                        if lazy:
                            self.backend.ensure(key)
                        entry = get(key)
                        sessions = None if entry is None else entry[0]
                        if sessions is None:
                            continue
                        at = 0 if len(sessions) == 1 else holding(sessions, start, end)
                        if at is None or sessions[at][0] > start:
                            continue
                        last = sessions[at][1] - 1
                        if time < last:
                            # Records moved its end meanwhile. Whoever takes the session over knows the timer of a
                            # session's end by its window.
                            register(last, (key, (sessions[at][0], last + 1)))
                        else:
                            self._end_session(time, key, sessions, at)
                    self.flush()
        except Exception as error:
            raise self.failure(error, Firing(time, key)) from error

    def _end_session(self, time: int, key: Any, sessions: list[Session], at: int) -> None:
        assert self._sets is not None
        start, end, folded = sessions.pop(at)
        self._sets.put(key, sessions or None)
        self.backend.key = key
        window, result = TimeWindow(start, end), self._fold.result
        # One that has fired already was kept for late records by an earlier program.
        if time == end - 1 and folded is not PURGED:
            self._collect(key, window, (start, end), [folded if result is None else result(folded)])
        if self._clear_function is not None:
            self._processing.current = window
            self._clear_function(self._processing)


def _choose(placement: Placement) -> Operator:
    """The shortest way that gives the right results."""
    spec = placement.node.spec
    assert isinstance(spec, WindowSpec)
    plain = type(spec.trigger) is EventTimeTrigger and spec.evictor is None and spec.fold is not None
    kind, assigner = type(spec.assigner), spec.assigner
    if plain and kind is TumblingEventTimeWindows:
        return AlignedWindowOperator(placement)
    if plain and kind is SlidingEventTimeWindows and assigner.size % assigner.slide == 0:
        return AlignedWindowOperator(placement)
    if plain and kind is EventTimeSessionWindows and not spec.allowed_lateness:
        return SessionWindowOperator(placement)
    return WindowOperator(placement)


handles(WindowSpec)(_choose)  # type: ignore[type-var]
