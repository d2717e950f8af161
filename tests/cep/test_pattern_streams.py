"""Patterns on streams: time, keys, side outputs, state that survives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from firesteel.cep import (
    CEP,
    AfterMatchSkipStrategy,
    ConditionContext,
    IterativeCondition,
    MalformedPatternError,
    Pattern,
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternStream,
    PatternTimeoutFunction,
    SimpleCondition,
    TimedOutPartialMatchHandler,
    WithinType,
)
from firesteel.common import Duration, Types
from firesteel.datastream import DataStream, OutputTag, RuntimeContext
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import OneInputHarness, Record

TIMED_OUT, LATE = OutputTag("timed out"), OutputTag("late")


def kind(wanted: str) -> Callable[[Any], bool]:
    return lambda event: event[1] == wanted


def key_of(event: Any) -> Any:
    return event[0]


def a_then_b(**skip: Any) -> Pattern:
    pattern = Pattern.begin("a", **skip).where(kind("a")).followed_by("b").where(kind("b"))
    return pattern.within(Duration.of_millis(10))


def numbers(match: dict[str, list[Any]]) -> dict[str, list[int]]:
    return {step: [event[2] for event in events] for step, events in match.items()}


def harness(
    pattern: Pattern, use: Callable[[PatternStream], DataStream] | None = None, keyed: bool = True, **given: Any
) -> OneInputHarness:
    def build(stream: DataStream) -> DataStream:
        of = CEP.pattern(stream.key_by(key_of) if keyed else stream, pattern, **given)
        return (use or (lambda one: one.select(numbers)))(of)

    return OneInputHarness.of(build)


def event(key: str, what: str, number: int, time: int) -> Record:
    return Record((key, what, number), time)


class Reporting(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Says all there is to say."""

    def process_match(self, match: Any, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
        yield numbers(match), ctx.timestamp()

    def process_timed_out_match(self, match: Any, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
        yield TIMED_OUT, (numbers(match), ctx.timestamp())


class TestEventTime:
    def test_events_are_sorted_and_keys_are_apart(self) -> None:
        with harness(a_then_b()) as job:
            job.process_elements([event("x", "b", 2, 5), event("y", "a", 3, 4), event("x", "a", 1, 1)])
            assert job.output == []
            job.process_watermark(4)
            assert job.output == []
            job.process_watermark(5)
            assert job.output == [{"a": [1], "b": [2]}]

    def test_a_match_has_the_time_of_its_last_event(self) -> None:
        with harness(a_then_b(), lambda one: one.process(Reporting())) as job:
            job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 7)])
            job.process_watermark(8)
            assert [(record.value, record.timestamp) for record in job.records] == [(({"a": [1], "b": [2]}, 7), 7)]

    def test_the_end_of_the_window_is_outside(self) -> None:
        with harness(a_then_b(), lambda one: one.process(Reporting())) as job:
            job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 11)])
            job.process_watermark(10)
            assert job.side_output(TIMED_OUT) == []
            job.process_watermark(11)
            assert job.side_output(TIMED_OUT) == [({"a": [1]}, 11)]
            assert job.output == []

    def test_time_runs_out_without_another_event(self) -> None:
        with harness(a_then_b(), lambda one: one.process(Reporting())) as job:
            job.process_element(("x", "a", 1), 1)
            job.process_watermark(1)
            job.end_batch()
            job.process_watermark(100)
            assert job.side_output(TIMED_OUT) == [({"a": [1]}, 11)]
            job.end_batch()
            assert job.num_keyed_state_entries == 0

    def test_late_events_are_put_aside(self) -> None:
        with harness(a_then_b(), lambda one: one.side_output_late_data(LATE).select(numbers)) as job:
            job.process_watermark(5)
            job.process_elements([event("x", "a", 1, 5), event("x", "a", 2, 6)])
            assert job.side_output(LATE) == [("x", "a", 1)]

    def test_a_comparator_orders_events_of_one_time(self) -> None:
        backwards = Pattern.begin("one").next("two")
        given = [event("x", "a", 1, 3), event("x", "a", 2, 3)]
        with harness(backwards) as job:
            job.process_elements(given)
            job.process_watermark(3)
            assert job.output == [{"one": [1], "two": [2]}]
        with harness(backwards, comparator=lambda one, other: other[2] - one[2]) as job:
            job.process_elements(given)
            job.process_watermark(3)
            assert job.output == [{"one": [2], "two": [1]}]

    def test_a_stream_without_keys_is_one(self) -> None:
        with harness(a_then_b(), keyed=False) as job:
            job.process_elements([event("x", "a", 1, 1), event("y", "b", 2, 2)])
            job.process_watermark(2)
            assert job.output == [{"a": [1], "b": [2]}]

    def test_the_time_since_the_event_before_runs_out_by_itself(self) -> None:
        pattern = Pattern.begin("a").where(kind("a")).followed_by("b").where(kind("b"))
        pattern = pattern.within(Duration.of_millis(5), WithinType.PREVIOUS_AND_CURRENT)
        with harness(pattern, lambda one: one.process(Reporting())) as job:
            job.process_element(("x", "a", 1), 1)
            job.process_watermark(6)
            assert job.side_output(TIMED_OUT) == [({"a": [1]}, 6)]

    def test_events_need_timestamps(self) -> None:
        with harness(a_then_b()) as job, pytest.raises(JobExecutionError, match="need timestamps"):
            job.process_element(("x", "a", 1))


