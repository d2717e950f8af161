"""Connected streams: one function over two inputs, with and without keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from connectedkit import LEFT, MODES, RIGHT, SMALL, Alarm, Label, Numbered, Sides, connected, of_side, timed
from kit import BATCH, FOREVER, NO_TIME, STREAMING, ascending, first

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeDomain,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError


@pytest.fixture(params=[1, 3])
def parallelism(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


class TestWithoutKeys:
    @pytest.mark.both_engines
    @MODES
    def test_a_co_map_sees_both_and_a_none_is_dropped(self, run: Any, parallelism: int, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            words = env.from_collection(["a", None, "b", "c"])
            return words.connect(env.from_collection(range(6))).map(Label())

        log = run(build, parallelism, SMALL, mode)
        assert sorted(of_side(log, "first")) == ["a", "b", "c"]
        assert sorted(of_side(log, "second")) == [0, 2, 4]

    @MODES
    def test_each_input_keeps_its_order(self, run: Any, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            return env.from_collection(range(50)).connect(env.from_collection(range(50))).process(Sides())

        log = run(build, config=SMALL, mode=mode)
        assert of_side(log, "first") == of_side(log, "second") == list(range(50))

    def test_what_a_co_map_drops_takes_its_timestamp_with_it(self, run: Any, parallelism: int) -> None:
        class Even(CoMapFunction):
            def map1(self, value: Any) -> Any:
                return value if value[1] % 2 == 0 else None

            def map2(self, value: Any) -> Any:
                return None

        def build(env: StreamExecutionEnvironment) -> Any:
            timed = env.from_collection([("a", n) for n in range(9)]).assign_timestamps_and_watermarks(ascending())
            evens = timed.connect(env.from_collection([1])).map(Even())
            return evens.connect(env.from_collection([0]).filter(lambda n: False)).process(Sides())

        log = run(build, parallelism)
        assert sorted(entry[1:3] for entry in log) == [(("a", n), n) for n in range(0, 9, 2)]

    def test_the_two_sides_of_a_flat_map_share_its_attributes(self, run: Any) -> None:
        class Gate(CoFlatMapFunction):
            def __init__(self) -> None:
                self.allowed: set[str] = set()

            def flat_map1(self, value: Any) -> None:
                self.allowed.add(value)

            def flat_map2(self, value: Any) -> Any:
                return [value, value] if value in self.allowed else None

        def build(env: StreamExecutionEnvironment) -> Any:
            rules = env.from_collection(["b", "d"])
            # The second stream is a stage behind, so that all rules are there when its records come.
            letters = env.from_collection("abcd").rebalance().map(str.lower).rebalance()
            return rules.connect(letters).flat_map(Gate())

        assert run(build) == ["b", "b", "d", "d"]

    @MODES
    def test_a_process_function_sees_time(self, run: Any, parallelism: int, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            timed = env.from_collection([("a", 5), ("b", 7)]).assign_timestamps_and_watermarks(ascending())
            return timed.connect(env.from_collection([1, 2])).process(Sides())

        log = run(build, parallelism, mode=mode)
        assert sorted(entry[:3] for entry in log if entry[0] == "first") == [
            ("first", ("a", 5), 5),
            ("first", ("b", 7), 7),
        ]
        assert {entry[2] for entry in log if entry[0] == "second"} == {NO_TIME}
        assert {entry[3] for entry in log} == {NO_TIME}

    def test_side_outputs_of_both_sides(self, make_env: Any, parallelism: int, capfd: Any) -> None:
        odd = OutputTag("odd", Types.INT())

        class Split(CoProcessFunction):
            def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
                yield (odd, value) if value % 2 else value

            process_element2 = process_element1

        env = make_env(parallelism)
        split = env.from_collection(range(4)).connect(env.from_collection(range(10, 14))).process(Split(), Types.INT())
        split.print("even")
        split.get_side_output(odd).print("odd")
        env.execute()
        lines = [line.split("> ") for line in capfd.readouterr().out.splitlines()]
        assert sorted(int(value) for label, value in lines if label.startswith("even")) == [0, 2, 10, 12]
        assert sorted(int(value) for label, value in lines if label.startswith("odd")) == [1, 3, 11, 13]

    @MODES
    def test_one_keyed_stream_alone_gives_no_state(self, run: Any, parallelism: int, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            keyed = env.from_collection([("a", 1), ("b", 2)]).key_by(first)
            return keyed.connect(env.from_collection([3, 4])).process(Sides())

        log = run(build, parallelism, mode=mode)
        assert sorted(of_side(log, "first")) == [("a", 1), ("b", 2)], "plain records, without their keys"
        assert sorted(of_side(log, "second")) == [3, 4]


class TestWithKeys:
    @pytest.mark.both_engines
    @pytest.mark.spark_sample(parallelism=3, mode="streaming")
    @MODES
    def test_both_sides_share_the_state_of_a_key(self, run: Any, parallelism: int, mode: Any) -> None:
        log = run(lambda env: connected(env).process(Numbered()), parallelism, SMALL, mode)
        for key in "abcd":
            of_key = [entry for entry in log if entry[1] == key]
            assert [entry[3] for entry in of_key] == list(range(1, len(of_key) + 1))
            assert [entry[2] for entry in of_key if entry[0] == "first"] == [r for r in LEFT if r[0] == key]
            assert [entry[2] for entry in of_key if entry[0] == "second"] == [r for r in RIGHT if r[0] == key]
        assert len(log) == len(LEFT) + len(RIGHT)

    @MODES
    def test_rich_co_maps_have_the_state_of_a_key(self, run: Any, parallelism: int, mode: Any) -> None:
        class Total(CoMapFunction):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

            def map1(self, value: Any) -> Any:
                self.total.update((self.total.value() or 0) + value[1])

            def map2(self, value: Any) -> Any:
                self.map1(value)
                return value[0], self.total.value()

        log = run(lambda env: connected(env).map(Total()), parallelism, mode=mode)
        assert len(log) == len(RIGHT), "map1 returned None"
        assert [max(n for key, n in log if key == wanted) for wanted in "bd"] == [12, 7]

    @MODES
    def test_a_result_of_a_flat_map_is_not_changed_by_later_records(
        self, run: Any, parallelism: int, mode: Any
    ) -> None:
        class Gathered(CoFlatMapFunction):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))

            def flat_map1(self, value: Any) -> Any:
                seen = self.seen.value() or []
                seen.append(value[1])
                self.seen.update(seen)
                return [seen]

            flat_map2 = flat_map1

        log = run(lambda env: connected(env, LEFT, []).flat_map(Gathered()), parallelism, mode=mode)
        assert sorted(log) == [[1], [1, 3], [1, 3, 5], [2], [4]]

    def test_a_co_process_function_has_state_but_no_timers(self, run: Any) -> None:
        class Counting(CoProcessFunction):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

            def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
                self.count.update((self.count.value() or 0) + 1)
                yield value[0], self.count.value()

            def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> None:
                ctx.timer_service().register_event_time_timer(1)

        assert run(lambda env: connected(env, LEFT, []).process(Counting()))[-1] == ("a", 3)
        with pytest.raises(JobExecutionError, match=r"no on_timer\(\).*Subclass KeyedCoProcessFunction"):
            run(lambda env: connected(env).process(Counting()))

    def test_a_second_key_by_replaces_the_first(self, run: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            keyed = env.from_collection(LEFT).key_by(first).connect(env.from_collection(RIGHT).key_by(first))
            return keyed.key_by(lambda r: "all", lambda r: "all", Types.STRING()).process(Numbered())

        assert {entry[1] for entry in run(build)} == {"all"}

    def test_results_are_streams_like_others(self, run: Any, parallelism: int) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            numbered = connected(env).process(Numbered()).key_by(lambda entry: entry[1])
            # The second input of the second operator comes from another depth than the first.
            return numbered.connect(env.from_collection(LEFT).key_by(first)).process(Numbered())

        log = run(build, parallelism, SMALL)
        assert len(log) == len(LEFT) + len(RIGHT) + len(LEFT)
        assert max(entry[3] for entry in log if entry[1] == "a") == 8


class TestShapes:
    @MODES
    def test_a_stream_connected_with_itself(self, run: Any, parallelism: int, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            stream = env.from_collection(LEFT)
            return stream.connect(stream).key_by(first, first).process(Numbered())

        log = run(build, parallelism, SMALL, mode)
        for side in ("first", "second"):
            assert sorted(entry[2] for entry in log if entry[0] == side) == sorted(LEFT)

    @MODES
    def test_unions_on_both_sides(self, run: Any, parallelism: int, mode: Any) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            streams = [env.from_collection([n, n + 10]) for n in range(4)]
            return streams[0].union(streams[1]).connect(streams[2].union(streams[3])).process(Sides())

        log = run(build, parallelism, mode=mode)
        assert sorted(of_side(log, "first")) == [0, 1, 10, 11]
        assert sorted(of_side(log, "second")) == [2, 3, 12, 13]

    def test_a_side_output_and_a_broadcast_stream_as_inputs(self, run: Any, parallelism: int) -> None:
        tag = OutputTag("tag", Types.INT())

        class Tagging(KeyedProcessFunction):
            def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
                yield tag, value

        def build(env: StreamExecutionEnvironment) -> Any:
            tagged = env.from_collection(range(5)).key_by(lambda n: n).process(Tagging())
            return tagged.get_side_output(tag).connect(env.from_collection([100]).broadcast()).process(Sides())

        log = run(build, parallelism)
        assert sorted(of_side(log, "first")) == [0, 1, 2, 3, 4]
        assert of_side(log, "second") == [100] * parallelism

    def test_the_plan_says_which_input_an_edge_feeds(self, make_env: Any) -> None:
        env = make_env()
        connected(env).process(Numbered()).print()
        plan = env.get_execution_plan()
        assert '"type": "Keyed Co-Process"' in plan
        assert plan.count('"input": 1') == plan.count('"input": 2') == 1


class TestTime:
    @pytest.mark.both_engines
    @pytest.mark.spark_sample(parallelism=1, mode="batch")
    @MODES
    def test_one_side_sets_a_timer_the_other_takes_it_back(self, run: Any, parallelism: int, mode: Any) -> None:
        left = [(key, 1, 50) for key in "abcd"]
        right = [(key, 2, 50) for key in "bd"]
        log = run(lambda env: timed(env, left, right).process(Alarm()), parallelism, mode=mode)
        fired = sorted(entry for entry in log if entry[0] == "timer")
        assert fired == [("timer", "a", 50, FOREVER), ("timer", "c", 50, FOREVER)]

    def test_the_slower_input_decides_the_watermark(self, run: Any, parallelism: int) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            env.get_config().set_auto_watermark_interval(1)
            left = [("a", 10, 8), ("a", 1000, 30)]
            right = [("a", 5, 0), ("a", 15, 0), ("a", 20, 0)]
            return timed(env, left, right).process(Alarm())

        log = run(build, parallelism)
        assert [entry[1:] for entry in log if entry[0] == "second"] == [("a", 5, NO_TIME), ("a", 15, 4), ("a", 20, 14)]
        assert [entry[1:] for entry in log if entry[0] == "timer"] == [("a", 8, 14), ("a", 30, FOREVER)]

    def test_timers_of_processing_time_fire_in_batch(self, run: Any, parallelism: int) -> None:
        class Later(KeyedCoProcessFunction):
            def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
                now = ctx.timer_service().current_processing_time()
                ctx.timer_service().register_processing_time_timer(now + 3_600_000)

            process_element2 = process_element1

            def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
                yield ctx.get_current_key(), ctx.time_domain(), ctx.timestamp() == timestamp

        log = run(lambda env: connected(env).process(Later()), parallelism, mode=BATCH)
        assert sorted(log) == [(key, TimeDomain.PROCESSING_TIME, True) for key in "abcd"]
        assert run(lambda env: connected(env).process(Later()), parallelism, mode=STREAMING) == []

    def test_in_batch_a_key_lives_in_event_time_over_both_streams(self, run: Any, parallelism: int) -> None:
        left = [("a", 30), ("a", 10), ("b", 1), ("a", 20)]
        right = [("a", 25), ("a", 5), ("a", 20), ("a", 40)]
        log = run(lambda env: timed(env, left, right).process(Numbered()), parallelism, mode=BATCH)
        of_a = [(entry[0], entry[2][1]) for entry in log if entry[1] == "a"]
        assert [time for _, time in of_a] == [5, 10, 20, 20, 25, 30, 40]
        assert {side for side, time in of_a if time == 20} == {"first", "second"}

    def test_in_batch_records_without_time_come_in_turn(self, run: Any, parallelism: int) -> None:
        log = run(lambda env: connected(env).process(Numbered()), parallelism, mode=BATCH)
        sides = [entry[0] for entry in log if entry[1] == "a"]
        assert sides == ["first", "second", "first", "second", "first"]

    def test_in_batch_a_stream_without_time_comes_before_one_with(self, run: Any, parallelism: int) -> None:
        def build(env: StreamExecutionEnvironment) -> Any:
            with_time = env.from_collection(LEFT).assign_timestamps_and_watermarks(ascending())
            return with_time.key_by(first).connect(env.from_collection(RIGHT).key_by(first)).process(Numbered())

        log = run(build, parallelism, mode=BATCH)
        assert [entry[0] for entry in log if entry[1] == "a"] == ["second", "second", "first", "first", "first"]
