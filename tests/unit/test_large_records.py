"""Records of megabytes: frames in pieces, lists that do not pile up, batches that are limited by bytes."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from sourcekit import read

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.path_names import path_name
from firesteel.connectors.collection import CollectionEnumerator, CollectionReader
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.engine.batch_sizer import FIRST_BATCH, BatchSizer
from firesteel.engine.coordinator import Coordinator, CoordinatorFeedback
from firesteel.engine.settings import Settings
from firesteel.engine.spark import jvm_failure as jvm_module
from firesteel.engine.spark.data_source import _let_go, _Share
from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.job import SparkJob
from firesteel.engine.spark.jvm_failure import NO_MEMORY, MemoryFailures
from firesteel.errors import FailureKind, JobExecutionError, kind_of
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime import driver_results
from firesteel.runtime.driver_results import INLINE, ResultFile, is_elsewhere, open_result, remove_results
from firesteel.runtime.failures import Failure, OperatorFailure
from firesteel.runtime.frames import PIECE_BYTES, Frame, FrameSpool, decode, encode, header_of
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.pace import Pace

NONE = WatermarkStrategy.no_watermarks()


def environment(**settings: str) -> StreamExecutionEnvironment:
    keys = {f"firesteel.{key.replace('_', '.', 1).replace('_', '-')}": value for key, value in settings.items()}
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"firesteel.master": "memory", **keys})
    )


class TestPieces:
    @pytest.mark.parametrize("limit", [0, PIECE_BYTES * 3, 1 << 30], ids=["in a file", "some in a file", "in memory"])
    def test_frames_come_back_whole_and_in_order(self, limit: int) -> None:
        contents = [[n, os.urandom(size)] for n, size in enumerate((10, 5 << 20, 20, 0, 9 << 20))]
        frames = [Frame(1, 2, 3, n % 2, n, 99, encode(content)) for n, content in enumerate(contents)]
        cells = [cell for frame in frames for cell in frame.cells()]
        assert len(cells) == 1 + 3 + 1 + 1 + 5
        assert max(map(len, cells)) < PIECE_BYTES + 100
        assert {header_of(cell)[:4] for cell in cells} == {(1, 2, 3, 0), (1, 2, 3, 1)}
        random.Random(1).shuffle(cells)
        spool = FrameSpool(limit)
        for cell in cells:
            spool.add(cell)
        found = [decode(cell) for cell in spool.in_order()]
        assert found == [*contents[::2], *contents[1::2]]

    def test_a_piece_is_passed_on_as_it_is(self) -> None:
        cells = list(Frame(3, 2, 1, 0, 7, 99, os.urandom(5 << 20)).cells())
        assert [cell for piece in cells for cell in Frame.of(piece).cells()] == cells


class Blob:
    """A record of a megabyte. Counts how many there are at once."""

    alive = most = 0

    def __init__(self, content: bytes) -> None:
        self.content = content
        Blob.alive += 1
        Blob.most = max(Blob.most, Blob.alive)

    def __reduce__(self) -> Any:
        return Blob, (self.content,)

    def __del__(self) -> None:
        Blob.alive -= 1


@pytest.mark.parametrize("spread", [1, 4], ids=["all", "every fourth"])
def test_a_task_does_not_forget_how_large_records_are(spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    observe = Pace.observe
    monkeypatch.setattr(
        Pace, "observe", lambda pace, records, weight: (pieces.append(records), observe(pace, records, weight))[1]
    )
    env = environment(batch_max_records="1000").set_parallelism(1)
    numbers = env.from_source(NumberSequenceSource(1, 100 * spread), NONE, "n").filter(lambda n: n % spread == 0)
    with numbers.map(lambda n: bytes(5 << 20)).map(len).execute_and_collect() as found:
        assert len(list(found)) == 100
    # What came of a piece is never much more than the 16 MB that it should be.
    assert pieces[0] == 16
    assert max(pieces[1:]) <= 4 * spread


@pytest.mark.parametrize("keyed", [True, False])
def test_large_records_do_not_pile_up_in_a_task(keyed: bool) -> None:
    gc.collect()
    Blob.alive = Blob.most = 0
    env = environment(batch_max_records="1000")
    env.set_parallelism(1)
    blobs = env.from_source(NumberSequenceSource(1, 500), NONE, "n").map(lambda n: Blob(b"%08d" % n * (1 << 17)))
    if keyed:
        blobs = blobs.key_by(lambda blob: blob.content[:8])
    with blobs.map(lambda blob: len(blob.content)).execute_and_collect() as found:
        assert list(found) == [1 << 20] * 500
    # Two frames of about what a sender holds before it makes one; a list of 500 would be half a gigabyte.
    assert Blob.most < 250


class TestLimit:
    TEXT = r"A record of 2\.0 MB \(bytes\) cannot be passed on: the limit is 1\.0 MB \(firesteel\.frames\.max-record\)"

    @pytest.mark.parametrize("to", ["key_by", "collect"])
    def test_a_record_that_is_too_large_is_named_with_its_operator(self, to: str) -> None:
        env = environment(frames_max_record="1 mb")
        large = env.from_collection([1, 2, 3]).map(lambda n: b"x" * (n << 20 if n == 2 else n)).name("growing")
        stream = large.key_by(len).map(len) if to == "key_by" else large
        with pytest.raises(JobExecutionError, match=self.TEXT) as caught, stream.execute_and_collect() as found:
            list(found)
        assert caught.value.operator == ("growing" if to == "key_by" else "Sink: Collect")
        assert caught.value.kind is FailureKind.PERMANENT

    def test_many_small_ones_are_no_large_one(self) -> None:
        env = environment(frames_max_record="1 mb")
        records = [f"{n:0500}" for n in range(10_000)]
        with env.from_collection(records).key_by(len).map(len).execute_and_collect() as found:
            assert list(found) == [500] * 10_000


class TestBatches:
    def coordinator(
        self, build: Any, settings: Settings, feedback: Any = CoordinatorFeedback, directory: str = "/nonexistent"
    ) -> Coordinator:
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env)
        graph = build_job_graph(build_stream_graph(env.program, 1))
        return Coordinator(graph, settings, directory, feedback)

    def test_what_a_source_knows_of_its_bytes(self) -> None:
        values = [b"x" * (n % 3 << 20) for n in range(30)]
        c = self.coordinator(lambda env: env.from_collection(values).print(), Settings(max_bytes=8 << 20))
        offset, sizes = c.initial(), []
        while not offset["last"]:
            reached = c.next(offset)
            low, high = (next(iter(o["positions"].values())) for o in (offset, reached))
            sizes.append(sum(map(len, values[low:high])))
            offset = reached
        assert sum(sizes) == sum(map(len, values))
        assert max(sizes) <= 10 << 20
        assert len(sizes) < 8

    @pytest.mark.parametrize("lines", [[1 << 20] * 20, [100] * 50_000, [9 << 20, 10, 10], [10, 9 << 20, 10]])
    @pytest.mark.parametrize("records", [FIRST_BATCH, 10**6])
    def test_lines_of_a_socket(self, tmp_path: Path, lines: list[int], records: int) -> None:
        content = b"".join(b"x" * (length - 1) + b"\n" for length in lines)
        folder = tmp_path / path_name("lines")
        folder.mkdir()
        (folder / "socket.log").write_bytes(content)
        with socket.create_server(("127.0.0.1", 0)) as server:
            c = self.coordinator(
                lambda env: env.socket_text_stream("127.0.0.1", server.getsockname()[1]).uid("lines").print(),
                Settings(max_bytes=4 << 20, max_records=records),
                directory=str(tmp_path),
            )
            try:
                offset, ends = c.initial(), [0]
                while len(content) - ends[-1] > min(4 << 20, records * 64):
                    reached = c.next(offset)
                    assert reached is not offset
                    ends += reached["positions"].values()
                    offset = reached
            finally:
                c.stop()
        sizes = [high - low for low, high in itertools.pairwise(ends)]
        assert max(sizes) <= max(4 << 20, *lines)
        assert len(sizes) <= 20

    def test_a_record_larger_than_a_batch_is_a_batch(self) -> None:
        values = [b"x" * (3 << 20)] * 3
        c = self.coordinator(lambda env: env.from_collection(values).print(), Settings(max_bytes=1 << 20))
        offset = c.initial()
        for n in (1, 2, 3):
            offset = c.next(offset)
            assert list(offset["positions"].values()) == [n]

    def test_what_records_led_to_limits_the_next_batch(self) -> None:
        reported: dict[str, int] = {}
        c = self.coordinator(
            lambda env: env.from_source(NumberSequenceSource(1, 10**6), NONE, "n").print(),
            Settings(max_bytes=100 << 20),
            lambda: CoordinatorFeedback(**reported),
        )
        first = c.next(c.initial())
        assert list(first["positions"].values()) == [FIRST_BATCH]
        # Each of them was a megabyte behind the first operator.
        reported.update(time=first["time"], bytes=FIRST_BATCH << 20)
        second = c.next(first)
        assert list(second["positions"].values()) == [FIRST_BATCH + 100]

    def test_a_sizer_forgets_large_records_slowly(self) -> None:
        sizer = BatchSizer(1000, max_bytes=1 << 20)
        assert sizer.records == FIRST_BATCH
        sizer.weigh(10, 10 << 10)
        assert sizer.records == 1024
        sizer.weigh(1000, 1000)
        assert 1024 < sizer.records < 2000
        for _ in range(50):
            sizer.weigh(1000, 1000)
        assert sizer.records == FIRST_BATCH
        sizer.weigh(1, 5 << 20)
        assert sizer.records == 1

    def test_an_offset_says_how_many_bytes_a_job_sends(self) -> None:
        env = environment(batch_max_bytes="20 mb", batch_max_records="100")
        numbers = env.from_source(NumberSequenceSource(0, 299), NONE, "n").map(lambda n: (n, b"x" * (1 << 20)))
        numbers.key_by(lambda pair: pair[0]).filter(lambda pair: False).print()
        client: Any = env.execute_async()
        client.get_job_execution_result().result()
        assert client.inbox.progress.records == 300
        assert client.inbox.progress.batches == 1 + 200 // 20 + 1, "a hundred at first, then nearly twenty each"


class TestCollections:
    def test_pieces_are_small(self) -> None:
        values = [b"x" * (3 << 20)] * 5 + ["small"] * 20_000
        source = CollectionEnumerator.of(values)
        assert max(map(len, source._pieces)) < 4 << 20
        shares = [source.plan(low, low + 1, 1)[0] for low in range(5)]
        assert max(len(pickle_of(share)) for share in shares) < 4 << 20
        assert read(CollectionReader(), source.plan(0, len(values), 3)) == values
        whole = source.size(0, len(values))
        assert whole > 15 << 20
        parts = [source.size(a, b) for a, b in itertools.pairwise([0, 3, 4, 5000, len(values)])]
        assert abs(sum(parts) - whole) < 10


def pickle_of(value: Any) -> bytes:
    return encode([value])


def job() -> JobSpec:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    return JobSpec("id", "job", build_job_graph(build_stream_graph(env.program, 1)))


class OutOfMemory:
    def __reduce__(self) -> Any:
        raise MemoryError


class TestResults:
    def test_what_is_beyond_some_megabytes_is_in_a_file(self, tmp_path: Path) -> None:
        results = ResultFile(str(tmp_path), job(), 1, 0)
        messages = [["collect", 1, [os.urandom(1 << 20)]] for _ in range(10)]
        packed = [decode_payload(results.packed(*message)) for message in messages]
        inline = [message for message in packed if not is_elsewhere(message)]
        assert len(inline) == INLINE // (1 << 20) - 1
        assert [open_result(message) for message in packed] == messages
        assert len(list(tmp_path.iterdir())) == 1
        assert results.written > 6 << 20
        results.begin()
        assert not is_elsewhere(decode_payload(results.packed("stdout", 1, "x"))), "the next batch begins anew"
        remove_results(str(tmp_path))
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_may_pass(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(path: str, mode: str) -> Any:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(driver_results, "open_private", full)
        results = ResultFile(str(tmp_path), job(), 1, 0)
        with pytest.raises(OSError, match="No space left") as caught:
            results.packed("collect", 1, [b"x" * (INLINE + 1)])
        assert kind_of(caught.value) is FailureKind.PASSING

    def test_a_record_that_cannot_be_pickled_cannot_be_so_later(self) -> None:
        spec = job()
        node = max(spec.graph.graph.nodes)
        results = ResultFile(None, spec, 1, 0)
        with pytest.raises(OperatorFailure, match="lock object") as caught:
            results.packed("collect", node, [1, threading.Lock()])
        assert kind_of(caught.value) is FailureKind.PERMANENT
        with pytest.raises(OperatorFailure) as caught:
            results.packed("collect", node, [OutOfMemory()])
        assert kind_of(caught.value) is FailureKind.PASSING

    def test_without_a_folder_all_goes_through_spark(self) -> None:
        results = ResultFile(None, job(), 1, 0)
        message = ["collect", 1, [b"x" * (INLINE + 1)]]
        assert decode_payload(results.packed(*message)) == message

    def test_large_shares_are_files_until_their_batch_is_done(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "shares")
        for batch in (1, 2):
            share = SourceShare(0, 5, False, {1: b"x" * (2 << 20)}, frozenset())
            partition = _Share(share, batch, folder)
            assert len(pickle_of(partition)) < 1000
            assert partition.load() == share
        assert _Share(SourceShare(1, 5, False, {1: b"x"}, frozenset()), 2, folder).path is None
        _let_go(folder, 1)
        assert os.listdir(folder) == ["2-0"]


def decode_payload(content: bytes) -> list[Any]:
    return decode(Frame(0, 0, 0, 0, 0, 0, content).to_bytes())


class TestTheJvm:
    """What is said when the JVM is gone, or full."""

    @pytest.fixture
    def ended(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        def ended(code: str) -> None:
            process = subprocess.Popen([sys.executable, "-c", code])
            monkeypatch.setattr(jvm_module.SparkContext, "_gateway", SimpleNamespace(proc=process))

        return ended

    def test_out_of_memory(self, ended: Any) -> None:
        ended("import os; os._exit(52)")
        error = translate(ConnectionRefusedError(111, "Connection refused"))
        assert "Spark's JVM ran out of memory; its heap is 1g." in str(error)
        assert "spark.driver.memory" in str(error)
        assert "firesteel.batch.max-bytes" in str(error)

    def test_out_of_memory_while_it_lives(self) -> None:
        error = translate(RuntimeError("o1.f failed: java.lang.OutOfMemoryError: Java heap space\n\tat org.apache..."))
        assert isinstance(error, JobExecutionError)
        assert str(error).startswith("Spark's JVM ran out of memory")

    def test_twice_behind_one_batch_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One value of state that does not fit will not fit the next time."""
        monkeypatch.setattr(SparkJob, "_spark_lives", lambda self: True)
        job = object.__new__(SparkJob)
        job._memory_failures = MemoryFailures()
        folder = SimpleNamespace(last_commit=None)
        job._shared = SimpleNamespace(folder=folder)  # type: ignore[assignment]
        full = translate(RuntimeError("o1.f failed: java.lang.OutOfMemoryError: Java heap space"))
        other = JobExecutionError("the user's own", cause_class="builtins.ValueError")
        assert [job.restartable(error) for error in (full, other, full, full)] == [True, True, True, False]
        folder.last_commit = 1
        assert [job.restartable(full) for _ in range(2)] == [True, False]

    def test_a_state_server_that_is_gone(self) -> None:
        def failed(trace: str, operator: str = "") -> BaseException:
            failure = Failure(operator, "job.py:1", "EOFError", cause_class="builtins.EOFError", trace=trace)
            return translate(RuntimeError(f"Py4J says: {OperatorFailure(failure)}"))

        lost = str(failed('File "firesteel/runtime/state/spark_store.py", line 9, in read'))
        assert lost.startswith("Spark's JVM closed the connection by which a task reads and writes its state.")
        assert "spark.driver.memory" in lost
        assert getattr(failed('File "spark_store.py", line 9, in read'), "cause_class", None) == NO_MEMORY
        # What a user's function or a source says is their own.
        assert "JVM" not in str(failed('File "job.py", line 9, in read'))
        assert "JVM" not in str(failed('File "spark_store.py", line 9, in read', operator="Map"))

    def test_killed(self, ended: Any) -> None:
        ended("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        for failed in (
            Py4JNetworkError("Answer from Java side is empty"),
            Py4JError("An error occurred while calling x"),
        ):
            error = translate(failed)
            assert str(error).startswith("Spark's JVM has ended: it was killed (SIGKILL). Perhaps the system did so")

    def test_ended_otherwise(self, ended: Any) -> None:
        ended("import os; os._exit(1)")
        assert "Spark's JVM has ended, with code 1" in str(translate(EOFError()))

    def test_a_connection_of_another_kind(self, ended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jvm_module, "WAIT_SECONDS", 0.1)
        ended("import time; time.sleep(60)")
        process = jvm_module.SparkContext._gateway.proc
        try:
            assert "JVM" not in str(translate(ConnectionRefusedError(111, "Connection refused")))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
