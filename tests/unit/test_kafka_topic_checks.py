"""Records that a broker would refuse, found before they are logged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest

from firesteel.connectors.kafka.errors import explained
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.serializing import OutgoingRecord
from firesteel.connectors.kafka.topic_checks import TopicChecks
from firesteel.connectors.kafka.transactions import Transactions
from firesteel.connectors.kafka.write_ahead import WriteAheadWriter
from firesteel.errors import ConnectorError, FailureKind

HOUR = 3_600_000
USUAL = {
    "max.message.bytes": "1048588",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(HOUR),
}


class Cluster:
    def __init__(self, settings: dict[str, str]) -> None:
        self.settings, self.count = settings, 2

    def partitions(self, wanted: Callable[[str], bool], topics: Any) -> list[int]:
        return list(range(self.count))

    def topic_settings(self, topic: str) -> dict[str, str]:
        return self.settings


def checks(settings: dict[str, str], **properties: str) -> TopicChecks:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    made = TopicChecks(KafkaProperties().having({"bootstrap.servers": "nowhere:1", **given}))
    made._cluster = Cluster(settings)  # type: ignore[assignment]
    made.look_at_the_clock()
    return made


def refusal(made: TopicChecks, **record: Any) -> str:
    with pytest.raises(ConnectorError) as caught:
        made.check(OutgoingRecord("t", **{"value": b"v", **record}))
    assert caught.value.kind is FailureKind.PERMANENT
    return str(caught.value)


def test_a_compacted_topic_needs_keys() -> None:
    made = checks({**USUAL, "cleanup.policy": "compact,delete"})
    assert "is compacted, and a record for it has no key" in refusal(made)
    assert made.check(OutgoingRecord("t", b"v", b"k")) == 2
    assert made.check(OutgoingRecord("t", None, b"k")) == 1


def test_timestamps_that_a_topic_does_not_take() -> None:
    made, now = checks({**USUAL, "message.timestamp.before.max.ms": str(24 * HOUR)}), int(time.time() * 1000)
    said = refusal(made, timestamp=now + HOUR + 60_000)
    assert "ahead of the clock by more than the 3,600,000 ms of the topic's message.timestamp.after.max.ms" in said
    assert "message.timestamp.before.max.ms" in refusal(made, timestamp=now - 25 * HOUR)
    for timestamp in (0, now, now + HOUR - 60_000, now - 23 * HOUR):
        made.check(OutgoingRecord("t", b"v", timestamp=timestamp))


@pytest.mark.parametrize("settings", [{}, {**USUAL, "message.timestamp.type": "LogAppendTime"}])
def test_timestamps_that_do_not_count_or_of_which_nothing_is_known(settings: dict[str, str]) -> None:
    checks(settings).check(OutgoingRecord("t", b"v", timestamp=2**50))
    checks(settings).check(OutgoingRecord("t", b"v", timestamp=1))


def test_brokers_before_3_6_have_one_setting_for_both() -> None:
    made = checks({"message.timestamp.difference.max.ms": str(HOUR)})
    refusal(made, timestamp=1)
    refusal(made, timestamp=2**50)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_record_may_fit_when_it_is_compressed(codec: str) -> None:
    made = checks({**USUAL, "max.message.bytes": "20000"}, compression_type=codec)
    assert made.check(OutgoingRecord("t", b"a" * 100_000)) == 100_000
    assert "The topic takes 20,000 bytes" in refusal(made, value=os.urandom(100_000))
    assert "The client takes 1,000,000 bytes" in refusal(made, value=b"a" * 1_000_000)
    assert made.smallest(["t"]) == 20_000, "what is sent together is not more than that"


def test_a_topic_that_has_got_more_partitions_is_looked_at_once_more() -> None:
    made = checks(USUAL)
    made.check(OutgoingRecord("t", b"v", partition=1))
    made._cluster.count = 4  # type: ignore[union-attr]
    made.check(OutgoingRecord("t", b"v", partition=3))
    assert "has 4 partitions, and a record is to go to partition 4" in refusal(made, partition=4)


def test_the_writer_goes_by_the_clock_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = KafkaProperties().having({"bootstrap.servers": "nowhere:1"})
    writer = WriteAheadWriter(properties, lambda value, moment: OutgoingRecord("t", value, timestamp=moment or 0))
    writer._topics._cluster = Cluster(USUAL)  # type: ignore[assignment]
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    writer.write_all(iter([b"v"]), [1_000_000 + HOUR])
    with pytest.raises(ConnectorError, match="ahead of the clock"):
        writer.write_all(iter([b"v"]), [1_000_000 + HOUR + 1])
    monkeypatch.setattr(time, "time", lambda: 1001.0)
    writer.write_all(iter([b"v"]), [1_000_000 + HOUR + 1])


@pytest.mark.parametrize("name", ["INVALID_RECORD", "INVALID_TIMESTAMP", "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"])
def test_what_a_broker_refuses_it_refuses_the_next_time(name: str) -> None:
    error = confluent_kafka.KafkaError(getattr(confluent_kafka.KafkaError, name))
    assert explained(error, KafkaProperties(), "writing").kind is FailureKind.PERMANENT


def test_what_the_client_for_transactions_knows_to_be_for_good_is_so() -> None:
    """Brokers say the same to both clients; of some errors only one of them knows what they mean."""
    transactions = Transactions(KafkaProperties().having({"bootstrap.servers": "nowhere:1"}))
    errors = transactions._kafka.errors
    kinds = {
        errors.UnsupportedForMessageFormatError: FailureKind.PERMANENT,
        errors.TransactionalIdAuthorizationFailedError: FailureKind.PERMANENT,
        errors.InvalidTxnStateError: FailureKind.PASSING,
    }
    for error, kind in kinds.items():
        told = transactions._explained(error("x"), "an abort", passing=False)
        assert isinstance(told, ConnectorError)
        assert told.kind is kind, error
    passing = transactions._explained(errors.UnsupportedForMessageFormatError("x"), "an abort", passing=True)
    assert isinstance(passing, ConnectorError)
    assert passing.kind is FailureKind.PASSING
