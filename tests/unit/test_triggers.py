"""Triggers, one call at a time, against a context that writes down what they ask for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from firesteel.common import Time, Types
from firesteel.datastream.state import ReducingState, ReducingStateDescriptor, State, ValueState
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaFunction,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
)
from firesteel.errors import ProgramError
from firesteel.metrics import MetricGroup

CONTINUE, FIRE, PURGE = TriggerResult.CONTINUE, TriggerResult.FIRE, TriggerResult.PURGE
FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE
WINDOW = TimeWindow(0, 100)
OTHER = TimeWindow(60, 160)
BOTH = TimeWindow(0, 160)


class Folded(ReducingState[Any]):
    def __init__(self, descriptor: ReducingStateDescriptor) -> None:
        self.fold = descriptor.get_reduce_function()
        self.content: Any = None

    def get(self) -> Any:
        return self.content

    def add(self, value: Any) -> None:
        self.content = value if self.content is None else self.fold.reduce(self.content, value)

    def clear(self) -> None:
        self.content = None


class Cell(ValueState[Any]):
    content: Any = None

    def value(self) -> Any:
        return self.content

    def update(self, value: Any) -> None:
        self.content = value

    def clear(self) -> None:
        self.content = None


class Harness(Trigger.OnMergeContext):
    """A trigger with its states and timers, by window."""

    def __init__(self, trigger: Trigger[Any, Any], watermark: int = -(2**63), now: int = 0) -> None:
        # Every call sees a copy that travelled, so that nothing can be remembered in attributes.
        self.trigger = pickle.dumps(trigger)
        self.watermark = watermark
        self.now = now
        self.states: dict[tuple[TimeWindow, str], Any] = {}
        self.event: set[tuple[TimeWindow, int]] = set()
        self.processing: set[tuple[TimeWindow, int]] = set()
        self.window = WINDOW
        self.merged: list[TimeWindow] = []

    def element(self, element: Any = "a", timestamp: int = 0, window: TimeWindow = WINDOW) -> TriggerResult:
        self.window = window
        return self.loaded().on_element(element, timestamp, window, self)

    def event_time(self, time: int, window: TimeWindow = WINDOW) -> TriggerResult:
        self.window, self.watermark = window, time
        self.event.discard((window, time))
        return self.loaded().on_event_time(time, window, self)

    def processing_time(self, time: int, window: TimeWindow = WINDOW) -> TriggerResult:
        self.window, self.now = window, time
        self.processing.discard((window, time))
        return self.loaded().on_processing_time(time, window, self)

    def merge(self, result: TimeWindow, *merged: TimeWindow) -> None:
        """As the window operator does it: the new window first, then the old ones go."""
        self.window, self.merged = result, list(merged)
        self.loaded().on_merge(result, self)
        for window in merged:
            self.clear(window)

    def clear(self, window: TimeWindow = WINDOW) -> None:
        self.window = window
        self.loaded().clear(window, self)

    def loaded(self) -> Trigger[Any, Any]:
        trigger: Trigger[Any, Any] = pickle.loads(self.trigger)
        return trigger

    @property
    def empty(self) -> bool:
        return not self.event and not self.processing and all(state.content is None for state in self.states.values())

    def get_current_processing_time(self) -> int:
        return self.now

    def get_current_watermark(self) -> int:
        return self.watermark

    def get_metric_group(self) -> MetricGroup:
        raise NotImplementedError

    def register_processing_time_timer(self, time: int) -> None:
        self.processing.add((self.window, time))

    def register_event_time_timer(self, time: int) -> None:
        self.event.add((self.window, time))

    def delete_processing_time_timer(self, time: int) -> None:
        self.processing.discard((self.window, time))

    def delete_event_time_timer(self, time: int) -> None:
        self.event.discard((self.window, time))

    def get_partitioned_state(self, state_descriptor: Any) -> State:
        place = self.window, state_descriptor.name
        if place not in self.states:
            folding = isinstance(state_descriptor, ReducingStateDescriptor)
            self.states[place] = Folded(state_descriptor) if folding else Cell()
        state: State = self.states[place]
        return state

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        target: Any = self.get_partitioned_state(state_descriptor)
        for window in self.merged:
            source = self.states.pop((window, state_descriptor.name), None)
            if source is not None and source.content is not None:
                target.add(source.content)


class TestEventTime:
    def test_fires_at_the_end_of_the_window(self) -> None:
        harness = Harness(EventTimeTrigger.create())
        assert harness.element() is CONTINUE
        assert harness.event == {(WINDOW, 99)}
        assert harness.event_time(50) is CONTINUE
        assert harness.event_time(99) is FIRE

    def test_fires_at_once_for_a_late_element(self) -> None:
        harness = Harness(EventTimeTrigger(), watermark=99)
        assert harness.element() is FIRE
        assert harness.event == set()

    def test_merging_moves_the_timer(self) -> None:
        harness = Harness(EventTimeTrigger())
        harness.element()
        harness.element(window=OTHER)
        harness.merge(BOTH, WINDOW, OTHER)
        assert harness.event == {(BOTH, 159)}

    def test_merging_into_a_window_that_is_over_sets_no_timer(self) -> None:
        harness = Harness(EventTimeTrigger(), watermark=159)
        harness.merge(BOTH, WINDOW, OTHER)
        assert harness.empty

    def test_cares_for_nothing_else(self) -> None:
        harness = Harness(EventTimeTrigger())
        assert harness.processing_time(99) is CONTINUE
        harness.element()
        harness.clear()
        assert harness.empty


class TestProcessingTime:
    def test_fires_at_the_end_of_the_window(self) -> None:
        harness = Harness(ProcessingTimeTrigger.create(), now=5)
        assert harness.element() is CONTINUE
        assert harness.processing == {(WINDOW, 99)}
        assert harness.event_time(99) is CONTINUE
        assert harness.processing_time(99) is FIRE

    def test_merging_moves_the_timer(self) -> None:
        harness = Harness(ProcessingTimeTrigger(), now=5)
        harness.element()
        harness.merge(BOTH, WINDOW)
        assert harness.processing == {(BOTH, 159)}
        harness.clear(BOTH)
        assert harness.empty


class TestContinuousEventTime:
    def test_fires_at_multiples_and_at_the_end(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)))
        assert harness.element(timestamp=30) is CONTINUE
        assert harness.event == {(WINDOW, 40), (WINDOW, 99)}
        assert harness.element(timestamp=10) is CONTINUE
        assert harness.event == {(WINDOW, 40), (WINDOW, 99)}
        assert harness.event_time(40) is FIRE
        assert harness.event_time(80) is FIRE
        assert harness.event == {(WINDOW, 99)}
        assert harness.event_time(99) is FIRE
        harness.clear()
        assert harness.empty

    def test_a_timer_of_someone_else_does_not_fire_it(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)))
        harness.element()
        assert harness.event_time(33) is CONTINUE
        assert harness.processing_time(40) is CONTINUE

    def test_times_before_1970(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)))
        window = TimeWindow(-100, 0)
        harness.element(timestamp=-50, window=window)
        assert harness.event == {(window, -40), (window, -1)}

    def test_fires_at_once_for_a_late_element(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)), watermark=99)
        assert harness.element() is FIRE
        assert harness.empty

    def test_merging_keeps_the_earliest_time(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)))
        harness.element(timestamp=70, window=OTHER)
        harness.element(timestamp=10, window=WINDOW)
        harness.merge(BOTH, WINDOW, OTHER)
        # The other windows' timers of that kind may stay: nobody asks a trigger about windows that are gone.
        assert {time for window, time in harness.event if window == BOTH} == {40}
        assert harness.event_time(40, BOTH) is FIRE
        assert (BOTH, 80) in harness.event

    def test_clearing_early_leaves_nothing(self) -> None:
        harness = Harness(ContinuousEventTimeTrigger.of(Time.milliseconds(40)))
        harness.element(timestamp=10)
        harness.clear()
        assert harness.empty


class TestContinuousProcessingTime:
    def test_fires_at_multiples(self) -> None:
        harness = Harness(ContinuousProcessingTimeTrigger.of(Time.milliseconds(40)), now=30)
        assert harness.element() is CONTINUE
        assert harness.processing == {(WINDOW, 40)}
        assert harness.processing_time(40) is FIRE
        assert harness.processing_time(80) is FIRE
        assert harness.processing == {(WINDOW, 99)}
        assert harness.event_time(99) is CONTINUE

    def test_sets_no_timer_behind_the_end(self) -> None:
        """It would be due at once, fire, be set again: for ever."""
        harness = Harness(ContinuousProcessingTimeTrigger.of(Time.milliseconds(40)), now=5000)
        assert harness.element() is CONTINUE
        assert harness.processing == {(WINDOW, 99)}
        assert harness.processing_time(99) is FIRE
        assert harness.empty

    def test_a_timer_of_someone_else_does_not_fire_it(self) -> None:
        harness = Harness(ContinuousProcessingTimeTrigger.of(Time.milliseconds(40)))
        harness.element()
        assert harness.processing_time(33) is CONTINUE

    def test_merging_and_clearing(self) -> None:
        harness = Harness(ContinuousProcessingTimeTrigger.of(Time.milliseconds(40)))
        harness.element()
        harness.merge(BOTH, WINDOW)
        assert (BOTH, 40) in harness.processing
        harness.clear(BOTH)
        assert (BOTH, 40) not in harness.processing
        assert all(state.content is None for state in harness.states.values())

    def test_its_state_is_not_that_of_event_time(self) -> None:
        """So that a trigger of a user's may hold both."""
        names = {kind(1).state_desc.name for kind in (ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger)}
        assert len(names) == 2


