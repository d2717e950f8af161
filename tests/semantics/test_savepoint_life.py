"""Savepoints taken, drained, disposed of, damaged; what goes wrong with them."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from everykind import every_kind
from kit import first
from savepointkit import Halves

from firesteel.common import Configuration, Encoder, JobStatus, Types, WatermarkStrategy
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import (
    ValueStateDescriptor,
)
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.requests import SavepointRequest, SavepointRequests
from firesteel.engine.savepoints.taking import dispose
from firesteel.errors import SavepointError


def test_the_job_goes_on_after_a_savepoint(halves: Halves) -> None:
    found = halves.save(every_kind, [[("a", 1)], [("a", 2)]], stop=False)
    assert [one[1] for one in found if one[1] != "timer"] == [1, 2]
    assert halves.resume(every_kind, [[("a", 1)], [("a", 2)], [("a", 3)]])[0][1] == 3


def test_draining_fires_all_timers_first(halves: Halves) -> None:
    found = halves.save(every_kind, [[("a", 1)]], drain=True)
    assert ("a", "timer", 1001, "EVENT_TIME") in found
    assert halves.manifest()["drained"]
    # What comes later is not late: a drained savepoint can be gone on from all the same.
    assert halves.resume(every_kind, [[("a", 1)], [("a", 3)]])[0][:2] == ("a", 2)


def test_two_jobs_may_begin_with_one_savepoint(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1)]])
    twice = [halves.resume(every_kind, [[("a", 1)], [("a", number)]])[0] for number in (5, 7)]
    assert [(one[1], one[3]) for one in twice] == [(2, 6), (2, 8)]


def test_what_is_no_savepoint_is_told(halves: Halves, tmp_path: Path) -> None:
    halves.path = str(tmp_path / "nowhere")
    with pytest.raises(SavepointError, match=r"nowhere is not a savepoint: it has no manifest.json. It is not there"):
        halves.resume(every_kind, [])
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(SavepointError, match=r"a savepoint was never completed in it"):
        halves.resume(every_kind, [])
    (tmp_path / "nowhere" / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(SavepointError, match=r"the savepoint has format 99, of a newer Firesteel"):
        halves.resume(every_kind, [])


def test_a_damaged_file_is_told(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1), ("a", 2)]], 1)
    (one,) = Path(halves.path).glob("operators/every/count/*.parquet")
    (other,) = Path(halves.path).glob("operators/every/seen/*.parquet")
    shutil.copy(other, one)
    with pytest.raises(SavepointError, match=r"is damaged: operators/every/count/.* has 2 rows, its manifest says 1"):
        halves.resume(every_kind, [[("a", 1), ("a", 2)]])


def test_only_a_savepoint_is_disposed_of(halves: Halves, tmp_path: Path) -> None:
    halves.save(every_kind, [[("a", 1)]])
    dispose(halves.path)
    assert not Path(halves.path).exists()
    with pytest.raises(SavepointError, match=r"is not a savepoint.*Nothing was deleted"):
        dispose(str(tmp_path))
    assert tmp_path.exists()


class Gated(IndexEnumerator, SourceReader[None, Any], Source[None, Any]):
    """Three records, once a file is there."""

    def __init__(self, gate: Path) -> None:
        super().__init__(None)
        self.gate = str(gate)

    def create_enumerator(self) -> SplitEnumerator[None]:
        return self

    def create_reader(self) -> SourceReader[None, Any]:
        return self

    def latest(self, position: int, max_records: int) -> int:
        return 3 if Path(self.gate).exists() else position

    def read(self, split: None, start: int, end: int) -> Iterator[Records[Any]]:
        yield Records([("a", number) for number in range(start, end)])


def test_a_savepoint_before_the_first_batch_waits_for_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It would be empty."""
    requests = SavepointRequests()
    request = SavepointRequest(Place(str(tmp_path / "savepoint")))
    requests.put(request)
    for _ in range(2):
        assert requests.take(begun=lambda: False) is None
    assert caplog.text.count("waits for the job's first batch: before that there is nothing to save") == 1
    assert requests.take(begun=lambda: True) is request


