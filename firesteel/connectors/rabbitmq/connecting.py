"""Where a RabbitMQ is, and its refusals reported with what to do."""

from __future__ import annotations

import importlib
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from firesteel.common.secret import Secret
from firesteel.errors import ConnectorError, FailureKind, ProgramError, SetupError

__all__ = ["AnyRabbitAddress", "RabbitAddress", "RabbitReference", "as_connector_error", "load_client", "size_refused"]

CONNECT_SECONDS = 10.0
Result = TypeVar("Result")


def load_client() -> Any:
    """The module ``pika``."""
    try:
        return importlib.import_module("pika")
    except ImportError as error:
        raise SetupError(
            f"RabbitMQ needs the package pika, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[rabbitmq]'."
        ) from None


@dataclass(frozen=True)
class RabbitAddress:
    """A broker and who asks. Its text never has the password.

    >>> RabbitAddress.of_uri("amqp://ada:secret@broker/shop")
    RabbitAddress(host='broker', port=5672, virtual_host='shop', tls=False)
    """

    host: str
    port: int = 5672
    virtual_host: str = "/"
    tls: bool = False
    user: str = field(default="guest", repr=False)
    password: Secret = field(default=Secret("guest"), repr=False)
    heartbeat: int | None = field(default=None, repr=False)
    frame_max: int | None = field(default=None, repr=False)
    channel_max: int | None = field(default=None, repr=False)
    connection_timeout: float = field(default=CONNECT_SECONDS, repr=False)

    @staticmethod
    def of_uri(uri: str) -> RabbitAddress:
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            # Not with the address itself, in which a password may stand.
            raise ProgramError("A RabbitMQ is addressed as amqp://user:password@host:port/virtual-host, or amqps://….")
        tls = parts.scheme == "amqps"
        return RabbitAddress(
            parts.hostname,
            port or (5671 if tls else 5672),
            unquote(parts.path[1:]) if len(parts.path) > 1 else "/",
            tls,
            unquote(parts.username) if parts.username else "guest",
            Secret(unquote(parts.password) if parts.password else "guest"),
        )

    def resolve(self) -> RabbitAddress:
        """The address itself, where this may be only a reference to it."""
        return self

    def __str__(self) -> str:
        return f"{self.host}:{self.port}{'' if self.virtual_host == '/' else '/' + self.virtual_host}"

    def parameters(self) -> Any:
        """What the client connects with. Secrets are looked up now: in the process that connects."""
        pika = load_client()
        given: dict[str, Any] = {"heartbeat": self.heartbeat, "frame_max": self.frame_max}
        given["channel_max"] = self.channel_max
        if self.tls:
            given["ssl_options"] = pika.SSLOptions(ssl.create_default_context(), self.host)
        return pika.ConnectionParameters(
            self.host,
            self.port,
            self.virtual_host,
            pika.PlainCredentials(self.user, self.password.reveal()),
            socket_timeout=self.connection_timeout,
            blocked_connection_timeout=60,
            **{key: value for key, value in given.items() if value is not None},
        )

    def connect(self) -> Any:
        """A connection, by the thread that will use it."""
        pika = load_client()
        return self.run(lambda: pika.BlockingConnection(self.parameters()), "the connection")

    def run(self, action: Callable[[], Result], doing: str) -> Result:
        """Does something; what the client raises becomes a ConnectorError."""
        try:
            return action()
        except (load_client().exceptions.AMQPError, OSError) as error:
            raise as_connector_error(self, error, doing) from None