class TestContents:
    def test_count(self) -> None:
        harness = Harness(CountTrigger.of(2))
        assert [harness.element() for _ in range(5)] == [CONTINUE, FIRE, CONTINUE, FIRE, CONTINUE]
        assert (harness.event_time(99), harness.processing_time(99)) == (CONTINUE, CONTINUE)
        harness.clear()
        assert harness.empty

    def test_counts_of_windows_that_merge_are_added(self) -> None:
        harness = Harness(CountTrigger.of(4))
        harness.element()
        harness.element()
        harness.element(window=OTHER)
        harness.merge(BOTH, WINDOW, OTHER)
        assert harness.element(window=BOTH) is FIRE

    def test_delta(self) -> None:
        class Distance(DeltaFunction):
            def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
                return float(abs(new_data_point - old_data_point))

        trigger = DeltaTrigger.of(5, Distance(), Types.LONG())
        # A local class does not travel, and this trigger keeps nothing in attributes.
        harness = Harness(NeverTrigger())
        harness.loaded = lambda: trigger  # type: ignore[method-assign]
        answers = [harness.element(value) for value in (10, 15, 16, 17, 21, 22, 0)]
        assert answers == [CONTINUE, CONTINUE, FIRE, CONTINUE, CONTINUE, FIRE, FIRE]
        assert (harness.event_time(99), harness.processing_time(99)) == (CONTINUE, CONTINUE)
        harness.clear()
        assert harness.empty

    def test_never(self) -> None:
        harness = Harness(NeverTrigger())
        assert {harness.element(), harness.event_time(99), harness.processing_time(99)} == {CONTINUE}
        harness.merge(BOTH, WINDOW)
        assert harness.empty


