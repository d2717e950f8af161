"""The life of a function: opened and closed once per subtask, with a context that knows where it is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import BATCH, STREAMING, first, slow_numbers

from firesteel.common import WatermarkStrategy
from firesteel.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.errors import JobExecutionError


class Diary:
    """Writes one file per event of a function's life, so that every process can."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.subtask = str(folder), name, -1

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.note("open")

    def close(self) -> None:
        self.note("close")

    def note(self, event: str) -> None:
        with open(f"{self.folder}/{self.name}", "a") as file:
            file.write(f"{self.subtask} {event}\n")


class DiaryMap(Diary, MapFunction):
    def map(self, value: Any) -> Any:
        return value


class DiaryFlatMap(Diary, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        yield value


class DiaryFilter(Diary, FilterFunction):
    def filter(self, value: Any) -> bool:
        return True


class DiaryProcess(Diary, ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value


class DiaryKeyed(Diary, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == "fail":
            raise ValueError("as asked")
        yield value


class DiaryReduce(Diary, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2


class DiarySink(Diary, SinkFunction):
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        pass


class DiaryKey(Diary, KeySelector):
    def get_key(self, value: Any) -> Any:
        assert self.subtask >= 0, "not opened"
        return value


class DiaryPartitioner(Diary, Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        assert self.subtask >= 0, "not opened"
        return 0


FUNCTIONS = ["map", "flat_map", "filter", "process", "key", "keyed", "reduce", "partitioner", "sink"]


def build(env: Any, folder: Path, records: list[Any]) -> None:
    stream = env.from_collection(records).map(DiaryMap(folder, "map")).flat_map(DiaryFlatMap(folder, "flat_map"))
    stream = stream.filter(DiaryFilter(folder, "filter")).process(DiaryProcess(folder, "process"))
    stream = stream.key_by(DiaryKey(folder, "key")).process(DiaryKeyed(folder, "keyed"))
    stream = stream.key_by(lambda value: value).reduce(DiaryReduce(folder, "reduce"))
    stream = stream.partition_custom(DiaryPartitioner(folder, "partitioner"), lambda value: value)
    stream.add_sink(DiarySink(folder, "sink"))


@pytest.mark.both_engines
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
def test_open_and_close_come_once_per_subtask(
    make_env: Any, parallelism: int, mode: RuntimeExecutionMode, tmp_path: Path
) -> None:
    env = make_env(parallelism, {"firesteel.batch.max-records": "2"}, mode)
    build(env, tmp_path, ["a", "b", "c", "d", "e"])
    env.execute()
    for name in FUNCTIONS:
        notes = sorted((tmp_path / name).read_text().split("\n")[:-1])
        assert notes == sorted(f"{n} {event}" for n in range(parallelism) for event in ("open", "close")), name


class DiaryGenerator(Diary, MapFunction):
    def map(self, value: Any) -> Any:
        return self.subtask, value


@pytest.mark.both_engines
def test_the_function_of_a_generator_is_opened_and_closed(make_env: Any, parallelism: int, tmp_path: Path) -> None:
    source = DataGeneratorSource(DiaryGenerator(tmp_path, "generator"), count=12)
    env = make_env(parallelism, {"firesteel.batch.max-records": "6"})
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "made").execute_and_collect() as records:
        found = list(records)
    assert sorted(index for _, index in found) == list(range(12))
    assert {subtask for subtask, _ in found} == set(range(parallelism))
    notes = sorted((tmp_path / "generator").read_text().split("\n")[:-1])
    assert notes == sorted(f"{n} {event}" for n in range(parallelism) for event in ("open", "close"))


def test_a_generator_that_cannot_be_opened(make_env: Any) -> None:
    class Locked(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise OSError("no key")

        def map(self, value: Any) -> Any:
            return value

    env = make_env()
    env.from_source(DataGeneratorSource(Locked(), count=1), WatermarkStrategy.no_watermarks(), "made").print()
    with pytest.raises(JobExecutionError, match="OSError: no key") as caught:
        env.execute()
    assert caught.value.operator == "Source: made"


def test_functions_are_closed_after_a_failure(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    build(env, tmp_path, ["a", "fail"])
    with pytest.raises(JobExecutionError, match="as asked"):
        env.execute()
    for name in ("map", "keyed"):
        assert (tmp_path / name).read_text() == "0 open\n0 close\n"


def test_functions_are_closed_after_a_cancellation(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    numbers = env.from_source(slow_numbers(), WatermarkStrategy.no_watermarks(), "numbers")
    with numbers.map(DiaryMap(tmp_path, "map")).execute_and_collect() as records:
        next(records)
    assert (tmp_path / "map").read_text() == "0 open\n0 close\n"


def test_the_garbage_collector_is_on_again_after_every_end(make_env: Any, tmp_path: Path) -> None:
    assert gc.isenabled()
    for records in (["a"], ["fail"]):
        env = make_env()
        build(env, tmp_path, records)
        if records == ["fail"]:
            with pytest.raises(JobExecutionError):
                env.execute()
        else:
            env.execute()
        assert gc.isenabled()


class Where(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.facts = (
            runtime_context.get_task_name(),
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
            runtime_context.get_attempt_number(),
            runtime_context.get_job_parameter("colour"),
            runtime_context.get_job_parameter("shape", "round"),
        )

    def map(self, value: Any) -> Any:
        return self.facts


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2)
def test_what_the_runtime_context_says(make_env: Any, parallelism: int) -> None:
    env = make_env(parallelism)
    env.get_config().set_global_job_parameters({"colour": "blue"})
    stream = env.from_collection(list(range(6))).map(Where()).name("where")
    with stream.execute_and_collect() as records:
        found = set(records)
    assert found == {
        ("where", f"where ({n + 1}/{parallelism})", n, parallelism, 128, 0, "blue", "round") for n in range(parallelism)
    }


class Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group().add_group("mine")
        self.count = group.counter("records")
        self.sizes = group.distribution("sizes")

    def map(self, value: str) -> str:
        self.count.inc()
        self.sizes.update(len(value))
        return value


def test_metrics_come_back_with_the_result(make_env: Any) -> None:
    env = make_env(2, {"firesteel.batch.max-records": "3"})
    env.from_collection(["a", "bbb", "cc", "d"]).map(Measured()).name("measured").print()
    result = env.execute()
    counts = [result.get_accumulator_result(f"measured.{n}.mine.records") for n in range(2)]
    assert sum(counts) == 4
    sums = [result.get_accumulator_result(f"measured.{n}.mine.sizes")["sum"] for n in range(2)]
    assert sum(sums) == 7


def test_each_subtask_has_a_function_of_its_own(run: Any) -> None:
    class Numbering(MapFunction):
        def __init__(self) -> None:
            self.seen = 0

        def map(self, value: Any) -> Any:
            self.seen += 1
            return self.seen

    original = Numbering()
    assert sorted(run(lambda env: env.from_collection(list(range(6))).map(original), 3)) == [1, 1, 1, 2, 2, 2]
    assert original.seen == 0


def test_plain_callables_and_builtins_are_functions(run: Any) -> None:
    def build(env: Any) -> Any:
        return env.from_collection(["a b", "c"]).flat_map(str.split).map(str.upper).filter(bool).key_by(first).map(ord)

    assert run(build) == [65, 66, 67]
