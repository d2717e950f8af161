"""Windows as values, and which of them the assigners choose."""

from __future__ import annotations

import copy
import pickle
from io import BytesIO
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, Time
from firesteel.datastream.state import ValueState
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
)
from firesteel.errors import ProgramError

NO_TIME = -(2**63)


class Cell(ValueState[Any]):
    content: Any = None

    def value(self) -> Any:
        return self.content

    def update(self, value: Any) -> None:
        self.content = value

    def clear(self) -> None:
        self.content = None


class States:
    """The only part of a runtime context that assigners use."""

    def __init__(self) -> None:
        self.cells: dict[str, Cell] = {}

    def get_state(self, descriptor: Any) -> Cell:
        return self.cells.setdefault(descriptor.name, Cell())


class Context(WindowAssigner.WindowAssignerContext):
    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.states: Any = States()

    def get_current_processing_time(self) -> int:
        return self.now

    def get_runtime_context(self) -> Any:
        return self.states


class Merges(MergingWindowAssigner.MergeCallback[TimeWindow]):
    def __init__(self) -> None:
        self.found: list[tuple[list[TimeWindow], TimeWindow]] = []

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        self.found.append((list(to_be_merged), merge_result))


class Labelled(TimeWindow):
    """A window of a user's, with a field more."""

    def __init__(self, start: int, end: int, label: str) -> None:
        super().__init__(start, end)
        self.label = label


def spans(windows: Any) -> list[tuple[int, int]]:
    return [(window.start, window.end) for window in windows]


class TestWindowsAsValues:
    @pytest.mark.parametrize("window", [TimeWindow(-5, 10), CountWindow(3), GlobalWindow.get()])
    @pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
    def test_they_survive_pickling_and_copying(self, window: Window, dumps: Any) -> None:
        for twin in (pickle.loads(dumps(window)), copy.copy(window), copy.deepcopy(window)):
            assert twin == window
            assert hash(twin) == hash(window)
            assert type(twin) is type(window)

    def test_a_pickle_holds_no_names_of_fields(self) -> None:
        assert b"start" not in pickle.dumps(TimeWindow(1, 2))

    def test_a_subclass_keeps_its_own_fields(self) -> None:
        twin = pickle.loads(pickle.dumps(Labelled(1, 2, "a")))
        assert (twin.start, twin.end, twin.label) == (1, 2, "a")

    @pytest.mark.parametrize("window", [TimeWindow(0, 1), CountWindow(0), GlobalWindow.get()])
    def test_they_have_no_dict(self, window: Window) -> None:
        assert not hasattr(window, "__dict__")

    def test_kinds_differ(self) -> None:
        assert CountWindow(0) != GlobalWindow.get()
        assert TimeWindow(0, 1) != Labelled(0, 1, "a")
        assert TimeWindow(0, 1) != (0, 1)

    def test_order(self) -> None:
        windows = [TimeWindow(5, 6), TimeWindow(0, 9), TimeWindow(0, 3)]
        assert spans(sorted(windows)) == [(0, 3), (0, 9), (5, 6)]
        assert TimeWindow(0, 3) <= TimeWindow(0, 3) < TimeWindow(0, 4)
        assert max(CountWindow(1), CountWindow(7)) == CountWindow(7)
        with pytest.raises(TypeError):
            _ = TimeWindow(0, 1) < CountWindow(0)  # type: ignore[operator]

    def test_last_timestamps(self) -> None:
        assert TimeWindow(0, 10).max_timestamp() == 9
        assert CountWindow(1).max_timestamp() == GlobalWindow.get().max_timestamp() == 2**63 - 1

    @pytest.mark.parametrize(
        ("serializer", "window"),
        [
            (TimeWindowSerializer(), TimeWindow(-(2**62), 2**62)),
            (CountWindowSerializer(), CountWindow(2**40)),
            (GlobalWindowSerializer(), GlobalWindow.get()),
        ],
    )
    def test_serializers_read_what_they_wrote(self, serializer: Any, window: Window) -> None:
        stream = BytesIO()
        serializer.serialize(window, stream)
        serializer.serialize(window, stream)
        stream.seek(0)
        assert [serializer.deserialize(stream), serializer.deserialize(stream)] == [window, window]
        assert stream.read() == b""

    def test_what_programs_call_stays_callable_without_a_serializer(self) -> None:
        class Mine(GlobalWindows):
            get_window_serializer = WindowAssigner.get_window_serializer

        stream = BytesIO()
        Mine().get_window_serializer().serialize(GlobalWindow.get(), stream)
        stream.seek(0)
        assert Mine().get_window_serializer().deserialize(stream) == GlobalWindow.get()


