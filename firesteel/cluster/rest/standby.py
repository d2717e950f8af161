"""What a job manager answers that is not the leader: it passes requests on, so that every address of a cluster will do.

The page's files and ``/healthz`` it answers itself. While there is no leader, or it cannot be reached, requests are
answered with 503 and the time after which to try again; nothing was done then.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import re
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from firesteel.cluster.client import FORWARDED, LEADER
from firesteel.cluster.page import page_routes
from firesteel.cluster.registry import Leader
from firesteel.cluster.rest.app import (
    MAX_BODY,
    MAX_LOGIN,
    SECONDS_TO_READ,
    SECONDS_TO_UPLOAD,
    guarded_app,
    read_body,
    refusal,
)
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.tokens import Tokens
from firesteel.errors import in_a_line

__all__ = ["FORWARDED", "LEADER", "standby_app"]

logger = logging.getLogger("firesteel.cluster")

SECONDS = 35.0
"""A little longer than clients wait."""
SECONDS_TO_PLAN = 330.0
"""And than what takes longest, the plan of a program."""
THREADS = 40
"""So many requests wait for the leader at the same time. They have threads of their own: if this process is elected it
needs the others."""
_SECONDS_KNOWN = 0.5
"""How long it is believed who the leader is."""
_PASSED = ("authorization", "cookie", "content-type", "accept", "range")
_RETURNED = (
    "content-type",
    "content-disposition",
    "set-cookie",
    "www-authenticate",
    "firesteel-log-end",
    "retry-after",
)
_SLOW = re.compile(r"(/v\d)?/(jars/|sessions)")
"""What plans a program, or starts an SQL session."""
_METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"]


def standby_app(
    settings: ClusterSettings, tokens: Tokens, own_address: str, leader: Callable[[], Leader | None]
) -> Starlette:
    """``leader``: who it is, from the registry."""
    forwarding = _Forwarding(settings, own_address, leader)
    routes: list[BaseRoute] = [
        *page_routes(),
        Route("/healthz", _healthz),
        Route("/{path:path}", forwarding.answer, methods=_METHODS),
    ]
    return guarded_app(routes, settings, tokens)


async def _healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


class _Forwarding:
    def __init__(self, settings: ClusterSettings, own_address: str, leader: Callable[[], Leader | None]) -> None:
        self._settings, self._own, self._find = settings, own_address, leader
        self._lock = threading.Lock()
        self._threads = anyio.CapacityLimiter(THREADS)
        self._known: tuple[float, Leader | None] = (-1.0, None)

    async def answer(self, request: Request) -> Response:
        try:
            body = await self._body(request)
        except Exception as error:
            return refusal(error)
        raw = request.scope.get("raw_path") or request.url.path.encode()
        target = raw.decode("ascii", "replace") + (f"?{request.url.query}" if request.url.query else "")
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        again = FORWARDED.lower() in request.headers
        return await anyio.to_thread.run_sync(
            self._forward, request.method, target, headers, body, again, limiter=self._threads
        )

    async def _body(self, request: Request) -> bytes:
        """Bounded as the leader bounds it: whoever logs in has no token yet."""
        match request.url.path.removeprefix("/v1"):
            case "/jars/upload":
                most, seconds = self._settings.max_upload + (64 << 10), SECONDS_TO_UPLOAD
            case "/firesteel/v1/login":
                most, seconds = MAX_LOGIN, SECONDS_TO_READ
            case _:
                most, seconds = MAX_BODY, SECONDS_TO_READ
        async with asyncio.timeout(seconds):
            return await read_body(request, most)

    def _leader(self) -> Leader | None:
        with self._lock:
            asked, known = self._known
            if time.monotonic() - asked > _SECONDS_KNOWN:
                try:
                    known = self._find()
                except Exception as error:
                    logger.warning("the leader is not known: %s", in_a_line(error))
                    known = None
                self._known = (time.monotonic(), known)
            return known

    def _forward(self, method: str, target: str, headers: dict[str, str], body: bytes, again: bool) -> Response:
        leader = self._leader()
        if leader is None or leader.address == self._own:
            return _no_leader_response("There is no leader at the moment. Try again.")
        if again:
            return _no_leader_response(f"This job manager is not the leader; the one at {leader.address} is.", leader)
        try:
            return self._ask(leader, method, target, headers, body)
        except (OSError, http.client.HTTPException) as error:
            if method not in ("GET", "HEAD") and not isinstance(error, ConnectionRefusedError):
                # It may have arrived.
                text = f"The leader at {leader.address} did not answer ({type(error).__name__}): look what it has done."
                return JSONResponse({"errors": [text]}, 502, {LEADER: leader.address})
            return _no_leader_response(f"The leader at {leader.address} does not answer. Try again.", leader)

    def _ask(self, leader: Leader, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        parts = urllib.parse.urlsplit(leader.address)
        host, port = parts.hostname or "", parts.port or 443
        seconds = SECONDS_TO_PLAN if _SLOW.match(target) else SECONDS
        line: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            # Those that share a folder often share a certificate that nobody else knows.
            context.load_verify_locations(self._settings.certificate)
            line = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        else:
            line = http.client.HTTPConnection(host, port, timeout=seconds)
        try:
            line.request(method, target, body or None, {**headers, FORWARDED: "1"})
            answer = line.getresponse()
            content = answer.read()
        finally:
            line.close()
        response = Response(content, answer.status)
        for name, value in answer.getheaders():
            if name.lower() in _RETURNED:
                response.headers.append(name, value)
        response.headers[LEADER] = leader.address
        return response


def _no_leader_response(text: str, leader: Leader | None = None) -> Response:
    headers = {"Retry-After": "1"} | ({LEADER: leader.address} if leader is not None else {})
    return JSONResponse({"errors": [text]}, 503, headers)