class Always(Trigger[Any, Any]):
    """Gives one answer to everything."""

    def __init__(self, answer: TriggerResult) -> None:
        self.answer = answer

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self.answer

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self.answer

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self.answer

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        pass


class TestPurging:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [(FIRE, FIRE_AND_PURGE), (FIRE_AND_PURGE, FIRE_AND_PURGE), (CONTINUE, CONTINUE), (PURGE, PURGE)],
    )
    def test_a_window_that_fires_is_emptied(self, answer: TriggerResult, expected: TriggerResult) -> None:
        harness = Harness(PurgingTrigger.of(Always(answer)))
        assert {harness.element(), harness.event_time(1), harness.processing_time(1)} == {expected}

    def test_the_rest_is_left_to_the_other_one(self) -> None:
        harness = Harness(PurgingTrigger.of(EventTimeTrigger()))
        harness.element()
        harness.merge(BOTH, WINDOW)
        assert harness.event == {(BOTH, 159)}
        harness.clear(BOTH)
        assert harness.empty
        assert PurgingTrigger.of(EventTimeTrigger()).can_merge()
        assert not PurgingTrigger.of(NeverTrigger()).can_merge()


class TestTimeout:
    def trigger(self, **settings: bool) -> ProcessingTimeoutTrigger:
        return ProcessingTimeoutTrigger.of(CountTrigger.of(3), Time.milliseconds(50), **settings)

    def test_the_other_trigger_comes_first(self) -> None:
        harness = Harness(self.trigger(), now=10)
        assert [harness.element(), harness.element()] == [CONTINUE, CONTINUE]
        assert harness.processing == {(WINDOW, 60)}
        assert harness.element() is FIRE
        assert harness.empty

    def test_the_time_runs_from_the_first_element(self) -> None:
        harness = Harness(self.trigger(), now=10)
        harness.element()
        harness.now = 40
        harness.element()
        assert harness.processing == {(WINDOW, 60)}
        assert harness.processing_time(60) is FIRE
        assert harness.empty
        assert [harness.element() for _ in range(3)] == [CONTINUE, CONTINUE, FIRE]

    def test_or_from_the_latest_one(self) -> None:
        harness = Harness(self.trigger(reset_timer_on_new_record=True), now=10)
        harness.element()
        harness.now = 40
        harness.element()
        assert harness.processing == {(WINDOW, 90)}

    def test_the_other_trigger_may_go_on_after_a_timeout(self) -> None:
        harness = Harness(self.trigger(should_clear_on_timeout=False), now=10)
        harness.element()
        harness.element()
        assert harness.processing_time(60) is FIRE
        assert harness.element() is FIRE
        assert harness.empty

    def test_the_end_of_the_window_fires_it_too(self) -> None:
        harness = Harness(self.trigger(), now=10)
        harness.element()
        assert harness.event_time(99) is FIRE
        assert harness.empty

    def test_it_purges_when_the_other_one_does(self) -> None:
        timeout = Time.milliseconds(50)
        harness = Harness(ProcessingTimeoutTrigger.of(PurgingTrigger.of(EventTimeTrigger()), timeout))
        harness.element()
        assert harness.event_time(99) is FIRE_AND_PURGE
        assert Harness(ProcessingTimeoutTrigger.of(Always(PURGE), timeout)).processing_time(5) is FIRE_AND_PURGE


