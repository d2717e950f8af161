"""What a cluster of Elasticsearch does with bulk requests, in this process: versions, refusals, busy nodes.

The real thing is too heavy for the suite; ``make servers`` has it. This one keeps to what was seen there.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

__all__ = ["FakeCluster", "fake_cluster"]

USER, PASSWORD = "firesteel", "sup3r-s3cret-word"


class FakeCluster:
    """Documents by index and id, each with its version."""

    user, password = USER, PASSWORD

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], tuple[int, Any]] = {}
        self.unnamed: list[Any] = []
        """Documents without an id."""
        self.sent: list[int] = []
        """How many documents each request had."""
        self.taken: list[int] = []
        """The status of every document."""
        self.busy: list[int] = []
        """Of so many requests, how many of the first documents are rejected."""
        self.statuses: list[int] = []
        """What requests are answered with before they are looked at."""
        self._lock = threading.Lock()
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = cluster.answer(self.path, dict(self.headers), body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *given: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if headers.get("Authorization") != f"Basic {login}":
            return 401, {"error": {"type": "security_exception", "reason": "unable to authenticate"}, "status": 401}
        if not path.endswith("/_bulk"):
            return 404, {"error": "no handler found"}
        with self._lock:
            if self.statuses:
                status = self.statuses.pop(0)
                if status != 200:
                    return status, {"error": {"type": "x", "reason": "not now"}}
            lines = [json.loads(line) for line in body.splitlines()]
            items = []
            reject = self.busy.pop(0) if self.busy else 0
            while lines:
                ((kind, meta),) = lines.pop(0).items()
                document = lines.pop(0) if kind == "index" else None
                result = self._one(kind, meta, document) if len(items) >= reject else _error(429, "rejected", "full")
                self.taken.append(result["status"])
                items.append({kind: {"_id": meta.get("_id"), **result}})
            self.sent.append(len(items))
        return 200, {"errors": any("error" in next(iter(item.values())) for item in items), "items": items}

    def _one(self, kind: str, meta: dict[str, Any], document: Any) -> dict[str, Any]:
        if meta["_index"] == "missing":
            return _error(404, "index_not_found_exception", "no such index [missing]")
        if document is not None and not isinstance(document.get("n", 0), int):
            cause = {"type": "number_format_exception", "reason": f'For input string: "{document["n"]}"'}
            reason = f"failed to parse field [n] of type [long] in document with id '{meta.get('_id')}'"
            return _error(400, "mapper_parsing_exception", reason, caused_by=cause)
        if "_id" not in meta:
            self.unnamed.append(document)
            return {"status": 201}
        assert meta["version_type"] == "external_gte"
        key = (meta["_index"], meta["_id"])
        before = self.documents.get(key)
        if before is not None and meta["version"] < before[0]:
            reason = f"[{meta['_id']}]: version conflict, current version [{before[0]}] is higher"
            return _error(409, "version_conflict_engine_exception", reason)
        self.documents[key] = (meta["version"], document)
        return {"status": 200 if before else 201 if kind == "index" else 404}

    def numbers(self, index: str) -> dict[str, int]:
        return {
            key: document["n"] for (name, key), (_, document) in self.documents.items() if name == index and document
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _error(status: int, kind: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"status": status, "error": {"type": kind, "reason": reason, **more}}


@pytest.fixture
def fake_cluster() -> Iterator[FakeCluster]:
    made = FakeCluster()
    yield made
    made.stop()
