"""One program with everything in it, as one streaming query; order, watermarks and timers across stages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter
from sparkkit import BATCH, AppendSink, note, notes, spark_env

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, MapFunction, OutputTag, ProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.engine.spark.session import active_queries

BIG = OutputTag("big", Types.INT())


class Noted(MapFunction):
    """Hands records on and writes each of its calls down, in a file: counts that no process keeps to itself."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = str(folder), name

    def map(self, value: Any) -> Any:
        note(self.folder, self.name, value)
        return value


class Split(ProcessFunction):
    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        note(self.folder, "split", value)
        if value >= 80:
            yield BIG, value
        yield value


class Count(KeyedProcessFunction):
    """Counts its calls per key in state and gives out how often it saw the key."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = str(folder), name

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        self.calls.inc()
        note(self.folder, self.name, [ctx.get_current_key(), seen])
        yield value


def test_a_program_with_everything_is_one_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Any] = []
    start = DataStreamWriter.start
    monkeypatch.setattr(DataStreamWriter, "start", lambda self: started.append(start(self)) or started[-1])
    checkpoint = tmp_path / "checkpoint"
    env = spark_env(2, {"firesteel.batch.max-records": 25, "firesteel.checkpoint.dir": checkpoint})
    one = env.from_collection(list(range(60))).map(Noted(tmp_path, "one"))
    two = env.from_collection(list(range(60, 100))).map(Noted(tmp_path, "two"))
    both = one.union(two).process(Split(tmp_path))
    left = both.key_by(lambda n: n % 4).process(Count(tmp_path, "left")).name("left")
    right = both.key_by(lambda n: n % 3).process(Count(tmp_path, "right")).name("right")
    merged = left.union(right).map(Noted(tmp_path, "merged"))
    deep = merged
    for name in ("deep1", "deep2", "deep3"):
        deep = deep.key_by(lambda n: n % 5).process(Count(tmp_path, name)).name(name)
    deep.add_sink(AppendSink(tmp_path, "deep-sink"))
    merged.add_sink(AppendSink(tmp_path, "merged-sink"))
    both.get_side_output(BIG).add_sink(AppendSink(tmp_path, "side-sink"))
    two.map(str).print()

    # A job of a test before may be on its way out.
    others = {query.name for query in active_queries()}
    client = env.execute_async("everything")
    active = [query.name for query in active_queries() if query.name not in others]
    result = client.get_job_execution_result().result()

    assert len(active) == 1
    assert active[0].startswith("everything-")
    assert len(started) == 1
    assert [path.name for path in checkpoint.iterdir() if (path / "offsets").exists()] == ["query"]
    assert len([f for f in (checkpoint / "query" / "commits").iterdir() if f.name.isdigit()]) >= 4, "several batches"

    numbers = list(range(100))
    assert sorted(notes(tmp_path, "one")) == numbers[:60]
    assert sorted(notes(tmp_path, "two")) == numbers[60:]
    assert sorted(notes(tmp_path, "split")) == numbers
    assert sorted(notes(tmp_path, "merged")) == sorted(numbers * 2)
    for name, keys, times in (("left", 4, 1), ("right", 3, 1), ("deep1", 5, 2), ("deep2", 5, 2), ("deep3", 5, 2)):
        # Every key counted 1, 2, 3, … without a gap or a repetition: each record was seen once, with its state.
        expected = [[key, n + 1] for key in range(keys) for n in range(times * len(numbers[key::keys]))]
        assert sorted(notes(tmp_path, name)) == sorted(expected), name
    assert sorted(notes(tmp_path, "deep-sink")) == sorted(numbers * 2)
    assert sorted(notes(tmp_path, "merged-sink")) == sorted(numbers * 2)
    assert sorted(notes(tmp_path, "side-sink")) == numbers[80:]
    printed = [int(line.split("> ")[-1]) for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == numbers[60:]

    # The same counts as metrics, whatever worker process served a subtask in which batch.
    calls: Counter[str] = Counter()
    for name, count in result.get_all_accumulator_results().items():
        calls[name.split(".")[0]] += count
    assert calls == {"left": 100, "right": 100, "deep1": 200, "deep2": 200, "deep3": 200}


class InOrder(KeyedProcessFunction):
    """Fails when a key's records come in another order than they were sent."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        last = self.last.value()
        assert value[1] > (-1 if last is None else last), f"{value} came after {last}"
        self.last.update(value[1])
        yield value


