"""Savepoints of jobs on Spark: taken while the job runs, begun from at another parallelism, and made of checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from savepointkit import Halves
from sparkkit import CommitSink, committed, eventually, spark_env

from firesteel.cluster import copy_checkpoint
from firesteel.cluster.state_browser import state_rows
from firesteel.common import Encoder, JobStatus, Types, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.engine.spark.savepoints import write_state
from firesteel.errors import CheckpointError
from firesteel.state_processor import Savepoint
from firesteel.testing import Crash, ProcessingTime, Record, Watermark

NONE = WatermarkStrategy.no_watermarks()
TOTAL = 6_000


class Kept(KeyedProcessFunction):
    """States of three shapes, and timers of both kinds."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.names = runtime_context.get_map_state(MapStateDescriptor("names", Types.LONG(), Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(value[1])
        self.names.put(value[1], str(value[1]))
        ctx.timer_service().register_event_time_timer(1000 + value[1])
        ctx.timer_service().register_processing_time_timer(5000 + value[1] % 3)
        yield value[0], self.count.value(), sum(self.seen.get()), len(list(self.names.keys()))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer", timestamp, ctx.time_domain().name


def kept(stream: DataStream) -> DataStream:
    return stream.key_by(lambda record: record[0], key_type=Types.STRING()).process(Kept()).uid("kept")


BEGIN: list[Any] = [ProcessingTime(1000), [(f"k{n % 7}", n) for n in range(700)], [(f"k{n % 7}", n) for n in range(9)]]
END = [ProcessingTime(6000), [Record(("k0", 5000), 1100)], Watermark(3000)]


@pytest.mark.parametrize(("backend", "before", "after"), [("hashmap", 2, 3), ("rocksdb", 3, 1)])
def test_a_job_goes_on_from_a_savepoint(tmp_path: Path, backend: str, before: int, after: int) -> None:
    halves = Halves(tmp_path, "local")
    expected = Halves(tmp_path).whole(kept, [*BEGIN, *END])

    found = halves.save(kept, BEGIN, before, state_backend_type=backend)
    # A failure in the first batch, when state has just arrived: it comes again, and arrives again.
    crash = Crash()
    found += halves.resume(
        kept,
        [*BEGIN, [crash], *END],
        after,
        state_backend_type=backend,
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_attempts="2",
        restart__strategy_fixed__delay_delay="10 ms",
    )

    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert sum(1 for one in found if one[1] == "timer") > 700
    assert crash.count == 1


