"""Every kind of keyed state, from every kind of function, on every backend: against plain Python values.

A *kind* is a descriptor and a script: what a record does to the state, and what it sees of it. The same script runs on
a model, a plain list, dict or number per key, and both must tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kit import BATCH, STREAMING, ascending, first

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
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
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

BACKENDS = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb"},
    "tight": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"},
}
BACKEND = pytest.mark.parametrize("backend", list(BACKENDS))
MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
SUBTASKS = pytest.mark.parametrize("subtasks", [1, 3])
SIZES = pytest.mark.parametrize("size", [1, 3, 1000])


def settings(backend: str, size: int = 3) -> dict[str, str]:
    return {**BACKENDS[backend], "firesteel.batch.max-records": str(size)}


# Models: the least that behaves like a state


class Model:
    """What one key has; ``None`` or empty where nothing is stored."""

    def __init__(self) -> None:
        self.content: Any = None

    def value(self) -> Any:
        return self.content

    def update(self, value: Any) -> None:
        self.content = value

    def clear(self) -> None:
        self.content = None


class ListModel(Model):
    def get(self) -> list[Any]:
        return list(self.content or [])

    def add(self, value: Any) -> None:
        self.content = [*self.get(), value]

    def add_all(self, values: list[Any]) -> None:
        self.content = [*self.get(), *values]


class MapModel(Model):
    def __init__(self) -> None:
        self.content: dict[Any, Any] = {}
        self.put, self.put_all, self.get = self.content.__setitem__, self.content.update, self.content.get
        self.items, self.keys, self.values = self.content.items, self.content.keys, self.content.values
        self.contains, self.clear = self.content.__contains__, self.content.clear

    def remove(self, key: Any) -> None:
        self.content.pop(key, None)

    def is_empty(self) -> bool:
        return not self.content


class SumModel(Model):
    def add(self, value: int) -> None:
        self.content = (self.content or 0) + value

    def get(self) -> int | None:
        result: int | None = self.content
        return result


class MeanModel(ListModel):
    def get(self) -> Any:
        return sum(self.content) / len(self.content) if self.content else None

    def add(self, value: Any) -> None:
        self.content = [*(self.content or []), value]


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


# Scripts: what record number ``n`` does to a state, and what it is shown


def value_script(state: Any, n: int) -> Any:
    before = state.value()
    if n % 7 == 0:
        state.clear()
    elif n % 11 == 0:
        state.update(None)
    else:
        state.update((before or 0) + n)
    return before, state.value()


def list_script(state: Any, n: int) -> Any:
    if n % 7 == 0:
        state.clear()
    elif n % 5 == 0:
        state.update([n, -n])
    elif n % 3 == 0:
        state.add_all([n, n + 1, n + 2])
    else:
        state.add(n)
    return list(state.get())


def map_script(state: Any, n: int) -> Any:
    empty, known = state.is_empty(), state.contains(n % 4)
    if n % 13 == 0:
        state.clear()
    elif n % 5 == 0:
        state.remove(n % 4)
    elif n % 3 == 0:
        state.put_all({n % 4: n, n % 6: -n})
    else:
        state.put(n % 4, (state.get(n % 4) or 0) + n)
    return empty, known, sorted(state.items()), sorted(state.keys()), sorted(state.values()), state.get(99)


def adding_script(state: Any, n: int) -> Any:
    before = state.get()
    if n % 7 == 0:
        state.clear()
    else:
        state.add(n)
    return before, state.get()


def big_list_script(state: Any, n: int) -> Any:
    state.add_all(list(range(n * 100, n * 100 + 100)))
    state.add(-n)
    if n == 30:
        state.update(list(state.get())[::2])
    if n == 40:
        state.clear()
    shown = list(state.get())
    return len(shown), shown[:3], shown[-3:], sum(shown)


def big_map_script(state: Any, n: int) -> Any:
    state.put_all(dict.fromkeys(range(n * 50, n * 50 + 100), n))
    for gone in range(n * 50, n * 50 + 100, 7):
        state.remove(gone)
    if n == 40:
        state.clear()
    return len(list(state.keys())), sum(state.keys()), sum(state.values()), state.contains(n * 50 + 1), state.is_empty()


class Kind(NamedTuple):
    descriptor: Callable[[], StateDescriptor]
    model: type[Model]
    script: Callable[[Any, int], Any]


def added(a: int, b: int) -> int:
    return a + b


KINDS = {
    "value": Kind(lambda: ValueStateDescriptor("kept", Types.LONG()), Model, value_script),
    "list": Kind(lambda: ListStateDescriptor("kept", Types.LONG()), ListModel, list_script),
    "map": Kind(lambda: MapStateDescriptor("kept", Types.LONG(), Types.LONG()), MapModel, map_script),
    "reducing": Kind(lambda: ReducingStateDescriptor("kept", added, Types.LONG()), SumModel, adding_script),
    "aggregating": Kind(
        lambda: AggregatingStateDescriptor("kept", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()])),
        MeanModel,
        adding_script,
    ),
    "big list": Kind(lambda: ListStateDescriptor("kept", Types.LONG()), ListModel, big_list_script),
    "big map": Kind(lambda: MapStateDescriptor("kept", Types.LONG(), Types.LONG()), MapModel, big_map_script),
}
SMALL = ("value", "list", "map", "reducing", "aggregating")
RECORDS = [(f"key {n * n % 11}", n) for n in range(1, 50)]


def state_of(runtime_context: RuntimeContext, kind: str, name: str = "kept") -> Any:
    """Asks for the state as a user does, by the method of its kind."""
    descriptor: Any = KINDS[kind].descriptor()
    descriptor.name = name
    return {
        "value": runtime_context.get_state,
        "list": runtime_context.get_list_state,
        "map": runtime_context.get_map_state,
        "reducing": runtime_context.get_reducing_state,
        "aggregating": runtime_context.get_aggregating_state,
    }[kind.removeprefix("big ")](descriptor)


def told_by_model(kind: str, records: list[Any] = RECORDS) -> list[Any]:
    """What each record is shown if state is a plain Python value per key."""
    states: dict[Any, Model] = {}
    shown = []
    for key, n in records:
        state = states.setdefault(key, KINDS[kind].model())
        shown.append((key, n, KINDS[kind].script(state, n)))
    return sorted(shown)


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
@pytest.mark.spark_sample(subtasks=1, mode="streaming", backend="hashmap")
@pytest.mark.spark_sample(subtasks=3, mode="streaming", backend="rocksdb")
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
