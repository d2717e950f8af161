"""A client for schema registries with Confluent's API: two calls, and a cache."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import tenacity

from firesteel.common.secret import Secret
from firesteel.errors import ConfigurationError, ConnectorError, FailureKind, InputError

__all__ = ["RegisteredSchema", "SchemaRegistry"]

_SECONDS = 30.0
_ATTEMPTS = 4
_CONTENT = "application/vnd.schemaregistry.v1+json"
_KNOWN = (
    "basic.auth.credentials.source",
    "basic.auth.user.info",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "ssl.ca.location",
    "auto.register.schemas",
    "request.timeout.ms",
)

RegisteredSchema = tuple[str, list[str]]
"""The text of a schema, and before it those of the schemas that it refers to."""


class SchemaRegistry:
    """Where schemas have numbers.

    Properties are those of Confluent's client, also with ``schema.registry.`` before them. A secret among them may be
    a :class:`~firesteel.common.secret.Secret`.
    """

    def __init__(self, url: str, properties: Mapping[str, Any] | None = None) -> None:
        self._properties = {_name(key): value for key, value in (properties or {}).items()}
        for key in ("basic.auth.user.info", "bearer.auth.token"):
            if key in self._properties:
                self._properties[key] = Secret.of(self._properties[key])
        self._addresses = [self._without_user(part.strip()) for part in url.split(",")]
        self.registers = _is_true(self._properties.get("auto.register.schemas", True))
        self._seconds = float(self._properties.get("request.timeout.ms", _SECONDS * 1000)) / 1000

    def _without_user(self, address: str) -> str:
        """An address without what must not be shown. ``http://user:password@host`` is an account, too."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"A schema registry address looks like 'http://localhost:8081', got {_shown(address)!r}."
            )
        if "@" in parts.netloc:
            account, _, place = parts.netloc.rpartition("@")
            self._properties.setdefault("basic.auth.user.info", Secret(unquote(account)))
            parts = parts._replace(netloc=place)
        return urlunsplit(parts).rstrip("/")

    def __repr__(self) -> str:
        return f"SchemaRegistry({', '.join(self._addresses)})"

    def by_id(self, number: int) -> RegisteredSchema:
        """The schema with that number."""
        answer = self._ask("GET", f"/schemas/ids/{number}", None, f"get the schema {number}")
        return self._schema(answer, f"The schema {number}")

    def _schema(self, answer: Any, what: str) -> RegisteredSchema:
        if answer.get("schemaType", "AVRO") != "AVRO":
            raise InputError(
                f"{what} of the registry at {self._addresses[0]} is of {answer['schemaType']}, not of Avro."
            )
        referred: list[str] = []
        for reference in answer.get("references") or ():
            subject, version = reference["subject"], reference["version"]
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            found = self._ask("GET", path, None, f"get version {version} of {subject!r}")
            text, before = self._schema(found, f"Version {version} of {subject!r}")
            referred += [*before, text]
        return answer["schema"], referred

    def id_of(self, subject: str, schema: str) -> int:
        """The number of a schema under a subject, where it is registered unless ``auto.register.schemas`` is false."""
        path = f"/subjects/{quote(subject, safe='')}{'/versions' if self.registers else ''}"
        doing = f"{'register' if self.registers else 'find'} a schema for the subject {subject!r}"
        return int(self._ask("POST", path, {"schema": schema}, doing)["id"])

    def _ask(self, method: str, path: str, content: Any, doing: str) -> Any:
        """What the registry answers. It is asked again where that may help."""
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=tenacity.wait_exponential(multiplier=0.1, max=2),
            retry=tenacity.retry_if_exception(_may_pass),
            reraise=True,
        )
        return retrying(self._ask_each, method, path, content, doing)

    def _ask_each(self, method: str, path: str, content: Any, doing: str) -> Any:
        for place, address in enumerate(self._addresses):
            try:
                return self._request(method, address, path, content)
            except urllib.error.HTTPError as error:
                raise self._refusal(error, address, doing) from None
            except (OSError, ValueError) as error:
                if place == len(self._addresses) - 1:
                    reason = getattr(error, "reason", None) or error
                    raise ConnectorError(
                        f"The schema registry at {address} cannot be reached to {doing}: {self._masked(str(reason))}. "
                        "Check the address, and whether it runs."
                    ) from None
        raise AssertionError("there is an address")

    def _request(self, method: str, address: str, path: str, content: Any) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{address}{path}", data, self._headers(), method=method)
        with urllib.request.urlopen(request, timeout=self._seconds, context=self._tls(address)) as answer:
            return json.loads(answer.read())

    def _tls(self, address: str) -> ssl.SSLContext | None:
        return (
            ssl.create_default_context(cafile=self._properties.get("ssl.ca.location"))
            if address.startswith("https")
            else None
        )

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": _CONTENT, "Accept": f"{_CONTENT}, application/json"}
        if "basic.auth.user.info" in self._properties:
            account = self._properties["basic.auth.user.info"].reveal().encode()
            headers["Authorization"] = f"Basic {base64.b64encode(account).decode()}"
        elif "bearer.auth.token" in self._properties:
            headers["Authorization"] = f"Bearer {self._properties['bearer.auth.token'].reveal()}"
        return headers

    def _refusal(self, error: urllib.error.HTTPError, address: str, doing: str) -> ConnectorError | InputError:
        text = error.read().decode(errors="replace")
        try:
            reason = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            reason = text[:200] or error.reason
        reason = str(reason).rstrip(".")
        said = f"The schema registry at {address} refused to {doing} ({error.code}): {self._masked(reason)}"
        permanent = FailureKind.PERMANENT
        if error.code in (401, 403):
            advice = "Check 'basic.auth.user.info' (user:password) or 'bearer.auth.token', and the rights."
            return ConnectorError(f"{said}. {advice}", kind=permanent)
        if error.code == 404:
            return InputError(f"{said}. Is it the registry that the messages were written with?")
        if error.code == 409:
            advice = "The schema is not compatible with those that the subject has; see the subject's compatibility."
            return ConnectorError(f"{said}. {advice}", kind=permanent)
        if error.code < 500 and error.code not in (408, 429):
            return ConnectorError(f"{said}.", kind=permanent)
        return ConnectorError(f"{said}.")

    def _masked(self, text: str) -> str:
        """A text of the registry's, which may repeat what it was sent."""
        sent = self._headers().get("Authorization", "").partition(" ")[2]
        text = Secret(sent).mask(text)
        account = self._properties.get("basic.auth.user.info")
        if account is not None:
            text = Secret(account.reveal().partition(":")[2]).mask(text)
        return text


def _name(key: str) -> str:
    name = key.removeprefix("schema.registry.")
    if name not in _KNOWN:
        raise ConfigurationError(f"A schema registry has no property {key!r} here. There are: {', '.join(_KNOWN)}.")
    return name


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ConnectorError) and error.kind is FailureKind.PASSING


def _shown(address: str) -> str:
    """An address without an account in it."""
    scheme, separator, rest = address.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
