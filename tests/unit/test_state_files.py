"""Damaged state in Spark's own files: a permanent failure that names the file."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.state_files import damaged_files
from firesteel.errors import CheckpointError, FailureKind, JobExecutionError, kind_of

LOADING = """An error occurred while calling o496.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.
\tat org.apache.spark.sql.execution.streaming.state.RocksDB.load(RocksDB.scala:300)
Caused by: {cause}
"""
"""As Spark 4 tells it of a changelog."""


def state_file(folder: Path, name: str, content: bytes = b"a changelog" * 100) -> Path:
    """A file with the checksums that Hadoop puts beside it."""
    file = folder / "state" / "0" / "0" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    sums = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
    (file.parent / f".{name}.crc").write_bytes(b"crc\0" + struct.pack(f">i{len(sums)}I", 512, *sums))
    return file


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.EOFException: Stream ended prematurely",
        "java.io.IOException: Stream is corrupted",
        "java.util.zip.ZipException: zip END header not found",
        "org.rocksdb.RocksDBException: Corruption: block checksum mismatch",
    ],
)
def test_a_damaged_file_is_named_and_ends_the_job(tmp_path: Path, cause: str) -> None:
    state_file(tmp_path, "4.changelog")
    damaged = state_file(tmp_path, "5.changelog")
    damaged.write_bytes(damaged.read_bytes()[:50])
    found = translate(RuntimeError(LOADING.format(cause=cause)), str(tmp_path))
    assert isinstance(found, CheckpointError)
    assert kind_of(found) is FailureKind.PERMANENT
    assert f"cannot be read: {damaged} is damaged ({cause})" in str(found)


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.FileNotFoundException: File s3a://jobs/query/state/1/3/7.changelog does not exist",
        "java.io.FileNotFoundException: No such file or directory: s3a://jobs/query/state/1/3/7.changelog",
        "java.io.FileNotFoundException: s3a://jobs/query/state/1/3/7.changelog (No such file or directory)",
    ],
)
def test_the_file_that_spark_names(cause: str) -> None:
    found = translate(RuntimeError(LOADING.format(cause=cause)), "s3a://jobs/query")
    assert "cannot be read: s3a://jobs/query/state/1/3/7.changelog is damaged" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        LOADING.format(cause="java.io.IOException: No space left on device"),
        LOADING.format(cause="java.net.SocketTimeoutException: Read timed out"),
        LOADING.format(cause="java.io.FileNotFoundException: /jobs/query/state/0/0/5.zip (Too many open files)"),
        LOADING.format(cause="java.io.FileNotFoundException: /jobs/query/state/0/0/5.zip (No space left on device)"),
        LOADING.format(cause="java.io.FileNotFoundException: /jobs/query/state/0/0/5.zip (Permission denied)"),
        LOADING.replace("UNCATEGORIZED", "CANNOT_READ_DELTA_FILE_NOT_EXISTS").format(
            cause="java.io.FileNotFoundException: /jobs/query/state/0/0/5.delta (Too many open files in system)"
        ),
        "Python worker exited unexpectedly (crashed)\nCaused by: java.io.EOFException\n\tat streaming.state.RocksDB",
    ],
    ids=[
        "full disk",
        "network",
        "descriptors",
        "full disk of a file",
        "permission",
        "descriptors of all",
        "killed worker",
    ],
)
def test_what_may_pass_is_retried(tmp_path: Path, text: str) -> None:
    found = translate(RuntimeError(text), str(tmp_path))
    assert isinstance(found, JobExecutionError)
    assert kind_of(found) is FailureKind.PASSING


def test_whole_files_and_deleted_ones_are_not_named(tmp_path: Path) -> None:
    state_file(tmp_path, "1.zip")
    state_file(tmp_path, "2.zip").unlink()
    (tmp_path / "state" / "0" / "0" / ".3.zip.crc").write_bytes(b"other")
    assert damaged_files(f"file://{tmp_path}") == []
    assert damaged_files(str(tmp_path / "nowhere")) == []