class Numbered(KeyedProcessFunction):
    """Numbers the records of each key: a number that came twice or was left out would show."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def test_a_savepoint_of_a_running_job_and_what_comes_after_it(tmp_path: Path) -> None:
    """The job that was saved goes on to its end, and so do those that begin with the savepoint, side by side. Files are
    in the middle of a part when it is taken."""

    def program(folder: str, files: str | None = None, rate: int = 8000, **config: Any) -> Any:
        env = spark_env(2, {"firesteel.batch.max-records": 1000, **config})
        source = env.from_source(DataGeneratorSource(lambda n: n, TOTAL, rate), NONE, "numbers").uid("numbers")
        (tmp_path / folder).mkdir()
        numbered = source.key_by(lambda n: n % 11).process(Numbered()).uid("numbered")
        numbered.sink_to(CommitSink(tmp_path / folder)).uid("sink")
        sink = FileSink.for_row_format(str(tmp_path / (files or f"{folder} files")), Encoder.json_encoder())
        numbered.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()).uid("files")
        return env.execute_async(folder)

    # So slowly that it runs for minutes.
    first = program("first", "files", rate=50)
    assert eventually(lambda: first.inbox.progress.batches >= 2)
    path = first.trigger_savepoint(str(tmp_path)).result()
    assert first.get_job_status().result() is JobStatus.RUNNING
    at = first.inbox.progress.records
    second_path = first.stop_with_savepoint(False, str(tmp_path)).result()
    first.get_job_execution_result().result()
    assert first.get_job_status().result() is JobStatus.FINISHED
    assert 0 < at < TOTAL

    restored = [("second", "files", second_path), ("twin", "files of the twin", second_path), ("third", None, path)]
    for job in [program(name, files, **{"execution.state-recovery.path": begin}) for name, files, begin in restored]:
        job.get_job_execution_result().result()
    expected = sorted([key, n] for key in range(11) for n in range(1, len(range(key, TOTAL, 11)) + 1))
    assert sorted(committed(tmp_path / "first") + committed(tmp_path / "second")) == expected
    assert sorted(committed(tmp_path / "second")) == sorted(committed(tmp_path / "twin"))
    files = [file for file in (tmp_path / "files").iterdir() if not file.name.startswith(".")]
    assert sorted(json.loads(line) for file in files for line in file.read_text().splitlines()) == expected
    # What the first savepoint did not have comes again, with the same numbers.
    third = sorted(committed(tmp_path / "third"))
    assert third == [one for one in expected if one in third]
    assert len(third) >= TOTAL - at
    assert all([key, len(range(key, TOTAL, 11))] in third for key in range(11))


def test_a_retained_checkpoint_is_begun_from_like_a_savepoint(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    settings = {"firesteel.batch.max-records": 30, "firesteel.checkpoint.dir": str(checkpoints / "one")}

    def program(folder: str, parallelism: int, last: int, config: dict[str, Any]) -> Any:
        env = spark_env(parallelism, config)
        (tmp_path / folder).mkdir(exist_ok=True)
        source = env.from_source(NumberSequenceSource(0, last), NONE, "numbers").uid("numbers")
        numbered = source.key_by(lambda n: n % 5).process(Numbered()).uid("numbered")
        numbered.sink_to(CommitSink(tmp_path / folder)).uid("sink")
        return env.execute(folder)

    program("first", 2, 99, settings)
    begin = {"execution.state-recovery.path": str(checkpoints / "one")}
    program("second", 3, 199, {**settings, **begin, "firesteel.checkpoint.dir": str(checkpoints / "two")})

    both = committed(tmp_path / "first") + committed(tmp_path / "second")
    assert sorted(both) == sorted([key, n] for key in range(5) for n in range(1, 41))
    with pytest.raises(CheckpointError, match=r"should begin with a savepoint, but its checkpoint folder .* holds"):
        program("third", 2, 199, {**settings, **begin})
    _is_browsed(str(checkpoints / "two"), tmp_path / "copied")


def _is_browsed(checkpoint: str, target: Path) -> None:
    """The page's state browser copies a checkpoint in a process of its own, and reads the copy without Spark."""
    assert copy_checkpoint.main(checkpoint, str(target)) == 0
    found = state_rows(Savepoint.load(str(target)), "numbered", "count", "3", 0, 10)
    assert (found.columns, found.rows, found.total) == (["key", "value"], [["3", 40]], 5)


def test_draining(tmp_path: Path) -> None:
    halves = Halves(tmp_path, "local")
    found = halves.save(kept, [[("a", 1)]], drain=True)
    assert ("a", "timer", 1001, "EVENT_TIME") in found
    assert halves.manifest()["drained"]


def test_a_job_waits_where_its_checkpoint_would_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark deletes the state of old batches; a savepoint that takes longer than that stops the job for a moment."""
    tried: list[int] = []

    def slow(session: Any, query: str, batch: int, *others: Any) -> Any:
        tried.append(batch)
        if len(tried) == 1:
            assert eventually(lambda: (job._run._shared.folder.last_commit or 0) > batch)
            raise FileNotFoundError("the state of this batch was deleted")
        return write_state(session, query, batch, *others)

    monkeypatch.setattr("firesteel.engine.spark.savepoints.write_state", slow)
    env = spark_env(2, {"firesteel.batch.max-records": 100})
    numbers = env.from_source(DataGeneratorSource(lambda n: n, 10**9, 1000), NONE, "numbers").uid("numbers")
    numbers.key_by(lambda n: n % 11).process(Numbered()).uid("numbered").filter(lambda pair: False).print()
    job: Any = env.execute_async("slow savepoint")
    path = job.trigger_savepoint(str(tmp_path)).result()

    assert tried[1] > tried[0]
    counts = dict(Savepoint.load(path).items("numbered", "count"))
    assert sum(counts.values()) == Savepoint.load(path).position("numbers")
    # It goes on.
    batches = job.inbox.progress.batches
    assert eventually(lambda: job.inbox.progress.batches > batches + 2)
    job.cancel().result()
