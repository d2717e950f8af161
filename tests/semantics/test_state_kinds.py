"""Every kind of keyed state, from every kind of function, on every backend: against plain Python values.

A *kind* is a descriptor and a script: what a record does to the state, and what it sees of it. The same script runs on
a model, a plain list, dict or number per key, and both must tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit import BATCH, ascending, first
from statekinds import (
    BACKEND,
    BACKENDS,
    KINDS,
    MODES,
    RECORDS,
    SIZES,
    SMALL,
    SUBTASKS,
    Model,
    added,
    settings,
    state_of,
    told_by_model,
)

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

# Every kind in a process function


class Process(KeyedProcessFunction):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value[0], value[1], KINDS[self.kind].script(self.state, value[1])


@pytest.mark.both_engines
@BACKEND
@MODES
@SUBTASKS
@SIZES
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_state_is_what_a_plain_value_per_key_would_be(
    run: Any, kind: str, size: int, subtasks: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(RECORDS).key_by(first).process(Process(kind))

    assert sorted(run(build, subtasks, settings(backend, size), mode)) == told_by_model(kind)


class AllAtOnce(KeyedProcessFunction):
    """A state of each kind in one operator, under names of their own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.states = {kind: state_of(runtime_context, kind, f"the {kind}") for kind in KINDS}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        for kind, state in self.states.items():
            yield kind, (value[0], value[1], KINDS[kind].script(state, value[1]))


