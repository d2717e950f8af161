"""Building windows and joins: what is written down, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Configuration, Time, Types
from firesteel.datastream import (
    AggregateFunction,
    AllWindowedStream,
    CoGroupFunction,
    DataStream,
    FlatJoinFunction,
    JoinFunction,
    KeyedStream,
    OutputTag,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    WindowedStream,
    WindowFunction,
)
from firesteel.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from firesteel.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    Trigger,
    TumblingEventTimeWindows,
)
from firesteel.errors import ProgramError
from firesteel.graph.specs import IntervalJoinSpec, WindowSpec

SECOND = Time.seconds(1)
TUMBLING = TumblingEventTimeWindows.of(SECOND)
SESSIONS = EventTimeSessionWindows.with_gap(SECOND)
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LATE = OutputTag("late")


class Sum(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class Apply(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return inputs


class Process(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return elements


class ApplyAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        return inputs


class ProcessAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        return elements


def first(record: Any) -> Any:
    return record[0]


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(2)
    return env


@pytest.fixture
def stream(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([("a", 1)], PAIR)


@pytest.fixture
def keyed(stream: DataStream) -> KeyedStream:
    return stream.key_by(first)


def spec_of(stream: DataStream) -> Any:
    return stream.transformation.spec


class TestKeyedWindows:
    def test_everything_that_can_be_set(self, keyed: KeyedStream) -> None:
        trigger, evictor, function = EventTimeTrigger(), CountEvictor.of(3), Process()
        windowed = keyed.window(SESSIONS).trigger(trigger).evictor(evictor)
        result = windowed.allowed_lateness(500).side_output_late_data(LATE).process(function, PAIR)
        spec = spec_of(result)
        assert isinstance(spec, WindowSpec)
        assert spec == WindowSpec(SESSIONS, trigger, None, function, evictor, 500, LATE)
        assert result.get_type() == PAIR
        assert spec.stateful

    def test_what_is_set_by_default(self, keyed: KeyedStream) -> None:
        spec = spec_of(keyed.window(TUMBLING).apply(Apply()))
        assert isinstance(spec.trigger, EventTimeTrigger)
        assert (spec.fold, spec.evictor, spec.allowed_lateness, spec.late_tag) == (None, None, 0, None)

    def test_a_lambda_reduces(self, keyed: KeyedStream) -> None:
        result = keyed.window(TUMBLING).reduce(lambda a, b: (a[0], a[1] + b[1]))
        spec = spec_of(result)
        assert isinstance(spec.fold, ReduceFunction)
        assert spec.fold.reduce(("a", 1), ("a", 2)) == ("a", 3)
        assert spec.function is None
        assert result.get_type() == PAIR, "what is reduced stays of its type"

    def test_a_reduce_function_and_a_window_function(self, keyed: KeyedStream) -> None:
        for function in (Apply(), Process()):
            result = keyed.window(TUMBLING).reduce(add, window_function=function)
            assert spec_of(result).function is function
            assert result.get_type() == Types.PICKLED_BYTE_ARRAY()
        assert keyed.window(TUMBLING).reduce(add, Apply(), Types.INT()).get_type() == Types.INT()

    def test_an_aggregate_function(self, keyed: KeyedStream) -> None:
        total, function = Sum(), Process()
        result = keyed.window(TUMBLING).aggregate(
            total, function, accumulator_type=Types.INT(), output_type=Types.INT()
        )
        assert (spec_of(result).fold, spec_of(result).function) == (total, function)
        assert result.get_type() == Types.INT()
        assert keyed.window(TUMBLING).aggregate(total).get_type() == Types.PICKLED_BYTE_ARRAY()

    def test_count_windows(self, keyed: KeyedStream) -> None:
        tumbling = spec_of(keyed.count_window(3).reduce(add))
        assert isinstance(tumbling.assigner, CountTumblingWindowAssigner)
        assert isinstance(tumbling.trigger, PurgingTrigger)
        assert isinstance(spec_of(keyed.count_window(3, 1).reduce(add)).assigner, CountSlidingWindowAssigner)
        with pytest.raises(ProgramError, match="must be an int of at least 1, got -3"):
            keyed.count_window(-3)

    def test_lateness_may_be_a_time(self, keyed: KeyedStream) -> None:
        assert spec_of(keyed.window(TUMBLING).allowed_lateness(SECOND).reduce(add)).allowed_lateness == 1000

    def test_facts(self, keyed: KeyedStream, env: StreamExecutionEnvironment) -> None:
        windowed = keyed.window(TUMBLING)
        assert isinstance(windowed, WindowedStream)
        assert windowed.get_execution_environment() is env
        assert windowed.get_input_type() == PAIR

    def test_the_late_ones_are_a_stream(self, keyed: KeyedStream) -> None:
        late = keyed.window(TUMBLING).side_output_late_data(LATE).reduce(add).get_side_output(LATE)
        assert late._edge().tag == "late"

    def test_it_stands_behind_an_exchange_by_key(self, keyed: KeyedStream, env: StreamExecutionEnvironment) -> None:
        keyed.window(TUMBLING).evictor(CountEvictor.of(3)).aggregate(Sum(), Process()).print()
        source, window, sink = json.loads(env.get_execution_plan())["nodes"]
        assert window["type"] == "TumblingEventTimeWindows"
        shown = "TumblingEventTimeWindows(1000, 0), EventTimeTrigger, CountEvictor(3), Sum, Process"
        assert window["contents"] == f"Window({shown})"
        assert window["parallelism"] == 2
        assert window["predecessors"] == [{"id": source["id"], "ship_strategy": "HASH", "side": "second"}]
        assert sink["stage"] == window["stage"] == 1

    def test_it_remembers_the_users_line(self, keyed: KeyedStream) -> None:
        assert keyed.window(TUMBLING).reduce(add).transformation.built_at.file == __file__


class TestWindowsOfAll:
    def test_one_subtask_sees_everything(self, stream: DataStream, env: StreamExecutionEnvironment) -> None:
        windowed = stream.window_all(TUMBLING)
        assert isinstance(windowed, AllWindowedStream)
        windowed.reduce(add).print()
        _, window, _ = json.loads(env.get_execution_plan())["nodes"]
        assert window["contents"] == "AllWindow(TumblingEventTimeWindows(1000, 0), EventTimeTrigger, add)"
        assert window["parallelism"] == 1
        assert window["predecessors"][0]["ship_strategy"] == "HASH"

    def test_and_only_one(self, stream: DataStream, env: StreamExecutionEnvironment) -> None:
        stream.window_all(TUMBLING).reduce(add).set_parallelism(2).print()
        with pytest.raises(ProgramError, match="cannot have parallelism 2, only 1"):
            env.get_execution_plan()

    def test_its_functions_see_no_key(self, stream: DataStream) -> None:
        for function in (ApplyAll(), ProcessAll()):
            assert spec_of(stream.window_all(TUMBLING).reduce(add, function)).function is function
        assert spec_of(stream.window_all(TUMBLING).apply(ApplyAll(), PAIR)).fold is None
        assert isinstance(spec_of(stream.window_all(TUMBLING).process(ProcessAll())).function, ProcessAll)
        with pytest.raises(ProgramError, match=r"apply\(\) takes an instance of AllWindowFunction, got Apply"):
            stream.window_all(TUMBLING).apply(Apply())  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="takes an instance of ProcessAllWindowFunction, got Process"):
            stream.window_all(TUMBLING).process(Process())  # type: ignore[arg-type]


class TestRefused:
    def test_windows_that_merge_with_a_trigger_that_does_not(self, keyed: KeyedStream) -> None:
        trigger: Trigger[Any, Any]
        for trigger in (NeverTrigger(), DeltaTrigger.of(1.0, max), PurgingTrigger.of(NeverTrigger())):
            with pytest.raises(ProgramError, match=r"EventTimeSessionWindows\(1000\) merges windows, which "):
                keyed.window(SESSIONS).trigger(trigger)
            keyed.window(TUMBLING).trigger(trigger)
        keyed.window(SESSIONS).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(1))

    def test_windows_that_merge_with_such_a_default_trigger(self, keyed: KeyedStream) -> None:
        class Stubborn(EventTimeSessionWindows):
            def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
                return NeverTrigger()

        with pytest.raises(ProgramError, match="merges windows, which NeverTrigger"):
            keyed.window(Stubborn(5)).reduce(add)
        keyed.window(Stubborn(5)).trigger(EventTimeTrigger()).reduce(add)

    def test_negative_lateness(self, keyed: KeyedStream) -> None:
        with pytest.raises(ProgramError, match="The allowed lateness cannot be negative, got -1 ms"):
            keyed.window(TUMBLING).allowed_lateness(-1)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda k: k.window(5), r"window\(\) takes an instance of WindowAssigner, got int 5"),
            (lambda k: k.window(GlobalWindows), "got the class GlobalWindows itself. Pass an instance"),
            (
                lambda k: k.window(TUMBLING).trigger(EventTimeTrigger),
                "an instance of Trigger, got the class",
            ),
            (lambda k: k.window(TUMBLING).evictor(3), r"evictor\(\) takes an instance of Evictor, got int 3"),
            (lambda k: k.window(TUMBLING).allowed_lateness("1"), r"allowed_lateness\(\) takes a Time"),
            (lambda k: k.window(TUMBLING).side_output_late_data("late"), "takes an instance of OutputTag, got str"),
            (lambda k: k.window(TUMBLING).reduce(3), r"Expected a ReduceFunction or a callable f\(value1, value2\)"),
            (lambda k: k.window(TUMBLING).aggregate(add), "takes an instance of AggregateFunction, got function"),
            (lambda k: k.window(TUMBLING).apply(Process()), "takes an instance of WindowFunction, got Process"),
            (lambda k: k.window(TUMBLING).process(Apply()), "takes an instance of ProcessWindowFunction, got Apply"),
            (
                lambda k: k.window(TUMBLING).reduce(add, ApplyAll()),
                r"reduce\(window_function\) takes an instance of WindowFunction or ProcessWindowFunction, got ApplyAll",
            ),
            (lambda k: k.window(TUMBLING).reduce(add, output_type=int), "output_type must be one of Types"),
        ],
    )
    def test_what_is_not_what_it_should_be(self, keyed: KeyedStream, call: Any, message: str) -> None:
        with pytest.raises(ProgramError, match=message):
            call(keyed)


class Pairs(JoinFunction):
    opened = closed = False

    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = True

    def close(self) -> None:
        self.closed = True

    def join(self, first: Any, second: Any) -> Any:
        return first, second


class Equal(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Iterator[Any] | None:
        return iter([first, second]) if first == second else None


class Both(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Iterator[Any] | None:
        return iter([(list(first), list(second))]) if first else None


class Never(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> None:
        return None


MIXED = [(0, 1), (1, 1), (0, 2), (1, 3)]


class TestWindowJoins:
    def evaluated(self, stream: DataStream, inputs: Any = MIXED) -> list[Any]:
        function = pickle.loads(pickle.dumps(spec_of(stream).function))
        return list(function.apply("key", None, inputs))

    def test_pairs(self, stream: DataStream) -> None:
        windows = stream.join(stream).where(first).equal_to(first).window(TUMBLING)
        assert self.evaluated(windows.apply(Pairs())) == [(1, 1), (1, 3), (2, 1), (2, 3)]
        assert self.evaluated(windows.apply(max)) == [1, 3, 2, 3]
        assert self.evaluated(windows.apply(Equal())) == [1, 1]
        assert self.evaluated(windows.apply(Pairs()), [(0, 1)]) == []

    def test_groups(self, stream: DataStream) -> None:
        windows = stream.co_group(stream).where(first).equal_to(first).window(TUMBLING)
        assert self.evaluated(windows.apply(Both())) == [([1, 2], [1, 3])]
        assert self.evaluated(windows.apply(Both()), [(0, 1)]) == [([1], [])]
        assert self.evaluated(windows.apply(Both()), [(1, 1)]) == []
        result = windows.apply(_sizes, Types.TUPLE([Types.INT(), Types.INT()]))
        assert self.evaluated(result) == [(2, 2)]
        assert result.get_name() == "Co-Group"

    def test_keys_of_either_stream(self, stream: DataStream, env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1])
        result = stream.join(numbers).where(first).equal_to(str).window(TUMBLING).apply(Pairs())
        selector = pickle.loads(pickle.dumps(result.transformation.inputs[0].partitioning.selector))
        assert (selector.get_key((0, ("a", 1))), selector.get_key((1, 7))) == ("a", "7")

    def test_settings_reach_the_window(self, stream: DataStream) -> None:
        trigger, evictor = CountTrigger.of(3), CountEvictor.of(5)
        windows = stream.join(stream).where(first).equal_to(first).window(SESSIONS)
        result = windows.trigger(trigger).evictor(evictor).allowed_lateness(7).apply(Pairs(), PAIR)
        spec = spec_of(result)
        assert (spec.assigner, spec.trigger, spec.evictor, spec.allowed_lateness) == (SESSIONS, trigger, evictor, 7)
        assert result.get_type() == PAIR
        with pytest.raises(ProgramError, match="merges windows"):
            windows.trigger(NeverTrigger())

    def test_the_function_is_opened_and_closed(self, stream: DataStream) -> None:
        function, context = Pairs(), Any
        wrapper = spec_of(stream.join(stream).where(first).equal_to(first).window(TUMBLING).apply(function)).function
        wrapper.open(context)
        wrapper.close()
        assert (function.opened, function.closed) == (True, True)

    def test_tags_are_put_on_where_the_records_are(self, stream: DataStream, env: StreamExecutionEnvironment) -> None:
        # Keyed before, and of different types: neither is in the way of a join.
        other = env.from_collection([1]).key_by(str)
        stream.join(other).where(first).equal_to(str).window(TUMBLING).apply(Pairs()).print()
        plan = json.loads(env.get_execution_plan())
        nodes = {node["id"]: node for node in plan["nodes"]}
        join = next(node for node in plan["nodes"] if node["type"] == "Join")
        assert join["contents"].startswith("Window(TumblingEventTimeWindows(1000, 0), EventTimeTrigger, ")
        assert [edge["ship_strategy"] for edge in join["predecessors"]] == ["HASH", "HASH"]
        for edge in join["predecessors"]:
            tagging = nodes[edge["id"]]
            assert tagging["parallelism"] == 1, "as the collection before it"
            assert [before["ship_strategy"] for before in tagging["predecessors"]] == ["FORWARD"]
        assert plan["stages"] == 2

    @pytest.mark.parametrize("method", ["join", "co_group"])
    def test_refused(self, stream: DataStream, method: str) -> None:
        with pytest.raises(ProgramError, match=rf"{method}\(\) takes another DataStream, got 5"):
            getattr(stream, method)(5)
        stranger = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
        with pytest.raises(ProgramError, match="Streams of different environments cannot be joined"):
            getattr(stream, method)(stranger)
        where = getattr(stream, method)(stream).where(first, Types.STRING())
        with pytest.raises(ProgramError, match="keys of joined streams must be of one type, these are STRING and INT"):
            where.equal_to(first, Types.INT())
        with pytest.raises(ProgramError, match="Expected a KeySelector or a callable"):
            where.equal_to(3)
        with pytest.raises(ProgramError, match=r"window\(\) takes an instance of WindowAssigner"):
            where.equal_to(first).window(3)
        with pytest.raises(ProgramError, match=r"Expected a (Join|CoGroup)Function or a callable f\(first"):
            where.equal_to(first).window(TUMBLING).apply(3)


def _sizes(firsts: list[Any], seconds: list[Any]) -> list[Any]:
    return [(len(firsts), len(seconds))]


class TestIntervalJoins:
    def test_bounds_are_inclusive(self, keyed: KeyedStream) -> None:
        function = Never()
        result = keyed.interval_join(keyed).between(Time.seconds(-1), SECOND).process(function, PAIR)
        assert spec_of(result) == IntervalJoinSpec(function, -1000, 1000)
        assert (result.get_type(), result.get_name()) == (PAIR, "Interval Join")

    def test_unless_they_are_not(self, keyed: KeyedStream) -> None:
        joined = keyed.interval_join(keyed).between(Time.seconds(-1), SECOND)
        # Twice is once.
        joined = joined.lower_bound_exclusive().upper_bound_exclusive().lower_bound_exclusive()
        spec = spec_of(joined.process(Never()))
        assert (spec.lower, spec.upper) == (-999, 999)

    def test_late_records(self, keyed: KeyedStream) -> None:
        right = OutputTag("right")
        joined = keyed.interval_join(keyed).between(SECOND, SECOND)
        spec = spec_of(joined.side_output_left_late_data(LATE).side_output_right_late_data(right).process(Never()))
        assert (spec.left_late_tag, spec.right_late_tag) == (LATE, right)

    def test_it_has_two_inputs(self, keyed: KeyedStream, env: StreamExecutionEnvironment) -> None:
        other = env.from_collection([("a", 2)]).key_by(first)
        keyed.interval_join(other).between(SECOND, SECOND).process(Never()).print()
        join = next(n for n in json.loads(env.get_execution_plan())["nodes"] if n["type"] == "Interval Join")
        assert [(edge["ship_strategy"], edge["input"]) for edge in join["predecessors"]] == [("HASH", 1), ("HASH", 2)]

    def test_refused(self, keyed: KeyedStream, stream: DataStream) -> None:
        with pytest.raises(ProgramError, match=r"takes another KeyedStream, got DataStream\. Call key_by"):
            keyed.interval_join(stream)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="takes another KeyedStream, got int"):
            keyed.interval_join(5)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="must be of one type, these are STRING and INT"):
            stream.key_by(first, Types.STRING()).interval_join(stream.key_by(first, Types.INT()))
        join = keyed.interval_join(keyed)
        with pytest.raises(ProgramError, match="not above the upper one, got 1000 ms and 0 ms"):
            join.between(SECOND, Time.seconds(0))
        with pytest.raises(ProgramError, match=r"between\(lower_bound\) takes a Time"):
            join.between(0, SECOND)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="No time lies between 1000 ms and 1000 ms without these bounds"):
            join.between(SECOND, SECOND).lower_bound_exclusive().process(Never())
        with pytest.raises(ProgramError, match="takes an instance of ProcessJoinFunction, got the class Never itself"):
            join.between(SECOND, SECOND).process(Never)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="takes an instance of OutputTag, got str 'late'"):
            join.between(SECOND, SECOND).side_output_left_late_data("late")  # type: ignore[arg-type]
