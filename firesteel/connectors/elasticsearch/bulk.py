"""Bulk requests: what is sent, and what each document's answer means."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from firesteel.common.secret import Secret
from firesteel.errors import BackPressureError, ConnectorError, FailureKind, ProgramError, short_repr

__all__ = ["Action", "Answers", "Cluster", "read_answers"]

_MAY_PASS = frozenset((429, 502, 503, 504))
"""Statuses of documents and requests that may be taken the next time."""

_ADVICE = {
    "mapper_parsing_exception": "The value does not fit the index's mapping.",
    "document_parsing_exception": "The value does not fit the index's mapping.",
    "strict_dynamic_mapping_exception": "The index's mapping has no such field, and takes no new ones.",
    "index_not_found_exception": "Create the index first.",
    "invalid_index_name_exception": "Names of indices are in lower case.",
    "security_exception": "Grant the user the right to write to the index.",
}


@dataclass(frozen=True)
class Action:
    """One document to write, or to delete."""

    index: str
    id: str | None
    document: bytes | None
    """As JSON, in one line; None deletes."""
    version: int | None = None
    """None: one is made."""

    def lines(self, version: int) -> bytes:
        """The action as a bulk request has it."""
        meta: dict[str, Any] = {"_index": self.index}
        if self.id is not None:
            number = version if self.version is None else self.version
            meta |= {"_id": self.id, "version": number, "version_type": "external_gte"}
        head = json.dumps({"delete" if self.document is None else "index": meta}, ensure_ascii=False).encode()
        return head + b"\n" if self.document is None else b"%b\n%b\n" % (head, self.document)


@dataclass(frozen=True)
class Cluster:
    """Nodes that are asked in turn, and who asks. Its text never has the password."""

    hosts: tuple[str, ...]
    """As ``http://host:port``."""
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)
    prefix: str = ""
    connect_seconds: float = 10.0
    read_seconds: float = 60.0

    def __str__(self) -> str:
        return ", ".join(self.hosts)


def checked_host(host: Any) -> str:
    """A node's address, without a path and without a login."""
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        port = parts.port
    except (ValueError, TypeError):
        parts, port = urlsplit(""), None
    named = parts.scheme in ("http", "https") and parts.hostname and not parts.username and not parts.password
    if not named or parts.path not in ("", "/") or parts.query or parts.fragment:
        # Not with the address itself, in which a password may stand.
        raise ProgramError(
            "A node is addressed as http://host:port or https://host:port; user name, password and a path before "
            "/_bulk have setters of their own (set_connection_path_prefix for the path)."
        )
    return f"{parts.scheme}://{parts.hostname}:{port or 9200}"


