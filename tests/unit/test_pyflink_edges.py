"""Small parts of PyFlink's API, as PyFlink's own tests look at them."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pyarrow.parquet
import pytest

from firesteel.common import Configuration, Instant, Row, Types
from firesteel.common.serialization import RowFieldExtractorSchema
from firesteel.datastream import (
    CustomCheckpointStorage,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    MemorySize,
    SlotSharingGroup,
)
from firesteel.datastream.formats.parquet import ParquetBulkWriters
from firesteel.engine.checkpointing import Checkpointing
from firesteel.errors import ConfigurationError, ProgramError, TypeMismatchError


class TestRowFieldExtractorSchema:
    def test_bytes_of_a_field(self) -> None:
        assert RowFieldExtractorSchema(1).serialize(Row(b"key", b"value")) == b"value"
        assert RowFieldExtractorSchema(0).serialize((bytearray(b"key"), b"value")) == b"key"

    def test_none(self) -> None:
        """No row, and no value in it."""
        assert RowFieldExtractorSchema(0).serialize(None) == b""
        assert RowFieldExtractorSchema(0).serialize(Row(None, b"value")) == b""

    @pytest.mark.parametrize("value", ["text", 3, 0, [1, 2]])
    def test_what_is_no_bytes(self, value: Any) -> None:
        with pytest.raises(TypeMismatchError, match=r"Field 0 should be bytes, got"):
            RowFieldExtractorSchema(0).serialize(Row(value, b""))

    def test_a_field_that_is_not_there(self) -> None:
        with pytest.raises(TypeMismatchError, match=r"no field 2 in a row of 2"):
            RowFieldExtractorSchema(2).serialize(Row(b"", b""))
        with pytest.raises(ValueError, match="A field is counted from 0, got -1"):
            RowFieldExtractorSchema(-1)

    def test_equality(self) -> None:
        assert RowFieldExtractorSchema(1) == RowFieldExtractorSchema(1)
        assert RowFieldExtractorSchema(1) != RowFieldExtractorSchema(2)
        assert len({RowFieldExtractorSchema(1), RowFieldExtractorSchema(1)}) == 1


class TestSlotSharingGroup:
    def test_a_slot_without_heap(self) -> None:
        builder = SlotSharingGroup.builder("group").set_cpu_cores(1.0)
        with pytest.raises(ProgramError, match="task heap memory should be more than 0"):
            builder.set_task_heap_memory(MemorySize(bytes_size=0))
        with pytest.raises(ProgramError, match="task heap memory should be more than 0"):
            builder.set_task_heap_memory_mb(0)
        assert builder.set_task_heap_memory_mb(1).set_managed_memory_mb(0).build().get_managed_memory() == MemorySize(0)


class TestStoragePaths:
    def test_local_paths(self) -> None:
        backend = EmbeddedRocksDBStateBackend()
        backend.set_db_storage_paths("file://host/one/", "file:///two/three/", "/four/", "FILE:/five")
        assert backend.get_db_storage_paths() == ["/one", "/two/three", "/four", "/five"]
        backend.set_db_storage_paths()
        assert backend.get_db_storage_paths() == []

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("hdfs://host/path", "has a non-local scheme"),
            ("relative/path", "absolute"),
            (None, "takes paths, got None"),
        ],
    )
    def test_others(self, path: Any, message: str) -> None:
        backend = EmbeddedRocksDBStateBackend()
        with pytest.raises(ProgramError, match=message):
            backend.set_db_storage_paths(path)
        assert backend.get_db_storage_paths() == []


class TestCheckpointStorage:
    def test_in_memory(self) -> None:
        assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5 * 1024 * 1024
        assert JobManagerCheckpointStorage().get_max_state_size() == 5 * 1024 * 1024
        storage = JobManagerCheckpointStorage("file://var/checkpoints/", 50_000)
        assert storage.get_max_state_size() == 50_000
        assert storage.get_checkpoint_path() == "file://var/checkpoints"
        assert JobManagerCheckpointStorage().get_checkpoint_path() is None
        assert storage.get_savepoint_path() is None

    def test_in_files(self) -> None:
        storage = FileSystemCheckpointStorage("file://var/checkpoints/")
        assert storage.get_checkpoint_path() == "file://var/checkpoints"
        assert storage.get_savepoint_path() is None
        assert storage.get_min_file_size_threshold() == 20480
        assert storage.get_write_buffer_size() == 4096
        other = FileSystemCheckpointStorage("/var", file_state_size_threshold=2048, write_buffer_size=8)
        assert other.get_min_file_size_threshold() == 2048
        assert other.get_write_buffer_size() == 8
        with pytest.raises(ValueError, match="checkpoint_path must not be None"):
            FileSystemCheckpointStorage()

    def test_one_of_java(self) -> None:
        with pytest.raises(ProgramError, match="CustomCheckpointStorage wraps a Java object"):
            CustomCheckpointStorage(object())


class TestTheSettingOfStorage:
    """``execution.checkpointing.storage`` and its older key."""

    JOB = {"execution.checkpointing.interval": "1 s"}  # noqa: RUF012 - never changed

    @pytest.mark.parametrize("key", ["execution.checkpointing.storage", "state.checkpoint-storage"])
    def test_in_files_needs_a_directory(self, key: str, tmp_path: Any) -> None:
        settings = {**self.JOB, key: "filesystem"}
        with pytest.raises(ConfigurationError, match=rf"'{key}' is 'filesystem', .*execution\.checkpointing\.dir"):
            Checkpointing.of(Configuration.from_dict(settings), "job")
        settings["execution.checkpointing.dir"] = str(tmp_path)
        assert Checkpointing.of(Configuration.from_dict(settings), "job").folder == str(tmp_path / "job")
        exact = {**self.JOB, key: "filesystem", "firesteel.checkpoint.dir": str(tmp_path)}
        assert Checkpointing.of(Configuration.from_dict(exact), "job").folder == str(tmp_path)

    def test_in_memory_is_the_default(self) -> None:
        for name in ("jobmanager", "JobManager"):
            settings = {**self.JOB, "execution.checkpointing.storage": name}
            assert Checkpointing.of(Configuration.from_dict(settings), "job").folder is None

    def test_others(self) -> None:
        settings = {**self.JOB, "execution.checkpointing.storage": "org.example.Storage"}
        with pytest.raises(
            ConfigurationError, match=r"should be jobmanager or filesystem, got 'org\.example\.Storage'"
        ):
            Checkpointing.of(Configuration.from_dict(settings), "job")


def test_parquet_writes_instants() -> None:
    declared = Types.ROW_NAMED(
        ["at", "all", "by", "inner"],
        [
            Types.INSTANT(),
            Types.LIST(Types.INSTANT()),
            Types.MAP(Types.STRING(), Types.INSTANT()),
            Types.ROW_NAMED(["at", "n"], [Types.INSTANT(), Types.INT()]),
        ],
    )
    moment, before = Instant(1, 123_456_789), Instant.of_epoch_milli(-1)
    buffer = io.BytesIO()
    writer = ParquetBulkWriters.for_row_type(declared).create(buffer)
    writer.add_element(Row(moment, [moment, before], {"a": before}, Row(at=moment, n=1)))
    writer.add_element((None, [None], None, None))
    writer.finish()
    table = pyarrow.parquet.read_table(io.BytesIO(buffer.getvalue()))
    utc = datetime.UTC
    # Parquet's timestamps, as Spark reads them, have microseconds.
    one = datetime.datetime(1970, 1, 1, 0, 0, 1, 123456, tzinfo=utc)
    two = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=utc)
    assert table.to_pylist() == [
        {"at": one, "all": [one, two], "by": [("a", two)], "inner": {"at": one, "n": 1}},
        {"at": None, "all": [None], "by": None, "inner": None},
    ]
