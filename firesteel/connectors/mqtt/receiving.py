"""Messages of MQTT: logged, then acknowledged.

1. The broker keeps a session for the client's id, and sends messages of quality 1 until they are acknowledged.
2. Messages go to the log of the source, with their packet numbers, and are forced to disk.
3. Then they are acknowledged. *Crash before it reaches the broker:* they come again, marked as repeated and with the
   same packet numbers, and are recognised by these and by what is in them.
"""

from __future__ import annotations

import copyreg
import queue
import threading
import zlib
from collections import deque
from typing import Any, NamedTuple

from firesteel.connectors.logged import LoggedEnumerator, LoggedReader
from firesteel.connectors.mqtt.connecting import MqttAddress, Session
from firesteel.connectors.piece_log import PieceLog
from firesteel.connectors.retrying import retried
from firesteel.connectors.source import Records
from firesteel.durable.names import stored_as

__all__ = ["MqttEnumerator", "MqttMessage", "MqttReader"]

REMEMBERED = 200
"""So many messages are recognised if they come again: ten times what a broker sends ahead by default."""
MOST_AT_ONCE = 5000
RETRY_SECONDS = 60.0


class MqttMessage(NamedTuple):
    """One message.

    >>> MqttMessage("home/kitchen", b"21.5").payload
    b'21.5'
    """

    topic: str
    payload: bytes
    retain: bool = False
    """Whether the broker had kept it for new subscribers."""


@stored_as("mqtt_message")
def _mqtt_message(topic: str, payload: bytes, retain: bool) -> MqttMessage:
    return MqttMessage(topic, payload, retain)


copyreg.pickle(MqttMessage, lambda message: (_mqtt_message, tuple(message)))


class MqttEnumerator(LoggedEnumerator):
    """Subscribes, logs, acknowledges."""

    def __init__(self, address: MqttAddress, topics: list[str], client_id: str, qos: int) -> None:
        self._address, self._topics, self._client_id, self._qos = address, topics, client_id, qos

    def receive(self, log: PieceLog, stopping: threading.Event) -> None:
        arrived: queue.Queue[Any] = queue.Queue()
        seen: deque[list[int]] = deque(log.cursor or (), REMEMBERED)
        session = Session(self._address, self._client_id, keep=True)
        session.client.on_message = lambda client, userdata, message: arrived.put(message)
        subscribed = [(topic, self._qos) for topic in self._topics]

        def wait(seconds: float) -> None:
            stopping.wait(seconds)

        retried(
            lambda: session.open(lambda: session.client.subscribe(subscribed)), RETRY_SECONDS, "the connection", wait
        )
        try:
            while not stopping.is_set():
                session.check()
                messages = _waiting(arrived)
                if messages and not self._keep_new(messages, seen):
                    return
                for message in messages:
                    session.client.ack(message.mid, message.qos)
        finally:
            session.close()

    def _keep_new(self, messages: list[Any], seen: deque[list[int]]) -> bool:
        """Logs what is not there yet; False if the source was stopped before."""
        new = []
        for message in messages:
            mark = [message.mid, zlib.crc32(message.payload, zlib.crc32(message.topic.encode()))]
            if message.qos and message.dup and mark in seen:
                continue
            if message.qos:
                seen.append(mark)
            # Plain values: what is in a log must outlive the names of classes.
            new.append((message.topic, bytes(message.payload), bool(message.retain)))
        return not new or self.keep(new, list(seen))


class MqttReader(LoggedReader[MqttMessage]):
    """Makes messages of what was logged."""

    def records(self, logged: list[Any]) -> Records[MqttMessage]:
        return Records([MqttMessage(*one) for one in logged])


def _waiting(arrived: queue.Queue[Any]) -> list[Any]:
    """What has arrived; waits for a moment if that is nothing."""
    found: list[Any] = []
    try:
        found.append(arrived.get(timeout=0.1))
        while len(found) < MOST_AT_ONCE:
            found.append(arrived.get_nowait())
    except queue.Empty:
        pass
    return found
