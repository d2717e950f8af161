"""A real RabbitMQ for the tests: one broker for all of them, a queue of its own for each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from rabbitmq_server import PASSWORD, USER, RabbitMqServer, why_not

from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig

__all__ = ["Rabbit", "rabbit", "rabbitmq_server"]


class Rabbit:
    """The broker as a test sees it."""

    user, password = USER, PASSWORD

    def __init__(self, server: RabbitMqServer) -> None:
        self.server, self.uri = server, server.uri
        self.queue = f"q{uuid.uuid4().hex[:10]}"
        self._declared: set[str] = set()

    def config(self, **changes: Any) -> RMQConnectionConfig:
        given = {"host": "127.0.0.1", "port": self.server.port, "user_name": USER, "password": PASSWORD, **changes}
        builder = RMQConnectionConfig.Builder()
        for name, value in given.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    def declare(self, queue: str = "", **options: Any) -> None:
        self._declared.add(queue or self.queue)
        with self.server.connection() as connection:
            connection.channel().queue_declare(queue or self.queue, durable=True, **options)

    def delete(self) -> None:
        """Deletes what the test has declared. RabbitMQ 3.10 does not always get over ``kill -9`` with streams."""
        with self.server.connection() as connection:
            for queue in self._declared:
                connection.channel().queue_delete(queue)

    def stream(self) -> None:
        self.declare(arguments={"x-queue-type": "stream"})

    def publish(self, numbers: Iterable[Any], queue: str = "", ids: bool = True) -> None:
        import pika

        with self.server.connection() as connection:
            channel = connection.channel()
            channel.tx_select()
            for number in numbers:
                properties = pika.BasicProperties(delivery_mode=2, correlation_id=str(number) if ids else None)
                channel.basic_publish("", queue or self.queue, str(number).encode(), properties)
            channel.tx_commit()

    def fetch(self, queue: str = "") -> list[tuple[int, str | None]]:
        """Takes all messages that are ready."""
        found = []
        with self.server.connection() as connection:
            channel = connection.channel()
            while True:
                method, properties, body = channel.basic_get(queue or self.queue, auto_ack=True)
                if method is None:
                    return found
                found.append((int(body), properties.correlation_id))

    def waiting(self, queue: str = "") -> int:
        """Messages that are ready: neither delivered nor acknowledged."""
        with self.server.connection() as connection:
            return int(connection.channel().queue_declare(queue or self.queue, passive=True).method.message_count)


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMqServer]:
    """The broker, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with RabbitMQ: {missing}")
        pytest.skip(f"no RabbitMQ to test with: {missing}")
    with RabbitMqServer() as server:
        yield server


@pytest.fixture
def rabbit(rabbitmq_server: RabbitMqServer) -> Iterator[Rabbit]:
    made = Rabbit(rabbitmq_server)
    yield made
    made.delete()
