"""The harness with every kind of function of one input: what goes in, what comes out, time, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
)
from firesteel.datastream.connectors.base import Sink, SinkWriter
from firesteel.errors import JobExecutionError, ProgramError, SerializationError
from firesteel.runtime.keys import KeyRoutes
from firesteel.testing import OneInputHarness, Record, Watermark

FOREVER = 2**63 - 1


def first(record: Any) -> Any:
    return record[0]


class Upper(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.life = ["opened"]

    def map(self, value: str) -> str:
        return value.upper()

    def close(self) -> None:
        self.life.append("closed")


class Split(FlatMapFunction):
    def flat_map(self, value: str) -> list[str]:
        return value.split()


class Long(FilterFunction):
    def filter(self, value: str) -> bool:
        return len(value) > 2


class Join(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


ODD = OutputTag("odd", Types.INT())


class Sides(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value % 2:
            yield ODD, value
        else:
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_map_and_its_life() -> None:
    harness = OneInputHarness(Upper())
    with harness:
        harness.process_element("a", 5)
        harness.process_elements(["b", Record("c", 7)])
        assert harness.output == ["A", "B", "C"]
        assert harness.records == [("A", 5), ("B", None), ("C", 7)]
        assert harness.function.life == ["opened"]
    assert harness.function.life == ["opened", "closed"]
    harness.close()
    assert harness.function.life == ["opened", "closed"], "once"
    with pytest.raises(ProgramError, match="The harness is closed"):
        harness.process_element("d")


def test_flat_map_and_filter() -> None:
    flat = OneInputHarness(Split())
    flat.process_element("to be", 3)
    assert flat.records == [("to", 3), ("be", 3)]
    kept = OneInputHarness(Long(), output_type=None)
    kept.process_elements(["ab", "abc"])
    assert kept.output == ["abc"]


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_reduce(mode: RuntimeExecutionMode) -> None:
    harness = OneInputHarness(Join(), first, mode=mode)
    harness.process_elements([("a", "x"), ("b", "y"), ("a", "z")])
    harness.end_input()
    updates = [("a", "x")] if mode is RuntimeExecutionMode.STREAMING else []
    assert sorted(harness.output) == [*updates, ("a", "xz"), ("b", "y")]


def test_side_outputs_are_lists() -> None:
    harness = OneInputHarness(Sides())
    harness.process_watermark(9)
    harness.process_elements([Record(1, 10), Record(2, 11), Record(3, 12)])
    assert harness.output == [(2, 11, 9)]
    assert harness.side_output(ODD) == [1, 3]
    assert harness.side_records(ODD) == [(1, 10), (3, 12)]
    assert harness.side_output(OutputTag("other", Types.INT())) == []
    harness.clear_output()
    assert (harness.output, harness.side_output(ODD), harness.watermarks) == ([], [], [])


class Lines(SinkFunction):
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.lines.append((value, context.timestamp(), context.current_watermark()))


def test_a_sink_function_is_a_copy() -> None:
    sink = Lines()
    harness = OneInputHarness(sink)
    harness.process_watermark(4)
    harness.process_element("a", 5)
    harness.process_element("b")
    assert harness.function.lines == [("a", 5, 4), ("b", None, 4)]
    assert sink.lines == []


class Files(Sink):
    class Writer(SinkWriter):
        pending = ""

        def write(self, value: Any, context: Any) -> None:
            self.pending += value

        def prepare_commit(self) -> list[Any]:
            pending, self.pending = self.pending, ""
            return [pending]

    def create_writer(self, context: Any) -> SinkWriter:
        return self.Writer()


def test_a_sink_prepares_when_a_batch_ends() -> None:
    harness = OneInputHarness(Files())
    harness.process_elements(["a", "b"])
    assert harness.committables == []
    harness.end_batch()
    harness.process_element("c")
    harness.end_batch()
    assert harness.committables == ["ab", "c"]


class Ask(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: float) -> list[float]:
        await asyncio.sleep(value / 1000)
        return [value]


class Overtaken(AsyncFunction[Any, Any]):
    """Answers 20 when 1 is answered, however busy the machine is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.answered = asyncio.Event()

    async def async_invoke(self, value: float) -> list[float]:
        if value == 20:
            await self.answered.wait()
            await asyncio.sleep(0.01)
        else:
            self.answered.set()
        return [value]


