"""Firesteel's own settings, read once from the configuration."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from firesteel.common.configuration import Configuration
from firesteel.common.tracebacks import wants_full_traces
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.errors import ConfigurationError
from firesteel.runtime.crash_points import SETTING, CrashPoints
from firesteel.runtime.frames import FRAMES_MEMORY, MAX_RECORD

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """What a job's run is tuned by. Every field is a key of the configuration, documented in docs/settings.md."""

    master: str = "auto"
    """``firesteel.master``: ``local`` (a thread per core), a Spark master URL, or ``memory``: one process, no Spark,
    for tests. ``auto`` is the master of the running Spark application, or Spark's own setting, or ``local``."""
    target_ms: int = 0
    """``firesteel.batch.target-duration``: how long a micro-batch should take; 0 leaves it to the engine."""
    max_records: int = 0
    """``firesteel.batch.max-records``: a fixed limit of records a batch instead of a size found by itself."""
    max_bytes: int = 256 << 20
    """``firesteel.batch.max-bytes``: how many bytes a micro-batch should have, as far as it is known beforehand: what
    sources say of their records, and what records of earlier batches led to."""
    interval_ms: int = 0
    """``firesteel.batch.interval``: the least time between the starts of two batches."""
    buffer_timeout_ms: int | None = None
    """``execution.buffer-timeout.interval``, where it was set: how long a record may wait for others of its batch. -1
    where it is off: then only throughput counts."""
    checkpoint_interval_ms: int = 0
    """``execution.checkpointing.interval``: how long a batch, which is a checkpoint, should take at most."""
    frames_memory: int = FRAMES_MEMORY
    """``firesteel.frames.memory``: bytes of a batch's frames that a subtask holds in memory; more wait in a file."""
    max_record: int = MAX_RECORD
    """``firesteel.frames.max-record``: the largest record, pickled, that may change hands."""
    busy_time: bool = True
    """``firesteel.metrics.busy-time``: whether it is measured how long each operator works."""
    ui: bool = False
    """``firesteel.spark.ui``: whether Spark's own web page is served (on loopback)."""
    jit: str = "auto"
    """``firesteel.spark.jit``: how the driver's JVM compiles: ``quick`` for a fast start, ``full`` for a long
    run, ``auto`` for the first if all sources are known to be small."""
    progress: bool | None = None
    """``firesteel.progress``: the live line; by default only on a terminal."""
    full_trace: bool = False
    """``firesteel.errors.full-trace``: whether exceptions keep the frames and causes inside Firesteel and Spark."""
    job_id: str = ""
    """``firesteel.job.id``: the id of the process's first job, 32 hexadecimal digits; by default a random one."""
    first_attempt: int = 0
    """``firesteel.job.attempt``: how often the job was started before. From 1 on it goes on from its checkpoint, even
    if it once began with a savepoint."""
    records_folder: str = ""
    """``firesteel.job.records``: a folder where a job that ends leaves its last answers, beside the usual place."""
    crash_points: CrashPoints = field(default_factory=CrashPoints)
    """``firesteel.testing.crash-points``: a folder that says where the commit protocol is to fail."""
    spark: dict[str, str] = field(default_factory=dict, repr=False)
    """All keys that start with ``spark.`` go to Spark as they are. They may hold secrets."""

    @staticmethod
    def of(configuration: Configuration) -> Settings:
        values = configuration.to_dict()
        progress = configuration.get_string("firesteel.progress", "auto").lower()
        checkpoints = CheckpointConfig(configuration)
        return Settings(
            master=configuration.get_string("firesteel.master", os.environ.get("FIRESTEEL_MASTER", "auto")),
            target_ms=configuration.get_duration_ms("firesteel.batch.target-duration", 0),
            max_records=configuration.get_integer("firesteel.batch.max-records", 0),
            max_bytes=max(1, configuration.get_memory_bytes("firesteel.batch.max-bytes", 256 << 20)),
            interval_ms=configuration.get_duration_ms("firesteel.batch.interval", 0),
            buffer_timeout_ms=_buffer_timeout(configuration),
            checkpoint_interval_ms=max(0, checkpoints.get_checkpoint_interval()),
            frames_memory=configuration.get_memory_bytes("firesteel.frames.memory", FRAMES_MEMORY),
            max_record=configuration.get_memory_bytes("firesteel.frames.max-record", MAX_RECORD),
            busy_time=configuration.get_boolean("firesteel.metrics.busy-time", True),
            ui=configuration.get_boolean("firesteel.spark.ui", False),
            jit=_jit(configuration),
            progress=None if progress == "auto" else progress == "true",
            full_trace=wants_full_traces(configuration),
            job_id=_job_id(configuration),
            first_attempt=max(0, configuration.get_integer("firesteel.job.attempt", 0)),
            records_folder=configuration.get_string("firesteel.job.records", ""),
            crash_points=CrashPoints(configuration.get_string(SETTING, "") or None),
            spark={
                **_retained(configuration),
                **{key: str(value) for key, value in values.items() if key.startswith("spark.")},
            },
        )


def _buffer_timeout(configuration: Configuration) -> int | None:
    if not configuration.get_boolean("execution.buffer-timeout.enabled", True):
        return -1
    key = configuration.find_key("execution.buffer-timeout.interval")
    return configuration.get_duration_ms(key, 0) if configuration.contains_key(key) else None


def _jit(configuration: Configuration) -> str:
    value = configuration.get_string("firesteel.spark.jit", "auto").lower()
    if value not in ("auto", "quick", "full"):
        raise ConfigurationError(f"firesteel.spark.jit is {value!r}: it must be auto, quick or full.")
    return value


def _job_id(configuration: Configuration) -> str:
    value = configuration.get_string("firesteel.job.id", "")
    if value and not re.fullmatch("[0-9a-f]{32}", value):
        raise ConfigurationError(f"firesteel.job.id is {value!r}: it must be 32 hexadecimal digits in lower case.")
    return value


def _retained(configuration: Configuration) -> dict[str, str]:
    """How many checkpoints Spark keeps. It needs two: the last one, and the one before while that is not committed."""
    wanted = configuration.get_integer("execution.checkpointing.num-retained", 0)
    return {"spark.sql.streaming.minBatchesToRetain": str(max(2, wanted))} if wanted > 0 else {}
