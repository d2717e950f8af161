"""A checkpoint folder on a file system that only Spark knows: Hadoop's viewfs, which shows a folder by another name."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sparkkit import CommitSink, committed, eventually, spark_env

from firesteel.common import JobStatus, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.engine import folder_lease
from firesteel.engine.settings import Settings
from firesteel.engine.spark.hadoop import HadoopStorage
from firesteel.engine.spark.session import get_session
from firesteel.errors import CheckpointError, ConfigurationError, JobExecutionError

NONE = WatermarkStrategy.no_watermarks()


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """A URI behind which ``tmp_path/there`` is."""
    (tmp_path / "there").mkdir()
    session = get_session(Settings(), "test")
    conf = session.sparkContext._jsc.hadoopConfiguration()
    # A mount table of its own for each test: file systems are cached by their names.
    name = f"t{uuid.uuid4().hex}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./state", f"file://{tmp_path}/there")
    return f"viewfs://{name}/state"


class Numbered(KeyedProcessFunction):
    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == self.fails_at:
            raise ValueError("on purpose")
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def run(folder: str, out: Path, last: int, parallelism: int = 2, fails_at: int = -1, **more: str) -> None:
    settings = {"firesteel.checkpoint.dir": folder, "firesteel.batch.max-records": 30, **more}
    env = spark_env(parallelism, settings)
    out.mkdir(exist_ok=True)
    numbers = env.from_source(NumberSequenceSource(0, last), NONE, "numbers").uid("numbers")
    numbered = numbers.key_by(lambda n: n % 3).process(Numbered(fails_at)).uid("numbered")
    numbered.sink_to(CommitSink(out)).uid("sink")
    env.execute("remote")


def test_a_job_goes_on_from_a_folder_that_only_spark_knows(remote: str, tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError, match="on purpose"):
        run(remote + "/job", tmp_path / "out", 149, fails_at=100)
    assert (tmp_path / "there" / "job" / "firesteel-checkpoint.json").exists()
    run(remote + "/job", tmp_path / "out", 149)
    assert sorted(committed(tmp_path / "out")) == sorted([key, n] for key in range(3) for n in range(1, 51))
    # As a savepoint, too, at another parallelism.
    again = {"execution.state-recovery.path": remote + "/job"}
    run(remote + "/other", tmp_path / "more", 299, parallelism=3, **again)
    assert sorted(committed(tmp_path / "more")) == sorted([key, n] for key in range(3) for n in range(51, 101))
    with pytest.raises(CheckpointError, match="had parallelism 2 and has 1 now"):
        run(remote + "/job", tmp_path / "out", 149, parallelism=1)


def test_a_second_job_is_refused_and_one_that_was_overtaken_ends(
    remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(folder_lease, "SECONDS", 12.0)
    env = spark_env(1, {"firesteel.checkpoint.dir": remote + "/job", "firesteel.batch.max-records": 30})
    endless = env.from_source(DataGeneratorSource(lambda n: n, records_per_second=100), NONE, "numbers").uid("numbers")
    endless.sink_to(CommitSink(tmp_path)).uid("sink")
    client = env.execute_async("first")
    request.addfinalizer(client.cancel)
    assert eventually(lambda: committed(tmp_path))
    # The second one waits longer for a sign of life than a busy machine holds the first one up.
    monkeypatch.setattr(folder_lease, "SECONDS", 300.0)
    with pytest.raises(CheckpointError, match="is in use by job 'first'"):
        run(remote + "/job", tmp_path / "out", 9)
    # Whoever finds another token there has stood still for too long. It commits nothing more.
    lease = tmp_path / "there" / "job" / folder_lease.LEASE

    known: dict[str, Any] = {}

    def overtaken() -> bool:
        # Again, if the first one was about to write its own. While it does there may be half of it; and where both
        # have written at the same time, half of each stays there, which nobody but the second one may replace.
        with contextlib.suppress(OSError):
            found = {}
            with contextlib.suppress(ValueError):
                found = json.loads(lease.read_text())
                known.update(found)
            if known and found.get("token") != "another":
                lease.write_text(json.dumps({**known, "token": "another", "job": "successor"}))
                (lease.parent / f".{lease.name}.crc").unlink(missing_ok=True)
        return client.get_job_status().result() is not JobStatus.RUNNING

    assert eventually(overtaken)
    with pytest.raises(CheckpointError, match="did not renew its lease, by job 'successor'"):
        client.get_job_execution_result().result()
    assert json.loads(lease.read_text())["token"] == "another"


def test_a_socket_needs_a_folder_of_this_machine(remote: str) -> None:
    env = spark_env(1, {"firesteel.checkpoint.dir": remote + "/socket"})
    env.socket_text_stream("127.0.0.1", 9).print()
    with pytest.raises(ConfigurationError, match="keeps what it has read in the checkpoint folder"):
        env.execute()


def test_files_through_hadoop(remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = HadoopStorage(get_session(Settings(), "test"))
    path = remote + "/folder/file"
    assert not storage.exists(path)
    assert storage.sizes(remote + "/folder") == {}
    with pytest.raises(FileNotFoundError):
        storage.read(path)
    for content in (b"", bytes(range(256)) * 100, b"again"):
        storage.write(path, content)
        assert storage.read(path) == content
    assert storage.sizes(remote + "/folder") == {"file": 5}
    assert storage.is_folder(remote + "/folder")
    assert not storage.is_folder(path)
    assert not storage.create(path, b"too late")
    # In place: the file never goes away, as it does for a moment where Hadoop renames another one over it.
    there = (tmp_path / "there" / "folder" / "file").stat().st_ino
    storage.overwrite(path, b"in place")
    assert storage.read(path) == b"in place"
    assert (tmp_path / "there" / "folder" / "file").stat().st_ino == there
    storage.write(path, b"again")
    storage.remove_if_empty(remote + "/folder")
    assert storage.read(path) == b"again"
    # A file that is replaced has the checksums of the one before for a moment.
    file = tmp_path / "there" / "folder" / "file"
    file.write_bytes(b"other")
    with monkeypatch.context() as patch:
        patch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: file.write_bytes(b"again")))
        assert storage.read(path) == b"again"
    file.write_bytes(b"other")
    with pytest.raises(OSError, match="Checksum error"):
        storage.read(path)
    storage.delete(path)
    storage.remove_if_empty(remote + "/folder")
    assert not storage.exists(remote + "/folder")
    with pytest.raises(OSError, match="nowhere"):
        storage.exists("nowhere://host/path")
