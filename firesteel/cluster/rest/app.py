"""The application: end points behind the guard, requests of a bounded size and a bounded time."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message

from firesteel.cluster.managed_jobs import ManagedJobs
from firesteel.cluster.own_api import own_routes
from firesteel.cluster.page import page_routes
from firesteel.cluster.program_store import NoRoomError
from firesteel.cluster.registry import RegistryUnreachableError, StaleEpochError
from firesteel.cluster.rest import endpoints
from firesteel.cluster.rest.calls import Call, Cluster, Endpoint, File, RestError, Upload
from firesteel.cluster.rest.security import Guard, cookie_of, no_cookie
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sql_sessions import NoSessionError
from firesteel.cluster.tokens import Tokens
from firesteel.errors import FiresteelError, JobCommandError, JobNotFoundError

__all__ = ["build", "guarded_app", "login_routes", "read_body", "refusal"]

logger = logging.getLogger("firesteel.cluster")

MAX_BODY = 1 << 20
"""Bytes of a request that is no upload."""
MAX_LOGIN = 4096
SECONDS_TO_READ = 30.0
SECONDS_TO_UPLOAD = 600.0
PARTS = 16


def build(cluster: Cluster) -> Starlette:
    """The application of a job manager."""
    known = endpoints.all_endpoints()
    routes: list[BaseRoute] = [
        *login_routes(cluster.settings, cluster.tokens),
        *page_routes(),
    ]
    for one in known:
        for prefix in one.prefixes:
            routes.append(Route(prefix + one.path, _answering(cluster, one, prefix), methods=[one.method]))
    routes += own_routes(ManagedJobs(cluster.supervisor, cluster.folder, cluster.tokens.all))
    return guarded_app(routes, cluster.settings, cluster.tokens)


def guarded_app(routes: Sequence[BaseRoute], settings: ClusterSettings, tokens: Tokens) -> Starlette:
    """Routes behind the guard."""
    known = endpoints.all_endpoints()
    changing_gets = [_pattern(one.path) for one in known if one.method == "GET" and one.changes]
    guard = Middleware(Guard, tokens=tokens, hosts=allowed_hosts(settings), changing_gets=changing_gets)
    app = Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},
    )
    # A path is what it is: a client that is sent elsewhere may leave its token behind.
    app.router.redirect_slashes = False
    return app


def allowed_hosts(settings: ClusterSettings) -> set[str]:
    names = {"localhost", "127.0.0.1", "::1", settings.address, settings.public_host, *settings.hosts}
    return names - {"", "0.0.0.0", "::"}


def _pattern(path: str) -> str:
    """
    >>> _pattern("/jars/{jarid}/plan")
    '(?:/v[0-9])?/jars/[^/]+/plan/?'
    """
    return (
        "(?:/v[0-9])?"
        + "/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in path.split("/"))
        + "/?"
    )


Answering = Callable[[Request], Awaitable[Response]]


def _answering(cluster: Cluster, endpoint: Endpoint, prefix: str) -> Answering:
    async def answer(request: Request) -> Response:
        try:
            call = await _call(cluster, endpoint, request, prefix)
            # Not in the server's own thread: registry, files and drivers may take their time.
            return _response(endpoint, await run_in_threadpool(endpoint.handler, call))
        except Exception as error:
            return refusal(error, endpoint.method != "GET")

    return answer


async def _call(cluster: Cluster, endpoint: Endpoint, request: Request, prefix: str) -> Call:
    query = dict(request.query_params)
    base = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if endpoint.upload:
        async with asyncio.timeout(SECONDS_TO_UPLOAD):
            uploads = await _uploads(request, cluster.settings.max_upload)
        return Call(cluster, request.path_params, query, {}, uploads, base)
    async with asyncio.timeout(SECONDS_TO_READ):
        content = await read_body(request, MAX_BODY)
    return Call(cluster, request.path_params, query, _json(content), base=base, prefix=prefix)


async def read_body(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise RestError(413, f"A request has at most {most:,} bytes here.")
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > most:
            raise RestError(413, f"A request has at most {most:,} bytes here.")
    return bytes(found)


def _json(content: bytes) -> dict[str, Any]:
    if not content.strip():
        return {}
    try:
        known = json.loads(content)
    except (ValueError, RecursionError):
        raise RestError(400, "The request is not JSON.") from None
    if not isinstance(known, dict):
        raise RestError(400, "The request is not a JSON object.")
    return known


async def _uploads(request: Request, most: int) -> tuple[Upload, ...]:
    """The files of a form. What is too large is given up while it comes in, not when all of it is there."""
    declared = request.headers.get("content-length", "0")
    # Some bytes more: those of the form around the file.
    if declared.isdigit() and int(declared) > most + (64 << 10):
        raise RestError(413, f"A program has at most {most:,} bytes (firesteel.cluster.max-upload).")
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RestError(400, "A program is uploaded as multipart/form-data.")
    received, receive = 0, request._receive

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most + (64 << 10):
            raise RestError(413, f"A program has at most {most:,} bytes (firesteel.cluster.max-upload).")
        return message

    bounded = Request(request.scope, counted)
    try:
        async with bounded.form(max_files=PARTS, max_fields=PARTS, max_part_size=MAX_BODY) as form:
            found = []
            for _, part in form.multi_items():
                if not isinstance(part, str):
                    found.append(Upload(part.filename or "", await part.read()))
            return tuple(found)
    except (MultiPartException, HTTPException) as error:
        text = str(getattr(error, "message", "") or getattr(error, "detail", ""))
        raise RestError(413 if "Too many" in text or "exceeded" in text else 400, text) from None


def _response(endpoint: Endpoint, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if isinstance(answer, File):
        return Response(answer.content, endpoint.status, dict(answer.headers), media_type=answer.kind)
    return JSONResponse(answer, endpoint.status)


def login_routes(settings: ClusterSettings, tokens: Tokens) -> list[BaseRoute]:
    """The way in and out of the page."""
    return [
        Route("/firesteel/v1/login", _login(settings, tokens), methods=["POST"]),
        Route("/firesteel/v1/logout", _logout, methods=["POST"]),
    ]


def _login(settings: ClusterSettings, tokens: Tokens) -> Answering:
    """A token for a cookie, which the page's scripts cannot read."""

    async def login(request: Request) -> Response:
        try:
            async with asyncio.timeout(SECONDS_TO_READ):
                token = _json(await read_body(request, MAX_LOGIN)).get("token")
        except Exception as error:
            return refusal(error)
        changes = tokens.allows(token, True) if isinstance(token, str) else None
        if changes is None:
            return JSONResponse({"errors": ["This is not a token of this job manager."]}, 401)
        answer = JSONResponse({"readOnly": not changes})
        answer.headers["Set-Cookie"] = cookie_of(str(token), settings.scheme == "https")
        return answer

    return login


