"""Where a broker of MQTT is, and its refusals reported with what to do."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from firesteel.common.secret import Secret
from firesteel.errors import ConnectorError, FailureKind, ProgramError, SetupError

__all__ = ["MqttAddress", "Session", "load_client"]

CONNECT_SECONDS = 10.0

logger = logging.getLogger("firesteel.connectors")

_REFUSED = ("bad user name or password", "not authorized", "client identifier not valid", "unacceptable protocol")
"""What a broker says to a connection that it will not allow the next time either."""


def load_client() -> Any:
    """The module ``paho.mqtt.client``."""
    try:
        return importlib.import_module("paho.mqtt.client")
    except ImportError as error:
        raise SetupError(
            f"MQTT needs the package paho-mqtt, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[mqtt]'."
        ) from None


@dataclass(frozen=True)
class MqttAddress:
    """A broker and who asks. Its text never has the password.

    >>> MqttAddress.of("mqtt://broker:1884"), str(MqttAddress.of("mqtts://broker"))
    (MqttAddress(host='broker', port=1884, tls=False), 'broker:8883')
    """

    host: str
    port: int
    tls: bool
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)

    @staticmethod
    def of(url: str, user: str | None = None, password: str | Secret | Callable[[], str] | None = None) -> MqttAddress:
        load_client()
        try:
            parts = urlsplit(url)
            port, tls = parts.port, parts.scheme == "mqtts"
        except ValueError:
            parts, port, tls = urlsplit(""), None, False
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.username or parts.password:
            # Not with the address itself, in which a password may stand.
            raise ProgramError(
                "A broker is addressed as mqtt://host:port or mqtts://host:port; user name and password are arguments "
                "of their own."
            )
        hidden = Secret.of(password) if password is not None else None
        return MqttAddress(parts.hostname, port or (8883 if tls else 1883), tls, user, hidden)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Session:
    """A connection that is made anew by itself after it broke. It has a thread of its own, the client's."""

    def __init__(self, address: MqttAddress, client_id: str, keep: bool) -> None:
        """``keep``: whether the broker keeps what comes for this id while nobody is connected."""
        paho = load_client()
        self._address = address
        self._connected = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._not_subscribed = ""
        self._closing = False
        self._on_connected: Callable[[], None] = lambda: None
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id,
            clean_session=not keep,
            manual_ack=keep,
            reconnect_on_failure=True,
        )
        self.client.reconnect_delay_set(1, 10)
        if address.user is not None or address.password is not None:
            self.client.username_pw_set(address.user, address.password.reveal() if address.password else None)
        if address.tls:
            self.client.tls_set()
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_subscribe = self._on_subscribe

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self._connected.is_set() and not self._closing:
            logger.warning("MQTT broker at %s has gone: %s. It is connected to again.", self._address, reason)
        self._connected.clear()

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        self._not_subscribed = next((str(reason) for reason in reasons if reason.is_failure), "")

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = str(reason)
        else:
            self._refusal = ""
            self._on_connected()
            self._connected.set()
        self._answered.set()

    def open(self, on_connected: Callable[[], None] = lambda: None) -> None:
        """Connects, and waits for the broker's answer. ``on_connected`` is called after each connection."""
        self._on_connected = on_connected
        try:
            self.client.connect(self._address.host, self._address.port, keepalive=30)
        except OSError as error:
            raise ConnectorError(
                f"MQTT broker at {self._address} cannot be reached: {error}. Check that it runs there."
            ) from None
        self.client.loop_start()
        if not self._answered.wait(CONNECT_SECONDS) or not self._connected.is_set():
            self.close()
            self.check()
            raise ConnectorError(f"MQTT broker at {self._address} does not answer.")

    def check(self) -> None:
        """Raises what the broker said to a connection, if it has refused it."""
        if self._refusal:
            final = self._refusal.lower().startswith(_REFUSED)
            advice = " Check the user name, the password and their rights." if final else ""
            raise ConnectorError(
                f"MQTT broker at {self._address} refused the connection: {self._refusal}.{advice}",
                kind=FailureKind.PERMANENT if final else FailureKind.PASSING,
            )
        if self._not_subscribed:
            raise ConnectorError(
                f"MQTT broker at {self._address} refused a subscription: {self._not_subscribed}. Grant the user the "
                "right to read all of the topics.",
                kind=FailureKind.PERMANENT,
            )

    def close(self) -> None:
        self._closing = True
        self.client.disconnect()
        self.client.loop_stop()