def test_a_savepoint_before_the_first_record(tmp_path: Path) -> None:
    """The first batch comes at once, also without records, so there is something to save: where the sources stand."""

    def start(more: dict[str, str]) -> tuple[DataStream, StreamExecutionEnvironment]:
        configuration = Configuration.from_dict({"firesteel.master": "memory", **more})
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        source = env.from_source(Gated(tmp_path / "gate"), WatermarkStrategy.no_watermarks(), "gated")
        return every_kind(source.uid("gated")), env

    stream, env = start({})
    stream.print()
    job = env.execute_async("gated")
    path = job.trigger_savepoint(str(tmp_path / "savepoints")).result(150)
    job.cancel()
    (tmp_path / "gate").touch()
    stream, _ = start({"execution.savepoint.path": path})
    with stream.execute_and_collect() as records:
        assert [one[1] for one in itertools.islice(records, 3)] == [1, 2, 3]


def test_a_savepoint_needs_a_directory(halves: Halves) -> None:
    job, _, _ = halves.start(every_kind, [[("a", 1)]], False, 1, {})
    with pytest.raises(SavepointError, match=r"Where should the savepoint go"):
        job.trigger_savepoint()
    job.cancel()
    with pytest.raises(SavepointError, match=r"the job was cancelled"):
        job.trigger_savepoint(str(halves.folder))


def test_checkpoints_know_the_size_of_each_operators_state(halves: Halves) -> None:
    """What is written again, or removed, does not count twice."""

    class Held(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.text.update("x" * value[1] if value[1] else None)
            yield value

    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).process(Held()).uid("held").name("held")

    full = [[(f"k{n}", 1000) for n in range(100)], [("k0", 1000)]]
    smaller = [[(f"k{n}", 0) for n in range(90)], [("k99", 1000)]]
    for backend in ("hashmap", "rocksdb"):
        for steps, low, high in ((full, 90_000, 150_000), ([*full, *smaller], 9_000, 110_000)):
            job, _, reader = halves.start(build, steps, True, 2, {"state.backend.type": backend})
            job.get_job_execution_result().result()
            reader.join()
            last = job.get_checkpoint_statistics().result().latest_completed
            assert last is not None
            assert low < last.operator_state_sizes["held"] < high, (backend, last)


def test_a_file_sink_goes_on_after_a_savepoint(halves: Halves, tmp_path: Path) -> None:
    """A part that is still written to when the job stops becomes visible then, and the next job begins others."""

    def build(stream: DataStream) -> DataStream:
        texts = stream.map(str).uid("texts")
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        texts.sink_to(sink.with_rolling_policy(RollingPolicy.default_rolling_policy()).build()).uid("files")
        return texts

    steps = [[10 * n + m for m in range(10)] for n in range(6)]
    halves.save(build, steps[:3], 2)
    halves.resume(build, steps, 3)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith((".", "_"))]
    assert sorted(int(line) for path in files for line in path.read_text().split()) == list(range(60))


def test_a_savepoint_that_fails_leaves_nothing_and_the_job_goes_on(halves: Halves, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    job, found, reader = halves.start(every_kind, [[("a", 1)]], False, 2, {})
    for stop in (False, True):
        taken = job.stop_with_savepoint(False, str(tmp_path / "file")) if stop else None
        taken = taken or job.trigger_savepoint(str(tmp_path / "file"))
        with pytest.raises((OSError, SavepointError)):
            taken.result()
        assert job.get_job_status().result() is JobStatus.RUNNING
    path = job.stop_with_savepoint(False, str(tmp_path / "saved")).result()
    job.get_job_execution_result().result()
    reader.join(150)
    assert [child.name for child in (tmp_path / "saved").iterdir()] == [Path(path).name]
    assert found[0][:2] == ("a", 1)


class Unsavable(KeyedProcessFunction):
    """Its state holds what its declared type allows and Arrow does not: a text with half a character."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update(1)
        self.text.update("\ud800")
        yield value


def test_what_cannot_be_saved_is_told(halves: Halves, tmp_path: Path) -> None:
    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).process(Unsavable()).uid("unsavable")

    with pytest.raises(SavepointError, match=r"State 'text' of operator unsavable cannot be saved: .* of key 'a'"):
        halves.save(build, [[("a", 1)]])
    assert not list(tmp_path.iterdir())
