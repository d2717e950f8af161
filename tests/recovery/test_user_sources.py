"""A source that a user wrote: its positions are restored, and every record counts once."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, committed, eventually, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors import PartitionEnumerator, Records, Source, SourceReader
from firesteel.errors import JobExecutionError
from firesteel.testing import Crash, memory_environment

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "8",
}


class LogEnumerator(PartitionEnumerator[str]):
    """A file of lines per split; positions count lines. What it was asked to let go of is noted."""

    def __init__(self, folder: str, bounded: bool, start: int) -> None:
        self.folder, self.bounded, self.start_at = folder, bounded, start

    def start(self, directory: str) -> None:
        # Cannot be pickled, as a connection could not.
        self.notes = open(os.path.join(self.folder, ".released"), "a", buffering=1)  # noqa: SIM115 - closed in stop()

    def stop(self) -> None:
        self.notes.close()

    def discover(self) -> dict[str, str]:
        names = sorted(name for name in os.listdir(self.folder) if not name.startswith("."))
        return {name: os.path.join(self.folder, name) for name in names}

    def starts(self, splits: Mapping[str, str], initial: bool) -> dict[str, int]:
        return dict.fromkeys(splits, self.start_at if initial else 0)

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, int]) -> dict[str, int]:
        return {name: _lines(path) for name, path in splits.items()}

    def finished(self, split: str, position: int) -> bool:
        return self.bounded and position >= _lines(split)

    def checkpointed(self, positions: Mapping[str, int]) -> None:
        self.notes.write(json.dumps(positions) + "\n")


def _lines(path: str) -> int:
    return len(Path(path).read_text().splitlines())


class LogReader(SourceReader[str, str]):
    opened = False

    def open(self, context: Any) -> None:
        assert not self.opened
        self.opened = True

    def read(self, split: str, start: int, end: int) -> Iterator[Records[str]]:
        assert self.opened
        yield Records(Path(split).read_text().splitlines()[start:end])


class Log(Source[str, str]):
    def __init__(self, folder: Path, bounded: bool = True, start: int = 0) -> None:
        self.folder, self.bounded, self.start_at = str(folder), bounded, start

    def create_enumerator(self) -> LogEnumerator:
        return LogEnumerator(self.folder, self.bounded, self.start_at)

    def create_reader(self) -> LogReader:
        return LogReader()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    add(folder, "a", 30)
    add(folder, "b", 20)
    return folder


def add(folder: Path, name: str, count: int) -> None:
    (folder / f".{name}").write_text("".join(f"{name}{n}\n" for n in range(count)))
    os.rename(folder / f".{name}", folder / name)


def expected(**counts: int) -> list[str]:
    return sorted(f"{name}{n}" for name, count in counts.items() for n in range(count))


def released(folder: Path) -> list[dict[str, int]]:
    return [json.loads(line) for line in (folder / ".released").read_text().splitlines()]


def test_a_repeated_batch_brings_nothing_twice_and_new_splits_are_found(log: Path, tmp_path: Path) -> None:
    crash = Crash(times=3)

    def fragile(value: str) -> str:
        if value in ("a7", "b11", "c3"):
            add(log, "c", 10)
            crash.hit()
        return value

    env = memory_environment(2, config=RESTART)
    env.from_source(Log(log), NONE, "log").map(fragile).sink_to(CommitSink(tmp_path)).uid("sink")
    env.execute("log")
    assert sorted(committed(tmp_path)) == expected(a=30, b=20, c=10)
    assert released(log)[-1] == {"a": 30, "b": 20, "c": 10}
    assert all(earlier[name] <= later[name] for earlier, later in itertools.pairwise(released(log)) for name in earlier)


class TimedReader(LogReader):
    """The n-th line of a file is as many seconds old in one of them, and milliseconds in the others."""

    def read(self, split: str, start: int, end: int) -> Iterator[Records[str]]:
        step = 1000 if split.endswith("a") else 1
        for records in super().read(split, start, end):
            yield Records(records.values, [n * step for n in range(start, end)])


class TimedLog(Log):
    def create_reader(self) -> TimedReader:
        return TimedReader()


class InTime(KeyedProcessFunction):
    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp() > ctx.timer_service().current_watermark()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_split_has_an_event_time_of_its_own(parallelism: int, log: Path) -> None:
    env = memory_environment(parallelism, config={"firesteel.batch.max-records": "8"})
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = env.from_source(TimedLog(log), strategy, "log").key_by(lambda value: value[0]).process(InTime())
    with timed.execute_and_collect() as found:
        assert sorted(found) == [(value, True) for value in expected(a=30, b=20)], "the slower one decides"


def test_a_batch_job_reads_all_there_is(log: Path) -> None:
    env = memory_environment(3, config={"firesteel.batch.max-records": "8"})
    with env.from_source(Log(log), NONE, "log").execute_and_collect() as found:
        assert sorted(found) == expected(a=30, b=20)


def test_a_savepoint_has_the_position_of_every_split(log: Path, tmp_path: Path) -> None:
    def start(config: dict[str, str], source: Log, parallelism: int) -> StreamExecutionEnvironment:
        env = memory_environment(parallelism, config={"firesteel.batch.max-records": "8", **config})
        env.from_source(source, NONE, "log").uid("log").sink_to(CommitSink(tmp_path)).uid("sink")
        return env

    job = start({}, Log(log, bounded=False), 2).execute_async("log")
    assert eventually(lambda: len(committed(tmp_path)) == 50)
    path = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    add(log, "a", 40)
    add(log, "c", 10)
    # Where it would begin without positions shows that it has them.
    start({"execution.state-recovery.path": path}, Log(log, start=5), 3).execute("log")
    assert sorted(committed(tmp_path)) == expected(a=40, b=20, c=10)


def test_a_driver_that_is_started_again_goes_on(log: Path, tmp_path: Path) -> None:
    def run(source: Log, fails_at: str) -> None:
        def fragile(value: str) -> str:
            if value == fails_at:
                raise ValueError("on purpose")
            return value

        env = spark_env(2, {"firesteel.checkpoint.dir": str(tmp_path / "job"), "firesteel.batch.max-records": 16})
        stream = env.from_source(source, NONE, "log").uid("log")
        stream.map(fragile).sink_to(CommitSink(tmp_path)).uid("sink")
        env.execute("log")

    with pytest.raises(JobExecutionError, match="on purpose"):
        run(Log(log), fails_at="a20")
    before = committed(tmp_path)
    assert before
    assert "a20" not in before
    add(log, "c", 10)
    run(Log(log, start=5), fails_at="")
    assert sorted(committed(tmp_path)) == expected(a=30, b=20, c=10)
    assert released(log), "sources may let go of what lies before a checkpoint"