@pytest.mark.parametrize("parallelism", [1, 3])
def test_order_per_key_through_three_keyed_stages(parallelism: int) -> None:
    # More records a batch than a frame holds: with one subtask, too, there are frames that could change places.
    records = [(f"key-{n % 7}", n) for n in range(12_000)]
    env = spark_env(parallelism, {"firesteel.batch.max-records": 9_000})
    stream = env.from_collection(records)
    for _ in range(3):
        stream = stream.key_by(lambda record: record[0]).process(InOrder())
    with stream.execute_and_collect() as collected:
        results = list(collected)
    assert len(results) == len(records)
    for key in {key for key, _ in records}:
        assert [r for r in results if r[0] == key] == [r for r in records if r[0] == key]


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        moment: int = value[1]
        return moment


ASCENDING = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())


class TellTime(KeyedProcessFunction):
    """Sets a timer for every record, and tells in which batch it fired."""

    def __init__(self, name: str) -> None:
        self.name = name

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield f"{self.name}@{timestamp}", timestamp, ctx.timer_service().current_processing_time()


def test_a_watermark_crosses_three_stages_in_one_batch_and_reaches_subtasks_without_data() -> None:
    """One key at parallelism 3, three batches: the watermark of the second fires the first one's timers everywhere."""
    moments = [10, 11, 12, 1000, 1001, 1002, 2000, 2001, 2002]
    env = spark_env(3, {"firesteel.batch.max-records": 3})
    stream = env.from_collection([("a", n) for n in moments]).assign_timestamps_and_watermarks(ASCENDING)
    for name in ("one", "two", "three"):
        # Another key in each stage: records and timers stand in different subtasks, most of them without data.
        stream = stream.key_by(lambda record, name=name: name).process(TellTime(name))
    with stream.execute_and_collect() as collected:
        results = list(collected)
    assert sorted(r for r in results if len(r) == 2) == [("a", n) for n in moments]
    fired = {name: at for name, _, at in (r for r in results if len(r) == 3)}
    batches = []
    for moment in (10, 1000, 2000):
        # Processing time is one number in a batch: timers with the same one fired in the same batch.
        (at,) = {fired[f"{name}@{moment + n + 5}"] for name in ("one", "two", "three") for n in range(3)}
        batches.append(at)
    assert batches[0] < batches[1] <= batches[2], "the first two fired before the job's end"


class AtTheEnd(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(2**63 - 1)
        ctx.timer_service().register_event_time_timer(value * 1_000_000_000_000)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 3_600_000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


def test_a_bounded_job_ends_by_itself_after_all_its_timers() -> None:
    env = spark_env(2)
    stream = env.from_collection([1, 2, 3]).key_by(lambda n: n).process(AtTheEnd())
    with stream.execute_and_collect() as collected:
        results = sorted(collected)
    end = 2**63 - 1
    assert results == [(n, t, end) for n in (1, 2, 3) for t in (n * 1_000_000_000_000, end)]


class EventOrder(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        yield "element", ctx.get_current_key(), value[1]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp


def test_batch_mode_brings_a_keys_records_in_order_of_time_then_its_timers() -> None:
    records = [(f"key-{n % 3}", (n * 37) % 50) for n in range(50)]
    env = spark_env(3, mode=BATCH)
    stream = env.from_collection(records).assign_timestamps_and_watermarks(ASCENDING)
    with stream.key_by(lambda record: record[0]).process(EventOrder()).execute_and_collect() as collected:
        results = list(collected)
    for key in ("key-0", "key-1", "key-2"):
        times = sorted(moment for name, moment in records if name == key)
        expected = [("element", key, t) for t in times] + [("timer", key, t + 100) for t in sorted(set(times))]
        assert [r for r in results if r[1] == key] == expected


def test_two_jobs_run_side_by_side(tmp_path: Path) -> None:
    """They share the session and its workers, and nothing else."""
    clients, outcomes = [], []
    for job, parallelism in (("first", 1), ("second", 3)):
        env = spark_env(parallelism, {"firesteel.batch.max-records": 20})
        numbers = env.from_collection(list(range(60)))
        numbers.key_by(lambda n: n % 3).process(Count(tmp_path, job)).add_sink(AppendSink(tmp_path, f"{job}-sink"))
        clients.append(env.execute_async(job))
    threads = [
        threading.Thread(target=lambda c=client: outcomes.append(c.get_job_execution_result().result()))
        for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 2
    for job in ("first", "second"):
        assert sorted(notes(tmp_path, job)) == sorted([key, n] for key in range(3) for n in range(1, 21))
        assert sorted(notes(tmp_path, f"{job}-sink")) == list(range(60))


def test_a_file_of_five_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    line = "line {n:06d} é " + "x" * 40
    count = 90_000
    file.write_text("".join(line.format(n=n) + "\n" for n in range(count)), encoding="utf-8")
    assert file.stat().st_size > 5_000_000
    lines = spark_env(3).read_text_file(str(file))
    with lines.map(lambda text: (int(text[5:11]), len(text))).execute_and_collect() as records:
        assert list(records) == [(n, len(line.format(n=0))) for n in range(count)]
