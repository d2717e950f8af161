"""An object store from Spark's workers: access by the settings of Spark's own client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from s3kit import SECRET, Bucket
from sparkkit import spark_env

from firesteel.common import Encoder, WatermarkStrategy
from firesteel.datastream.connectors import FileSink
from firesteel.datastream.connectors.file_system import BucketAssigner
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.engine.settings import Settings
from firesteel.engine.spark.hadoop import hadoop_options
from firesteel.engine.spark.session import get_session

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "25",
}


def sink(path: str) -> FileSink:
    builder = FileSink.for_row_format(path, Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def test_every_record_once_though_a_writer_is_killed(bucket: Bucket, tmp_path: Path) -> None:
    """It is killed in the middle of a batch, with objects begun. What the driver keeps beside the job has no keys."""
    marker, durable = tmp_path / "killed", tmp_path / "job"

    def fragile(value: int) -> str:
        if value == 60 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return str(value)

    env = spark_env(2, {**RESTART, **bucket.settings, "firesteel.checkpoint.dir": str(durable)})
    numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").map(fragile)
    numbers.sink_to(sink(bucket.uri("out", "s3a"))).uid("files")
    env.execute("numbers")
    assert marker.exists()
    assert sorted(bucket.lines("out/")) == sorted(map(str, range(100)))
    assert not [name for name in bucket.names() if "/." in name], "nothing is left hidden"
    assert not [path for path in durable.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_what_the_session_says_of_s3_holds_for_jobs(bucket: Bucket) -> None:
    conf: Any = get_session(Settings(), "test").sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.secret.key", "of the session")
    try:
        options = hadoop_options(get_session(Settings(), "test"), {})
        assert options.secret_key is not None
        assert options.secret_key.reveal() == "of the session"
        assert hadoop_options(get_session(Settings(), "test"), bucket.settings) == bucket.options
    finally:
        conf.unset("fs.s3a.secret.key")
