"""Where a broker of MQTT is, and its refusals reported with what to do."""

from __future__ import annotations

import importlib
import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from firesteel.common.secret import Secret
from firesteel.errors import ConnectorError, FailureKind, ProgramError, SetupError, short_repr

__all__ = ["MqttAddress", "Session", "load_client"]

CONNECT_SECONDS = 10.0

logger = logging.getLogger("firesteel.connectors")

_REFUSED = (
    *("bad user name or password", "not authorized", "client identifier not valid", "unsupported protocol"),
    *("banned", "bad authentication method", "use another server", "server moved"),
)
"""What a broker says to a connection that it will not allow the next time either."""
_UNSUPPORTED_VERSION = 0x84
_TOO_LARGE = 0x95
_PASSING_REASONS = (0x91, 0x93, 0x97)
"""What a broker says of a message that it may take later: its number is in use, too many are under way, a quota."""
_MOST_UNDER_WAY = 65535
"""Of what MQTT can number."""


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

    def __init__(
        self, address: MqttAddress, client_id: str, keep: bool, *, version: int = 4, expected: bool = False
    ) -> None:
        """``keep``: whether the broker keeps what comes for this id while nobody is connected. ``version`` is that of
        the protocol: 4 is MQTT 3.1.1. ``expected``: whether the broker should have this id's session by now."""
        paho = load_client()
        self._address = address
        self._connected = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._not_subscribed = ""
        self._closing = False
        self._expected = expected
        self._on_connected: Callable[[bool], None] = lambda present: None
        self.version = version
        self.unsupported = False
        """Whether the broker has refused the protocol's version."""
        self.most_under_way = _MOST_UNDER_WAY
        """How many messages the broker takes before it has acknowledged the first one."""
        self.largest_packet: int | None = None
        """How many bytes a packet may have; None where the broker does not say it."""
        self.too_large = False
        """Whether the broker has ended the connection because of a packet's size."""
        self.refused: dict[int, Any] = {}
        """Why the broker did not take messages, by their packet numbers."""
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id,
            # The fifth version asks it with each connection.
            clean_session=None if version == 5 else not keep,
            protocol=version,
            manual_ack=keep,
            reconnect_on_failure=True,
        )
        self.client.reconnect_delay_set(1, 10)
        if address.user is not None or address.password is not None:
            self.client.username_pw_set(address.user, address.password.reveal() if address.password else None)
        if address.tls:
            self.client.tls_set()
        self._keep = keep
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_subscribe = self._on_subscribe
        self.client.on_publish = self._on_publish

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if getattr(reason, "value", None) == _TOO_LARGE:
            self.too_large = True
        if self._connected.is_set() and not self._closing:
            logger.warning("MQTT broker at %s has gone: %s. It is connected to again.", self._address, reason)
        self._connected.clear()

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        self._not_subscribed = next((str(reason) for reason in reasons if reason.is_failure), "")

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.refused[mid] = reason

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = str(reason)
            self.unsupported = reason.value == _UNSUPPORTED_VERSION
        else:
            self._refusal = ""
            self.most_under_way = getattr(properties, "ReceiveMaximum", _MOST_UNDER_WAY)
            self.largest_packet = getattr(properties, "MaximumPacketSize", None)
            if self._keep and self._expected and not flags.session_present:
                logger.warning(
                    "MQTT broker at %s does not know the session of this client any more: what was published while it "
                    "was not connected is lost, unless publishers send it again.",
                    self._address,
                )
            self._expected = True
            self._on_connected(flags.session_present)
            self._connected.set()
        self._answered.set()

    def open(self, on_connected: Callable[[bool], None] = lambda present: None) -> None:
        """Connects, and waits for the broker's answer. ``on_connected`` is called after each connection, with whether
        the broker still had the session."""
        self._on_connected = on_connected
        # What was answered to an attempt before says nothing of this one.
        self._answered.clear()
        self._connected.clear()
        self._refusal, self._closing = "", False
        given = {"clean_start": not self._keep} if self.version == 5 else {}
        try:
            self.client.connect(self._address.host, self._address.port, keepalive=30, **given)
        except ssl.SSLCertVerificationError as error:
            raise ConnectorError(
                f"MQTT broker at {self._address} has a certificate that is not trusted: {error.verify_message}. Check "
                "the address, and that this machine knows who signed the certificate.",
                kind=FailureKind.PERMANENT,
            ) from None
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

    def refusal_of(self, reason: Any, topic: str, payload: bytes) -> ConnectorError:
        """A message that the broker did not take."""
        advice = " Grant the user the right to write to the topic." if "authorized" in str(reason).lower() else ""
        return ConnectorError(
            f"MQTT broker at {self._address} refused a message of {len(payload)} bytes for {short_repr(topic, 200)}: "
            f"{reason}.{advice} The message is {short_repr(payload, 200)}.",
            kind=FailureKind.PASSING if reason.value in _PASSING_REASONS else FailureKind.PERMANENT,
        )

    def close(self) -> None:
        self._closing = True
        self.client.disconnect()
        self.client.loop_stop()
