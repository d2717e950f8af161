"""The history from files, then Kafka, as one source."""

from __future__ import annotations

from pathlib import Path

from kafkakit import Broker
from kit import eventually

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.testing import CollectionSink, Crash, memory_environment


def test_files_first_then_kafka_through_failures(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "history").write_text("".join(f"{n}\n" for n in range(30)))
    topic = broker.topic([str(n) for n in range(100, 130)], partitions=2)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    source = HybridSource.builder(files).add_source(broker.source(topic, latest=False).build()).build()
    crash, found = Crash(times=2), CollectionSink()

    def fragile(value: str) -> int:
        if value in ("29", "115"):
            crash.hit()
        return int(value)

    config = {
        "firesteel.batch.max-records": "10",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    env = memory_environment(2, config=config)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "both").map(fragile).sink_to(found)
    job = env.execute_async("hybrid")
    assert eventually(lambda: len(found.values) >= 60)
    broker.write(topic, ["130", "131"], partitions=2)
    assert eventually(lambda: len(found.values) >= 62)
    job.cancel().result()
    assert sorted(found.values) == [*range(30), *range(100, 132)]
