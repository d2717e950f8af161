"""Every kind of state comes back after a failure: a job that failed and went on gives what an undisturbed one gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, commit_calls, committed, spark_env

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.errors import JobExecutionError

NONE = WatermarkStrategy.no_watermarks()
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())
TOTAL = 2400


class Numbering(MapFunction, CheckpointedFunction):
    """Numbers its records by a field of its own. A field that knows of a batch which was rolled back would jump."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("count", Types.INT()))
        self.count = sum(self.saved.get())

    def map(self, value: int) -> tuple[int, int]:
        self.count += 1
        return value, self.count

    def snapshot_state(self, context: Any) -> None:
        self.saved.update([self.count])


class Mean(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        raise NotImplementedError


class Everything(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))
        self.parts = runtime_context.get_map_state(MapStateDescriptor("parts", Types.INT(), Types.INT()))
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.INT()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[Any]:
        number, count = value
        before = self.last.value()
        self.last.update(number)
        self.seen.add(number)
        # Enough entries under one key that the map is kept in blocks.
        self.parts.put(number % 900, number)
        self.most.add(-number)
        self.mean.add(number)
        ctx.timer_service().register_event_time_timer(number)
        if number % 100 < 3:
            yield [
                number,
                count,
                before,
                sum(self.seen.get()),
                sorted(self.parts.items())[-3:],
                self.most.get(),
                self.mean.get(),
                sorted(ctx.get_broadcast_state(RULES).items()),
            ]

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value % 10, (rules.get(value % 10) or 0) + value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp % 100 == 7:
            yield ["timer", timestamp, len(list(self.seen.get()))]


def build(env: Any, folder: Path, fail_in_call: int | None) -> None:
    numbers = env.from_source(NumberSequenceSource(0, TOTAL - 1), NONE, "numbers")
    rules = env.from_source(NumberSequenceSource(0, TOTAL - 1), NONE, "rules").set_parallelism(1).broadcast(RULES)
    numbered = numbers.map(lambda n: n).set_parallelism(1).map(Numbering()).set_parallelism(1)
    result = numbered.key_by(lambda pair: pair[0] % 2).connect(rules).process(Everything())
    result.sink_to(CommitSink(folder, fail_in_call))


def texts(folder: Path) -> list[str]:
    return sorted(map(json.dumps, committed(folder)))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_of_every_kind_comes_back(backend: str, tmp_path: Path) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "out"
    undisturbed.mkdir()
    folder.mkdir()
    config = {
        "firesteel.batch.max-records": 1600,
        "firesteel.checkpoint.dir": tmp_path / "checkpoint",
        "state.backend.type": backend,
    }
    in_memory = Configuration.from_dict({"firesteel.master": "memory", "firesteel.batch.max-records": "1600"})
    env = StreamExecutionEnvironment.get_execution_environment(in_memory).set_parallelism(2)
    build(env, undisturbed, None)
    env.execute("undisturbed")

    env = spark_env(2, config)
    build(env, folder, fail_in_call=2)
    with pytest.raises(JobExecutionError, match="ConnectionError: the answer to the commit got lost"):
        env.execute("first run")
    env = spark_env(2, config)
    build(env, folder, None)
    env.execute("second run")
    assert len(commit_calls(folder)) == 4
    assert len(texts(folder)) > 70
    assert texts(folder) == texts(undisturbed)
