"""Messages of MQTT: logged, then acknowledged.

1. The broker keeps a session for the client's id, and sends messages of quality 1 until they are acknowledged.
2. Messages go to the log of the source, with their packet numbers, and are forced to disk.
3. Then they are acknowledged. *Crash before it reaches the broker:* they come again, marked as repeated and with the
   same packet numbers, and are recognised by these and by what is in them.

A broker may give a number to another message as soon as it has the acknowledgement. Most count up to 65,535 before a
number comes again, some take the lowest one that is free: then a message with the same payload as an earlier one, lost
on its way and sent again, would look like that one. So where numbers come again soon a message is forgotten as soon as
the broker is known to have its acknowledgement: it has answered a question that was sent behind it.
"""

from __future__ import annotations

import copyreg
import queue
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
NO_TOPIC = "firesteel/nothing"
"""To unsubscribe from it, which nobody has subscribed to, is a question that every broker answers."""
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


Mark = list[int]
"""A message's packet number, and a checksum of what is in it."""


class KnownMessages:
    """The last messages that were logged, by which those are recognised that come again.

    >>> known = KnownMessages([[1, 77]])
    >>> known.has([1, 77]), known.has([1, 78])
    (True, False)
    """

    def __init__(self, marks: Iterable[Mark] = ()) -> None:
        self._marks: dict[int, Mark] = dict(enumerate(marks))
        """By how many came before."""
        self.count = len(self._marks)
        self.numbers_come_again = False
        """Whether this broker has used a number for another message while the first one was remembered."""

    def has(self, mark: Mark) -> bool:
        return mark in self._marks.values()

    def add(self, mark: Mark) -> None:
        for former in [index for index, known in self._marks.items() if known[0] == mark[0]]:
            # The broker would not have used its number again without the acknowledgement.
            del self._marks[former]
            self.numbers_come_again = True
        self._marks[self.count] = mark
        self.count += 1
        if len(self._marks) > REMEMBERED:
            del self._marks[next(iter(self._marks))]

    def forget(self, count: int) -> None:
        """Forgets all that came when there were fewer than so many."""
        self._marks = {index: mark for index, mark in self._marks.items() if index >= count}

    def all(self) -> list[Mark]:
        return list(self._marks.values())


class MqttEnumerator(LoggedEnumerator):
    """Subscribes, logs, acknowledges."""

    def __init__(self, address: MqttAddress, topics: list[str], client_id: str, qos: int) -> None:
        self._address, self._topics, self._client_id, self._qos = address, topics, client_id, qos

    def receive(self, log: PieceLog, stopping: threading.Event) -> None:
        arrived: queue.Queue[Any] = queue.Queue()
        known = KnownMessages(log.cursor or ())
        session = Session(self._address, self._client_id, keep=True, expected=log.cursor is not None)
        client, subscribed = session.client, [(topic, self._qos) for topic in self._topics]
        # All by one queue, so that it is dealt with in the order in which the broker said it.
        client.on_message = lambda client, userdata, message: arrived.put(message)
        client.on_unsubscribe = lambda client, userdata, mid, reasons, properties: arrived.put(_Answer(mid))
        asked: dict[int, int] = {}

        def begin(present: bool) -> None:
            arrived.put(_Begin(present))
            client.subscribe(subscribed)

        def wait(seconds: float) -> None:
            stopping.wait(seconds)

        retried(lambda: session.open(begin), RETRY_SECONDS, "the connection", wait)
        try:
            while not stopping.is_set():
                session.check()
                for what, messages in _in_order(_waiting(arrived)):
                    if isinstance(what, _Begin):
                        # Questions die with their connection, and what is not known any more cannot come again.
                        asked.clear()
                        if not what.session_present:
                            known.forget(known.count)
                    elif isinstance(what, _Answer):
                        known.forget(asked.pop(what.mid, 0))
                    elif not self._keep_new(messages, known):
                        return
                    for message in messages:
                        client.ack(message.mid, message.qos)
                    if messages and known.numbers_come_again:
                        asked[client.unsubscribe(NO_TOPIC)[1]] = known.count
        finally:
            session.close()

    def _keep_new(self, messages: list[Any], known: KnownMessages) -> bool:
        """Logs what is not there yet; False if the source was stopped before."""
        new = []
        for message in messages:
            mark = _mark(message)
            if message.qos and message.dup and known.has(mark):
                continue
            if message.qos:
                known.add(mark)
            # Plain values: what is in a log must outlive the names of classes.
            new.append((message.topic, bytes(message.payload), bool(message.retain)))
        return not new or self.keep(new, known.all())


@dataclass(frozen=True)
class _Begin:
    """A connection was made."""

    session_present: bool


@dataclass(frozen=True)
class _Answer:
    """The broker has everything that was sent before this question."""

    mid: int


def _mark(message: Any) -> Mark:
    return [message.mid, zlib.crc32(message.payload, zlib.crc32(message.topic.encode()))]


def _in_order(arrived: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """What has arrived: messages in a row together, and what is between them."""
    messages: list[Any] = []
    for one in arrived:
        if isinstance(one, _Begin | _Answer):
            if messages:
                yield None, messages
                messages = []
            yield one, []
        else:
            messages.append(one)
    if messages:
        yield None, messages


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
