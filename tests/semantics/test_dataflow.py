"""Order per key, one call per record, and any graph as one job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, Counted, first

from firesteel.common import Types
from firesteel.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor

LARGE = {"firesteel.batch.max-records": "100000"}
"""Batches of more records than a frame holds."""
SMALL = {"firesteel.batch.max-records": "17"}


class InOrder(KeyedProcessFunction):
    """Fails unless the numbers of a key come in order, each once."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        last = self.last.value()
        assert value[1] > (-1 if last is None else last), f"{value} came after {last}"
        self.last.update(value[1])
        yield value


@pytest.mark.both_engines
@pytest.mark.parametrize(("config", "total"), [(LARGE, 20_000), (SMALL, 200)], ids=["many frames", "many batches"])
def test_order_per_key_is_kept_through_three_keyed_stages(run: Any, parallelism: int, config: Any, total: int) -> None:
    records = [(f"key-{n % 7}", n) for n in range(total)]

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(records)
        for _ in range(3):
            stream = stream.key_by(first).process(InOrder()).map(lambda record: record)
        return stream

    results = run(build, parallelism, config)
    assert len(results) == len(records)
    for key in {key for key, _ in records}:
        assert [record for record in results if record[0] == key] == [r for r in records if r[0] == key]


def test_order_between_two_keyed_stages_on_different_keys(run: Any, parallelism: int) -> None:
    """A key's records that come from several subtasks keep the order they had in each of these."""
    records = [(f"key-{n % 5}", n, n % 3) for n in range(120)]

    def build(env: StreamExecutionEnvironment) -> Any:
        return (
            env.from_collection(records)
            .key_by(first)
            .process(InOrder())
            .key_by(lambda record: record[2])
            .map(lambda record: record)
        )

    results = run(build, parallelism, SMALL)
    for key in range(5):
        for group in range(3):
            chosen = [r for r in results if r[0] == f"key-{key}" and r[2] == group]
            assert chosen == sorted(chosen, key=lambda r: r[1])


LATE = OutputTag("big", Types.INT())


class Split(ProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        self.calls.inc()
        if value >= 80:
            yield LATE, value
        yield value


class CountedKeyed(KeyedProcessFunction):
    """Counts the calls and the records of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.calls.inc()
        self.seen.update((self.seen.value() or 0) + 1)
        yield value


class CountingSink(SinkFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.calls.inc()


@pytest.mark.both_engines
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
@pytest.mark.parametrize("config", [{}, SMALL], ids=["one batch", "many batches"])
def test_every_function_is_called_once_per_record(
    make_env: Any, parallelism: int, config: Any, mode: RuntimeExecutionMode, capsys: Any
) -> None:
    """Two sources, a union, a diamond keyed two ways and merged, a side output, three keyed stages in a row and
    four sinks: one job."""
    env = make_env(parallelism, config, mode)
    one = env.from_collection(list(range(60))).map(Counted()).name("one")
    two = env.from_collection(list(range(60, 100))).map(Counted()).name("two")
    both = one.union(two).process(Split()).name("split")
    # The diamond: keyed two ways, merged again.
    left = both.key_by(lambda n: n % 4).process(CountedKeyed()).name("left")
    right = both.key_by(lambda n: n % 3).process(CountedKeyed()).name("right")
    merged = left.union(right).map(Counted()).name("merged")
    # Three keyed stages in a row.
    deep = merged
    for name in ("deep1", "deep2", "deep3"):
        deep = deep.key_by(lambda n: n % 5).process(CountedKeyed()).name(name)
    deep.add_sink(CountingSink()).name("deep sink")
    merged.add_sink(CountingSink()).name("merged sink")
    both.get_side_output(LATE).add_sink(CountingSink()).name("side sink")
    two.map(str).print()
    result = env.execute()

    calls: Counter[str] = Counter()
    for name, count in result.get_all_accumulator_results().items():
        operator, _, metric = name.split(".")
        assert metric == "calls"
        calls[operator] += count
    assert calls == {
        "one": 60,
        "two": 40,
        "split": 100,
        "left": 100,
        "right": 100,
        "merged": 200,
        "deep1": 200,
        "deep2": 200,
        "deep3": 200,
        "deep sink": 200,
        "merged sink": 200,
        "side sink": 20,
    }
    printed = [line.split("> ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert sorted(map(int, printed)) == list(range(60, 100))


def test_a_stream_read_twice_gives_each_reader_all_records(make_env: Any, parallelism: int) -> None:
    env = make_env(parallelism)
    numbers = env.from_collection(list(range(10)))
    tens = numbers.map(lambda n: n * 10)
    with numbers.union(tens, numbers).execute_and_collect() as records:
        assert Counter(records) == Counter([*range(10), *range(10), *range(0, 100, 10)])


def test_records_for_a_later_stage_pass_through_the_ones_before(run: Any, parallelism: int) -> None:
    """The union's second input skips two stages."""

    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([(n, 1) for n in range(20)])
        counted = numbers.key_by(first).reduce(lambda a, b: a).key_by(first).reduce(lambda a, b: a)
        return counted.union(numbers).key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))

    results = run(build, parallelism)
    assert Counter(results) == Counter([*((n, 1) for n in range(20)), *((n, 2) for n in range(20))])