@dataclass(frozen=True)
class RabbitReference:
    """An address that is looked up where it is used, each time anew: neither it nor its parts travel with a job.

    >>> import os
    >>> os.environ["SHOP_BROKER"] = "amqp://ada:secret@broker/shop"
    >>> address = RabbitReference(Secret.from_environment("SHOP_BROKER"), {"heartbeat": 10})
    >>> address, str(address)
    (RabbitReference(uri=Secret(environment variable 'SHOP_BROKER')), 'broker:5672/shop')
    >>> address.resolve().password.reveal(), address.resolve().heartbeat
    ('secret', 10)
    """

    uri: Secret
    changes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What was set besides, by the names of :class:`RabbitAddress`."""

    def resolve(self) -> RabbitAddress:
        return replace(RabbitAddress.of_uri(self.uri.reveal()), **self.changes)

    def __str__(self) -> str:
        return str(self.resolve())

    def connect(self) -> Any:
        return self.resolve().connect()


AnyRabbitAddress = RabbitAddress | RabbitReference

_ADVICE = {
    403: "Grant the user the rights to it (rabbitmqctl set_permissions).",
    404: "Declare it first.",
    405: "Another connection has it for itself.",
    406: "It was declared with other properties.",
    530: "Check the virtual host and the user's rights to it.",
}
"""What to do about answers that the broker will give again."""
_PASSING = re.compile(
    r"home node .* is down|is down or inaccessible|vhost '.*' is down|limit \(\d+\) is reached|due to timeout"
    r"|acknowledgement on channel \d+ timed out|process is stopped"
)
"""How the same answers read where the broker will give another one later."""
_TOO_LARGE = re.compile(r"message size (\d+) is larger")
_WHILE_CONNECTING = re.compile(r"""ConnectionClosedByBroker: \((\d+)\) (['"])(.*)\2""", re.DOTALL)


def as_connector_error(address: AnyRabbitAddress, error: BaseException, doing: str) -> ConnectorError:
    """An error of the client's: where, what was tried, what the broker said, what to do."""
    error = _innermost(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectorError(
            f"RabbitMQ at {address} has a certificate that is not trusted: {error.verify_message}. Check the address, "
            "and that this machine knows who signed the certificate.",
            kind=FailureKind.PERMANENT,
        )
    code, said, connecting = _answer(error)
    if not code:
        return ConnectorError(f"RabbitMQ at {address} cannot be reached ({doing}): {said}. Check that it runs there.")
    if code not in _ADVICE:
        return ConnectorError(f"RabbitMQ at {address} closed the connection ({doing}): {said}.")
    if connecting:
        doing = "the connection"
    if _PASSING.search(said):
        return ConnectorError(f"RabbitMQ at {address} refused {doing}: {said}.")
    if connecting:
        advice = "Check the user name, the password, the virtual host and the user's rights to it."
    elif _TOO_LARGE.search(said):
        advice = "Raise the broker's max_message_size, or send less at once."
    elif "x-stream-offset" in said:
        advice = "It is a queue, not a stream: read it with RMQSource."
    else:
        advice = _ADVICE[code] if code != 406 or "inequivalent" in said else ""
    text = f"RabbitMQ at {address} refused {doing}: {said}. {advice}"
    return ConnectorError(text.rstrip(), kind=FailureKind.PERMANENT)


def size_refused(error: ConnectorError) -> int | None:
    """How many bytes the message has that the broker found too large, if that is what the error is about."""
    found = _TOO_LARGE.search(str(error))
    return int(found[1]) if found else None


def _answer(error: BaseException) -> tuple[int, str, bool]:
    """The broker's code and text, and whether it said so before there was a connection. Without a code the connection
    was not made or was lost."""
    errors = load_client().exceptions
    guessed = (errors.ProbableAuthenticationError, errors.ProbableAccessDeniedError, errors.IncompatibleProtocolError)
    if isinstance(error, guessed):
        # The client guesses why a connection ended so early, from when it did: also where the broker was killed. What
        # happened stands in the text.
        inner = str(error.args[0]) if error.args else ""
        found = _WHILE_CONNECTING.search(inner)
        return (int(found[1]), _line(found[3]), True) if found else (0, _line(inner) or type(error).__name__, True)
    if isinstance(error, errors.AuthenticationError):
        return 403, _text(error), True
    code, said = getattr(error, "reply_code", 0), str(getattr(error, "reply_text", "") or "")
    connecting = code == 530 and isinstance(error, errors.ConnectionClosed)
    return code, _line(said) or _text(error), connecting


def _innermost(error: BaseException) -> BaseException:
    """What happened, inside the client's own errors, some of which have no text."""
    while True:
        inner = getattr(error, "exceptions", None)
        # Where several addresses were tried the last one says as much as the others.
        found = inner[-1] if inner else getattr(error, "exception", None)
        if not isinstance(found, BaseException):
            found = error.args[0] if error.args else None
        if not isinstance(found, BaseException):
            return error
        error = found


def _text(error: BaseException) -> str:
    return _line(str(error)) or type(error).__name__


def _line(text: str) -> str:
    return " ".join(text.split()).rstrip(". ")
