"""The file sink: formats, buckets, rolling, names, and what readers see."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from filesinkkit import NONE, TEXT, ByRest, Moment, flat, hidden, lines, visible
from kit import BATCH

from firesteel.common import Encoder, Row, Types
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    DefaultRollingPolicy,
    FileSink,
    OutputFileConfig,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.formats.parquet import ParquetBulkWriters
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import memory_environment

# Formats


@dataclass
class Order:
    name: str
    count: int


FORMATS: dict[str, tuple[Encoder, list[Any], Any, str]] = {
    "text": (TEXT, ["a", "b"], None, "a\nb\n"),
    "typed text": (TEXT, [("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]), "(a,1)\n"),
    "csv": (Encoder.csv_encoder(), [("a;b", 1), Row('say "x"', None)], None, 'a;b,1\n"say ""x""",\n'),
    "csv of dataclasses and dicts": (Encoder.csv_encoder(";"), [Order("a;b", 1), {"x": 2}, 3], None, '"a;b";1\n2\n3\n'),
    "json": (
        Encoder.json_encoder(),
        [{"a": [1, None]}, Row(name="é", inner=Row(1, 2)), Order("x", 2)],
        None,
        '{"a": [1, null]}\n{"name": "é", "inner": [1, 2]}\n{"name": "x", "count": 2}\n',
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_row_formats(name: str, tmp_path: Path) -> None:
    encoder, records, declared, expected = FORMATS[name]
    env = memory_environment()
    env.from_collection(records, declared).sink_to(flat(tmp_path, encoder).build())
    env.execute()
    assert [file.read_text() for file in visible(tmp_path)] == [expected]
    assert hidden(tmp_path) == []


def test_parquet(tmp_path: Path) -> None:
    fields = {
        "name": Types.STRING(),
        "count": Types.LONG(),
        "ratio": Types.DOUBLE(),
        "tags": Types.LIST(Types.STRING()),
        "inner": Types.ROW_NAMED(["x"], [Types.INT()]),
        "map": Types.MAP(Types.STRING(), Types.INT()),
    }
    declared = Types.ROW_NAMED(list(fields), list(fields.values()))
    records = [Row(*values) for values in (["a", 1, 0.5, ["x"], {"x": 1}, {"k": 1}], [None] * 6)]
    env = memory_environment()
    sink = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(declared))
    env.from_collection(records).sink_to(sink.with_output_file_config(OutputFileConfig("part", ".parquet")).build())
    env.execute()
    (file,) = visible(tmp_path)
    assert file.suffix == ".parquet"
    assert pyarrow.parquet.read_table(file).to_pylist() == [
        {"name": "a", "count": 1, "ratio": 0.5, "tags": ["x"], "inner": {"x": 1}, "map": [("k", 1)]},
        dict.fromkeys(fields),
    ]


def test_parquet_of_dicts_and_dataclasses_with_a_schema_of_arrow(tmp_path: Path) -> None:
    schema = pyarrow.schema([("name", pyarrow.string()), ("count", pyarrow.int64())])
    env = memory_environment()
    sink = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(schema)).build()
    env.from_collection([{"count": 1, "name": "a"}, Order("b", 2), ("c", 3), Row(count=4, name="d")]).sink_to(sink)
    env.execute()
    table = pyarrow.parquet.read_table(visible(tmp_path)[0])
    assert table.to_pylist() == [{"name": name, "count": count} for count, name in enumerate("abcd", 1)]


def test_what_does_not_fit_the_columns_is_told(tmp_path: Path) -> None:
    sink = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(Types.TUPLE([Types.INT()] * 2)))
    env = memory_environment()
    env.from_collection([(1, 2, 3)]).sink_to(sink.build()).name("files")
    with pytest.raises(JobExecutionError, match=r"the columns f0, f1 takes rows.*got \(1, 2, 3\)") as caught:
        env.execute()
    assert caught.value.operator == "files"
    assert visible(tmp_path) == []


def test_buckets_of_ones_own(tmp_path: Path) -> None:
    env = memory_environment()
    sink = FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(ByRest()).build()
    env.from_collection(list(range(6))).sink_to(sink)
    env.execute()
    assert {file.parent.name: file.read_text() for file in visible(tmp_path)} == {
        "rest=0": "0\n3\n",
        "rest=1": "1\n4\n",
        "rest=2": "2\n5\n",
    }


