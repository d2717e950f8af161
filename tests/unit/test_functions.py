"""The contracts users subclass and the adapters for plain callables."""

from __future__ import annotations

import functools
import pickle

import cloudpickle
import pytest

from firesteel.datastream import functions
from firesteel.datastream.functions import (
    AsyncRetryStrategy,
    FilterFunction,
    Function,
    KeyedProcessFunction,
    MapFunction,
    as_filter,
    as_flat_map,
    as_key_selector,
    as_map,
    as_partitioner,
    as_reduce,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from firesteel.errors import ProgramError


class Double(MapFunction):
    def map(self, value: int) -> int:
        return 2 * value


class Adder:
    def __call__(self, value: int) -> int:
        return value + 1


def test_function_objects_pass_through() -> None:
    double = Double()
    assert as_map(double) is double


@pytest.mark.parametrize("adapt", [as_map, as_flat_map, as_filter, as_key_selector])
def test_wrappers_hold_the_very_callable(adapt) -> None:  # type: ignore[no-untyped-def]
    for callable_ in (lambda value: value, int, Adder(), functools.partial(max, 1), "a".join):
        wrapped = adapt(callable_)
        assert wrapped.func is callable_
        assert isinstance(wrapped, Function)


def test_wrappers_of_two_arguments() -> None:
    assert as_reduce(lambda a, b: a + b).reduce(1, 2) == 3
    assert as_partitioner(lambda key, n: key % n).partition(7, 4) == 3
    assert as_filter(lambda value: value).filter("x") is True


def test_wrappers_pickle() -> None:
    assert pickle.loads(pickle.dumps(as_map(len))).map("abc") == 3
    assert cloudpickle.loads(cloudpickle.dumps(as_map(lambda v: v + 1))).map(1) == 2


@pytest.mark.parametrize(
    ("adapt", "what", "text"),
    [
        (
            as_map,
            Double,
            "Expected a MapFunction or a callable, got the class Double itself. Pass an instance: Double().",
        ),
        (as_map, 3, "Expected a MapFunction or a callable f(value), got int 3."),
        (as_map, None, "Expected a MapFunction or a callable f(value), got NoneType None."),
        (as_reduce, "x", "Expected a ReduceFunction or a callable f(value1, value2), got str 'x'."),
        (
            as_filter,
            Double(),
            "Expected a FilterFunction or a callable f(value), got an instance of Double, "
            "which is a MapFunction. Subclass FilterFunction instead.",
        ),
        (as_key_selector, 0, "Expected a KeySelector or a callable f(value), got int 0."),
        (as_partitioner, [], "Expected a Partitioner or a callable f(key, num_partitions), got list []."),
    ],
)
def test_anything_else_is_refused(adapt, what: object, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ProgramError) as caught:
        adapt(what)
    assert str(caught.value) == text


def test_contracts_are_abstract_and_their_optional_methods_are_not() -> None:
    class Empty(FilterFunction):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Empty()  # type: ignore[abstract]

    class Quiet(KeyedProcessFunction):
        def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
            return None

    quiet = Quiet()
    assert quiet.on_timer(0, None) is None  # type: ignore[arg-type]
    quiet.open(None)  # type: ignore[arg-type]
    quiet.close()


def test_pyflinks_names_are_all_there() -> None:
    # SourceFunction wraps Java objects only and is left out.
    expected = {
        "RuntimeContext",
        "MapFunction",
        "CoMapFunction",
        "FlatMapFunction",
        "CoFlatMapFunction",
        "ReduceFunction",
        "AggregateFunction",
        "KeySelector",
        "FilterFunction",
        "Partitioner",
        "SinkFunction",
        "ProcessFunction",
        "CoProcessFunction",
        "KeyedProcessFunction",
        "KeyedCoProcessFunction",
        "TimerService",
        "WindowFunction",
        "AllWindowFunction",
        "ProcessWindowFunction",
        "ProcessAllWindowFunction",
        "BaseBroadcastProcessFunction",
        "BroadcastProcessFunction",
        "KeyedBroadcastProcessFunction",
        "AsyncFunction",
        "AsyncFunctionDescriptor",
        "AsyncRetryPredicate",
        "AsyncRetryStrategy",
    }
    assert expected <= set(functions.__all__)
    assert all(hasattr(functions, name) for name in functions.__all__)


def test_retry_strategies() -> None:
    assert not AsyncRetryStrategy.no_restart().can_retry(1)
    fixed = AsyncRetryStrategy.fixed_delay(2, 50, lambda results: not results, None)
    assert [fixed.can_retry(n) for n in (1, 2, 3)] == [True, True, False]
    assert fixed.get_backoff_time_millis(2) == 50
    predicate = fixed.get_retry_predicate().result_predicate()
    assert predicate is not None
    assert predicate([])


def test_output_tags() -> None:
    tag = OutputTag("late")
    assert pickle.loads(pickle.dumps(tag)) == tag
    assert hash(OutputTag("late")) == hash(tag)
    with pytest.raises(ValueError, match="not empty"):
        OutputTag("")
    with pytest.raises(TypeError, match="The type of OutputTag 'a' must be"):
        OutputTag("a", "STRING")  # type: ignore[arg-type]


def test_slot_sharing_groups() -> None:
    assert SlotSharingGroup.builder("g").build().get_cpu_cores() is None
    group = SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory_mb(10).build()
    assert group.get_managed_memory() == MemorySize(0)
    with pytest.raises(ProgramError, match="needs both CPU cores and task heap memory"):
        SlotSharingGroup.builder("g").set_cpu_cores(1.0).build()
    texts = [str(MemorySize(size)) for size in (0, 1, 1024, 1500, 64 << 20, 3 << 30)]
    assert texts == ["0 bytes", "1 bytes", "1 kb", "1500 bytes", "64 mb", "3 gb"]
