"""Which messages of MQTT come again, with brokers that number them in other ways than the one of the tests."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.connectors.mqtt import receiving
from firesteel.connectors.mqtt.connecting import MqttAddress, Session
from firesteel.connectors.mqtt.receiving import NO_TOPIC, REMEMBERED, KnownMessages, MqttEnumerator

ADDRESS = MqttAddress.of("mqtt://broker")


class Broker:
    """Does a script: a message (number, payload, whether it is sent again), whether a session is there at a connection,
    or an answer to the last question."""

    def __init__(self, *script: Any) -> None:
        self.script, self.questions, self.acknowledged = script, 0, []
        self.kept: list[str] = []
        self.client = SimpleNamespace(subscribe=lambda topics: None, ack=lambda mid, qos: self.acknowledged.append(mid))
        self.client.unsubscribe = self._asked

    def _asked(self, topic: str) -> tuple[int, int]:
        assert topic == NO_TOPIC
        self.questions += 1
        return 0, 1000 + self.questions

    def receive(self, cursor: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        stopping, enumerator = threading.Event(), MqttEnumerator(ADDRESS, ["t"], "x", 1)
        log, script = SimpleNamespace(cursor=cursor), iter(self.script)

        def keep(records: list[Any], cursor: Any) -> bool:
            self.kept += [payload.decode() for _, payload, _ in records]
            log.cursor = cursor
            return True

        def waiting(arrived: Any) -> list[Any]:
            """One thing at a time."""
            step = next(script, None)
            if step is None:
                stopping.set()
            elif isinstance(step, bool):
                begin(step)
            elif step == "answered":
                self.client.on_unsubscribe(None, None, 1000 + self.questions, [], None)
            else:
                mid, payload, dup = step
                message = SimpleNamespace(mid=mid, topic="t", payload=payload.encode(), qos=1, dup=dup, retain=False)
                self.client.on_message(None, None, message)
            return [arrived.get_nowait() for _ in range(arrived.qsize())]

        def opened(on_connected: Any) -> None:
            nonlocal begin
            begin = on_connected

        begin: Any = None
        session = SimpleNamespace(client=self.client, open=opened, check=lambda: None, close=lambda: None)
        monkeypatch.setattr(receiving, "Session", lambda *given, **options: session)
        monkeypatch.setattr(receiving, "_waiting", waiting)
        monkeypatch.setattr(enumerator, "keep", keep)
        enumerator.receive(log, stopping)  # type: ignore[arg-type]
        return log.cursor


def test_a_message_that_comes_again_is_known_also_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(True, (1, "a", False), (2, "b", False), True, (1, "a", True), (2, "b", True), (3, "c", False))
    cursor = broker.receive(None, monkeypatch)
    assert broker.kept == ["a", "b", "c"]
    assert broker.acknowledged == [1, 2, 1, 2, 3]
    assert broker.questions == 0, "this broker counts on"
    again = Broker(True, (2, "b", True), (3, "c", True), (4, "c", True))
    again.receive(cursor, monkeypatch)
    assert again.kept == ["c"]


def test_a_number_that_comes_again_soon_with_the_same_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that takes the lowest number that is free, and whose third message gets lost on its way at first."""
    lost = (1, "21.5", True)
    broker = Broker(True, (1, "21.5", False), (1, "21.5", False), "answered", True, lost)
    broker.receive(None, monkeypatch)
    assert broker.kept == ["21.5"] * 3
    # Without an answer the acknowledgement may be what was lost.
    broker = Broker(True, (1, "21.5", False), (1, "21.5", False), True, lost, "answered", True, lost)
    broker.receive(None, monkeypatch)
    assert broker.kept == ["21.5"] * 3


def test_an_answer_says_nothing_of_what_came_after_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(True, (1, "a", False), (1, "a", False))
    original = broker._asked

    def asked_and_overtaken(topic: str) -> tuple[int, int]:
        mid = original(topic)
        if broker.questions == 1:
            # The next message comes before the answer to the question.
            message = SimpleNamespace(mid=1, topic="t", payload=b"a", qos=1, dup=False, retain=False)
            broker.client.on_message(None, None, message)
            broker.client.on_unsubscribe(None, None, mid[1], [], None)
            message = SimpleNamespace(mid=1, topic="t", payload=b"a", qos=1, dup=True, retain=False)
            broker.client.on_message(None, None, message)
        return mid

    broker.client.unsubscribe = asked_and_overtaken
    broker.script = (*broker.script, (2, "b", False))
    broker.receive(None, monkeypatch)
    assert broker.kept == ["a", "a", "a", "b"]


def test_what_is_remembered_ends_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(True, (1, "a", False), False, (1, "a", True))
    broker.receive(None, monkeypatch)
    assert broker.kept == ["a", "a"]


def test_so_many_are_remembered() -> None:
    known = KnownMessages()
    for number in range(REMEMBERED + 1):
        known.add([number, 7])
    assert len(known.all()) == REMEMBERED
    assert not known.has([0, 7])
    assert known.has([1, 7])


def test_a_session_that_was_lost_is_told(caplog: pytest.LogCaptureFixture) -> None:
    good = SimpleNamespace(is_failure=False)

    def connected(session: Session, present: bool) -> list[str]:
        caplog.clear()
        session._on_connect(None, None, SimpleNamespace(session_present=present), good, None)
        return [record.getMessage() for record in caplog.records if record.name == "firesteel.connectors"]

    with caplog.at_level(logging.WARNING):
        session = Session(ADDRESS, "x", keep=True)
        assert connected(session, False) == []
        assert connected(session, True) == []
        assert connected(session, False) == [
            "MQTT broker at broker:1883 does not know the session of this client any more: what was published while it "
            "was not connected is lost, unless publishers send it again."
        ]
        assert connected(Session(ADDRESS, "x", keep=True, expected=True), False)
        assert not connected(Session(ADDRESS, "x", keep=True, expected=True), True)
        assert not connected(Session(ADDRESS, "", keep=False, expected=True), False)
