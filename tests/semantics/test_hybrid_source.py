"""Sources one after the other: the change from one to the next, through failures, a savepoint, in BATCH mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from kit import BATCH, eventually
from sourcekit import read_all

from firesteel.common import WatermarkStrategy
from firesteel.connectors.hybrid import HybridEnumerator
from firesteel.connectors.source import SplitEnumerator, SplitRange
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors import PollingSource
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ProgramError
from firesteel.filesystems import StorageOptions
from firesteel.testing import CollectionSink, Crash, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
SMALL = {"firesteel.batch.max-records": "10"}
EXPECTED = [*range(25), *range(100, 125), *range(200, 225)]


def _page(cursor: int) -> tuple[list[int], int]:
    return list(range(200 + cursor, min(200 + cursor + 7, 225))), min(cursor + 7, 25)


def hybrid(folder: Path, bounded: bool = True) -> HybridSource:
    """Lines of files, a sequence, and a function with a log of its own."""
    for part in range(5):
        (folder / f"part-{part}").write_text("".join(f"{n}\n" for n in range(part * 5, part * 5 + 5)))
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder)).build()
    polled = PollingSource(_page, 0, 0.01, bounded=bounded)
    return HybridSource.builder(files).add_source(NumberSequenceSource(100, 124)).add_source(polled).build()


@pytest.mark.parametrize("at", [3, 24, 100, 112, 124, 200, 224])
def test_each_record_once_through_a_failure_anywhere(at: int, tmp_path: Path, parallelism: int) -> None:
    crash = Crash(times=1)

    def fragile(value: Any) -> int:
        if int(value) == at:
            crash.hit()
        return int(value)

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_source(hybrid(tmp_path), NONE, "hybrid").map(fragile)

    assert sorted(run_pipeline(build, parallelism=parallelism, config=SMALL, restarts=1)) == EXPECTED


def test_one_after_the_other_in_their_order(tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_source(hybrid(tmp_path), NONE, "hybrid").map(int)

    found = run_pipeline(build, config=SMALL)
    assert [n // 100 for n in found] == [0] * 25 + [1] * 25 + [2] * 25
    assert sorted(run_pipeline(build, parallelism=2, mode=BATCH)) == EXPECTED


def test_a_savepoint_in_the_second_source_goes_on_in_the_third(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    slow = HybridSource.builder(NumberSequenceSource(0, 24))
    second = slow.add_source(DataGeneratorSource(lambda n: 100 + n, 25, 50))
    found = CollectionSink()

    def start(env: StreamExecutionEnvironment, source: HybridSource) -> Any:
        env.from_source(source, NONE, "hybrid").uid("hybrid").sink_to(found).uid("sink")
        return env

    job = start(memory_environment(2, config=SMALL), second.build()).execute_async("first")
    assert eventually(lambda: any(n >= 105 for n in found.values))
    path = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert len(found.values) < 50
    again = memory_environment(1, config={**SMALL, "execution.state-recovery.path": path})
    start(again, second.add_source(NumberSequenceSource(200, 224)).build()).execute("second")
    assert sorted(found.values) == EXPECTED


class Late(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_event_time_goes_on_from_one_to_the_next(parallelism: int) -> None:
    parts = [PollingSource(_from(first), first, bounded=True, timestamp=lambda n: n) for first in (0, 100)]
    source = HybridSource.builder(parts[0]).add_source(parts[1]).build()

    def build(env: StreamExecutionEnvironment) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        return env.from_source(source, strategy, "hybrid").key_by(lambda n: 0).process(Late())

    expected = [(n, False) for n in (*range(20), *range(100, 120))]
    assert sorted(run_pipeline(build, parallelism=parallelism, config=SMALL)) == expected


def _from(first: int) -> Any:
    return lambda cursor: (list(range(cursor, min(cursor + 6, first + 20))), min(cursor + 6, first + 20))


def test_a_source_without_an_end_may_only_be_the_last(tmp_path: Path) -> None:
    endless = PollingSource(_page, 0)
    source = HybridSource.builder(endless).add_source(NumberSequenceSource(1, 2)).build()
    with pytest.raises(ProgramError, match="Source 1 of a HybridSource, PollingSource, has no end"):
        memory_environment().from_source(source, NONE, "hybrid")
    with pytest.raises(ProgramError, match="made of instances of Source, got 5"):
        HybridSource.builder(5)  # type: ignore[arg-type]


class Alphabet(SplitEnumerator[str]):
    """Positions are letters."""

    def initial(self) -> str:
        return "d"

    def latest(self, position: str, max_records: int) -> str:
        return chr(min(ord(position) + max_records, ord("z")))

    def ended(self, position: str) -> bool:
        return position == "z"

    def count(self, start: str, end: str) -> int:
        return ord(end) - ord(start)

    def plan(self, start: str, end: str, parallelism: int) -> list[list[SplitRange[str]]]:
        return [[SplitRange("letters", start, end)], *([] for _ in range(parallelism - 1))]


def test_positions_of_any_kind_begin_where_their_source_says() -> None:
    enumerator = HybridEnumerator([Alphabet(), Alphabet()])
    position, found = enumerator.initial(), []
    while not enumerator.ended(position):
        following = enumerator.latest(position, 12)
        ranges = [one for share in enumerator.plan(position, following, 2) for one in share]
        assert enumerator.count(position, following) == sum(ord(one.end) - ord(one.start) for one in ranges)
        found += [(one.split[0], one.start, one.end) for one in ranges]
        position = following
    assert found == [(0, "d", "p"), (0, "p", "z"), (1, "d", "p"), (1, "p", "z")]
    # All of it in one batch, as BATCH mode reads it.
    whole = enumerator.plan(enumerator.initial(), position, 1)[0]
    assert [(one.split[0], one.start, one.end) for one in whole] == [(0, "d", "z"), (1, "d", "z")]


def test_it_travels_and_its_positions_are_json(tmp_path: Path) -> None:
    """As on Spark, where the enumerator runs in a process of its own, and positions are in a log."""
    folder = tmp_path / "files"
    folder.mkdir()
    source = hybrid(folder).with_storage(StorageOptions())
    enumerator, reader = cloudpickle.loads(cloudpickle.dumps((source.create_enumerator(), source.create_reader())))
    enumerator.start(str(tmp_path / "directory"))
    reader.open(None)
    assert sorted(int(n) for n in read_all(enumerator, reader, batch=10)) == EXPECTED
    reader.close()
    enumerator.stop()
