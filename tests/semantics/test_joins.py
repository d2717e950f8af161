"""Joins of two streams: windows, co-groups and intervals, on engines and in both modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, ascending, first
from vocabulary import ms
from windowkit import case_of, play

from firesteel.datastream import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

ORDERS = [("a", 1, "book"), ("b", 4, "lamp"), ("a", 12, "pen"), ("c", 13, "cup")]
PAYMENTS = [("a", 3, 9), ("a", 5, 1), ("b", 15, 20), ("c", 19, 4), ("d", 2, 7)]
"""Key, time, value."""

TUMBLING = TumblingEventTimeWindows.of(ms(10))
BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])


def two(env: StreamExecutionEnvironment, orders: Any = ORDERS, payments: Any = PAYMENTS) -> tuple[Any, Any]:
    def timed(records: list[Any]) -> Any:
        return env.from_collection(records).assign_timestamps_and_watermarks(ascending())

    return timed(orders), timed(payments)


def paired(order: Any, payment: Any) -> str:
    return f"{order[0]} {order[2]} {payment[2]}"


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2, backend="hashmap", mode="batch")
@MODES
@BACKENDS
def test_window_join(run: Any, parallelism: int, mode: RuntimeExecutionMode, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = two(env)
        return orders.join(payments).where(first).equal_to(first).window(TUMBLING).apply(paired)

    assert sorted(run(build, parallelism, {"state.backend.type": backend}, mode)) == ["a book 1", "a book 9", "c cup 4"]


@MODES
@BACKENDS
def test_join_in_sliding_windows_and_sessions(
    run: Any, parallelism: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    def build(env: StreamExecutionEnvironment, windows: Any) -> Any:
        orders, payments = two(env)
        return orders.join(payments).where(first).equal_to(first).window(windows).apply(paired)

    sliding = SlidingEventTimeWindows.of(ms(10), ms(5))
    # [-5, 5) and [0, 10) hold both the book and 9.
    assert sorted(run(lambda env: build(env, sliding), parallelism, {"state.backend.type": backend}, mode)) == [
        *("a book 1", "a book 9", "a book 9", "a pen 1", "c cup 4")
    ]
    sessions = EventTimeSessionWindows.with_gap(ms(6))
    assert sorted(run(lambda env: build(env, sessions), parallelism, {"state.backend.type": backend}, mode)) == [
        "a book 1",
        "a book 9",
        "c cup 4",
    ]


class Rich(FlatJoinFunction):
    """Opened and closed, and any number of results a pair."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.name = f"subtask {runtime_context.get_index_of_this_subtask()}"

    def join(self, first: Any, second: Any) -> Iterator[str] | None:
        return iter([f"{self.name}: {paired(first, second)}"] * 2) if second[2] > 5 else None