def test_an_async_function_is_waited_for() -> None:
    with OneInputHarness(Ask()) as harness:
        harness.process_elements([20, 1])
        harness.process_watermark(3)
        assert (harness.output, harness.watermarks) == ([20, 1], [3])
    build = lambda stream: AsyncDataStream.unordered_wait(stream, Overtaken(), Time.seconds(300))  # noqa: E731
    with OneInputHarness.of(build) as harness:
        harness.process_elements([20, 1])
        assert harness.output == [1, 20]


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def test_a_watermark_strategy() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    harness = OneInputHarness(strategy)
    harness.process_elements([5, 3])
    harness.end_batch()
    harness.process_element(9)
    harness.end_batch()
    assert harness.records == [(5, 5), (3, 3), (9, 9)]
    assert harness.watermarks == [4, 8]


class Timers(KeyedProcessFunction):
    """Sets the timers that an element (key, event time, processing time) asks for and tells what fires."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        _, event, processing = value
        if event is not None:
            ctx.timer_service().register_event_time_timer(event)
        if processing is not None:
            ctx.timer_service().register_processing_time_timer(processing)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        now = ctx.timer_service().current_processing_time()
        yield ctx.get_current_key(), ctx.time_domain().name[0], timestamp, now


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_timers_of_both_kinds(backend: str) -> None:
    harness = OneInputHarness(Timers(), first, backend=backend)
    harness.process_elements([("a", 10, 100), ("b", 20, 200), ("a", None, 150), ("b", 5, None)])
    assert harness.event_time_timers == [(5, "b"), (10, "a"), (20, "b")]
    assert harness.processing_time_timers == [(100, "a"), (150, "a"), (200, "b")]
    harness.process_watermark(10)
    assert harness.take_output() == [("b", "E", 5, 0), ("a", "E", 10, 0)]
    harness.set_processing_time(120)
    assert harness.take_output() == [("a", "P", 100, 120)]
    harness.advance_processing_time(30)
    assert harness.take_output() == [("a", "P", 150, 150)]
    assert (harness.num_event_time_timers, harness.num_processing_time_timers) == (1, 1)
    harness.end_input()
    assert harness.take_output() == [("b", "E", 20, 150)]
    assert harness.watermarks == [10, FOREVER]


def test_results_of_timers_have_the_time_of_event_timers_only() -> None:
    harness = OneInputHarness(Timers(), first)
    harness.process_element(("a", 10, 20), 1)
    harness.process_watermark(10)
    harness.set_processing_time(20)
    assert [record.timestamp for record in harness.records] == [10, None]


def test_batch_mode_sees_a_key_at_the_end_of_input() -> None:
    harness = OneInputHarness(Timers(), first, mode=RuntimeExecutionMode.BATCH)
    harness.process_elements([("a", 10, None), ("b", None, 7)])
    harness.process_watermark(50)
    harness.set_processing_time(50)
    assert harness.output == []
    harness.end_input()
    assert sorted(harness.output) == [("a", "E", 10, 50), ("b", "P", 7, 50)]


def test_time_does_not_go_back() -> None:
    harness = OneInputHarness(Timers(), first)
    harness.set_processing_time(50)
    with pytest.raises(ProgramError, match="Processing time does not go back: it is 50, not 40"):
        harness.set_processing_time(40)
    harness.process_watermark(9)
    harness.process_watermark(8)
    assert (harness.watermark, harness.watermarks) == (9, [9])


@pytest.mark.parametrize("wrong", [1.5, "1", True, None])
def test_times_are_ints(wrong: Any) -> None:
    harness = OneInputHarness(Timers(), first)
    with pytest.raises(ProgramError, match="A watermark is an int"):
        harness.process_watermark(wrong)
    with pytest.raises(ProgramError, match="A moment of processing time is an int"):
        harness.set_processing_time(wrong)
    if wrong is not None:
        with pytest.raises(ProgramError, match="A timestamp is an int"):
            harness.process_element(("a", None, None), wrong)


# Failures


class Fails(MapFunction):
    def map(self, value: int) -> float:
        return 1 / value


def test_a_failure_names_operator_line_and_element() -> None:
    harness = OneInputHarness(Fails())
    with pytest.raises(JobExecutionError) as caught:
        harness.process_elements([1, 0])
    text = str(caught.value)
    assert "Operator 'Map' failed in subtask 0" in text
    assert "test_one_input_harness.py" in text
    assert "return 1 / value" in text
    assert (caught.value.operator, caught.value.element) == ("Map", "0")
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)


def test_the_operator_is_built_at_the_tests_line() -> None:
    with pytest.raises(JobExecutionError) as caught:
        OneInputHarness(Fails()).process_element(0)
    assert caught.value.built_at is not None
    assert caught.value.built_at.file == __file__


def test_a_failing_key_selector_and_unstable_keys() -> None:
    harness = OneInputHarness(Join(), lambda record: record["missing"])
    with pytest.raises(JobExecutionError, match=r"key selector between.*'Reduce'"):
        harness.process_element({})
    harness = OneInputHarness(Join(), lambda record: object())
    with pytest.raises(JobExecutionError, match="key_by"):
        harness.process_element(("a", 1))


def test_the_declared_type_is_checked() -> None:
    harness = OneInputHarness(Upper(), output_type=Types.INT())
    with pytest.raises(JobExecutionError, match="expected INT, got str 'A'"):
        harness.process_element("a")


class Unopenable(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError("nobody is there")

    def map(self, value: Any) -> Any:
        return value


def test_a_failure_in_open() -> None:
    harness = OneInputHarness(Unopenable())
    with pytest.raises(JobExecutionError, match="ConnectionError: nobody is there"):
        harness.process_element("a")
    with pytest.raises(ProgramError, match="The harness is closed"):
        harness.process_element("a")
    harness.close()


class Unclosable(Join):
    def close(self) -> None:
        raise OSError("the disk is full")


class Selector(KeySelector):
    closed: ClassVar[list[str]] = []

    def get_key(self, value: Any) -> Any:
        return value[0]

    def close(self) -> None:
        self.closed.append("selector")


def test_a_failure_in_close_leaves_nothing_open() -> None:
    harness = OneInputHarness(Unclosable(), Selector()).open()
    with pytest.raises(JobExecutionError, match="OSError: the disk is full"):
        harness.close()
    assert Selector.closed == ["selector"]
    harness.close()


class Holding(MapFunction):
    def __init__(self) -> None:
        self.generator = (n for n in ())

    def map(self, value: Any) -> Any:
        return value


def test_what_cannot_be_pickled_is_found() -> None:
    with pytest.raises(SerializationError, match=r"'Map'.*self.generator"):
        OneInputHarness(Holding())


# Keys and subtasks


class Where(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.where = runtime_context.get_task_name_with_subtasks()

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield ctx.get_current_key(), self.where


def test_a_subtask_takes_its_own_keys() -> None:
    routes = KeyRoutes(2, 128)
    keys = [f"key-{number}" for number in range(12)]
    own, other = ([key for key in keys if routes[key] == subtask] for subtask in (1, 0))
    harness = OneInputHarness(Where(), lambda key: key, parallelism=2, subtask=1)
    harness.process_elements(own)
    assert harness.output == [(key, "Keyed Process (2/2)") for key in own]
    with pytest.raises(ProgramError, match=rf"Key '{other[0]}' .* belongs to subtask 0, but the harness is subtask 1"):
        harness.process_element(other[0])
    with pytest.raises(ProgramError, match="no subtask 2 at parallelism 2"):
        OneInputHarness(Where(), lambda key: key, parallelism=2, subtask=2)


# What is refused


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda n: n, r"OneInputHarness\.of\(lambda stream: stream\.map"),
        (Upper, r"Pass an instance: Upper\(\)"),
        (Join(), "A ReduceFunction runs on a keyed stream: pass a key_selector"),
        (Timers(), "A KeyedProcessFunction runs on a keyed stream: pass a key_selector"),
    ],
)
def test_what_is_no_function_for_it_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        OneInputHarness(function)


def test_one_operator_at_a_time() -> None:
    with pytest.raises(ProgramError, match=r"the program has 2: 'Map', 'Filter'\. Use run_pipeline"):
        OneInputHarness.of(lambda stream: stream.map(str).filter(bool))
    with pytest.raises(ProgramError, match="the program has 0: none"):
        OneInputHarness.of(lambda stream: stream.key_by(str))


def test_play_refuses_what_is_no_step() -> None:
    harness = OneInputHarness(Upper())
    assert harness.play([["a", Watermark(3), "b"], Watermark(4)]) == ["A", "B"]
    assert harness.watermarks == [3, 4]
    with pytest.raises(ProgramError, match="A step is a list of elements, a Watermark or a ProcessingTime, got 'c'"):
        harness.play(["c"])
