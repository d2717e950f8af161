"""Jobs that read files: every record once through restarts and savepoints; folders that fill up."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from s3kit import Bucket
from sparkkit import CommitSink, committed, eventually

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.connectors.files import enumerator
from firesteel.datastream import RuntimeExecutionMode
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.errors import JobExecutionError
from firesteel.testing import Crash, memory_environment

NONE = WatermarkStrategy.no_watermarks()
LINES = StreamFormat.text_line_format()
NUMBERS = Types.ROW_NAMED(["n"], [Types.LONG()])
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "20",
}


def write_parquet(folder: Path, files: int = 3, rows: int = 60) -> list[int]:
    folder.mkdir(exist_ok=True)
    for number in range(files):
        table = pa.table({"n": range(number * rows, (number + 1) * rows)})
        pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=10)
    return list(range(files * rows))


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator, "SMALL_FILE", 0)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_row_once_through_restarts(tmp_path: Path, parallelism: int) -> None:
    expected = write_parquet(tmp_path / "in")
    crash = Crash(times=3)

    def fragile(row: Any) -> int:
        if row.n in (7, 77, 133):
            crash.hit()
        return int(row.n)

    env = memory_environment(parallelism, config=RESTART)
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NUMBERS), tmp_path / "in").build()
    env.from_source(source, NONE, "rows").map(fragile).sink_to(CommitSink(tmp_path)).uid("sink")
    env.execute("rows")
    assert crash.count == 3
    assert sorted(committed(tmp_path)) == expected


def test_batch_mode_reads_all_of_it(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "in")
    env = memory_environment(2, mode=RuntimeExecutionMode.BATCH)
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NUMBERS), tmp_path / "in").build()
    rows = env.from_source(source, NONE, "rows").map(lambda row: row.n)
    assert sorted(rows.execute_and_collect()) == expected


reached, on = threading.Event(), threading.Event()


def gate(line: str) -> str:
    """Holds the job in the middle of a file, until a savepoint was asked for."""
    if line.startswith("a0150"):
        reached.set()
        assert on.wait(150)
    return line[:5]


def test_a_savepoint_inside_a_file_is_gone_on_from_at_another_parallelism(tmp_path: Path) -> None:
    reached.clear()
    on.clear()
    (tmp_path / "in").mkdir()
    for name in "ab":
        text = "".join(f"{name}{number:04} and more text, so that it takes a while\n" for number in range(2000))
        (tmp_path / "in" / name).write_text(text)

    def start(parallelism: int, **config: str) -> Any:
        settings = {"firesteel.batch.max-records": "100", **config}
        env = memory_environment(parallelism, config=settings)
        source = FileSource.for_record_stream_format(LINES, tmp_path / "in").build()
        lines = env.from_source(source, NONE, "lines").uid("lines").map(gate)
        lines.sink_to(CommitSink(tmp_path)).uid("sink")
        return env.execute_async("lines")

    first = start(2)
    assert reached.wait(150)
    savepoint = first.stop_with_savepoint(False, str(tmp_path / "savepoints"))
    on.set()
    path = savepoint.result()
    position = json.loads((Path(path) / "manifest.json").read_text())
    before = len(committed(tmp_path))
    assert before < 4000
    assert '"open": ["' in json.dumps(position), "it lies inside a file"
    start(3, **{"execution.state-recovery.path": path}).get_job_execution_result().result()
    assert sorted(committed(tmp_path)) == [f"{name}{number:04}" for name in "ab" for number in range(2000)]


def test_a_monitored_folder_brings_new_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def add(name: str) -> None:
        (tmp_path / "in" / f".{name}").write_text(f"{name}1\n{name}2\n")
        (tmp_path / "in" / f".{name}").rename(tmp_path / "in" / name)

    crash = Crash(times=1)

    def fragile(line: str) -> str:
        if line == "c1":
            crash.hit()
        return line

    add("a")
    env = memory_environment(1, config=RESTART)
    source = FileSource.for_record_stream_format(LINES, tmp_path / "in")
    source = source.monitor_continuously(Duration.of_millis(20))
    env.from_source(source.build(), NONE, "lines").map(fragile).sink_to(CommitSink(tmp_path)).uid("sink")
    client = env.execute_async("lines")
    try:
        assert eventually(lambda: committed(tmp_path) == ["a1", "a2"])
        add("b")
        assert eventually(lambda: len(committed(tmp_path)) == 4)
        add("c")
        assert eventually(lambda: len(committed(tmp_path)) == 6)
        add("d")
        assert eventually(lambda: len(committed(tmp_path)) == 8)
    finally:
        client.cancel().result()
    assert crash.count == 1
    assert sorted(committed(tmp_path)) == [f"{name}{number}" for name in "abcd" for number in (1, 2)]


def test_a_failure_names_the_file_and_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("this is text" * 100)
    env = memory_environment()
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NUMBERS), tmp_path).build()
    env.from_source(source, NONE, "rows").print()
    with pytest.raises(JobExecutionError, match=r"a\.parquet is not a Parquet file"):
        env.execute("rows")


def test_parquet_on_an_object_store(bucket: Bucket, tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "in")
    for file in (tmp_path / "in").iterdir():
        with bucket.files.open_output(bucket.uri(f"in/deep/{file.name}")) as out:
            out.write(file.read_bytes())
    with bucket.files.open_output(bucket.uri("in/_temporary/left")) as out:
        out.write(b"not for readers")
    env = memory_environment(2, config={**RESTART, **bucket.settings})
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NUMBERS), bucket.uri("in")).build()
    rows = env.from_source(source, NONE, "rows").map(lambda row: row.n)
    assert sorted(rows.execute_and_collect()) == expected
