"""What every kind of function may do: keep operator state over a failure, yield to side outputs, count exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    EmbeddedRocksDBStateBackend,
    FilterFunction,
    FlatMapFunction,
    HashMapStateBackend,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.functions import ProcessAllWindowFunction
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.testing import Crash, run_pipeline

ONE_BY_ONE = {"firesteel.batch.max-records": "1"}
RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())
NUMBERS = list(range(1, 8))


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def timed(env: StreamExecutionEnvironment, numbers: list[int] = NUMBERS) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OwnTime())
    return env.from_collection(numbers).assign_timestamps_and_watermarks(strategy)


def one(_: Any) -> int:
    return 0


# Operator state


class Counts(CheckpointedFunction):
    """Numbers what its function sees, fails once, and goes on where it was."""

    def __init__(self, crash: Crash, at: int = 4) -> None:
        self.crash, self.at = crash, at

    def initialize_state(self, context: Any) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("n", Types.LONG()))
        self.seen = sum(self.saved.get())

    def snapshot_state(self, context: Any) -> None:
        self.saved.update([self.seen])

    def number(self) -> int:
        self.seen += 1
        if self.seen == self.at:
            self.crash.hit()
        return self.seen


class InMap(Counts, MapFunction):
    def map(self, value: int) -> int:
        return self.number()


class InFlatMap(Counts, FlatMapFunction):
    def flat_map(self, value: int) -> Iterator[int]:
        yield self.number()


class InFilter(Counts, FilterFunction):
    def filter(self, value: int) -> bool:
        return self.number() == value


class InProcess(Counts, ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()


class InKeyedProcess(Counts, KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()


class InCoMap(Counts, CoMapFunction):
    def map1(self, value: int) -> int:
        return self.number()

    def map2(self, value: int) -> int | None:
        return None


class InCoFlatMap(Counts, CoFlatMapFunction):
    def flat_map1(self, value: int) -> Iterator[int]:
        yield self.number()

    def flat_map2(self, value: int) -> None:
        return None


class InCoProcess(Counts, CoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()

    def process_element2(self, value: int, ctx: Any) -> None:
        return None


class InKeyedCoProcess(Counts, KeyedCoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()

    def process_element2(self, value: int, ctx: Any) -> None:
        return None


class InBroadcast(Counts, BroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        return None


class InKeyedBroadcast(Counts, KeyedBroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield self.number()

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        return None


class InReduce(Counts, ReduceFunction):
    """The first record is the first result: the function is called from the second on."""

    def reduce(self, value1: int, value2: int) -> int:
        return self.number() + 1


class InWindow(Counts, ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: int, context: Any, elements: Any) -> Iterator[int]:
        yield self.number()


ANYWHERE: dict[str, Callable[[Any, Crash], Any]] = {
    "map": lambda s, crash: s.map(InMap(crash)),
    "flat_map": lambda s, crash: s.flat_map(InFlatMap(crash)),
    "filter": lambda s, crash: s.filter(InFilter(crash)),
    "process": lambda s, crash: s.process(InProcess(crash)),
    "keyed map": lambda s, crash: s.key_by(one).map(InMap(crash)),
    "keyed process": lambda s, crash: s.key_by(one).process(InKeyedProcess(crash)),
    "reduce": lambda s, crash: s.key_by(one).reduce(InReduce(crash)),
    "co_map": lambda s, crash: s.connect(s).map(InCoMap(crash)),
    "co_flat_map": lambda s, crash: s.connect(s).flat_map(InCoFlatMap(crash)),
    "co_process": lambda s, crash: s.connect(s).process(InCoProcess(crash)),
    "keyed co_process": lambda s, crash: s.key_by(one).connect(s.key_by(one)).process(InKeyedCoProcess(crash)),
    "broadcast": lambda s, crash: s.connect(s.broadcast(RULES)).process(InBroadcast(crash)),
    "keyed broadcast": lambda s, crash: s.key_by(one).connect(s.broadcast(RULES)).process(InKeyedBroadcast(crash)),
    "window": lambda s, crash: (
        s.key_by(one).window(TumblingEventTimeWindows.of(Time.milliseconds(1))).process(InWindow(crash))
    ),
}


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_checkpointed_function_goes_on_where_it_was(name: str) -> None:
    crash = Crash()
    came = run_pipeline(lambda env: ANYWHERE[name](timed(env), crash), config=ONE_BY_ONE, restarts=1)
    assert came == NUMBERS
    assert crash.count == 1


# Keyed state in the functions of windows


class Windows(ProcessWindowFunction[Any, Any, Any, Any]):
    """Numbers the windows of a key in state from open(): it belongs to the key, not to a window."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.windows = runtime_context.get_state(ValueStateDescriptor("windows", Types.LONG()))

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        self.windows.update((self.windows.value() or 0) + 1)
        yield key, context.window().start, self.windows.value()


