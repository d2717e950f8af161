"""When messages of a queue are acknowledged, and which ones are recognised, step by step, without a broker."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.connectors.rabbitmq import queues
from firesteel.connectors.rabbitmq.connecting import RabbitAddress, as_connector_error
from firesteel.connectors.rabbitmq.queues import QueueEnumerator, _Consumer, _Known


class Channel:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.broken = False

    def queue_declare(self, queue: str, **options: Any) -> None:
        if self.broken:
            raise ConnectionError("gone")

    def basic_ack(self, tag: int, multiple: bool = False) -> None:
        last = max(self.acknowledged, default=0)
        self.acknowledged += range(last + 1, tag + 1) if multiple else [tag]


class Broker:
    """A source, and a connection after the other."""

    def __init__(self, directory: Path) -> None:
        self.source = QueueEnumerator(RabbitAddress("nowhere"), "q", True, None)
        self.source.start(str(directory))
        self.known = _Known(self.source._live_log)
        self.connect()

    def connect(self) -> None:
        self.channel, self.tag = Channel(), 0
        connection = SimpleNamespace(channel=lambda: self.channel)
        self.consumer = _Consumer(self.source, connection, self.known, threading.Event())

    def deliver(self, *numbers: int) -> None:
        for number in numbers:
            self.tag += 1
            method, properties = SimpleNamespace(delivery_tag=self.tag), SimpleNamespace(correlation_id=str(number))
            self.consumer._arrived.append((None, method, properties, str(number).encode()))
        assert self.consumer._keep()
        self.consumer._acknowledge()

    def checkpoint(self, position: int) -> None:
        self.source.committed(position)
        self.consumer._acknowledge()

    @property
    def logged(self) -> list[int]:
        log = self.source._live_log
        return [int(body) for body, _ in log.records(log.begin, log.end)]


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_nothing_is_acknowledged_before_its_checkpoint(broker: Broker) -> None:
    broker.deliver(0, 1, 2, 3)
    assert broker.channel.acknowledged == []
    broker.checkpoint(2)
    assert broker.channel.acknowledged == [1, 2]
    broker.checkpoint(4)
    assert broker.channel.acknowledged == [1, 2, 3, 4]
    assert broker.logged == [0, 1, 2, 3]


def test_what_is_delivered_again_is_recognised_and_acknowledged(broker: Broker) -> None:
    broker.deliver(0)
    broker.checkpoint(1)
    broker.deliver(1, 2)
    broker.channel.broken = True
    with pytest.raises(ConnectionError):
        broker.checkpoint(2)
    broker.connect()
    # The acknowledgement of 1 was lost with the connection; 2 was never acknowledged.
    broker.deliver(1, 2, 3)
    assert broker.logged == [0, 1, 2, 3]
    assert broker.channel.acknowledged == [1], "a checkpoint has it"
    broker.checkpoint(4)
    assert broker.channel.acknowledged == [1, 2, 3]


def test_the_log_keeps_ids_until_the_broker_has_taken_their_acknowledgement(broker: Broker, tmp_path: Path) -> None:
    broker.deliver(0, 1, 2)
    broker.connect()
    broker.checkpoint(3)
    # Nothing of it was delivered to this connection: it will come again, if only after a restart.
    assert broker.source._live_checkpointed == 0
    again = Broker(tmp_path)
    again.deliver(0, 1, 2)
    assert again.logged == [0, 1, 2]
    again.checkpoint(3)
    assert again.channel.acknowledged == [1, 2, 3]
    assert again.source._live_checkpointed == 3


def test_ids_that_never_come_again_are_forgotten_after_a_while(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.deliver(0, 1, 2)
    broker.connect()
    monkeypatch.setattr(queues, "SETTLED", -1.0)
    broker.checkpoint(3)
    assert broker.source._live_checkpointed == 3
    assert broker.known.lowest() is None


def test_one_that_comes_behind_newer_ones_is_acknowledged_alone(broker: Broker) -> None:
    broker.deliver(0)
    broker.connect()
    broker.deliver(5, 0)
    broker.checkpoint(1)
    assert broker.channel.acknowledged == [2]


def test_an_id_that_is_published_again_is_known_by_its_new_position(broker: Broker) -> None:
    known = broker.known
    known.add("a", 0)
    known.add("b", 1)
    known.discard(["a"])
    known.add("a", 2)
    assert known.lowest() == 1, "the record at 0 was acknowledged: it does not hold the log"
    known.discard(["b"])
    known.forget_before(2)
    assert known.position("a") == 2, "what is forgotten is the record at 0, not the one with the same id"
    assert known.lowest() == 2


def test_a_broker_that_is_not_there_is_told_with_the_reason() -> None:
    from pika.adapters.utils.connection_workflow import AMQPConnectorSocketConnectError
    from pika.exceptions import AMQPConnectionError

    error = AMQPConnectionError(AMQPConnectorSocketConnectError(ConnectionRefusedError(111, "Connection refused")))
    found = str(as_connector_error(RabbitAddress("nowhere"), error, "the connection"))
    assert "cannot be reached (the connection): [Errno 111] Connection refused. Check" in found
