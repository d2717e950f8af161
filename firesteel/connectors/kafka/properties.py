"""The properties of Kafka's clients: written as Flink's users know them, for the Java client, read by two others."""

from __future__ import annotations

import contextlib
import functools
import re
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.secret import Secret, is_secret_key
from firesteel.errors import ConfigurationError

__all__ = ["KafkaProperties"]

Value = str | Secret

_WITHOUT_EFFECT = {
    *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
    *("max.poll.records", "max.block.ms", "auto.offset.reset", "enable.auto.commit", "register.consumer.metrics"),
    *("client.dns.lookup", "receive.buffer.bytes", "send.buffer.bytes", "buffer.memory"),
}
"""What the Java client knows, and what has no meaning here: records are serialised by the program's schemas, and where
a source begins and goes on is the job's own doing."""

_NOT_THE_CLIENTS = {
    *("partition.discovery.interval.ms", "client.id.prefix", "commit.offsets.on.checkpoint"),
    *("default.api.timeout.ms", "fail.on.data.loss"),
}
"""Flink's own options, which travel among the properties, and one that we look at ourselves."""

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}

_JAVA_KEY_STORES = ("ssl.truststore.", "ssl.keystore.")

_FOR_TRANSACTIONS = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
"""The names that kafka-python has for the same."""

_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


@dataclass(frozen=True)
class KafkaProperties:
    """Properties by name; those that hold secrets do not show.

    >>> properties = KafkaProperties().having({"bootstrap.servers": "localhost:9092", "sasl.password": "hunter2"})
    >>> properties
    KafkaProperties(bootstrap.servers='localhost:9092', sasl.password=Secret(***))
    >>> properties.client()["sasl.password"]
    'hunter2'
    """

    items: tuple[tuple[str, Value], ...] = ()

    def having(self, more: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> KafkaProperties:
        """These and others, which override those of the same name."""
        known = dict(self.items)
        for name, value in dict(more).items():
            known.update(_understood(str(name), value))
        return replace(self, items=tuple(known.items()))

    def __repr__(self) -> str:
        return f"KafkaProperties({', '.join(f'{name}={value!r}' for name, value in self.items)})"

    def get(self, name: str) -> str | None:
        """One of them, revealed."""
        value = dict(self.items).get(name)
        return value.reveal() if isinstance(value, Secret) else value

    @property
    def servers(self) -> str:
        """Where the brokers are."""
        return self.get("bootstrap.servers") or ""

    def client(self, **more: Any) -> dict[str, Any]:
        """What librdkafka is made with. The names in ``more`` have underscores for dots and win."""
        known = {name: self.get(name) for name, _ in self.items if name not in _NOT_THE_CLIENTS}
        return {**known, **{name.replace("_", "."): value for name, value in more.items()}}

    def for_transactions(self) -> dict[str, Any]:
        """What the client for transactions is made with."""
        known: dict[str, Any] = {
            ours: self.get(name) for name, ours in _FOR_TRANSACTIONS.items() if self.get(name) is not None
        }
        if "SSL" in (self.get("security.protocol") or "").upper().split("_"):
            known["ssl_context"] = self._tls()
        # By default this client waits for up to 30 s before it looks again whether a broker is back.
        soon = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 500}
        return {"bootstrap_servers": self.servers.split(","), **soon, **known}

    def _tls(self) -> ssl.SSLContext:
        """What librdkafka makes of the same properties."""
        try:
            context = ssl.create_default_context(cafile=self.get("ssl.ca.location"), cadata=self.get("ssl.ca.pem"))
            if self.get("enable.ssl.certificate.verification") == "false":
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            elif self.get("ssl.endpoint.identification.algorithm") in ("", "none"):
                context.check_hostname = False
            with self._certificate() as (certificate, key):
                if certificate is not None:
                    password = self.get("ssl.key.password")
                    # Without one it would ask at the terminal.
                    context.load_cert_chain(certificate, key, lambda: password or "")
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"The certificates for Kafka at {self.servers} cannot be used: {self.mask(str(error))}. Check "
                "ssl.ca.location, ssl.certificate.location, ssl.key.location and ssl.key.password."
            ) from None
        return context

    @contextlib.contextmanager
    def _certificate(self) -> Iterator[tuple[str | None, str | None]]:
        """The files with the client's certificate and key. Where those are given as texts they are files of this
        user's alone, for as long as they are read."""
        given = [(self.get(f"ssl.{what}.location"), self.get(f"ssl.{what}.pem")) for what in ("certificate", "key")]
        with contextlib.ExitStack() as files:
            paths = []
            for path, text in given:
                if path is None and text is not None:
                    file = files.enter_context(tempfile.NamedTemporaryFile("w", suffix=".pem"))
                    file.write(text)
                    file.flush()
                    path = file.name
                paths.append(path)
            yield paths[0], paths[1]

    def mask(self, text: str) -> str:
        """A text of anybody's in which no secret stands."""
        for _, value in self.items:
            text = value.mask(text) if isinstance(value, Secret) else text
        return text


def _understood(name: str, value: Any) -> dict[str, Value]:
    """A property as the clients here know it."""
    if name in _WITHOUT_EFFECT:
        return {}
    if name == "sasl.jaas.config":
        return _login(value)
    if name.startswith(_JAVA_KEY_STORES):
        raise ConfigurationError(
            f"The property {name!r} names a key store of Java's, which is not read here. Name files of the PEM format "
            "instead: ssl.ca.location, ssl.certificate.location, ssl.key.location and ssl.key.password."
        )
    name = _RENAMED.get(name, name)
    if isinstance(value, Secret) or callable(value) or is_secret_key(name):
        return {name: Secret.of(value)}
    if isinstance(value, bool):
        return {name: str(value).lower()}
    return {name: str(value)}


def _login(config: Any) -> dict[str, Value]:
    """The user and the password of a line that the Java client reads.

    >>> _login('org.apache…PlainLoginModule required username="ada" password="hunter2";')
    {'sasl.username': 'ada', 'sasl.password': Secret(***)}
    """
    if isinstance(config, str):
        return {"sasl.username": _of_login(config, "username"), "sasl.password": Secret(_of_login(config, "password"))}
    # It says where to look: that is done where it is used.
    secret = Secret.of(config)
    return {
        f"sasl.{part}": Secret.from_call(functools.partial(_of_secret_login, secret, part))
        for part in ("username", "password")
    }


def _of_secret_login(config: Secret, part: str) -> str:
    return _of_login(config.reveal(), part)


def _of_login(text: str, part: str) -> str:
    found = {name: re.sub(r"\\(.)", r"\1", double or single) for name, double, single in _LOGIN.findall(text)}
    if part not in found:
        raise ConfigurationError(
            "The property 'sasl.jaas.config' has no username and password in it. Set sasl.mechanism, sasl.username and "
            "sasl.password instead."
        )
    return found[part]
