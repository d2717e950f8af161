"""Where a Redis is, and its errors reported with what to do."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from firesteel.common.secret import Secret
from firesteel.connectors.jdbc.address import has_password, shown
from firesteel.errors import BackPressureError, ConnectorError, FailureKind, ProgramError, SetupError, short_repr

__all__ = ["Client", "RedisAddress", "load_client"]

_PASSING = (
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "MISCONF",
    "NOREPLICAS",
    "UNBLOCKED",
)
"""How answers begin of a server that may give another one later."""

_ADVICE = {
    "WRONGPASS": "Check the user name and the password.",
    "NOAUTH": "The server wants a password.",
    "NOPERM": "Grant the user the right to do it (ACL SETUSER).",
    "WRONGTYPE": "The key holds a value of another kind.",
    "MISCONF": "Redis cannot save to its disk.",
    "READONLY": "This is a replica.",
}

Result = TypeVar("Result")


def load_client() -> Any:
    """The module ``redis``."""
    try:
        return importlib.import_module("redis")
    except ImportError as error:
        raise SetupError(
            f"Redis needs the package redis, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[redis]'."
        ) from None


@dataclass(frozen=True)
class RedisAddress:
    """A server and who asks. Its text never has the password.

    >>> RedisAddress.of("redis://ada:secret@db:6380/1")
    RedisAddress(redis://db:6380/1)
    """

    url: str | Secret = field(repr=False)
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)

    @staticmethod
    def of(
        url: str | Secret | Callable[[], str],
        user: str | None = None,
        password: str | Secret | Callable[[], str] | None = None,
    ) -> RedisAddress:
        load_client()
        if isinstance(url, str) and not url.startswith(("redis://", "rediss://", "unix://")):
            kind = url.partition("://")[0].rpartition("@")[2]
            raise ProgramError(f"A Redis is addressed as redis://host:port/number, got one that starts with {kind!r}.")
        if isinstance(url, str) and not _has_valid_port(url):
            # Not with the address itself, in which a password may stand.
            raise ProgramError(
                "A Redis is addressed as redis://host:port/number; its port is not a number up to 65535."
            )
        hidden = url if isinstance(url, str) and not has_password(url) else Secret.of(url)
        return RedisAddress(hidden, user, Secret.of(password) if password is not None else None)

    def __str__(self) -> str:
        if isinstance(self.url, str):
            return shown(self.url)
        return repr(self.url) if self.url.is_reference else shown(self.url.reveal())

    def __repr__(self) -> str:
        return f"RedisAddress({self})"

    def connect(self) -> Any:
        """A client. Secrets are looked up now: in the process that connects."""
        given: dict[str, Any] = {"socket_connect_timeout": 10, "socket_timeout": 60}
        if self.user:
            given["username"] = self.user
        if self.password is not None:
            given["password"] = self.password.reveal()
        url = self.url if isinstance(self.url, str) else self.url.reveal()
        return load_client().Redis.from_url(url, **given)

    def without_password(self, text: str) -> str:
        for secret in (self.url, self.password):
            if isinstance(secret, Secret):
                text = secret.mask(text)
        return text


def _has_valid_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


class Client:
    """A connection that is made when it is first needed."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def get(self) -> Any:
        if self._client is None:
            self._client = self.address.connect()
        return self._client

    def run(self, action: Callable[[Any], Result], doing: str) -> Result:
        """Does something; what the client raises becomes a ConnectorError."""
        try:
            return action(self.get())
        except load_client().RedisError as error:
            raise self.as_connector_error(error, doing) from None

    def as_connector_error(self, error: Exception, doing: str, element: object = None) -> ConnectorError:
        """An error of the client's: where, what was tried, what the server said, what to do."""
        errors = load_client().exceptions
        said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if (untrusted := _untrusted(error)) is not None:
            what = f"Redis at {self.address} has a certificate that is not trusted: {untrusted.verify_message}."
            advice = "Check the address, and that this machine knows who signed the certificate."
            return ConnectorError(self.address.without_password(f"{what} {advice}"), kind=FailureKind.PERMANENT)
        refused = isinstance(error, errors.AuthenticationError | errors.AuthorizationError)
        away = isinstance(error, errors.ConnectionError | errors.TimeoutError) and not refused
        loading = isinstance(error, errors.BusyLoadingError)
        full = isinstance(error, errors.OutOfMemoryError) or said.startswith("OOM")
        what = f"Redis at {self.address} {'cannot be reached' if away and not loading else 'refused'} "
        what += f"({doing}): {said}." if away and not loading else f"{doing}: {said}."
        if element is not None:
            what += f" The command is {short_repr(element, 200)}."
        code = said.split(" ", 1)[0]
        advice = _ADVICE.get(code, "")
        if isinstance(error, errors.AskError):
            # MOVED is one, too. The client has cut off the word.
            advice = "It is a node of a Redis Cluster, of which a source or sink reaches no other one."
        elif refused:
            advice = _ADVICE["WRONGPASS"]
        elif isinstance(error, errors.NoPermissionError):
            advice = _ADVICE["NOPERM"]
        elif away and not loading:
            advice = "Check that it runs there."
        text = self.address.without_password(f"{what} {advice}".rstrip())
        if full:
            return BackPressureError(text, retry_after=1.0)
        # What was watched was changed, or the connection was lost meanwhile: whoever tries again sees which it was.
        again = isinstance(error, errors.ReadOnlyError | errors.TryAgainError | errors.WatchError)
        passing = away or loading or again or code in _PASSING
        return ConnectorError(text, kind=FailureKind.PASSING if passing else FailureKind.PERMANENT)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What is wrong with the server's certificate, if that is behind an error of the client's."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error
