"""Sinks: functions in the tasks, and writers with a committer in the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit import BATCH, STREAMING, ascending

from firesteel.datastream import RuntimeExecutionMode, SinkFunction
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.errors import JobExecutionError, ProgramError


class ListWriter(SinkWriter):
    """Holds a batch's records; each batch is one committable."""

    def __init__(self, folder: str, context: WriterContext) -> None:
        self.folder, self.place = folder, (context.subtask(), context.parallelism())
        self.pending: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.pending.append((value, context.timestamp()))

    def prepare_commit(self) -> list[Any]:
        pending, self.pending = self.pending, []
        return [(self.place, pending)] if pending else []

    def close(self) -> None:
        with open(f"{self.folder}/closed", "a") as file:
            file.write(f"{self.place[0]}\n")


class FileCommitter(Committer):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def commit(self, committables: list[Any]) -> None:
        with open(f"{self.folder}/committed", "a") as file:
            file.writelines(f"{committable!r}\n" for committable in committables)


class FileSink(Sink):
    def __init__(self, folder: Path, committing: bool = True) -> None:
        self.folder, self.committing = str(folder), committing

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return ListWriter(self.folder, context)

    def create_committer(self, context: CommitterContext) -> Committer | None:
        return FileCommitter(self.folder) if self.committing else None


def committed(folder: Path) -> list[Any]:
    return [eval(line) for line in (folder / "committed").read_text().splitlines()]


@pytest.mark.both_engines
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
def test_what_writers_prepare_is_committed_once(
    make_env: Any, parallelism: int, mode: RuntimeExecutionMode, tmp_path: Path
) -> None:
    env = make_env(parallelism, {"firesteel.batch.max-records": "4"}, mode)
    env.from_collection(list(range(10))).sink_to(FileSink(tmp_path))
    env.execute()
    found = committed(tmp_path)
    assert sorted(value for _, pending in found for value, _ in pending) == list(range(10))
    assert {place for place, _ in found} <= {(n, parallelism) for n in range(parallelism)}
    assert sorted((tmp_path / "closed").read_text().split()) == [str(n) for n in range(parallelism)]


def test_a_committable_per_batch_in_order(make_env: Any, tmp_path: Path) -> None:
    env = make_env(config={"firesteel.batch.max-records": "2"})
    stream = env.from_collection([("a", n) for n in range(5)]).assign_timestamps_and_watermarks(ascending())
    stream.sink_to(FileSink(tmp_path))
    env.execute()
    assert [pending for _, pending in committed(tmp_path)] == [
        [(("a", 0), 0), (("a", 1), 1)],
        [(("a", 2), 2), (("a", 3), 3)],
        [(("a", 4), 4)],
    ]


def test_a_sink_without_a_committer(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    env.from_collection([1]).sink_to(FileSink(tmp_path, committing=False))
    env.execute()
    assert (tmp_path / "closed").exists()
    assert not (tmp_path / "committed").exists()


class AppendSink(SinkFunction):
    def __init__(self, folder: Path) -> None:
        self.path = f"{folder}/seen"

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        with open(self.path, "a") as file:
            file.write(f"{value!r} {context.timestamp()} {context.current_processing_time() > 10**12}\n")


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=3)
def test_add_sink_sees_every_record_and_its_time(make_env: Any, parallelism: int, tmp_path: Path) -> None:
    env = make_env(parallelism)
    stream = env.from_collection([("a", n) for n in range(4)])
    stream.assign_timestamps_and_watermarks(ascending()).add_sink(AppendSink(tmp_path))
    env.execute()
    seen = sorted((tmp_path / "seen").read_text().splitlines())
    assert seen == [f"('a', {n}) {n} True" for n in range(4)]


def test_a_record_without_a_timestamp_has_none(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    env.from_collection([7]).add_sink(AppendSink(tmp_path))
    env.execute()
    assert (tmp_path / "seen").read_text() == "7 None True\n"


def test_what_is_no_sink_is_refused(make_env: Any) -> None:
    stream = make_env().from_collection([1])
    with pytest.raises(ProgramError, match=r"add_sink\(\) takes an instance of SinkFunction, got <class"):
        stream.add_sink(AppendSink)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=r"sink_to\(\) takes an instance of Sink, got 5"):
        stream.sink_to(5)


class BrokenCommitter(Committer):
    def commit(self, committables: list[Any]) -> None:
        raise ConnectionError("the database is gone")


class BrokenSink(FileSink):
    def create_committer(self, context: CommitterContext) -> Committer:
        return BrokenCommitter()


def test_a_commit_that_fails_names_the_sink(make_env: Any, tmp_path: Path, capsys: Any) -> None:
    env = make_env()
    stream = env.from_collection([1])
    stream.print()
    stream.sink_to(BrokenSink(tmp_path)).name("orders")
    with pytest.raises(JobExecutionError, match="ConnectionError: the database is gone") as caught:
        env.execute()
    assert caught.value.operator == "orders"
    assert capsys.readouterr().out == "1\n", "the batch itself was done"