class TestMerging:
    def merged(self, *windows: tuple[int, int]) -> list[tuple[list[tuple[int, int]], tuple[int, int]]]:
        callback = Merges()
        TimeWindow.merge_windows([TimeWindow(*window) for window in windows], callback)
        return [(spans(parts), (result.start, result.end)) for parts, result in callback.found]

    def test_those_that_overlap_or_touch_become_one(self) -> None:
        assert self.merged((5, 10), (0, 5), (20, 30), (11, 12), (25, 27)) == [
            ([(0, 5), (5, 10)], (0, 10)),
            ([(20, 30), (25, 27)], (20, 30)),
        ]

    def test_a_long_one_reaches_those_after_a_short_one(self) -> None:
        assert self.merged((0, 100), (1, 2), (50, 60)) == [([(0, 100), (1, 2), (50, 60)], (0, 100))]

    def test_nothing_to_merge(self) -> None:
        assert self.merged() == self.merged((0, 5)) == self.merged((0, 5), (0, 5)) == self.merged((0, 5), (6, 9)) == []

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 10)), max_size=12))
    def test_as_merging_any_two_until_none_meet(self, sessions: list[tuple[int, int]]) -> None:
        windows = {TimeWindow(start, start + length) for start, length in sessions}
        callback = Merges()
        TimeWindow.merge_windows(windows, callback)
        left = set(windows)
        for parts, result in callback.found:
            left -= set(parts)
            left.add(result)
        expected = set(windows)
        while True:
            pairs = [(a, b) for a in expected for b in expected if a < b and a.intersects(b)]
            if not pairs:
                break
            one, other = pairs[0]
            expected -= {one, other}
            expected.add(one.cover(other))
        assert left == expected


sizes = st.integers(1, 30)
times = st.integers(-200, 200)


