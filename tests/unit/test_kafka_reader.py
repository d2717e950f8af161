"""Kafka's reader against a consumer of this test: what becomes of records when a partition is taken up again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

from firesteel.common import SimpleStringSchema
from firesteel.connectors.kafka.deserializing import Deserializing
from firesteel.connectors.kafka.offsets import TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.reader import KafkaReader
from firesteel.connectors.source import Records, SplitRange
from firesteel.errors import ConnectorError, InputError
from firesteel.metrics import MetricGroup

RECORDS = 20
OUT_OF_RANGE = confluent_kafka.KafkaError._AUTO_OFFSET_RESET


class Message:
    def __init__(self, partition: int, offset: int, error: int | None = None) -> None:
        self._partition, self._offset, self._error = partition, offset, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return f"{self._partition}:{self._offset}".encode()

    def timestamp(self) -> tuple[int, int]:
        return 1, 1

    def error(self) -> Any:
        return None if self._error is None else confluent_kafka.KafkaError(self._error)


class Consumer:
    """Partitions of 20 records each. ``refused`` holds the offsets at which it says once that they are out of range, or
    another error; ``first`` the first ones that there are; ``looks`` how often one has to look for a partition."""

    def __init__(
        self,
        refused: dict[int, list[int]],
        first: dict[int, int] | None = None,
        error: int = OUT_OF_RANGE,
        looks: int = 1,
    ) -> None:
        self.refused, self.first, self.error, self.looks = refused, first or {}, error, looks
        self.at: dict[int, int] = {}

    def list_topics(self, topic: str, timeout: float) -> Any:
        self.looks -= 1
        known = {0: None} if self.looks else {0: None, 1: None}
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=known)})

    def incremental_assign(self, places: list[Any]) -> None:
        self.at.update((one.partition, one.offset) for one in places)

    def incremental_unassign(self, places: list[Any]) -> None:
        for one in places:
            del self.at[one.partition]

    def get_watermark_offsets(self, place: Any, seconds: float) -> tuple[int, int]:
        return self.first.get(place.partition, 0), RECORDS

    def consume(self, count: int, seconds: float) -> list[Message]:
        found = []
        for partition, at in self.at.items():
            refused = self.refused.get(partition, [])
            while len(found) < count and self.at[partition] < RECORDS:
                at = self.at[partition]
                if refused[:1] == [at]:
                    refused.pop(0)
                    found.append(Message(partition, at, self.error))
                    break
                found.append(Message(partition, at))
                self.at[partition] += 1
        return found


def reader(consumer: Consumer, **properties: str) -> KafkaReader:
    given = {"bootstrap.servers": "nowhere:1", **{name.replace("_", "."): value for name, value in properties.items()}}
    made = KafkaReader(KafkaProperties().having(given), Deserializing(SimpleStringSchema()))
    made._kafka, made._client, made._deleted = confluent_kafka, consumer, MetricGroup().counter("deleted")
    return made


def read(reader: KafkaReader, partition: int, first: int, behind: int) -> list[int]:
    parts = reader.read(TopicPartition("t", partition), [first, None], [behind, None])
    values = [value for part in parts if isinstance(part, Records) for value in part.values]
    assert all(value.startswith(f"{partition}:") for value in values)
    return [int(value.partition(":")[2]) for value in values]


def test_a_partition_that_is_taken_up_again_goes_on_behind_what_was_fetched() -> None:
    """The refusal comes together with the records before it."""
    assert read(reader(Consumer({0: [10]})), 0, 0, RECORDS) == list(range(RECORDS))


def test_so_does_one_that_was_fetched_while_another_was_read() -> None:
    made = reader(Consumer({1: [5]}))
    made.begin([SplitRange(TopicPartition("t", one), [0, None], [RECORDS, None], f"t-{one}") for one in (0, 1)])
    assert read(made, 0, 0, RECORDS) == list(range(RECORDS))
    assert read(made, 1, 0, RECORDS) == list(range(RECORDS))


def test_it_is_taken_up_again_as_often_as_it_has_brought_something_in_between() -> None:
    made = reader(Consumer({0: [0, 10]}))
    assert read(made, 0, 0, 10) == list(range(10))
    assert read(made, 0, 10, RECORDS) == list(range(10, RECORDS))


def test_records_that_are_refused_twice_in_a_row_are_lost() -> None:
    with pytest.raises(InputError, match=r"t-0 from offset 4 on.* are not there any more"):
        read(reader(Consumer({0: [4, 4]})), 0, 4, RECORDS)


def test_what_was_fetched_before_others_were_deleted_is_handed_on_and_not_counted_as_deleted() -> None:
    made = reader(Consumer({0: [6]}, first={0: 9}), fail_on_data_loss="false")
    assert read(made, 0, 0, 4) == [0, 1, 2, 3]
    assert made._deleted.get_count() == 0
    assert read(made, 0, 4, RECORDS) == [4, 5, *range(9, RECORDS)]
    assert made._deleted.get_count() == 3


def test_the_error_names_the_first_record_that_was_not_fetched() -> None:
    made = reader(Consumer({0: [6]}, first={0: 9}))
    with pytest.raises(InputError, match=r"t-0 from offset 6 on.*the first one is at 9"):
        read(made, 0, 0, RECORDS)


def test_a_partition_that_is_newer_than_what_the_client_knows_is_looked_for() -> None:
    unknown = confluent_kafka.KafkaError._UNKNOWN_PARTITION
    assert read(reader(Consumer({1: [0]}, error=unknown, looks=3)), 1, 0, RECORDS) == list(range(RECORDS))


def test_one_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr(
        "firesteel.connectors.kafka.reader.time",
        SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: None),
    )
    unknown = confluent_kafka.KafkaError._UNKNOWN_PARTITION
    with pytest.raises(ConnectorError, match=r"reading t-1 failed.*Check the number of the topic's partitions"):
        read(reader(Consumer({1: [0]}, error=unknown, looks=1000)), 1, 0, RECORDS)