def test_a_side_output_that_nobody_reads_vanishes(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 85, 99]).process(Split())

    assert sorted(run(build, parallelism)) == [1, 85, 99]


def test_a_side_output_has_the_tagged_values(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 85, 99]).process(Split()).get_side_output(LATE)

    assert sorted(run(build, parallelism)) == [85, 99]


class TagEverything(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield OutputTag("a"), (value, "a")
        yield OutputTag("b"), (value, "b")
        yield OutputTag("a"), (value, "again")


def test_two_side_outputs_stay_apart(make_env: Any) -> None:
    env = make_env()
    tagged = env.from_collection([1, 2]).process(TagEverything())
    a = tagged.get_side_output(OutputTag("a"))
    b = tagged.get_side_output(OutputTag("b"))
    with a.execute_and_collect() as records:
        assert list(records) == [(1, "a"), (1, "again"), (2, "a"), (2, "again")]
    with b.execute_and_collect() as records:
        assert list(records) == [(1, "b"), (2, "b")]


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2)
def test_none_is_a_record_and_a_key(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return (
            env.from_collection([None, 1, None, 2, None])
            .map(lambda value: value)
            .key_by(lambda value: None if value is None else "some")
            .process(CountedKeyed())
            .map(lambda value: (value, None))
        )

    assert Counter(run(build, parallelism)) == Counter({(None, None): 3, (1, None): 1, (2, None): 1})


def test_an_empty_collection_ends_the_job(run: Any, parallelism: int) -> None:
    assert run(lambda env: env.from_collection([]).map(lambda n: n), parallelism) == []


def test_a_stream_can_be_executed_again_and_extended(make_env: Any) -> None:
    """As in Flink, executing forgets the sinks, not what streams were made of."""
    env = make_env()
    numbers = env.from_collection([1, 2]).map(lambda n: n + 1)
    assert numbers.execute_and_collect(limit=9) == [2, 3]
    assert numbers.execute_and_collect(limit=9) == [2, 3]
    assert numbers.map(lambda n: n * 10).execute_and_collect(limit=9) == [20, 30]


def test_what_was_yielded_stays_as_it_was(run: Any) -> None:
    """A function that yields its state and changes it afterwards must not change what is on its way."""

    class Totals(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            total = self.total.value() or {"n": 0}
            total["n"] += value
            self.total.update(total)
            yield total

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 2, 3]).key_by(lambda n: 0).process(Totals())

    assert run(build) == [{"n": 1}, {"n": 3}, {"n": 6}]


def test_a_reduce_that_changes_its_first_argument_gives_every_update(run: Any) -> None:
    def merge(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        a["n"] += b["n"]
        return a

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([{"n": 1}, {"n": 2}, {"n": 3}]).key_by(lambda d: 0).reduce(merge)

    assert run(build) == [{"n": 1}, {"n": 3}, {"n": 6}]