class TestAlignedWindows:
    @settings(deadline=None)
    @given(times, sizes, st.data())
    def test_window_starts_as_found_by_counting(self, time: int, size: int, data: st.DataObject) -> None:
        offset = data.draw(st.integers(1 - size, size - 1))
        expected = next(start for start in range(time, time - size, -1) if (start - offset) % size == 0)
        assert TimeWindow.get_window_start_with_offset(time, offset, size) == expected
        windows = TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))
        assert spans(windows.assign_windows("a", time, Context())) == [(expected, expected + size)]
        by_clock = TumblingProcessingTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))
        assert spans(by_clock.assign_windows("a", NO_TIME, Context(time))) == [(expected, expected + size)]

    @settings(deadline=None)
    @given(times, sizes, sizes, st.data())
    def test_sliding_windows_as_found_by_counting(self, time: int, size: int, slide: int, data: st.DataObject) -> None:
        offset = data.draw(st.integers(1 - slide, slide - 1))
        starts = [start for start in range(time, time - size, -1) if (start - offset) % slide == 0]
        expected = [(start, start + size) for start in starts]
        arguments = Time.milliseconds(size), Time.milliseconds(slide), Time.milliseconds(offset)
        windows = SlidingEventTimeWindows.of(*arguments)
        assert spans(windows.assign_windows("a", time, Context())) == expected
        by_clock = SlidingProcessingTimeWindows.of(*arguments)
        assert spans(by_clock.assign_windows("a", NO_TIME, Context(time))) == expected

    def test_lengths_may_be_durations(self) -> None:
        windows = TumblingEventTimeWindows.of(Duration.of_seconds(5), Duration.of_seconds(-1))
        assert (windows.size, windows.offset) == (5000, -1000)

    @pytest.mark.parametrize("kind", [TumblingEventTimeWindows, TumblingProcessingTimeWindows])
    @pytest.mark.parametrize("offset", [5000, -5000, 7000])
    def test_an_offset_as_long_as_the_window_is_refused(self, kind: Any, offset: int) -> None:
        with pytest.raises(ProgramError, match=rf"{kind.__name__} needs .* got size 5000 ms and offset {offset} ms"):
            kind.of(Time.seconds(5), Time.milliseconds(offset))

    @pytest.mark.parametrize("kind", [SlidingEventTimeWindows, SlidingProcessingTimeWindows])
    def test_an_offset_as_long_as_the_slide_is_refused(self, kind: Any) -> None:
        with pytest.raises(ProgramError, match="an offset between -slide and slide"):
            kind.of(Time.seconds(5), Time.seconds(1), Time.seconds(-1))

    @pytest.mark.parametrize("kind", [TumblingEventTimeWindows, TumblingProcessingTimeWindows])
    def test_a_size_must_be_a_length_above_zero(self, kind: Any) -> None:
        with pytest.raises(ProgramError, match=r"of\(size\) must be longer than 0 ms, got 0 ms"):
            kind.of(Time.milliseconds(0))
        with pytest.raises(ProgramError, match=r"of\(size\) takes a Time such as Time.seconds\(5\)"):
            kind.of(5)
        with pytest.raises(ProgramError, match="needs a size above 0"):
            kind(0, 0)


class TestSessions:
    def test_each_element_opens_one(self) -> None:
        fixed = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
        assert spans(fixed.assign_windows("a", -3, Context(99))) == [(-3, 7)]
        by_clock = ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10))
        assert spans(by_clock.assign_windows("a", -3, Context(99))) == [(99, 109)]

    def test_gaps_that_depend_on_the_element(self) -> None:
        class Length(SessionWindowTimeGapExtractor):
            def extract(self, element: Any) -> int:
                return len(element)

        for extractor in (Length(), len):
            dynamic = EventTimeSessionWindows.with_dynamic_gap(extractor)
            assert isinstance(dynamic, DynamicEventTimeSessionWindows)
            assert spans(dynamic.assign_windows("abc", 5, Context())) == [(5, 8)]
            by_clock = ProcessingTimeSessionWindows.with_dynamic_gap(extractor)
            assert isinstance(by_clock, DynamicProcessingTimeSessionWindows)
            assert spans(by_clock.assign_windows("abc", 5, Context(50))) == [(50, 53)]

    def test_a_gap_must_be_above_zero(self) -> None:
        with pytest.raises(ProgramError, match="must be longer than 0 ms, got 0 ms"):
            EventTimeSessionWindows.with_gap(Time.milliseconds(0))
        dynamic = EventTimeSessionWindows.with_dynamic_gap(len)
        with pytest.raises(ProgramError, match="the extractor returned 0 for ''"):
            dynamic.assign_windows("", 5, Context())

    def test_an_extractor_must_be_one(self) -> None:
        with pytest.raises(ProgramError, match="got the class"):
            EventTimeSessionWindows.with_dynamic_gap(SessionWindowTimeGapExtractor)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"SessionWindowTimeGapExtractor or a callable f\(element\), got 5"):
            EventTimeSessionWindows.with_dynamic_gap(5)  # type: ignore[arg-type]

    def test_they_merge(self) -> None:
        callback = Merges()
        windows = [TimeWindow(0, 10), TimeWindow(8, 18)]
        EventTimeSessionWindows.with_gap(Time.milliseconds(10)).merge_windows(windows, callback)
        assert spans([result for _, result in callback.found]) == [(0, 18)]


