"""A real broker of MQTT for the tests: one for all of them, topics of their own for each."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from mosquitto_server import PASSWORD, USER, MosquittoServer, why_not

__all__ = ["Mqtt", "mosquitto_server", "mqtt"]


class Mqtt:
    """The broker as a test sees it."""

    user, password = USER, PASSWORD

    def __init__(self, server: MosquittoServer) -> None:
        self.server, self.url = server, server.url
        self.topic = f"t{uuid.uuid4().hex[:10]}"

    def client(self) -> Any:
        import paho.mqtt.client as paho

        made = paho.Client(paho.CallbackAPIVersion.VERSION2)
        made.username_pw_set(USER, PASSWORD)
        made.connect("127.0.0.1", self.server.port)
        made.loop_start()
        return made

    def publish(self, payloads: Iterable[Any], topic: str = "") -> None:
        made = self.client()
        for sent in [made.publish(topic or self.topic, str(payload), 1) for payload in payloads]:
            sent.wait_for_publish(30)
        made.disconnect()
        made.loop_stop()

    def collected(self) -> tuple[list[str], Any]:
        """A list to which all payloads of the topic come from now on, and the client that fetches them."""
        found: list[str] = []
        there = threading.Event()
        made = self.client()
        made.on_message = lambda client, userdata, message: found.append(message.payload.decode())
        made.on_subscribe = lambda *given: there.set()
        made.subscribe(self.topic, 1)
        assert there.wait(120)
        return found, made


@pytest.fixture(scope="session")
def mosquitto_server() -> Iterator[MosquittoServer]:
    """The broker, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with mosquitto: {missing}")
        pytest.skip(f"no mosquitto to test with: {missing}")
    with MosquittoServer() as server:
        yield server


@pytest.fixture
def mqtt(mosquitto_server: MosquittoServer) -> Mqtt:
    return Mqtt(mosquitto_server)
