"""State without keys: checkpointed functions and sinks, broadcast state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import BATCH, STREAMING, first

from firesteel.common import Types
from firesteel.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import OneInputHarness, TwoInputHarness

MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
SIZES = pytest.mark.parametrize("size", [1, 3, 1000])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


def sized(size: int) -> dict[str, str]:
    return {"firesteel.batch.max-records": str(size)}


class Journal(MapFunction, CheckpointedFunction):
    """Tells what it is told, and what it finds at its start."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("seen", Types.INT()))
        self.seen = list(self.saved.get())
        self.said = [("restored", context.is_restored()), ("raw", context.get_raw_operator_states())]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.said.append(("open", len(self.seen)))

    def map(self, value: int) -> Any:
        self.seen.append(value)
        said, self.said = self.said, []
        return said, len(self.seen)

    def snapshot_state(self, context: Any) -> None:
        assert context.get_checkpoint_timestamp() > 0
        self.saved.update(self.seen)
        context.set_raw_operator_state(bytes(self.seen))


@pytest.mark.both_engines
@MODES
@SIZES
def test_initialised_before_open_and_alive_between_batches(run: Any, mode: RuntimeExecutionMode, size: int) -> None:
    results = run(lambda env: env.from_collection([1, 2, 3, 4]).map(Journal()), 1, sized(size), mode)
    start = [("restored", False), ("raw", []), ("open", 0)]
    assert results == [(start, 1), ([], 2), ([], 3), ([], 4)]


class Buffering(SinkFunction, CheckpointedFunction):
    """The sink of Flink's handbook: it writes when it has three elements."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def initialize_state(self, context: Any) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("buffer", Types.INT()))
        self.buffer = list(self.saved.get())

    def invoke(self, value: int, context: Any) -> None:
        self.buffer.append(value)
        if len(self.buffer) == 3:
            with self.path.open("a") as out:
                out.write(f"{self.buffer}\n")
            self.buffer = []

    def snapshot_state(self, context: Any) -> None:
        self.saved.update(self.buffer)


@SIZES
def test_a_sink_buffers_over_batches(make_env: Any, tmp_path: Path, size: int) -> None:
    env = make_env(1, sized(size))
    env.from_collection([1, 2, 3, 4, 5, 6, 7]).add_sink(Buffering(tmp_path / "out"))
    env.execute("buffering")
    assert (tmp_path / "out").read_text() == "[1, 2, 3]\n[4, 5, 6]\n"


class Snapshotless(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        context.get_operator_state_store().get_list_state(ListStateDescriptor("s", Types.INT())).add("x")

    def map(self, value: Any) -> Any:
        return value

    def snapshot_state(self, context: Any) -> None:
        """Nothing."""


def test_a_failure_in_initialize_state_names_the_operator() -> None:
    with pytest.raises(JobExecutionError, match=r"(?s)'Map'.*Operator state 's', element 'x'"):
        OneInputHarness(Snapshotless()).open()


# Broadcast state


class Limit(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limit = ctx.get_broadcast_state(RULES).get("limit")
        if limit is None or value <= limit:
            yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


@pytest.mark.both_engines
@MODES
def test_a_rule_reaches_every_subtask(run: Any, parallelism: int, mode: RuntimeExecutionMode) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        rules = env.from_collection([("limit", 5)]).broadcast(RULES)
        return env.from_collection(list(range(10))).rebalance().connect(rules).process(Limit())

    assert sorted(run(build, parallelism, None, mode)) == [0, 1, 2, 3, 4, 5]


class CountUnder(KeyedBroadcastProcessFunction):
    """Counts per key, adds the rule, and lets a broadcast "reset" clear all counts and tell what they were."""

    COUNT = ValueStateDescriptor("count", Types.INT())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(self.COUNT)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        rules = ctx.get_broadcast_state(RULES)
        yield ctx.get_current_key(), self.count.value(), dict(rules.items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(RULES).put(value, 1)
        found: dict[Any, int] = {}

        def reset(key: Any, state: Any) -> None:
            found[key] = state.value()
            state.clear()

        ctx.apply_to_keyed_state(self.COUNT, reset)
        if found:
            yield "reset", value, dict(sorted(found.items()))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_broadcast_side_reaches_all_keys(run: Any, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        # One record of each source a batch: the rule comes first.
        data = env.from_collection([("a", 1), ("b", 1), ("a", 2), ("a", 3)]).key_by(first)
        rules = env.from_collection(["x", "y", "z"]).broadcast(RULES)
        return data.connect(rules).process(CountUnder())

    config = {"state.backend.type": backend, **sized(2)}
    assert run(build, 1, config) == [
        ("a", 1, {"x": 1}),
        ("reset", "y", {"a": 1}),
        ("b", 1, {"x": 1, "y": 1}),
        ("reset", "z", {"b": 1}),
        ("a", 1, {"x": 1, "y": 1, "z": 1}),
        ("a", 2, {"x": 1, "y": 1, "z": 1}),
    ]


class Wrong(KeyedBroadcastProcessFunction):
    def __init__(self, what: str) -> None:
        self.what = what

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(CountUnder.COUNT)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.what == "write":
            ctx.get_broadcast_state(RULES).clear()
        if self.what == "unknown":
            ctx.get_broadcast_state(MapStateDescriptor("other", Types.STRING(), Types.INT()))
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        if self.what == "keyless":
            self.count.update(1)
        if self.what == "type":
            ctx.get_broadcast_state(RULES).put("x", "y")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("write", r"can be changed in process_broadcast_element\(\) only"),
        ("unknown", r"none of those that broadcast\(\) was called with"),
        ("keyless", "there is no current key"),
        ("type", "Broadcast state 'rules'"),
    ],
)
def test_what_is_not_allowed_is_told(what: str, message: str) -> None:
    harness = TwoInputHarness(Wrong(what), first, broadcast_states=[RULES])

    def feed() -> None:
        harness.process_broadcast_element("x")
        harness.process_element1(("a", 1))

    with pytest.raises(JobExecutionError, match=message):
        feed()


def test_the_kind_of_function_must_fit(make_env: Any) -> None:
    env = make_env()
    rules = env.from_collection(["x"]).broadcast(RULES)
    with pytest.raises(ProgramError, match="takes an instance of BroadcastProcessFunction, got Wrong"):
        env.from_collection([1]).connect(rules).process(Wrong(""))
    with pytest.raises(ProgramError, match="takes an instance of KeyedBroadcastProcessFunction, got Limit"):
        env.from_collection([1]).key_by(first).connect(rules).process(Limit())
    with pytest.raises(ProgramError, match="takes MapStateDescriptors, got ValueStateDescriptor"):
        env.from_collection([1]).broadcast(CountUnder.COUNT)


class Alarm(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp, list(ctx.get_broadcast_state(RULES).keys())


def test_timers_see_the_broadcast_state(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        rules = env.from_collection(["x"]).broadcast(RULES)
        return env.from_collection([("a", 1), ("b", 5)]).key_by(first).connect(rules).process(Alarm())

    assert Counter(map(repr, run(build, parallelism))) == Counter({"('a', 11, ['x'])": 1, "('b', 15, ['x'])": 1})