class TestProcessingTime:
    def test_events_count_as_they_come(self) -> None:
        with harness(a_then_b(), lambda one: one.in_processing_time().process(Reporting())) as job:
            job.set_processing_time(100)
            job.process_elements([("x", "a", 1), ("x", "b", 2)])
            assert [value for value, _ in job.output] == [{"a": [1], "b": [2]}]
            job.process_element(("x", "a", 3))
            job.set_processing_time(110)
            assert job.side_output(TIMED_OUT) == []
            job.set_processing_time(111)
            assert job.side_output(TIMED_OUT) == [({"a": [3]}, 110)]

    def test_a_comparator_waits_for_the_next_millisecond(self) -> None:
        either = Pattern.begin("one").next("two")
        ordered = {"comparator": lambda one, other: other[2] - one[2]}
        with harness(either, lambda one: one.in_processing_time().select(numbers), **ordered) as job:
            job.set_processing_time(100)
            job.process_elements([("x", "a", 1), ("x", "a", 2)])
            assert job.output == []
            job.set_processing_time(101)
            assert job.output == [{"one": [2], "two": [1]}]


class TestState:
    def test_partial_matches_and_waiting_events_survive(self) -> None:
        use: Callable[[PatternStream], DataStream] = lambda one: one.process(Reporting())  # noqa: E731
        pattern = Pattern.begin("a").where(kind("a")).one_or_more().followed_by("b").where(kind("b"))
        pattern = pattern.within(Duration.of_millis(50))
        with harness(pattern, use) as first:
            first.process_elements([event("x", "a", 1, 1), event("x", "a", 2, 2), event("x", "b", 3, 30)])
            first.process_watermark(5)
            snapshot = first.snapshot()
        with harness(pattern, use).restore(snapshot) as second:
            second.process_watermark(30)
            assert [value for value, _ in second.output] == [
                {"a": [1, 2], "b": [3]},
                {"a": [1], "b": [3]},
                {"a": [2], "b": [3]},
            ]
            second.process_watermark(2**40)
            assert [value for value, _ in second.side_output(TIMED_OUT)]
            second.end_batch()
            assert second.num_keyed_state_entries == 0

    def test_a_match_that_is_held_back_survives(self) -> None:
        pattern = Pattern.begin("a", AfterMatchSkipStrategy.skip_to_next()).where(kind("a")).followed_by("b")
        pattern = pattern.where(
            lambda event, context: event[1] == "b" and event[2] == context.get_events_for_pattern("a")[0][2]
        )
        with harness(pattern) as first:
            first.process_elements([event("x", "a", 1, 1), event("x", "a", 2, 2), event("x", "b", 2, 3)])
            first.process_watermark(3)
            assert first.output == []
            snapshot = first.snapshot()
        with harness(pattern).restore(snapshot) as second:
            second.process_element(("x", "b", 1), 4)
            second.process_watermark(4)
            assert second.output == [{"a": [1], "b": [1]}, {"a": [2], "b": [2]}]

    def test_a_key_without_partial_matches_keeps_nothing(self) -> None:
        with harness(a_then_b()) as job:
            job.process_elements([event(f"k{number}", "c", number, number) for number in range(20)])
            job.process_watermark(30)
            job.end_batch()
            assert job.num_keyed_state_entries == 0
            assert job.num_event_time_timers == 0

    def test_a_long_chain_of_events_is_stored(self) -> None:
        # A first step of its own: a loop would begin with each of its events.
        loop = Pattern.begin("c").where(kind("c")).next("a").where(kind("a")).one_or_more().consecutive()
        pattern = loop.next("b").where(kind("b"))
        with harness(pattern, lambda one: one.select(lambda match: len(match["a"]))) as first:
            first.process_element(("x", "c", 0), 0)
            first.process_elements([event("x", "a", number, number) for number in range(1, 3001)])
            first.process_watermark(3000)
            snapshot = first.snapshot()
        with harness(pattern, lambda one: one.select(lambda match: len(match["a"]))).restore(snapshot) as second:
            second.process_element(("x", "b", 0), 3001)
            second.process_watermark(3001)
            assert second.output == [3000]

    def test_a_pattern_may_grow_and_what_is_gone_is_named(self) -> None:
        with harness(a_then_b()) as first:
            first.process_element(("x", "a", 1), 1)
            first.process_watermark(1)
            snapshot = first.snapshot()
        longer = a_then_b().followed_by("c").where(kind("c")).within(Duration.of_millis(10))
        with harness(longer).restore(snapshot) as second:
            second.process_elements([event("x", "b", 2, 2), event("x", "c", 3, 3)])
            second.process_watermark(3)
            assert second.output == [{"a": [1], "b": [2], "c": [3]}]
        other = Pattern.begin("a").where(kind("a")).followed_by("z").where(kind("b")).within(Duration.of_millis(10))
        with (
            harness(other).restore(snapshot) as third,
            pytest.raises(JobExecutionError, match="wait in state 'b', which the pattern does not have any more"),
        ):
            third.process_element(("x", "b", 2), 2)

    def test_partial_matches_are_limited(self) -> None:
        pattern = Pattern.begin("a").where(kind("a")).followed_by_any("b").where(kind("b"))
        with harness(pattern, lambda one: one.limit_partial_matches(2).select(numbers)) as job:
            job.process_elements([event("x", "a", number, number) for number in range(1, 4)])
            with pytest.raises(JobExecutionError, match=r"Key 'x' has 3 partial matches, more than the 2 that"):
                job.process_watermark(4)