class TestAll:
    def test_which_of_them_merge(self) -> None:
        second = Time.seconds(1)
        merging: list[Trigger[Any, Any]] = [
            EventTimeTrigger(),
            ProcessingTimeTrigger(),
            ContinuousEventTimeTrigger.of(second),
            ContinuousProcessingTimeTrigger.of(second),
            CountTrigger.of(1),
        ]
        others: list[Trigger[Any, Any]] = [
            NeverTrigger(),
            DeltaTrigger.of(1.0, max),
            ProcessingTimeoutTrigger.of(CountTrigger.of(1), second),
        ]
        assert all(trigger.can_merge() for trigger in merging)
        assert not any(trigger.can_merge() for trigger in others)

    def test_one_that_does_not_merge_says_so(self) -> None:
        with pytest.raises(ProgramError, match=r"Always\(\) cannot merge: on_merge\(\) is missing in Always"):
            Harness(Always(FIRE)).merge(BOTH, WINDOW)

    def test_arguments(self) -> None:
        with pytest.raises(ProgramError, match="must be an int of at least 1, got 0"):
            CountTrigger.of(0)
        with pytest.raises(ProgramError, match=r"takes a Time such as Time.seconds\(5\), or a Duration, got int 5"):
            ContinuousEventTimeTrigger.of(5)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="must be longer than 0 ms"):
            ContinuousProcessingTimeTrigger.of(Time.milliseconds(0))
        with pytest.raises(ProgramError, match="must be longer than 0 ms"):
            ContinuousEventTimeTrigger(0)
        with pytest.raises(ProgramError, match=r"PurgingTrigger.of\(nested_trigger\) takes a Trigger such as"):
            PurgingTrigger.of(CountTrigger)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"takes a DeltaFunction or a callable f\(old, new\), got 3"):
            DeltaTrigger.of(1.0, 3)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="got the class DeltaFunction itself"):
            DeltaTrigger.of(1.0, DeltaFunction)  # type: ignore[arg-type]
