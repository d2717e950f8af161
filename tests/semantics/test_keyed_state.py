"""Value state: per key, per operator, cleared, and reachable from rich functions of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, first

from firesteel.common import Types
from firesteel.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError
from firesteel.testing import OneInputHarness

MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])


def count_state(runtime_context: RuntimeContext) -> Any:
    return runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))


class Count(KeyedProcessFunction):
    def __init__(self, step: int = 1) -> None:
        self.step = step

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = count_state(runtime_context)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + self.step)
        yield value[0], self.count.value()


@pytest.mark.both_engines
@MODES
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_value_per_key(run: Any, parallelism: int, mode: RuntimeExecutionMode, size: int) -> None:
    records = [(n * n % 11, n) for n in range(60)]
    config = {"firesteel.batch.max-records": str(size)}
    counts = run(lambda env: env.from_collection(records).key_by(first).process(Count()), parallelism, config, mode)
    totals = Counter(key for key, _ in records)
    assert Counter(counts) == Counter((key, n) for key, total in totals.items() for n in range(1, total + 1))


def test_operators_with_the_same_state_name_do_not_share_it(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        keyed = env.from_collection([("a", 0)] * 3).key_by(first)
        return keyed.process(Count(1)).union(keyed.process(Count(10)))

    assert sorted(run(build, parallelism)) == [("a", n) for n in (1, 2, 3, 10, 20, 30)]


def test_equal_numbers_of_different_types_are_one_key(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([(1,), (1.0,), (True,)]).key_by(first).process(Count())

    assert [count for _, count in run(build, parallelism)] == [1, 2, 3]


class RunningMap(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = count_state(runtime_context)

    def map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


class RunningFlatMap(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = count_state(runtime_context)

    def flat_map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        if self.count.value() == 1:
            return None
        return [(value[0], self.count.value())] * 2


class Distinct(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value: Any) -> bool:
        known = self.seen.value()
        self.seen.update(True)
        return not known


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2, mode="streaming")
@MODES
def test_rich_functions_on_a_keyed_stream_have_state(
    make_env: Any, parallelism: int, mode: RuntimeExecutionMode
) -> None:
    records = [("a", 1), ("b", 1), ("a", 2), ("a", 3)]

    def collect(apply: Any) -> list[Any]:
        keyed = make_env(parallelism, mode=mode).from_collection(records).key_by(first)
        with apply(keyed).execute_and_collect() as found:
            return sorted(found)

    assert collect(lambda k: k.map(RunningMap())) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert collect(lambda k: k.flat_map(RunningFlatMap())) == [("a", 2), ("a", 2), ("a", 3), ("a", 3)]
    assert collect(lambda k: k.filter(Distinct())) == [("a", 1), ("b", 1)]


class OpenedReduce(ReduceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.name = runtime_context.get_task_name()

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], f"{self.name}: {value1[1]}{value2[1]}"


def test_a_reduce_function_is_opened() -> None:
    harness = OneInputHarness(OpenedReduce(), first)
    harness.process_elements([("a", "x"), ("a", "y")])
    assert harness.output[-1] == ("a", "Reduce: xy")


class WantsState(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        count_state(runtime_context)

    def map(self, value: Any) -> Any:
        return value


def test_state_without_keys_is_refused() -> None:
    with pytest.raises(JobExecutionError, match=r"asks for keyed state, but its stream has no keys\. Call key_by"):
        OneInputHarness(WantsState()).open()


class WrongState(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = count_state(runtime_context)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update(value)


def test_a_value_that_does_not_fit_the_states_type_is_refused() -> None:
    with pytest.raises(JobExecutionError, match="State 'count': expected INT, got str 'x'"):
        OneInputHarness(WrongState(), first).process_element("x")


class TwoTypes(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        count_state(runtime_context)
        runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        return None


def test_one_state_name_with_two_types_is_refused() -> None:
    with pytest.raises(JobExecutionError, match="registered twice in one operator with different types"):
        OneInputHarness(TwoTypes(), first).open()


class Lazy(KeyedProcessFunction):
    """Asks for its state when the first element comes, and keeps the context for that."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.context = runtime_context

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        state = count_state(self.context)
        state.update((state.value() or 0) + 1)
        yield state.value()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_may_be_asked_for_late(backend: str) -> None:
    harness = OneInputHarness(Lazy(), first, backend=backend)
    harness.process_elements(["a", "b", "a"])
    harness.end_batch()
    harness.process_element("a")
    restored = harness.restore(harness.snapshot())
    restored.process_element("a")
    assert harness.output + restored.output == [1, 1, 2, 3, 4]