class TestFunctions:
    def test_classes_are_opened_and_closed(self) -> None:
        class Alert(PatternSelectFunction):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.subtask = runtime_context.get_index_of_this_subtask()

            def select(self, match: Any) -> Any:
                return self.subtask, numbers(match)

        class GaveUp(PatternTimeoutFunction):
            def timeout(self, match: Any, timeout_timestamp: int) -> Any:
                return timeout_timestamp

        with harness(a_then_b(), lambda one: one.select(TIMED_OUT, GaveUp(), Alert())) as job:
            job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 2), event("x", "a", 3, 20)])
            job.process_watermark(100)
            assert job.output == [(0, {"a": [1], "b": [2]})]
            assert job.side_output(TIMED_OUT) == [30]

    def test_conditions_are_opened_and_closed(self, tmp_path: Path) -> None:
        calls = tmp_path / "calls"

        class Kind(SimpleCondition):
            def __init__(self, wanted: str) -> None:
                self.wanted = wanted

            def open(self, runtime_context: RuntimeContext) -> None:
                self.is_open = True
                self.note("open")

            def close(self) -> None:
                self.note("close")

            def note(self, call: str) -> None:
                with calls.open("a") as file:
                    print(call, self.wanted, file=file)

            def filter(self, value: Any) -> bool:
                return self.is_open and value[1] == self.wanted

        class Larger(IterativeCondition):
            def filter(self, value: Any, ctx: ConditionContext) -> bool:
                return bool(value[2] > max(one[2] for one in ctx.get_events_for_pattern("a")))

        first = Pattern.begin("a").where(Kind("a")).or_(Kind("A")).one_or_more().until(Kind("end"))
        group = Pattern.begin("b").where(Kind("b")).where(Larger())
        with harness(first.followed_by(group)) as job:
            job.process_elements([event("x", "a", 5, 1), event("x", "b", 4, 2), event("x", "b", 6, 3)])
            job.process_watermark(3)
            assert job.output == [{"a": [5], "b": [6]}]
            assert sorted(calls.read_text().splitlines()) == ["open A", "open a", "open b", "open end"]
        assert sorted(calls.read_text().splitlines()[4:]) == ["close A", "close a", "close b", "close end"]

    def test_several_results_a_match(self) -> None:
        class Each(PatternFlatSelectFunction):
            def flat_select(self, match: Any) -> Any:
                for events in match.values():
                    yield from (one[2] for one in events)

        for function in (Each(), lambda match: [one[2] for events in match.values() for one in events]):
            with harness(a_then_b(), lambda one, function=function: one.flat_select(function)) as job:  # type: ignore[misc]
                job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 2)])
                job.process_watermark(2)
                assert job.output == [1, 2]

    def test_side_outputs_of_matches(self) -> None:
        def both(match: Any, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
            ctx.output(TIMED_OUT, "aside")
            yield "result"

        with harness(a_then_b(), lambda one: one.process(both)) as job:  # type: ignore[arg-type]
            job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 2)])
            job.process_watermark(2)
            assert (job.output, job.side_output(TIMED_OUT)) == (["result"], ["aside"])

    def test_what_cannot_be_right_is_refused(self) -> None:
        with pytest.raises(MalformedPatternError, match="would match without any event"):
            harness(Pattern.begin("a").optional())
        with pytest.raises(ProgramError, match=r"CEP\.pattern\(\) takes a Pattern"):
            harness("a")  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"select\(\) takes a function, or a tag"):
            harness(a_then_b(), lambda one: one.select(TIMED_OUT, numbers))
        with pytest.raises(MalformedPatternError, match=r"skip_past_last_event\(\) has no step"):
            AfterMatchSkipStrategy.skip_past_last_event().throw_exception_on_miss()

    def test_a_match_without_the_step_to_skip_to(self) -> None:
        skip = AfterMatchSkipStrategy.skip_to_first("b").throw_exception_on_miss()
        pattern = Pattern.begin("a", skip).where(kind("a")).next("b").where(kind("b")).optional()
        with harness(pattern.next("c").where(kind("c"))) as job:
            job.process_elements([event("x", "a", 1, 1), event("x", "c", 2, 2)])
            with pytest.raises(JobExecutionError, match="A match has no event of step 'b'"):
                job.process_watermark(2)

    def test_results_that_cannot_be_gone_through(self) -> None:
        for wrong in (5, 0):
            with harness(a_then_b(), lambda one, wrong=wrong: one.flat_select(lambda match: wrong)) as job:  # type: ignore[misc]
                job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 2)])
                with pytest.raises(JobExecutionError, match=f"The function returned int {wrong}"):
                    job.process_watermark(2)

    def test_steps_with_names_like_those_of_states(self) -> None:
        pattern = Pattern.begin("a").where(kind("a")).times(3).next("a:1").where(kind("b"))
        with harness(pattern) as job:
            job.process_elements([event("x", "a", n, n) for n in (1, 2, 3)])
            job.process_watermark(3)
            job.end_batch()
            job.process_element(("x", "b", 4), 4)
            job.process_watermark(4)
            assert job.output == [{"a": [1, 2, 3], "a:1": [4]}]

    def test_types(self) -> None:
        with harness(a_then_b(), lambda one: one.select(lambda match: "word", output_type=Types.INT())) as job:
            job.process_elements([event("x", "a", 1, 1), event("x", "b", 2, 2)])
            with pytest.raises(JobExecutionError, match="INT"):
                job.process_watermark(2)
