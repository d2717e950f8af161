"""Messages on their way to RabbitMQ, with confirms: one connection, one thread, many messages under way."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from firesteel.connectors.rabbitmq.connecting import AnyRabbitAddress, as_connector_error, load_client, size_refused
from firesteel.connectors.rabbitmq.queues import declare_queue
from firesteel.errors import ConnectorError, FailureKind, short_repr

__all__ = ["Publisher"]

PERSISTENT = 2
PORTION = 1000
"""Messages that are handed to the client at once."""


class Publisher:
    """Publishes, and says when the broker has taken all of it."""

    def __init__(self, address: AnyRabbitAddress, queue: str, seconds: float) -> None:
        address = address.resolve()
        self._address, self._queue, self._seconds = address, queue, seconds
        connection = address.connect()
        try:
            address.run(lambda: declare_queue(connection, queue), f"to declare the queue {queue!r}")
        finally:
            if connection.is_open:
                connection.close()
        self._lock = threading.Condition()
        self._opened = False
        self._failure: ConnectorError | None = None
        self._sent = self._confirmed = 0
        self._under_way: list[tuple[bytes, str | None]] = []
        self._beyond: set[int] = set()
        """Confirmed before others that were sent earlier."""
        pika = load_client()
        self._connection = pika.SelectConnection(
            address.parameters(),
            on_open_callback=self._on_open,
            on_open_error_callback=lambda connection, error: self._fail(error, "the connection"),
            on_close_callback=lambda connection, reason: self._fail(reason, "publishing"),
        )
        self._thread = threading.Thread(target=self._connection.ioloop.start, name="firesteel-rabbitmq", daemon=True)
        self._thread.start()
        self._wait(lambda: self._opened, "the connection")

    # In the client's thread

    def _on_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(lambda channel, reason: self._fail(reason, f"the queue {self._queue!r}"))
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=self._on_confirming)

    def _on_confirming(self, frame: Any) -> None:
        with self._lock:
            self._opened = True
            self._lock.notify_all()

    def _on_confirm(self, frame: Any) -> None:
        answer, method = frame.method, load_client().spec.Basic
        with self._lock:
            if isinstance(answer, method.Nack):
                self._failure = self._failure or ConnectorError(
                    f"RabbitMQ at {self._address} could not take a message for the queue {self._queue!r} (nack). It "
                    "may be full."
                )
            elif answer.multiple:
                self._confirmed = max(self._confirmed, answer.delivery_tag)
            else:
                self._beyond.add(answer.delivery_tag)
            while self._confirmed + 1 in self._beyond:
                self._confirmed += 1
                self._beyond.discard(self._confirmed)
            self._lock.notify_all()

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._set(
            ConnectorError(
                f"RabbitMQ at {self._address} has no queue {self._queue!r} for a message: {method.reply_text}. The "
                f"message is {short_repr(body, 80)}.",
                kind=FailureKind.PERMANENT,
            )
        )

    def _fail(self, error: BaseException, doing: str) -> None:
        failure = as_connector_error(self._address, error, doing)
        size = size_refused(failure)
        refused = next((body for body, _ in self._under_way if len(body) == size), None)
        if refused is not None:
            failure = ConnectorError(f"{failure} The message is {short_repr(refused, 80)}.", kind=failure.kind)
        self._set(failure)
        self._connection.ioloop.stop()

    def _set(self, failure: ConnectorError) -> None:
        with self._lock:
            self._failure = self._failure or failure
            self._lock.notify_all()

    # In the writer's thread

    def _wait(self, done: Any, doing: str) -> None:
        with self._lock:
            answered = self._lock.wait_for(lambda: self._failure is not None or done(), self._seconds)
            failure = self._failure
        if failure is not None or not answered:
            self.close()
            raise failure or ConnectorError(
                f"RabbitMQ at {self._address} has not answered {doing} for {self._seconds:g} s."
            )

    def publish(self, messages: list[tuple[bytes, str | None]]) -> None:
        """Publishes bodies with their correlation ids, and returns when all are confirmed."""
        with self._lock:
            target = self._sent = self._sent + len(messages)
            self._under_way = messages
        for start in range(0, len(messages), PORTION):
            portion = messages[start : start + PORTION]
            self._connection.ioloop.add_callback_threadsafe(lambda portion=portion: self._hand_over(portion))
        self._wait(lambda: self._confirmed >= target, f"{len(messages)} messages")

    def _hand_over(self, messages: list[tuple[bytes, str | None]]) -> None:
        properties = load_client().BasicProperties
        plain = properties(delivery_mode=PERSISTENT)
        for body, identity in messages:
            given = plain if identity is None else properties(delivery_mode=PERSISTENT, correlation_id=identity)
            try:
                self._channel.basic_publish("", self._queue, body, given, mandatory=True)
            except load_client().exceptions.AMQPError as error:
                self._fail(error, "publishing")
                return

    def close(self) -> None:
        def leave() -> None:
            if self._connection.is_open:
                self._connection.close()
            else:
                self._connection.ioloop.stop()

        with contextlib.suppress(Exception):
            self._connection.ioloop.add_callback_threadsafe(leave)
        self._thread.join(5)