async def _logout(request: Request) -> Response:
    """Has the browser forget the cookie."""
    answer = JSONResponse({})
    answer.headers["Set-Cookie"] = no_cookie()
    return answer


# Errors


def refusal(error: Exception, changes: bool = False) -> Response:
    """The answer to a request that failed. ``changes``: it was one that may have changed something before that."""
    match error:
        case RestError():
            return JSONResponse({"errors": list(error.messages), **error.more}, error.status)
        case JobNotFoundError():
            return _errors(404, str(error))
        case StaleEpochError() | RegistryUnreachableError() if changes:
            # Not 503, which says that nothing was done: a part of it may have been, or all.
            return _errors(502, f"{error} Look what was done.")
        case StaleEpochError() | RegistryUnreachableError():
            return JSONResponse({"errors": [str(error)]}, 503, {"Retry-After": "1"})
        case NoRoomError():
            return _errors(413, str(error))
        case TimeoutError():
            return _errors(408, "The request took too long.")
        case ClientDisconnect():
            return _errors(400, "The client is gone.")
        case NoSessionError():
            return _errors(410 if error.ended else 404, str(error))
        case JobCommandError():
            return _errors(409, str(error))
        case FiresteelError():
            return _errors(400, str(error))
    logger.exception("a request failed", exc_info=error)
    return _errors(500, "Internal server error.")


def _errors(status: int, *texts: str) -> JSONResponse:
    return JSONResponse({"errors": list(texts)}, status)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = getattr(error, "headers", None)
    text = {404: f"Not found: {request.url.path}", 405: f"{request.method} is not allowed here."}
    return JSONResponse({"errors": [text.get(status, str(getattr(error, "detail", "")))]}, status, headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    return refusal(error)
