"""State of every kind after a restart: keyed on both backends, operator state and broadcast state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, commit_calls, committed, spark_env

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    MapFunction,
    RuntimeContext,
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
NUMBERS = 90
KEYS = 4
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Journal(MapFunction, CheckpointedFunction):
    """Numbers the records of its subtask, and keeps the number in a list, in a union list and as bytes."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.lists = [
            store.get_list_state(ListStateDescriptor("count", Types.LONG())),
            store.get_union_list_state(ListStateDescriptor("union", Types.LONG())),
        ]
        raw = [int.from_bytes(piece) for piece in context.get_raw_operator_states()]
        found = [*(list(one.get()) for one in self.lists), raw]
        assert context.is_restored() == bool(found[0]), found
        assert found[0] == found[1] == found[2], found
        self.count = sum(found[0])

    def map(self, value: int) -> Any:
        self.count += 1
        return self.count, value

    def snapshot_state(self, context: Any) -> None:
        for one in self.lists:
            one.update([self.count])
        context.set_raw_operator_state(self.count.to_bytes(4))


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Everything(KeyedBroadcastProcessFunction[int, Any, Any, Any]):
    """Tells with each record all that its key has, big collections included, and the rules."""

    def open(self, runtime_context: RuntimeContext) -> None:
        number = Types.LONG()
        self.value = runtime_context.get_state(ValueStateDescriptor("value", number))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", number))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", number, number))
        self.least = runtime_context.get_reducing_state(ReducingStateDescriptor("least", min, number))
        mean = AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([number, number]))
        self.mean = runtime_context.get_aggregating_state(mean)
        self.big_list = runtime_context.get_list_state(ListStateDescriptor("big list", number))
        self.big_map = runtime_context.get_map_state(MapStateDescriptor("big map", number, number))

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(f"rule {value}", value)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count, n = value
        self.value.update((self.value.value() or 0) + n)
        self.list.add(n)
        self.map.put(n % 3, n)
        self.least.add(n)
        self.mean.add(n)
        self.big_list.add_all(list(range(n * 30, n * 30 + 30)))
        self.big_map.put_all(dict.fromkeys(range(n * 30, n * 30 + 30), n))
        yield [
            count,
            n,
            self.value.value(),
            list(self.list.get()),
            sorted(self.map.items()),
            self.least.get(),
            self.mean.get(),
            [sum(1 for _ in self.big_list), sum(self.big_list)],
            [sum(1 for _ in self.big_map), sum(self.big_map), sum(self.big_map.values())],
            len(list(ctx.get_broadcast_state(RULES).keys())),
        ]


def expected(n: int) -> list[Any]:
    """What record ``n`` must give if nothing is lost and nothing counted twice."""
    before = list(range(n % KEYS, n + 1, KEYS))
    many = [m for one in before for m in range(one * 30, one * 30 + 30)]
    return [
        n + 1,
        n,
        sum(before),
        before,
        sorted([m, max(one for one in before if one % 3 == m)] for m in {one % 3 for one in before}),
        before[0],
        sum(before) / len(before),
        [len(many), sum(many)],
        [len(many), sum(many), sum(before) * 30],
    ]


def build(env: Any, folder: Path, fail_in_call: int | None) -> None:
    numbers = env.from_source(NumberSequenceSource(0, NUMBERS - 1), NONE, "numbers").set_parallelism(1)
    counted = numbers.map(Journal()).set_parallelism(1)
    rules = env.from_source(NumberSequenceSource(0, 9), NONE, "rules").broadcast(RULES)
    everything = counted.key_by(lambda pair: pair[1] % KEYS).connect(rules).process(Everything())
    everything.sink_to(CommitSink(folder, fail_in_call))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_every_state_is_there_after_a_restart(backend: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    config = {
        "firesteel.batch.max-records": 40,
        "firesteel.checkpoint.dir": tmp_path / "checkpoint",
        "state.backend.type": backend,
    }
    env = spark_env(2, config)
    build(env, folder, fail_in_call=2)
    with pytest.raises(JobExecutionError, match="the answer to the commit got lost"):
        env.execute("first run")
    # Functions are made anew: all they know is what was saved.
    env = spark_env(2, config)
    build(env, folder, None)
    env.execute("second run")

    assert len(commit_calls(folder)) > 2
    results = sorted(committed(folder))
    assert [one[:-1] for one in results] == [expected(n) for n in range(NUMBERS)]
    # All rules are known, those from before the restart as well.
    assert results[-1][-1] == 10


class Votes(MapFunction, CheckpointedFunction):
    """Each subtask keeps one element of a union list, and tells what it began with."""

    def initialize_state(self, context: Any) -> None:
        votes = ListStateDescriptor("votes", Types.LONG())
        self.votes = context.get_operator_state_store().get_union_list_state(votes)
        self.began = sorted(self.votes.get())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.votes.update([runtime_context.get_index_of_this_subtask()])

    def map(self, value: int) -> Any:
        return [value, self.began]

    def snapshot_state(self, context: Any) -> None:
        """The list is as it should be."""


def test_union_lists_are_merged_when_a_job_is_started_again(tmp_path: Path) -> None:
    """The driver's process is another one: all it has is the checkpoint."""
    settings = {"firesteel.checkpoint.dir": tmp_path / "checkpoint", "firesteel.batch.max-records": 10}

    def run(last: int) -> list[Any]:
        env = spark_env(3, settings)
        numbers = env.from_source(NumberSequenceSource(0, last), NONE, "numbers").uid("numbers").set_parallelism(1)
        voted = numbers.rebalance().map(Votes()).uid("votes")
        with voted.execute_and_collect() as records:
            return list(records)

    assert sorted(run(19)) == [[n, []] for n in range(20)]
    assert sorted(run(29)) == [[n, [0, 1, 2]] for n in range(20, 30)]
