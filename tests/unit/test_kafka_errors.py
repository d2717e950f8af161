"""What is taken for the reason of a failure, and what kind that makes it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from firesteel.connectors.kafka.errors import LastError, explained, refusal
from firesteel.connectors.kafka.offsets import Cluster
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind

PROPERTIES = KafkaProperties().having({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "0"})
CUT_OFF = "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's supported mechanisms: (n/a)"
WRONG = "SASL authentication error: Authentication failed: Invalid username or password"


def kafka_error(name: str, text: str | None = None) -> Any:
    return confluent_kafka.KafkaError(getattr(confluent_kafka.KafkaError, name), text)


TIMED_OUT = kafka_error("_TIMED_OUT")


def test_a_connection_that_is_lost_during_the_login_is_no_wrong_password() -> None:
    last = LastError()
    last(kafka_error("_AUTHENTICATION", CUT_OFF))
    assert last.behind(TIMED_OUT) is TIMED_OUT
    for kind, text in ((FailureKind.PASSING, CUT_OFF), (FailureKind.PERMANENT, WRONG)):
        assert explained(kafka_error("_AUTHENTICATION", text), PROPERTIES, "a commit").kind is kind
    last(kafka_error("_AUTHENTICATION", WRONG))
    last(kafka_error("_AUTHENTICATION", CUT_OFF))
    assert explained(TIMED_OUT, PROPERTIES, "a commit", last.behind).kind is FailureKind.PERMANENT


def test_what_a_client_said_long_ago_is_no_reason() -> None:
    now = [100.0]
    last = LastError(lambda: now[0])
    last(kafka_error("_AUTHENTICATION", WRONG))
    now[0] += 59
    last(kafka_error("_TRANSPORT"))
    assert last.behind(TIMED_OUT).name() == "_AUTHENTICATION"
    now[0] += 2
    assert last.behind(TIMED_OUT) is TIMED_OUT
    last(kafka_error("_TRANSPORT"))
    last(kafka_error("_RESOLVE"))
    assert last.behind(TIMED_OUT).name() == "_RESOLVE"


class Client:
    """Says what it has heard when it is polled, as the real ones do."""

    def __init__(self, last: LastError) -> None:
        self.last, self.heard = last, list[Any]()

    def poll(self, seconds: float) -> None:
        while self.heard:
            self.last(self.heard.pop(0))


def test_what_was_said_before_the_brokers_answered_is_over() -> None:
    cluster = Cluster(PROPERTIES)
    clients = Client(cluster._last), Client(cluster._last)
    cluster._consumer, cluster._admin = clients
    cluster._new_admin = lambda: clients[1]  # type: ignore[method-assign]

    def fail() -> None:
        raise confluent_kafka.KafkaException(TIMED_OUT)

    def kind() -> FailureKind | None:
        with pytest.raises(ConnectorError) as caught:
            cluster._settled(fail, "a look")
        return caught.value.kind

    clients[0].heard.append(kafka_error("_AUTHENTICATION", WRONG))
    assert kind() is FailureKind.PERMANENT, "before any answer"
    assert cluster._settled(lambda: 7, "a look") == 7
    assert kind() is FailureKind.PASSING, "an outage after that"
    clients[1].heard.append(kafka_error("_AUTHENTICATION", WRONG))
    assert kind() is FailureKind.PASSING, "it was said meanwhile, and not heard before now"


@pytest.fixture
def cutting_broker() -> Iterator[str]:
    """A broker that goes away whenever somebody is about to log in."""

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                key, version, number = struct.unpack(">hhi", stream.read(*struct.unpack(">i", head))[:8])
                if key != 18:
                    return
                apis = [(0, 0, 9), (1, 4, 13), (3, 0, 12), (17, 0, 1), (18, 0, 3), (36, 0, 2)]
                listed = b"".join(struct.pack(">hhh", *one) + b"\0" for one in apis)
                body = struct.pack(">ih", number, 0) + bytes([len(apis) + 1]) + listed + b"\0" * 5
                assert version == 3
                connection.sendall(struct.pack(">i", len(body)) + body)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_broker_that_dies_while_somebody_logs_in_has_refused_nobody(cutting_broker: str) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    properties = PROPERTIES.having({**login, "bootstrap.servers": cutting_broker, "sasl.password": "right-one"})
    assert refusal(properties, seconds=1.0) is None