@pytest.mark.parametrize("bucket", ["../up", "/root", "a//b", "a/./b", 5])
def test_a_bucket_stays_in_its_folder(bucket: Any, tmp_path: Path) -> None:
    class Wrong(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:
            name: str = bucket
            return name

    env = memory_environment()
    inside = tmp_path / "inside"
    env.from_collection([1]).sink_to(FileSink.for_row_format(str(inside), TEXT).with_bucket_assigner(Wrong()).build())
    with pytest.raises(JobExecutionError, match="ProgramError"):
        env.execute()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_buckets_by_time() -> None:
    moment: Any = Moment(1_700_000_000_123)
    for pattern, zone, expected in (
        ("yyyy-MM-dd--HH", "UTC", "2023-11-14--22"),
        ("yy/M/d HH:mm:ss.SSS", "GMT+02:00", "23/11/15 00:13:20.123"),
        ("'dt='yyyyMMdd''HH", "America/Los_Angeles", "dt=20231114'14"),
    ):
        assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
        assert assigner.get_bucket_id(None, moment) == expected
    with pytest.raises(ProgramError, match="the letter 'Q'"):
        BucketAssigner.date_time_bucket_assigner("yyyy-Q")
    with pytest.raises(ProgramError, match="No such time zone: 'Mars'"):
        BucketAssigner.date_time_bucket_assigner("yyyy", "Mars")


def test_two_runs_and_two_sinks_share_a_folder(tmp_path: Path) -> None:
    for _ in range(2):
        env = memory_environment(2)
        stream = env.from_collection(list(range(10)))
        stream.sink_to(flat(tmp_path).build())
        stream.sink_to(flat(tmp_path).build())
        env.execute()
    assert sorted(map(int, lines(tmp_path))) == sorted(list(range(10)) * 4)
    assert hidden(tmp_path) == []


# Rolling


def run_numbers(folder: Path, policy: RollingPolicy, batch: int, total: int = 20, **options: Any) -> list[list[int]]:
    env = memory_environment(config={"firesteel.batch.max-records": str(batch)}, **options)
    env.from_source(NumberSequenceSource(0, total - 1), NONE, "numbers").map(str).sink_to(
        flat(folder).with_rolling_policy(policy).build()
    )
    env.execute()
    assert hidden(folder) == []
    parts = [[int(line) for line in file.read_text().split()] for file in visible(folder)]
    return sorted(parts)


def test_a_part_goes_on_over_batches(tmp_path: Path) -> None:
    assert run_numbers(tmp_path, RollingPolicy.default_rolling_policy(), batch=4) == [list(range(20))]


def test_a_part_per_batch(tmp_path: Path) -> None:
    found = run_numbers(tmp_path, RollingPolicy.on_checkpoint_rolling_policy(), batch=8)
    assert found == [list(range(8)), list(range(8, 16)), list(range(16, 20))]


def test_by_size(tmp_path: Path) -> None:
    """Ten digits with their ends are 20 bytes; beyond it, numbers of two digits take three."""
    found = run_numbers(tmp_path, RollingPolicy.default_rolling_policy(part_size=20), batch=7)
    assert found == [list(range(10)), list(range(10, 17)), list(range(17, 20))]


class OneByOne(DefaultRollingPolicy):
    """The same rule, but one that has to be asked for each record."""

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return super().should_roll_on_event(part, element)


@pytest.mark.parametrize("size", [1, 7, 500, 501, 1 << 20])
def test_records_that_are_appended_together_are_in_the_parts_that_they_would_be_in_one_by_one(
    size: int, tmp_path: Path
) -> None:
    found = []
    for policy in (DefaultRollingPolicy(size), OneByOne(size)):
        folder = tmp_path / type(policy).__name__
        env = memory_environment(config={"firesteel.batch.max-records": "210"})
        numbers = env.from_source(NumberSequenceSource(0, 499), NONE, "numbers")
        numbers.sink_to(flat(folder).with_rolling_policy(policy).build())
        env.execute()
        found.append(sorted(file.read_text() for file in visible(folder)))
    together, one_by_one = found
    assert together == one_by_one
    assert sorted(int(line) for text in together for line in text.split()) == list(range(500))


def test_the_record_that_cannot_be_encoded_is_told(tmp_path: Path) -> None:
    env = memory_environment()
    env.from_collection(["a", "\ud800", "b"]).sink_to(flat(tmp_path).build())
    with pytest.raises(JobExecutionError, match=r"element   '\\ud800'\n.*surrogates not allowed"):
        env.execute()


def test_a_batch_job_has_a_part_per_subtask(tmp_path: Path) -> None:
    found = run_numbers(tmp_path, RollingPolicy.default_rolling_policy(), batch=3, parallelism=2, mode=BATCH)
    assert len(found) == 2


class EveryFive(RollingPolicy):
    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return False

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return int(element) % 5 == 0

    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        return False


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    found = run_numbers(tmp_path, EveryFive(), batch=7)
    assert found == [list(range(n, n + 5)) for n in range(0, 20, 5)]


def test_inactivity_rolls_though_no_records_come(tmp_path: Path) -> None:
    env = memory_environment()
    source = DataGeneratorSource(lambda index: index, records_per_second=50)
    policy = RollingPolicy.default_rolling_policy(rollover_interval=10**9, inactivity_interval=300)
    sink = flat(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(50).build()
    env.from_source(source, NONE, "numbers").filter(lambda n: n < 3).sink_to(sink)
    client = env.execute_async()
    try:
        shown = wait(lambda: lines(tmp_path) == ["0", "1", "2"])
        assert shown, "they became visible while the job ran"
    finally:
        client.cancel().result()


def wait(condition: Callable[[], Any], seconds: float = 120) -> Any:
    import time

    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_cancelling_shows_what_was_complete(tmp_path: Path) -> None:
    env = memory_environment(config={"firesteel.batch.max-records": "50"})
    source = DataGeneratorSource(lambda index: index, records_per_second=2000)
    env.from_source(source, NONE, "numbers").sink_to(flat(tmp_path).build())
    client = env.execute_async()
    assert wait(lambda: [name for name in hidden(tmp_path) if name.endswith(".ledger")])
    assert visible(tmp_path) == [], "nothing before the policy says so"
    client.cancel().result()
    seen = lines(tmp_path)
    assert seen == [str(n) for n in range(len(seen))]
    assert seen
    assert hidden(tmp_path) == []


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    for build, words in (
        (lambda: FileSink.for_row_format("hdfs:/there/x", TEXT), "The path of a file sink should be a folder, .* got"),
        (
            lambda: FileSink.for_row_format("s3://me:hunter2@bucket/x", TEXT),
            "The path of a file sink contains credentials. Remove them from the path",
        ),
        (lambda: FileSink.for_row_format(str(tmp_path), "text"), "takes an Encoder, got 'text'"),
        (lambda: FileSink.for_bulk_format(str(tmp_path), TEXT), "takes a BulkWriterFactory"),
        (lambda: flat(tmp_path).with_rolling_policy("daily"), "Expected a RollingPolicy"),
        (lambda: flat(tmp_path).with_bucket_assigner("daily"), "Expected a BucketAssigner"),
        (lambda: flat(tmp_path).with_bucket_check_interval(0), "at least 1, got 0"),
        (lambda: RollingPolicy.default_rolling_policy(part_size=0), "part_size is an int of at least 1"),
        (lambda: OutputFileConfig("_hidden", ""), "Readers pass over files"),
        (lambda: OutputFileConfig("a/b", ""), "without slashes"),
        (lambda: ParquetBulkWriters.for_row_type(Types.STRING()), "come from Types.ROW_NAMED"),
        (
            lambda: FileSink.for_bulk_format(
                str(tmp_path), ParquetBulkWriters.for_row_type(Types.TUPLE([Types.INT()]))
            ).with_rolling_policy(RollingPolicy.default_rolling_policy()),
            "A bulk format cannot be cut off",
        ),
    ):
        with pytest.raises(ProgramError, match=words):
            build()
    assert os.listdir(tmp_path) == []


def test_a_file_uri(tmp_path: Path) -> None:
    env = memory_environment()
    env.from_collection([1]).sink_to(
        FileSink.for_row_format((tmp_path / "a b").as_uri(), Encoder.json_encoder()).build()
    )
    env.execute()
    assert [json.loads(line) for line in lines(tmp_path / "a b")] == [1]
