"""How long a producer waits for brokers that take nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.connectors.kafka import producing as producing_module
from firesteel.connectors.kafka.producing import Producing
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.serializing import OutgoingRecord
from firesteel.errors import ConnectorError, FailureKind

ROOM = 3


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Client:
    """A queue with room for three. One of its records goes every ``pace`` seconds, or none."""

    def __init__(self, clock: Clock, pace: float | None) -> None:
        self.clock, self.pace, self.waiting, self.went = clock, pace, 0, 0.0

    def __len__(self) -> int:
        return self.waiting

    def produce(self, *given: Any, **more: Any) -> None:
        if self.waiting == ROOM:
            raise BufferError
        self.waiting += 1

    def poll(self, seconds: float) -> int:
        self.clock.now += max(seconds, 1.0)
        assert self.clock.now < 1_000, "it waits for ever"
        if self.pace is not None and self.waiting and self.clock.now - self.went >= self.pace:
            self.waiting, self.went = self.waiting - 1, self.clock.now
        return 0

    def flush(self, seconds: float) -> int:
        self.poll(seconds)
        return self.waiting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    # Not in the module itself: other threads of the process have a clock, too.
    monkeypatch.setattr(producing_module, "time", SimpleNamespace(monotonic=made))
    return made


def producing(clock: Clock, pace: float | None) -> Producing:
    made = Producing(KafkaProperties().having({"bootstrap.servers": "127.0.0.1:1"}))
    made.client = Client(clock, pace)
    return made


def send(producer: Producing, count: int) -> None:
    for _ in range(count):
        producer.send(OutgoingRecord("t", b"v"))


def test_a_full_queue_that_does_not_get_shorter_is_a_failure_after_two_minutes(clock: Clock) -> None:
    producer = producing(clock, None)
    send(producer, ROOM)
    assert clock.now == 0
    with pytest.raises(ConnectorError, match="sending 3 records failed") as caught:
        send(producer, 1)
    assert caught.value.kind is FailureKind.PASSING
    assert 120 < clock.now < 125


def test_one_that_gets_shorter_is_waited_for_as_long_as_it_takes(clock: Clock) -> None:
    producer = producing(clock, 100)
    send(producer, 5)
    producer.flush()
    assert clock.now > 400
    assert producer.sent == 5


def test_a_flush_without_a_broker_fails_after_two_minutes(clock: Clock) -> None:
    producer = producing(clock, None)
    send(producer, 1)
    with pytest.raises(ConnectorError, match="sending 1 records failed"):
        producer.flush()
    assert 120 < clock.now < 125
