"""What Spark has computed for a source: published once, read by row, forgotten when it is read. Without Spark."""

from __future__ import annotations

import datetime
import json
import re
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sourcekit import read

from firesteel.connectors.spark.feeding import Feeder
from firesteel.connectors.spark.reading import FrameReader
from firesteel.connectors.spark.staging import MANIFEST, Staged, StagedFile
from firesteel.datastream.connectors.spark import SparkSource
from firesteel.errors import CheckpointError, ConnectorError


class Frame:
    """A DataFrame whose writer makes a file of each partition."""

    def __init__(self, *partitions: list[int]) -> None:
        self.partitions = partitions

    @property
    def write(self) -> Frame:
        return self

    def mode(self, mode: str) -> Frame:
        return self

    def option(self, name: str, value: str) -> Frame:
        return self

    def parquet(self, uri: str) -> None:
        folder = Path(uri.removeprefix("file://"))
        folder.mkdir(parents=True)
        (folder / "_SUCCESS").touch()
        for number, partition in enumerate(self.partitions):
            table = pa.table({"n": pa.array(partition, pa.int64())})
            pq.write_table(table, folder / f"part-{number:05d}-x.snappy.parquet", row_group_size=3)


def feeder(directory: Path) -> Feeder:
    """The part that takes micro-batches, as after a start of the query."""
    made = Feeder.__new__(Feeder)
    made._staged, made._secrets, made._failure = Staged(str(directory)), [], None
    made._stopping = threading.Event()
    return made


def rows(directory: Path, start: int, end: int, parallelism: int = 2) -> list[int]:
    source = SparkSource.stream(lambda spark: None)
    enumerator = source.create_enumerator()
    enumerator.start(str(directory))
    return [row.n for row in read(source.create_reader(), enumerator.plan(start, end, parallelism))]


def test_a_micro_batch_that_comes_again_is_dropped(tmp_path: Path) -> None:
    first = feeder(tmp_path)
    first._take(Frame([0, 1], [], [2]), 0)
    first._take(Frame([3, 4]), 1)
    # After a crash Spark repeats the last one: not in the same partitions, perhaps.
    again = feeder(tmp_path)
    again._take(Frame([4], [3]), 1)
    again._take(Frame([5]), 2)
    assert rows(tmp_path, 0, 6) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ConnectorError, match="goes on with micro-batch 7, but 2 was published last"):
        again._take(Frame([9]), 7)


def test_a_draft_that_was_not_published_does_not_count(tmp_path: Path) -> None:
    made = feeder(tmp_path)
    Frame([7, 8]).parquet(made._staged.draft(0))
    assert Staged(str(tmp_path)).end == 0
    feeder(tmp_path)._take(Frame([0, 1]), 0)
    assert rows(tmp_path, 0, 2) == [0, 1]


@pytest.mark.parametrize(
    "damage", ["", "[]", "{", '"files": []', '"files": [["../../other.parquet", 2, 10]], "first": 0']
)
def test_a_manifest_that_is_damaged_or_leads_elsewhere_is_named(tmp_path: Path, damage: str) -> None:
    feeder(tmp_path)._take(Frame([0, 1]), 0)
    (manifest,) = tmp_path.rglob(MANIFEST)
    version = json.loads(manifest.read_text())["format"]
    manifest.write_text(f'{{"format": {version}, {damage}}}' if damage.startswith('"') else damage)
    with pytest.raises(CheckpointError, match=re.escape(f"{manifest}, which says what Spark has computed")):
        _ = Staged(str(tmp_path)).end


def test_any_range_gives_its_rows_however_many_subtasks_read_it(tmp_path: Path) -> None:
    made = feeder(tmp_path)
    made._take(Frame(list(range(10)), list(range(10, 17))), 0)
    made._take(Frame([]), 1)
    made._take(Frame(list(range(17, 30))), 2)
    for start in range(0, 30, 7):
        for end in range(start, 31, 5):
            for parallelism in (1, 3):
                assert rows(tmp_path, start, end, parallelism) == list(range(start, end))


def test_what_was_read_is_forgotten_with_the_checkpoint_and_the_count_goes_on(tmp_path: Path) -> None:
    made = feeder(tmp_path)
    for number in range(4):
        made._take(Frame([number * 2, number * 2 + 1]), number)
    enumerator = SparkSource.stream(lambda spark: None).create_enumerator()
    enumerator.start(str(tmp_path))
    assert enumerator.latest(5, 100) == 8
    assert made._staged.waiting() == 6, "nothing is in a checkpoint"
    enumerator.committed(5)
    enumerator.latest(5, 100)
    assert made._staged.waiting() == 2, "two batches are gone"
    enumerator.committed(8)
    enumerator.latest(8, 100)
    again = feeder(tmp_path)
    again._take(Frame([8]), 4)
    assert enumerator.latest(8, 100) == 9
    assert rows(tmp_path, 8, 9) == [8]
    assert enumerator.pending(8) == 1


def test_timestamps_of_all_years_in_the_form_of_hive(tmp_path: Path) -> None:
    moments = [datetime.datetime(year, 3, 1, 12, 0, 0, 125_000, datetime.UTC) for year in (1600, 2024, 9999)]
    path = str(tmp_path / "a.parquet")
    table = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    (found,) = FrameReader(None, "at").read(StagedFile(path, 3, 0), 0, 3)
    assert found.timestamps == pa.array(moments, pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    assert [row.at.to_epoch_milli() for row in found.values] == found.timestamps