class TestCounting:
    @settings(deadline=None)
    @given(st.integers(1, 6), st.integers(1, 6))
    def test_sliding_windows_as_found_by_counting(self, size: int, slide: int) -> None:
        assigner, context = CountSlidingWindowAssigner.of(size, slide), Context()
        for number in range(30):
            found = [window.id for window in assigner.assign_windows("a", NO_TIME, context)]
            expected = [i for i in range(number, -1, -1) if i * slide <= number < i * slide + size]
            assert found == expected

    def test_tumbling_windows(self) -> None:
        assigner, context = CountTumblingWindowAssigner.of(2), Context()
        ids = [window.id for _ in range(5) for window in assigner.assign_windows("a", NO_TIME, context)]
        assert ids == [0, 0, 1, 1, 2]

    @pytest.mark.parametrize("size", [0, -1, 2.5, True, "3"])
    def test_a_size_must_be_a_number_above_zero(self, size: Any) -> None:
        with pytest.raises(ProgramError, match="must be an int of at least 1"):
            CountTumblingWindowAssigner.of(size)
        with pytest.raises(ProgramError, match="must be an int of at least 1"):
            CountSlidingWindowAssigner.of(3, size)

    def test_everything_in_one(self) -> None:
        assert GlobalWindows.create().assign_windows("a", NO_TIME, Context()) == [GlobalWindow()]


SECOND = Time.seconds(1)
EVENT_TIME: list[WindowAssigner[Any, Any]] = [
    TumblingEventTimeWindows.of(SECOND),
    SlidingEventTimeWindows.of(SECOND, SECOND),
    EventTimeSessionWindows.with_gap(SECOND),
    EventTimeSessionWindows.with_dynamic_gap(len),
]
PROCESSING_TIME: list[WindowAssigner[Any, Any]] = [
    TumblingProcessingTimeWindows.of(SECOND),
    SlidingProcessingTimeWindows.of(SECOND, SECOND),
    ProcessingTimeSessionWindows.with_gap(SECOND),
    ProcessingTimeSessionWindows.with_dynamic_gap(len),
]
TIMELESS: list[WindowAssigner[Any, Any]] = [
    CountTumblingWindowAssigner.of(3),
    CountSlidingWindowAssigner.of(3, 1),
    GlobalWindows.create(),
]


class TestAllAssigners:
    @pytest.mark.parametrize("assigner", EVENT_TIME, ids=repr)
    def test_a_record_without_timestamp_is_refused(self, assigner: WindowAssigner[Any, Any]) -> None:
        with pytest.raises(ProgramError) as caught:
            assigner.assign_windows("abc", NO_TIME, Context())
        assert repr(assigner) in str(caught.value)
        assert "'abc' has none. Call assign_timestamps_and_watermarks()" in str(caught.value)

    def test_time_and_default_triggers(self) -> None:
        def defaults(assigners: list[WindowAssigner[Any, Any]]) -> set[tuple[bool, type]]:
            return {(a.is_event_time(), type(a.get_default_trigger(None))) for a in assigners}

        assert defaults(EVENT_TIME) == {(True, EventTimeTrigger)}
        assert defaults(PROCESSING_TIME) == {(False, ProcessingTimeTrigger)}
        assert defaults(TIMELESS) == {(False, PurgingTrigger), (False, NeverTrigger)}

    def test_a_full_count_window_is_forgotten(self) -> None:
        trigger = CountTumblingWindowAssigner.of(3).get_default_trigger(None)
        assert isinstance(trigger, PurgingTrigger)
        assert isinstance(trigger.nested_trigger, CountTrigger)

    @pytest.mark.parametrize("assigner", EVENT_TIME + PROCESSING_TIME + TIMELESS, ids=repr)
    def test_they_travel_and_serialize_their_windows(self, assigner: WindowAssigner[Any, Any]) -> None:
        twin = pickle.loads(pickle.dumps(assigner))
        (window,) = twin.assign_windows("abc", 0, Context())
        stream = BytesIO()
        twin.get_window_serializer().serialize(window, stream)
        stream.seek(0)
        assert twin.get_window_serializer().deserialize(stream) == window
        assert repr(twin) == repr(assigner)