class Connection:
    """To one node after the other: the next one is tried where one cannot be reached."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._number = 0
        self._live: http.client.HTTPConnection | None = None
        self._headers = {"Content-Type": "application/x-ndjson"}

    def _connected(self) -> http.client.HTTPConnection:
        if self._live is None:
            parts = urlsplit(self._cluster.hosts[self._number % len(self._cluster.hosts)])
            seconds = self._cluster.connect_seconds
            assert parts.hostname is not None
            made: http.client.HTTPConnection
            if parts.scheme == "https":
                context = ssl.create_default_context()
                made = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=context)
            else:
                made = http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
            made.connect()
            made.sock.settimeout(self._cluster.read_seconds)
            self._live = made
        return self._live

    def bulk(self, body: bytes, documents: int) -> Any:
        """The answer to a bulk request, with an item for each of its documents."""
        errors: list[str] = []
        untrusted: list[str] = []
        headers = {**self._headers, **self._login()}
        for _ in self._cluster.hosts:
            try:
                live = self._connected()
                live.request("POST", quote(f"{self._cluster.prefix}/_bulk"), body, headers)
                answer = live.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if isinstance(error, ssl.SSLCertVerificationError):
                    untrusted.append(error.verify_message)
                errors.append(f"{type(error).__name__}: {error}" if not str(error) else str(error))
                self._number += 1
                continue
            return self._read(answer, content, documents)
        if len(untrusted) == len(errors):
            # Where only some nodes have such a certificate, another one may be back soon.
            raise ConnectorError(
                f"Elasticsearch at {self._cluster} has a certificate that is not trusted: {untrusted[-1]}. Check the "
                "address, and that this machine knows who signed the certificate.",
                kind=FailureKind.PERMANENT,
            )
        raise ConnectorError(
            f"Elasticsearch at {self._cluster} cannot be reached: {errors[-1].rstrip('.')}. Check that it runs there."
        )

    def _login(self) -> dict[str, str]:
        if self._cluster.user is None:
            return {}
        password = self._cluster.password.reveal() if self._cluster.password is not None else ""
        token = base64.b64encode(f"{self._cluster.user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {token}"}

    def _read(self, answer: http.client.HTTPResponse, content: bytes, documents: int) -> Any:
        status = answer.status
        if status == 200:
            found = _bulk_answer(content, documents)
            if found is None:
                # Whoever answers like that has stored nothing, or nobody knows what.
                host = self._cluster.hosts[self._number % len(self._cluster.hosts)]
                raise ConnectorError(
                    f"{host}{self._cluster.prefix}/_bulk does not answer as Elasticsearch does: expected an item for "
                    f"each of {documents} documents, got {short_repr(content, 120)}. Check set_hosts(…) and "
                    "set_connection_path_prefix(…).",
                    kind=FailureKind.PERMANENT,
                )
            return found
        text = _reason(content) or answer.reason
        if status in (401, 403):
            advice = "Check the user name and the password." if status == 401 else "Check the user's rights."
            raise ConnectorError(
                f"Elasticsearch at {self._cluster} refused the login ({status}): {text}. {advice}",
                kind=FailureKind.PERMANENT,
            )
        said = f"Elasticsearch at {self._cluster} answered a bulk request with {status}: {text}."
        if status == 429:
            after = answer.headers.get("Retry-After", "1")
            raise BackPressureError(said, retry_after=float(after) if after.isdigit() else 1.0)
        raise ConnectorError(said, kind=FailureKind.PASSING if status in _MAY_PASS else FailureKind.PERMANENT)

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.close()


def _bulk_answer(content: bytes, documents: int) -> Any:
    """The answer to so many documents; None if it is none."""
    try:
        found = json.loads(content)
    except ValueError:
        return None
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list) or len(items) != documents or not all(map(_is_item, items)):
        return None
    return found


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and len(item) == 1 and isinstance(next(iter(item.values())), dict)


def _reason(content: bytes) -> str:
    try:
        error = json.loads(content)["error"]
        return str(error if isinstance(error, str) else error.get("reason") or error.get("type"))[:300].rstrip(".")
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


class Answers(NamedTuple):
    """What became of the documents of a request, by their numbers."""

    again: list[int]
    """May be taken the next time."""
    refused: list[int]
    """Will be refused the next time, too."""
    texts: dict[int, str]


def read_answers(answer: Any) -> Answers:
    """Sorts the documents' answers. One that is there already, in this version or a newer one, is a success.

    >>> read_answers({"errors": True, "items": [
    ...     {"index": {"status": 201}},
    ...     {"index": {"status": 409, "error": {"type": "version_conflict_engine_exception"}}},
    ...     {"index": {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue full"}}},
    ... ]})
    Answers(again=[2], refused=[], texts={2: 'es_rejected_execution_exception: queue full'})
    """
    again: list[int] = []
    refused: list[int] = []
    texts: dict[int, str] = {}
    if not answer.get("errors"):
        return Answers(again, refused, texts)
    for number, item in enumerate(answer["items"]):
        ((kind, result),) = item.items()
        status = result.get("status", 500)
        # A document that is to be deleted and is not there.
        gone = kind == "delete" and status == 404 and "error" not in result
        if status < 300 or gone or (status == 409 and "version" in str(result.get("error"))):
            continue
        (again if status in _MAY_PASS else refused).append(number)
        texts[number] = _error_text(result.get("error") or f"status {status}")
    return Answers(again, refused, texts)


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    text = f"{error.get('type')}: {error.get('reason')}"
    cause = error.get("caused_by")
    while isinstance(cause, dict):
        if cause.get("reason"):
            text += f" ({cause['reason']})"
        cause = cause.get("caused_by")
    advice = _ADVICE.get(str(error.get("type")))
    return f"{text[:500].rstrip('.')}. {advice}" if advice else text[:500]