def test_a_flat_join_gives_any_number_of_results(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = two(env)
        return orders.join(payments).where(first).equal_to(first).window(TUMBLING).apply(Rich())

    assert [line.rpartition(": ")[2] for line in run(build)] == ["a book 9", "a book 9"]


@MODES
@BACKENDS
def test_a_co_group_sees_windows_of_one_side_too(
    run: Any, parallelism: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    class Outer(CoGroupFunction):
        def co_group(self, first: Any, second: Any) -> Iterator[str]:
            key = (first or second)[0][0]
            yield f"{key} {[order[2] for order in first]} {sorted(payment[2] for payment in second)}"

    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = two(env)
        return orders.co_group(payments).where(first).equal_to(first).window(TUMBLING).apply(Outer())

    assert sorted(run(build, parallelism, {"state.backend.type": backend}, mode)) == [
        "a ['book'] [1, 9]",
        "a ['pen'] []",
        "b ['lamp'] []",
        "b [] [20]",
        "c ['cup'] [4]",
        "d [] [7]",
    ]


class Both(Trigger[Any, Any]):
    """Fires at a payment; elements are tagged with the side they come from."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        side, _ = element
        return TriggerResult.FIRE if side == 1 else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


def test_trigger_and_evictor_see_tagged_elements(run: Any) -> None:
    class Pairs(JoinFunction):
        def join(self, first: Any, second: Any) -> str:
            return paired(first, second)

    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = two(env, [("a", 1, "book"), ("a", 2, "pen")], [("a", 3, 9), ("a", 4, 1)])
        joined = orders.join(payments).where(first).equal_to(first).window(GlobalWindows.create())
        return joined.trigger(PurgingTrigger.of(Both())).evictor(CountEvictor.of(2)).apply(Pairs())

    # The book is evicted; the second payment finds an empty window.
    assert run(build) == ["a pen 9"]


class Within(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        yield paired(left, right), ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


class Stamp(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp()


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=3, backend="rocksdb", mode="streaming")
@MODES
@BACKENDS
def test_interval_join(run: Any, parallelism: int, mode: RuntimeExecutionMode, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = (stream.key_by(first) for stream in two(env))
        return orders.interval_join(payments).between(ms(-7), ms(6)).process(Within()).process(Stamp())

    assert sorted(run(build, parallelism, {"state.backend.type": backend}, mode)) == [
        (("a book 1", 1, 5, 5), 5),
        (("a book 9", 1, 3, 3), 3),
        (("a pen 1", 12, 5, 12), 12),
        (("c cup 4", 13, 19, 19), 19),
    ]


def test_bounds_may_be_left_out(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = (stream.key_by(first) for stream in two(env))
        joined = orders.interval_join(payments).between(ms(-7), ms(6))
        return joined.lower_bound_exclusive().upper_bound_exclusive().process(Within())

    assert sorted(entry[0] for entry in run(build)) == ["a book 1", "a book 9"]


INTERVAL_JOIN = "evens(stream).key_by(key).interval_join(odds(stream).key_by(key)).between(ms(-4), ms(20))"


def test_a_record_is_kept_until_no_partner_can_come() -> None:
    """Even values are left ones. One at 0 waits for right ones up to 20, a right one at 30 for left ones up to 34."""
    script = """
        a=0 at 0
        watermark 19
        a=1 at 20      -> a: 0 1 at 20
        watermark 20
        a=3 at 20
        a=5 at 30
        watermark 33
        a=2 at 34      -> a: 2 5 at 34
        watermark 34
        a=4 at 34
        a=7 at 33
        a=9 at 36      -> a: 2 9 at 36 | a: 4 9 at 36
    """
    case = case_of({"case": "kept", "stream": f"{INTERVAL_JOIN}.process(Pairs())", "script": script})
    stage, emitted = play(case)
    assert emitted == [step.out for step in case.steps]
    assert (stage.dropped, stage.left(), stage.timers()) == (1, [], [])


LATE_ORDERS = [("a", 1, "book"), ("a", 50, "pen"), ("a", 3, "late"), ("a", 51, "cup"), ("a", 60, "-")]
LATE_PAYMENTS = [("a", 1, 9), ("a", 50, 1), ("a", 52, 2), ("a", 4, 3), ("a", 60, 0)]
ONE_OF_EACH = {"firesteel.batch.max-records": "2"}


def test_late_records_of_either_side_to_side_outputs(run: Any) -> None:
    left, right = OutputTag("left"), OutputTag("right")

    def build(env: StreamExecutionEnvironment) -> Any:
        orders, payments = (stream.key_by(first) for stream in two(env, LATE_ORDERS, LATE_PAYMENTS))
        joined = orders.interval_join(payments).between(ms(-1), ms(1))
        results = joined.side_output_left_late_data(left).side_output_right_late_data(right).process(Within())
        return results.get_side_output(left).union(results.get_side_output(right))

    assert run(build, config=ONE_OF_EACH) == [("a", 3, "late"), ("a", 4, 3)]


def test_late_records_of_either_side_are_counted(make_env: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env(config=ONE_OF_EACH)
    orders, payments = (stream.key_by(first) for stream in two(env, LATE_ORDERS, LATE_PAYMENTS))
    orders.interval_join(payments).between(ms(-1), ms(1)).process(Within()).map(first).print()
    metrics = env.execute().get_all_accumulator_results()
    assert metrics["Interval Join.0.numLateRecordsDropped"] == 2
    assert sorted(capsys.readouterr().out.splitlines()) == ["a - 0", "a book 9", "a cup 1", "a cup 2", "a pen 1"]


def test_records_without_a_timestamp_are_refused(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        orders, _ = two(env)
        return (
            orders.key_by(first)
            .interval_join(env.from_collection(PAYMENTS).key_by(first))
            .between(ms(0), ms(1))
            .process(Within())
        )

    with pytest.raises(Exception, match="An interval join needs timestamps on both streams"):
        run(build)
