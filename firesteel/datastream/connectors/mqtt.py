"""MQTT: topics as a source and as a sink."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.secret import Secret
from firesteel.connectors.logged import Logged
from firesteel.connectors.mqtt.connecting import MqttAddress, Session
from firesteel.connectors.mqtt.receiving import MqttEnumerator, MqttMessage, MqttReader
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.errors import ConnectorError, FailureKind, ProgramError, TypeMismatchError, short_repr

__all__ = ["MqttMessage", "MqttSink", "MqttSource"]

Text = str | Secret | Callable[[], str]

logger = logging.getLogger("firesteel.connectors")

LARGEST = 268_435_455
"""Bytes that a packet may have: MQTT can say no more."""
UNDER_WAY = 1000
"""Messages that are sent before the first one is acknowledged, where the broker does not want fewer."""
LOOK = 1.0
"""Seconds from one look at the connection to the next, while messages are not acknowledged."""


class MqttSource(Source[Logged, MqttMessage]):
    """Messages of topics, each exactly once with quality 1: they are logged before they are acknowledged, and one that
    comes again is recognised.

    ``client_id`` is the name of the session in which the broker keeps messages while the job is down: no other client
    may have it. ``topics`` may have wildcards (``home/+/temperature``, ``home/#``).

    >>> MqttSource("mqtt://localhost", ["home/#"], client_id="shop-job").create_enumerator().bounded
    False
    """

    def __init__(
        self,
        url: str,
        topics: Sequence[str],
        *,
        client_id: str,
        user_name: str | None = None,
        password: Text | None = None,
        qos: int = 1,
    ) -> None:
        """``qos=0``: what comes while the job is down is lost. A user may not have more than that to give."""
        if isinstance(topics, str) or not topics:
            raise ProgramError(f"topics must be a list of names, got {short_repr(topics, 80)}.")
        if not client_id:
            raise ProgramError("client_id must be a name: under it the broker keeps messages while the job is down.")
        if qos not in (0, 1):
            raise ProgramError(f"qos must be 0 or 1, got {qos}. With 1 each message counts once.")
        self._address = MqttAddress.of(url, user_name, password)
        self._topics, self._client_id, self._qos = list(topics), client_id, qos

    def create_enumerator(self) -> SplitEnumerator[Logged]:
        return MqttEnumerator(self._address, self._topics, self._client_id, self._qos)

    def create_reader(self) -> SourceReader[Logged, MqttMessage]:
        return MqttReader()


class MqttSink(BatchSink):
    """Publishes a message for each record, at least once: with quality 1, and a batch is done when the broker has
    acknowledged all of it. MQTT remembers nothing that exactly once could rest on.

    It speaks MQTT 5, in which a broker says which messages it refuses: they end the job. A broker that only knows MQTT
    3.1.1 acknowledges what it throws away.

    ``message`` makes a topic and a payload (text or bytes) of a record.

    >>> MqttSink("mqtt://localhost", lambda n: ("numbers", str(n))).convert(5)
    ('numbers', b'5')
    """

    def __init__(
        self,
        url: str,
        message: Callable[[Any], tuple[str, str | bytes]],
        *,
        user_name: str | None = None,
        password: Text | None = None,
        retain: bool = False,
    ) -> None:
        """``retain``: the broker keeps the last message of each topic for those who subscribe later."""
        if not callable(message):
            raise ProgramError(f"message must be a function of a record, got {short_repr(message, 80)}.")
        self._address = MqttAddress.of(url, user_name, password)
        self._message, self._retain = message, retain
        self._session: Session | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def convert(self, value: Any) -> tuple[str, bytes]:
        found = self._message(value)
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], str):
            raise TypeMismatchError(f"A message is a topic and a payload, as a pair; got {short_repr(found, 80)}.")
        topic, payload = found
        if not topic or "+" in topic or "#" in topic:
            raise TypeMismatchError(f"A message goes to one topic, without wildcards; got {topic!r}.")
        if "\0" in topic or not 0 < len(topic.encode(errors="surrogatepass")) <= 65535 or not _is_utf8(topic):
            raise TypeMismatchError(
                f"A topic is a text of at most 65,535 bytes in UTF-8, without NUL; got {short_repr(topic, 80)}."
            )
        if not isinstance(payload, str | bytes | bytearray):
            raise TypeMismatchError(f"A payload is a text or bytes; {topic!r} gets {short_repr(payload, 80)}.")
        body = payload.encode() if isinstance(payload, str) else bytes(payload)
        if _packet_size(topic, body) > LARGEST:
            raise TypeMismatchError(
                f"A message has at most {LARGEST:,} bytes with its topic; the one for {short_repr(topic, 80)} has "
                f"{len(body):,}."
            )
        return topic, body

    def write(self, batch: SinkBatch) -> None:
        session = self._opened()
        # What became of an earlier batch says nothing of this one.
        session.refused.clear()
        session.too_large = False
        self._check_sizes(session, batch.values)
        try:
            sent = [session.client.publish(topic, payload, 1, self._retain) for topic, payload in batch.values]
            # One deadline for all: message by message a broker that is gone would hold a batch for hours.
            deadline = time.monotonic() + self.retry_seconds
            for one in sent:
                while not one.is_published() and not session.too_large and (left := deadline - time.monotonic()) > 0:
                    one.wait_for_publish(min(left, LOOK))
            published = all(one.is_published() for one in sent)
        except (RuntimeError, ValueError) as error:
            self._drop()
            said = str(error).rstrip(".")
            raise ConnectorError(
                f"MQTT broker at {self._address} did not take a message: {said}.{_largest(batch.values)}"
            ) from None
        for one, (topic, payload) in zip(sent, batch.values, strict=True):
            if one.mid in session.refused:
                raise session.refusal_of(session.refused[one.mid], topic, payload)
        if not published:
            self._drop()
            if session.too_large:
                waiting = [message for one, message in zip(sent, batch.values, strict=True) if not one.is_published()]
                raise self._too_large(*max(waiting, key=lambda message: len(message[1])))
            session.check()
            raise ConnectorError(
                f"MQTT broker at {self._address} has not acknowledged all of {len(sent)} messages after "
                f"{self.retry_seconds:g} s.{_largest(batch.values)}"
            )

    def _check_sizes(self, session: Session, messages: list[tuple[str, bytes]]) -> None:
        """A broker that says how large a packet may be ends the connection at one that is larger."""
        if session.largest_packet is None:
            return
        for topic, payload in messages:
            if _packet_size(topic, payload) > session.largest_packet:
                raise self._too_large(topic, payload, f"packets of at most {session.largest_packet:,} bytes")

    def _too_large(self, topic: str, payload: bytes, limit: str = "smaller packets only") -> ConnectorError:
        return ConnectorError(
            f"MQTT broker at {self._address} takes {limit}, and a message for {short_repr(topic, 200)} has a payload "
            f"of {len(payload):,} bytes: {short_repr(payload, 80)}. Raise the broker's limit, or send less at once.",
            kind=FailureKind.PERMANENT,
        )

    def _opened(self) -> Session:
        if self._session is None:
            session = self._connected(5, UNDER_WAY)
            if session.most_under_way < UNDER_WAY:
                # The client does not look at what the broker said, and cannot be told while it is connected.
                session.close()
                session = self._connected(session.version, session.most_under_way)
            self._session = session
        return self._session

    def _connected(self, version: int, under_way: int) -> Session:
        session = Session(self._address, "", keep=False, version=version)
        session.client.max_inflight_messages_set(under_way)
        try:
            session.open()
        except ConnectorError:
            if version != 5 or not session.unsupported:
                raise
            logger.warning(
                "MQTT broker at %s does not speak MQTT 5. With MQTT 3.1.1 a message that it throws away, such as one "
                "for a topic to which the user may not write, looks like one that it took.",
                self._address,
            )
            return self._connected(4, under_way)
        return session

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def close(self) -> None:
        self._drop()


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _packet_size(topic: str, payload: bytes) -> int:
    """Of a message with quality 1: its kind and length, the topic with its own length, the number, no properties."""
    rest = 2 + len(topic.encode()) + 2 + 1 + len(payload)
    return 1 + max(1, (rest.bit_length() + 6) // 7) + rest


def _largest(messages: list[tuple[str, bytes]]) -> str:
    """For errors that may have to do with it: not every broker says why it ends a connection."""
    return f" The largest one has a payload of {max(len(payload) for _, payload in messages):,} bytes."
