"""Files in, files out, on Spark: the driver is started again inside a file, and every row counts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from sparkkit import spark_env

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.errors import JobExecutionError

NONE = WatermarkStrategy.no_watermarks()
ROWS = 1000


def run(folder: Path, fails_at: int) -> None:
    env = spark_env(2, {"firesteel.checkpoint.dir": str(folder / "checkpoint"), "firesteel.batch.max-records": 200})
    form = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["n"], [Types.LONG()]))
    rows = env.from_source(FileSource.for_bulk_file_format(form, folder / "rows").build(), NONE, "rows").uid("rows")
    text = StreamFormat.text_line_format()
    lines = env.from_source(FileSource.for_record_stream_format(text, folder / "lines").build(), NONE, "lines")

    def fragile(row: Any) -> int:
        if row.n == fails_at:
            raise ValueError("on purpose")
        return int(row.n)

    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    both = rows.map(fragile, Types.LONG()).union(lines.uid("lines").map(int, Types.LONG()))
    both.map(str, Types.STRING()).sink_to(sink.build()).uid("sink")
    env.execute("files")


def test_rows_and_lines_each_once_through_a_restart_inside_a_file(tmp_path: Path) -> None:
    for name in ("rows", "lines"):
        (tmp_path / name).mkdir()
    for number in range(2):
        table = pa.table({"n": range(number * ROWS, (number + 1) * ROWS)})
        # Large enough to be read in pieces: text that nobody asks for.
        table = table.append_column("text", [pa.array([f"{n:06}" * 700 for n in range(ROWS)])])
        path = tmp_path / "rows" / f"{number}.parquet"
        pa.parquet.write_table(table, path, row_group_size=100, compression="none", use_dictionary=False)
    (tmp_path / "lines" / "a").write_text("".join(f"{n}\n" for n in range(2 * ROWS, 3 * ROWS)))
    with pytest.raises(JobExecutionError, match="on purpose"):
        run(tmp_path, fails_at=1550)
    assert any((tmp_path / "checkpoint").rglob("offsets/*")), "it has done some of it"
    run(tmp_path, fails_at=-1)
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert not [file for file in files if file.name.startswith(".")]
    assert sorted(int(line) for file in files for line in file.read_text().split()) == list(range(3 * ROWS))
    assert any(file.name.startswith("compacted-") for file in files)
