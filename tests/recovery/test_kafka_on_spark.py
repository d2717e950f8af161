"""Kafka on Spark, in the session that tests share: sinks that write ahead, records that cannot be read put aside."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

from kafkakit import Broker
from sparkkit import spark_env

from firesteel.common import DeserializationSchema, Types, WatermarkStrategy
from firesteel.datastream import OutputTag
from firesteel.datastream.connectors.kafka import Undecodable
from firesteel.testing import CommitCrashes, CrashPoint

RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "30",
}


class Numbers(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        return int(message)


def test_written_ahead_and_put_aside_through_failures(broker: Broker, tmp_path: Path) -> None:
    """Sums of numbers in one topic and what is no number in another, each once, though the driver fails when it has
    logged a batch and sent nothing, and again when it has sent a batch to one topic and not to the other."""
    values = [str(n) if n % 10 else f"bad {n}" for n in range(1, 121)]
    given, sums, rest = broker.topic(values, partitions=2), broker.topic(partitions=2), broker.topic()
    bad, prefix = OutputTag("bad"), uuid.uuid4().hex
    source = broker.source(given).set_value_only_deserializer(Numbers())
    source.set_undecodable(Undecodable.side_output(bad))
    points: dict[CrashPoint | str, list[str]] = {
        CrashPoint.BEFORE_COMMIT: ["pass", "error"],
        CrashPoint.BETWEEN_SINKS: ["pass", "pass", "error"],
    }
    with CommitCrashes(points) as crashes:
        folder = {"firesteel.checkpoint.dir": str(tmp_path / "checkpoint")}
        env = spark_env(2, {**RESTART, **folder, **crashes.config})
        numbers = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        pairs = numbers.map(lambda n: (n % 3, n)).key_by(lambda pair: pair[0])
        totals = pairs.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("totals")
        texts = totals.map(lambda pair: f"{pair[0]}:{pair[1]}", Types.STRING())
        texts.sink_to(broker.sink(sums, prefix=prefix).set_write_ahead().build()).uid("sums")
        aside = numbers.get_side_output(bad)
        places = aside.map(lambda found: f"{found.content.decode()} at {found.record.partition}", Types.STRING())
        places.sink_to(broker.sink(rest, prefix=prefix).set_write_ahead().build()).uid("rest")
        env.execute("sums")
        assert all(crashes.reached(point) > 2 for point in points)
    good = [n for n in range(1, 121) if n % 10]
    # Which of a key's records come first is open. But each gives one sum, the sums of a key grow, and the last has all.
    found = [text.split(":") for text in broker.values(sums)]
    assert len(found) == len({tuple(pair) for pair in found}) == len(good)
    for key in range(3):
        of_key = [int(total) for name, total in found if name == str(key)]
        assert max(of_key) == sum(n for n in good if n % 3 == key)
        assert len(of_key) == sum(n % 3 == key for n in good)
    assert Counter(broker.values(rest)) == Counter(f"bad {n} at {(n - 1) % 2}" for n in range(10, 121, 10))