@pytest.mark.both_engines
@pytest.mark.spark_sample(subtasks=3, mode="streaming", backend="tight")
@pytest.mark.spark_sample(subtasks=3, mode="batch", backend="rocksdb")
@BACKEND
@MODES
@SUBTASKS
def test_all_kinds_in_one_operator(run: Any, subtasks: int, mode: RuntimeExecutionMode, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(RECORDS).key_by(first).process(AllAtOnce())

    results = run(build, subtasks, settings(backend, 20), mode)
    for kind in KINDS:
        assert sorted(shown for of, shown in results if of == kind) == told_by_model(kind)


# Every kind in the other rich functions


class InMap(MapFunction):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def map(self, value: Any) -> Any:
        return value[0], value[1], KINDS[self.kind].script(self.state, value[1])


class InFlatMap(FlatMapFunction):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def flat_map(self, value: Any) -> Iterator[Any]:
        shown = value[0], value[1], KINDS[self.kind].script(self.state, value[1])
        yield shown
        yield shown


class InFilter(FilterFunction):
    """Lets a record pass if what it is shown, written down, has an even number of characters."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def filter(self, value: Any) -> bool:
        return len(repr(KINDS[self.kind].script(self.state, value[1]))) % 2 == 0


FUNCTIONS: dict[str, tuple[Callable[[Any, str], Any], Callable[[list[Any]], list[Any]]]] = {
    "map": (lambda keyed, kind: keyed.map(InMap(kind)), lambda shown: shown),
    "flat_map": (
        lambda keyed, kind: keyed.flat_map(InFlatMap(kind)),
        lambda shown: [one for one in shown for _ in range(2)],
    ),
    "filter": (
        lambda keyed, kind: keyed.filter(InFilter(kind)),
        lambda shown: [one[:2] for one in shown if len(repr(one[2])) % 2 == 0],
    ),
}


@BACKEND
@MODES
@SIZES
@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_any_rich_function_has_any_state(
    run: Any, function: str, kind: str, size: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    apply, expected = FUNCTIONS[function]

    def build(env: StreamExecutionEnvironment) -> Any:
        return apply(env.from_collection(RECORDS).key_by(first), kind)

    assert sorted(run(build, 2, settings(backend, size), mode)) == expected(told_by_model(kind))


class InReduce(ReduceFunction):
    """Reduces to what the newest record was shown."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2[0], value2[1], KINDS[self.kind].script(self.state, value2[1])


@BACKEND
@MODES
@SIZES
@pytest.mark.parametrize("kind", SMALL)
def test_a_reduce_function_has_any_state(
    run: Any, kind: str, size: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(RECORDS).key_by(first).reduce(InReduce(kind))

    # The first record of a key is its first result; the function is called from the second on.
    firsts = {key: (key, n) for key, n in reversed(RECORDS)}
    later = told_by_model(kind, [record for record in RECORDS if record not in firsts.values()])
    if mode is BATCH:
        expected = sorted({**firsts, **{shown[0]: shown for shown in later}}.values())
    else:
        expected = sorted([*firsts.values(), *later])
    assert sorted(run(build, 2, settings(backend, size), mode)) == expected


# State and timers


class AtTheEnd(KeyedProcessFunction):
    """Works on the state when the timer of a record fires: after other keys, and maybe batches later."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(value[1] + 20)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        n = timestamp - 20
        yield ctx.get_current_key(), n, KINDS[self.kind].script(self.state, n)


@BACKEND
@MODES
@SIZES
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_timer_works_on_its_keys_state(
    run: Any, kind: str, size: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection(RECORDS).assign_timestamps_and_watermarks(ascending())
        return timed.key_by(first).process(AtTheEnd(kind))

    assert sorted(run(build, 2, settings(backend, size), mode)) == told_by_model(kind)


# Two streams on one state, and all keys at once


class FullJoin(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.LONG()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.left.add(value[1])
        yield from ((value[0], value[1], other) for other in self.right.get())

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.right.add(value[1])
        yield from ((value[0], other, value[1]) for other in self.left)


@pytest.mark.both_engines
@pytest.mark.spark_sample(size=1000, subtasks=3, mode="streaming", backend="hashmap")
@BACKEND
@MODES
@SUBTASKS
@SIZES
def test_a_full_join_with_list_state(
    run: Any, size: int, subtasks: int, mode: RuntimeExecutionMode, backend: str
) -> None:
    left, right = RECORDS[::2], [(key, -n) for key, n in RECORDS[1::2]]

    def build(env: StreamExecutionEnvironment) -> Any:
        return (
            env.from_collection(left)
            .key_by(first)
            .connect(env.from_collection(right).key_by(first))
            .process(FullJoin())
        )

    pairs = [(key, n, m) for key, n in left for other, m in right if key == other]
    assert sorted(run(build, subtasks, settings(backend, size), mode)) == sorted(pairs)


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Reset(KeyedBroadcastProcessFunction[str, Any, Any, Any]):
    """Keeps what records bring. A broadcast record lets every key work on its state and tell what it was shown."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = state_of(runtime_context, self.kind)

    def process_element(self, value: Any, ctx: Any) -> None:
        KINDS[self.kind].script(self.state, value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        script, shown = KINDS[self.kind].script, []
        ctx.apply_to_keyed_state(
            KINDS[self.kind].descriptor(), lambda key, state: shown.append((key, value, script(state, value)))
        )
        yield from shown


@BACKEND
@SUBTASKS
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_broadcast_record_works_on_the_state_of_all_keys(run: Any, kind: str, subtasks: int, backend: str) -> None:
    records = [(f"key {n % 7}", n) for n in range(1, 30)]
    rules = [n + 1 for _, n in records]

    def build(env: StreamExecutionEnvironment) -> Any:
        # One record of each source a batch: the rule comes first.
        wide = env.from_collection(rules).broadcast(RULES)
        return env.from_collection(records).key_by(first).connect(wide).process(Reset(kind))

    script, states, expected = KINDS[kind].script, dict[Any, Model](), []
    for rule, (key, n) in zip(rules, records, strict=True):
        expected += [(key, rule, script(state, rule)) for key, state in states.items() if state.content]
        script(states.setdefault(key, KINDS[kind].model()), n)
    assert sorted(run(build, subtasks, settings(backend, 2))) == sorted(expected)


class TakeAll(KeyedProcessFunction):
    """Collects, and gives all out at the last record. The list is emptied before it is gone through."""

    def __init__(self, last: int) -> None:
        self.last = last

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_list_state(ListStateDescriptor("kept", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.kept.add(value)
        if value == self.last:
            everything = self.kept.get()
            self.kept.clear()
            yield from everything


@BACKEND
@MODES
@pytest.mark.parametrize(
    "count",
    [
        5,
        256,
        1000,
    ],
)
def test_what_get_gave_outlives_clear(run: Any, count: int, mode: RuntimeExecutionMode, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(list(range(count))).key_by(lambda _: "k").process(TakeAll(count - 1))

    assert run(build, 1, settings(backend, 300), mode) == list(range(count))


# Time to live


def short_lived(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(LIFE)).build())
    return descriptor


LIFE = 250


class Remembering(KeyedProcessFunction):
    """Tells which earlier records it still knows of, and what time it is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(short_lived(ValueStateDescriptor("v", Types.LONG())))
        self.list = runtime_context.get_list_state(short_lived(ListStateDescriptor("l", Types.LONG())))
        self.map = runtime_context.get_map_state(short_lived(MapStateDescriptor("m", Types.LONG(), Types.LONG())))
        self.sum = runtime_context.get_reducing_state(short_lived(ReducingStateDescriptor("s", added, Types.LONG())))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        known = self.value.value(), list(self.list.get()), sorted(self.map.items()), self.sum.get()
        self.value.update(value)
        self.list.add(value)
        self.map.put(value, -value)
        # Only now and then, so that the sum gets old.
        if value % 5 == 0:
            self.sum.add(1)
        yield value, ctx.timer_service().current_processing_time(), known


@BACKEND
def test_what_is_older_than_its_time_to_live_is_forgotten(run: Any, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        source = DataGeneratorSource(lambda index: index, count=15, records_per_second=15)
        return (
            env.from_source(source, WatermarkStrategy.no_watermarks(), "n").key_by(lambda _: "k").process(Remembering())
        )

    results = run(build, 1, BACKENDS[backend])
    times = {n: time for n, time, _ in results}
    forgotten = 0
    for n, time, (value, listed, mapped, total) in results:
        alive = [m for m in range(n) if time - times[m] < LIFE]
        forgotten += n - len(alive)
        assert value == (n - 1 if n - 1 in alive else None)
        assert listed == alive
        assert mapped == [(m, -m) for m in alive]
        # A sum lives on from when it was last added to, and starts anew when that is too long ago.
        expected, last = None, None
        for m in range(0, n, 5):
            expected = 1 if last is None or times[m] - times[last] >= LIFE else expected + 1
            last = m
        assert total == (expected if last is not None and time - times[last] < LIFE else None)
    assert forgotten
