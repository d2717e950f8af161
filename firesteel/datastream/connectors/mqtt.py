"""MQTT: topics as a source and as a sink."""

from __future__ import annotations

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
from firesteel.errors import ConnectorError, ProgramError, TypeMismatchError, short_repr

__all__ = ["MqttMessage", "MqttSink", "MqttSource"]

Text = str | Secret | Callable[[], str]


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
        return topic, payload.encode() if isinstance(payload, str) else bytes(payload)

    def write(self, batch: SinkBatch) -> None:
        session = self._opened()
        sent = [session.client.publish(topic, payload, 1, self._retain) for topic, payload in batch.values]
        try:
            # One deadline for all: message by message a broker that is gone would hold a batch for hours.
            deadline = time.monotonic() + self.retry_seconds
            for one in sent:
                one.wait_for_publish(max(0.0, deadline - time.monotonic()))
        except (RuntimeError, ValueError) as error:
            self._drop()
            raise ConnectorError(f"MQTT broker at {self._address} did not take a message: {error}.") from None
        if not all(one.is_published() for one in sent):
            self._drop()
            session.check()
            raise ConnectorError(
                f"MQTT broker at {self._address} has not acknowledged all of {len(sent)} messages after "
                f"{self.retry_seconds:g} s."
            )

    def _opened(self) -> Session:
        if self._session is None:
            session = Session(self._address, "", keep=False)
            # As many under way as there are: the broker's own limits count.
            session.client.max_inflight_messages_set(1000)
            session.open()
            self._session = session
        return self._session

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
