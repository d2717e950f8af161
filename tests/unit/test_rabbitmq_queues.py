"""When messages of a queue are acknowledged, and which ones are recognised, step by step, without a broker."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pika import exceptions as errors

from firesteel.connectors.rabbitmq import queues
from firesteel.connectors.rabbitmq.connecting import RabbitAddress, as_connector_error
from firesteel.connectors.rabbitmq.publishing import Publisher
from firesteel.connectors.rabbitmq.queues import QueueEnumerator, _Consumer, _Known
from firesteel.errors import ConnectorError, FailureKind


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


BROKER = RabbitAddress("broker")
LOGIN = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN"
DOWN = "NOT_FOUND - home node 'rabbit@b' of durable queue 'q' in vhost '/' is down or inaccessible"
LIMIT = "NOT_ALLOWED - access to vhost '/' refused for user 'ada': connection limit (3) is reached"
LATE = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms"
LARGE = "PRECONDITION_FAILED - message size 17 is larger than configured max size 16"


@pytest.mark.parametrize(
    ("wrapper", "inner", "kind", "text"),
    [
        (
            "ProbableAuthenticationError",
            errors.ConnectionClosedByBroker(403, LOGIN),
            FailureKind.PERMANENT,
            f"refused the connection: {LOGIN}. Check the user name, the password",
        ),
        (
            "ProbableAuthenticationError",
            errors.StreamLostError("Stream connection lost: ConnectionResetError(104, 'Connection reset by peer')"),
            FailureKind.PASSING,
            'cannot be reached (the connection): StreamLostError: ("Stream connection lost: ConnectionResetError',
        ),
        (
            "ProbableAccessDeniedError",
            errors.ConnectionClosedByBroker(530, "NOT_ALLOWED - vhost 'x' not found"),
            FailureKind.PERMANENT,
            "refused the connection: NOT_ALLOWED - vhost 'x' not found. Check the user name",
        ),
        (
            "ProbableAccessDeniedError",
            errors.ConnectionClosedByBroker(530, LIMIT),
            FailureKind.PASSING,
            f"refused the connection: {LIMIT}.",
        ),
        (
            "ProbableAccessDeniedError",
            errors.ConnectionClosedByBroker(541, "INTERNAL_ERROR - access refused: vhost 'x' is down"),
            FailureKind.PASSING,
            "closed the connection (the connection): INTERNAL_ERROR - access refused: vhost 'x' is down.",
        ),
        (
            "ProbableAccessDeniedError",
            errors.StreamLostError("Stream connection lost"),
            FailureKind.PASSING,
            "cannot be reached",
        ),
        ("", errors.ChannelClosedByBroker(404, DOWN), FailureKind.PASSING, f"refused the connection: {DOWN}."),
        (
            "",
            errors.ChannelClosedByBroker(404, "NOT_FOUND - no queue 'q' in vhost '/'"),
            FailureKind.PERMANENT,
            "no queue 'q' in vhost '/'. Declare it first.",
        ),
        ("", errors.ChannelClosedByBroker(406, LATE), FailureKind.PASSING, LATE),
        (
            "",
            errors.ChannelClosedByBroker(406, LARGE),
            FailureKind.PERMANENT,
            f"{LARGE}. Raise the broker's max_message",
        ),
        (
            "",
            errors.ChannelClosedByBroker(406, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q'"),
            FailureKind.PERMANENT,
            "for queue 'q'. It was declared with other properties.",
        ),
        (
            "",
            errors.ConnectionClosedByBroker(320, "CONNECTION_FORCED - stop"),
            FailureKind.PASSING,
            "CONNECTION_FORCED",
        ),
    ],
)
def test_what_the_broker_said_decides_not_when_it_said_it(
    wrapper: str, inner: Exception, kind: FailureKind, text: str
) -> None:
    error = getattr(errors, wrapper)(repr(inner)) if wrapper else inner
    found = as_connector_error(BROKER, error, "the connection")
    assert found.kind is kind
    assert text in str(found)


def test_a_message_that_is_too_large_is_told() -> None:
    publisher = Publisher.__new__(Publisher)
    publisher._address, publisher._lock, publisher._failure = BROKER, threading.Condition(), None
    publisher._connection = SimpleNamespace(ioloop=SimpleNamespace(stop=lambda: None))
    publisher._under_way = [(b"small", None), (b"seventeen bytes..", None)]
    publisher._fail(errors.ChannelClosedByBroker(406, LARGE), "the queue 'q'")
    assert publisher._failure is not None
    assert str(publisher._failure).endswith("send less at once. The message is b'seventeen bytes..'.")
    assert publisher._failure.kind is FailureKind.PERMANENT


def test_a_certificate_that_is_not_trusted(untrusted_server: int) -> None:
    with pytest.raises(ConnectorError, match=r"has a certificate that is not trusted: self.signed cert") as caught:
        RabbitAddress("127.0.0.1", untrusted_server, tls=True).connect()
    assert caught.value.kind is FailureKind.PERMANENT