class Largest(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return max(value, accumulator)

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return max(acc_a, acc_b)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("size", ["1", "100"])
@pytest.mark.parametrize(
    "call",
    [
        lambda windowed: windowed.process(Windows()),
        lambda windowed: windowed.reduce(max, Windows()),
        lambda windowed: windowed.aggregate(Largest(), Windows()),
    ],
    ids=["process", "reduce", "aggregate"],
)
def test_a_window_function_has_state_of_its_key(
    run: Any, backend: str, parallelism: int, size: str, call: Callable[[Any], Any]
) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        fives = TumblingEventTimeWindows.of(Time.milliseconds(5))
        return call(timed(env, list(range(20))).key_by(lambda n: n % 2).window(fives))

    config = {"state.backend.type": backend, "firesteel.batch.max-records": size}
    expected = [(key, 5 * n, n + 1) for key in range(2) for n in range(4)]
    assert sorted(run(build, parallelism, config)) == expected


# Side outputs

ODD, SMALL = OutputTag("odd"), OutputTag("small")


def tagged(value: Any) -> Iterator[Any]:
    yield value
    if value % 2:
        yield ODD, value
    if value < 3:
        yield SMALL, -value


class ToSides(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)


class KeyedToSides(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)


class TimersToSides(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(timestamp)


class CoToSides(CoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)

    def process_element2(self, value: int, ctx: Any) -> None:
        return None


class KeyedCoToSides(KeyedCoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> None:
        return None

    def process_element2(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)


class BroadcastToSides(BroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> None:
        return None

    def process_broadcast_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)


class KeyedBroadcastToSides(KeyedBroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(value)

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        return None


class WindowToSides(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: int, context: Any, elements: Any) -> Iterator[Any]:
        for element in elements:
            yield from tagged(element)


class AllToSides(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Iterator[Any]:
        for element in elements:
            yield from tagged(element)


class JoinToSides(ProcessJoinFunction):
    def process_element(self, left: int, right: int, ctx: Any) -> Iterator[Any]:
        yield from tagged(left)


TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))
SIDES: dict[str, Callable[[Any], Any]] = {
    "process": lambda s: s.process(ToSides()),
    "keyed process": lambda s: s.key_by(one).process(KeyedToSides()),
    "a timer": lambda s: s.key_by(one).process(TimersToSides()),
    "co_process": lambda s: s.connect(s).process(CoToSides()),
    "keyed co_process": lambda s: s.key_by(one).connect(s.key_by(one)).process(KeyedCoToSides()),
    "broadcast": lambda s: s.connect(s.broadcast(RULES)).process(BroadcastToSides()),
    "keyed broadcast": lambda s: s.key_by(one).connect(s.broadcast(RULES)).process(KeyedBroadcastToSides()),
    "window": lambda s: s.key_by(one).window(TENS).process(WindowToSides()),
    "window_all": lambda s: s.window_all(TENS).process(AllToSides()),
    "interval_join": lambda s: (
        s.key_by(one)
        .interval_join(s.key_by(one))
        .between(Time.milliseconds(0), Time.milliseconds(0))
        .process(JoinToSides())
    ),
}


@pytest.mark.parametrize("name", SIDES)
def test_every_process_function_has_side_outputs(name: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = SIDES[name](timed(env))
        return stream, stream.get_side_output(ODD), stream.get_side_output(SMALL)

    main, odd, small = (sorted(records) for records in run_pipeline(build))
    assert (main, odd, small) == (NUMBERS, [1, 3, 5, 7], [-2, -1])


# Metrics


class Measured(MapFunction):
    def __init__(self, crash: Crash) -> None:
        self.crash = crash

    def open(self, runtime_context: RuntimeContext) -> None:
        self.records = runtime_context.get_metrics_group().counter("records")

    def map(self, value: int) -> int:
        self.records.inc()
        if value == 5:
            self.crash.hit()
        return value


class Nowhere(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_that_is_repeated_is_counted_once(make_env: Any, times: int) -> None:
    crash = Crash(times=times)
    restarts = {
        "firesteel.batch.max-records": "3",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": str(times),
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    env = make_env(config=restarts)
    env.from_collection(NUMBERS).map(Measured(crash)).name("measured").add_sink(Nowhere())
    assert env.execute().get_all_accumulator_results()["measured.0.records"] == len(NUMBERS)
    assert crash.count == times


# The state backend


def test_the_configuration_file_chooses_the_backend_and_the_program_overrides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from firesteel.engine.job_context import job_spec

    (tmp_path / "config.yaml").write_text("state.backend.type: rocksdb\nfiresteel.master: memory\n")
    monkeypatch.setenv("FIRESTEEL_CONF_DIR", str(tmp_path))

    def tables(configuration: Configuration | None = None, chosen: Any = None) -> type:
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        if chosen is not None:
            env.set_state_backend(chosen)
        env.from_collection(NUMBERS).key_by(one).reduce(max).print()
        return type(job_spec(env._submission("job")).tables)

    assert tables() is RocksDBTables
    assert tables(Configuration.from_dict({"state.backend.type": "hashmap"})) is HashMapTables
    assert tables(chosen=HashMapStateBackend()) is HashMapTables
    assert tables(chosen=EmbeddedRocksDBStateBackend()) is RocksDBTables
