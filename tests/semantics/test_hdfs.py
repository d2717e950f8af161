"""Sources and sinks on a real HDFS."""

from __future__ import annotations

import gc
import io
import os
import signal
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hdfskit import HdfsFolder
from sparkkit import eventually

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.connectors.files import enumerator
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    StreamFormat,
)
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.errors import InputError
from firesteel.filesystems.hdfs import arrow_of_hdfs
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment

NONE = WatermarkStrategy.no_watermarks()
TEXT = Encoder.simple_string_encoder()
FLAT = BucketAssigner.base_path_bucket_assigner()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "7",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}


def lines_of(*paths: str) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths)


def sink_to(path: str) -> Any:
    return FileSink.for_row_format(path, TEXT).with_bucket_assigner(FLAT)


def test_a_process_that_has_read_a_table_there_may_fork(hdfs: HdfsFolder) -> None:
    """Also one with a program in between, as ``subprocess`` does with ``preexec_fn``."""
    out = io.BytesIO()
    pa.parquet.write_table(pa.table({"n": [1, 2]}), out)
    hdfs.files.write(hdfs.uri("table"), out.getvalue())
    files, path = arrow_of_hdfs(hdfs.uri("table"))
    assert pa.parquet.read_table(path, filesystem=files).num_rows == 2
    # Nobody but who keeps clients for later has it now.
    del files
    gc.collect()
    child = os.fork()
    if not child:
        os._exit(0)
    try:
        assert eventually(lambda: os.waitpid(child, os.WNOHANG)[0] == child, 20)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def test_the_port(hdfs: HdfsFolder) -> None:
    files, path = hdfs.files, hdfs.uri("folder/file")
    assert not files.exists(path)
    assert files.info(path) is None
    assert list(files.walk(hdfs.uri("folder"))) == []
    with pytest.raises(FileNotFoundError):
        files.read(path)
    with pytest.raises(FileNotFoundError):
        files.open_input(path)
    for content in (b"", bytes(range(256)) * 10_000, b"again"):
        files.write(path, content)
        assert files.read(path) == content
    with files.open_output(hdfs.uri("folder/deep/er")) as out:
        out.write(b"0123456789" * 300_000)
        assert out.tell() == 3_000_000
    with files.open_input(hdfs.uri("folder/deep/er")) as opened:
        opened.seek(2_999_995)
        assert opened.read(100) == b"56789"
        assert opened.seek(0, io.SEEK_END) == 3_000_000
        assert opened.read(1) == b""
        opened.seek(11)
        assert opened.read(3) == b"123"
    assert hdfs.names() == ["folder/deep/er", "folder/file"]
    found = files.info(path)
    assert found is not None
    assert (found.path, found.size) == (path, 5)
    assert found.modified > 1_600_000_000 * 10**9
    assert files.is_folder(hdfs.uri("folder"))
    assert not files.is_folder(path)
    files.move(path, hdfs.uri("other/name"))
    files.move(hdfs.uri("folder/deep/er"), hdfs.uri("other/name"))
    assert hdfs.names() == ["other/name"]
    for _ in range(2):
        files.delete(hdfs.uri("other"))
    assert hdfs.names() == []


def test_from_files_to_files_through_crashes(hdfs: HdfsFolder) -> None:
    """At each point of the commit protocol, one after the other."""
    points: dict[CrashPoint | str, list[str]] = {point: ["pass", "error"] for point in CrashPoint}
    for name in ("b", "a", "deep/c", "_hidden/d"):
        hdfs.add(f"in/{name}", b"".join(b"%s%d\n" % (name[-1].encode(), number) for number in range(20)))
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
    compacted = sink_to(hdfs.uri("compacted")).enable_compact(strategy, FileCompactor.concat_file_compactor())
    with CommitCrashes(points) as crashes:
        # About a file a batch.
        env = memory_environment(2, config={**RESTART, **crashes.config, "firesteel.batch.max-records": "2"})
        lines = env.from_source(lines_of(hdfs.uri("in")).build(), NONE, "lines")
        lines.sink_to(sink_to(hdfs.uri("plain")).build()).uid("plain")
        lines.sink_to(compacted.build()).uid("compacted")
        env.execute("lines")
        assert all(crashes.reached(point) > 1 for point in points)
    expected = sorted(f"{name}{number}" for name in "abc" for number in range(20))
    assert sorted(hdfs.lines("plain")) == expected
    assert sorted(hdfs.lines("compacted")) == expected
    assert not [name for name in hdfs.names() if "/." in name], "nothing stays hidden"
    assert len(hdfs.names("compacted")) < len(hdfs.names("plain"))


def test_parquet_and_files_that_change(hdfs: HdfsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator, "SMALL_FILE", 0)
    content = io.BytesIO()
    pa.parquet.write_table(pa.table({"n": range(100)}), content, row_group_size=10)
    hdfs.add("in/a.parquet", content.getvalue())
    form = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["n"], [Types.LONG()]))
    source = FileSource.for_bulk_file_format(form, hdfs.uri("in")).build()
    env = memory_environment(2, config=RESTART)
    rows = env.from_source(source, NONE, "rows").map(lambda row: row.n)
    assert sorted(rows.execute_and_collect()) == list(range(100))
    planner = source.create_enumerator()
    first = planner.latest(None, 10)
    hdfs.files.delete(hdfs.uri("in/a.parquet"))
    with pytest.raises(InputError, match=r"The file hdfs://.*/in/a\.parquet is gone"):
        planner.latest(first, 10)
