"""Who may ask for what. Everything that comes in passes here first.

1. **Host**: only names that are this server's. A page elsewhere whose name was made to lead here (DNS rebinding) sends
   its own.
2. **Origin**: what changes something must not come from another site's page. Browsers say where a request comes from in
   ``Origin`` and ``Sec-Fetch-Site``; other programs send neither.
3. **Token**: in ``Authorization: Bearer …``, or in a cookie that the page got for it, which scripts cannot read and
   browsers send to this site only. Without one there are the page itself and ``/healthz``, which tell nothing.
4. **Headers** that keep a browser from running anything that is not the page's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firesteel.cluster.tokens import Tokens

__all__ = ["COOKIE", "HEADERS", "Guard", "cookie_of", "no_cookie"]

COOKIE = "firesteel-token"

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_SAFE = ("GET", "HEAD")


def cookie_of(token: str, secure: bool) -> str:
    return f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/" + ("; Secure" if secure else "")


def no_cookie() -> str:
    return f"{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"


class Guard:
    """Around the application."""

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: Iterable[str], changing_gets: Iterable[str]) -> None:
        """``changing_gets``: paths that change or run something although they are asked with GET, as patterns."""
        self._app = app
        self._tokens = tokens
        self._hosts = {host.lower() for host in hosts}
        self._changing_gets = re.compile("|".join(changing_gets))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers, path = Headers(scope=scope), str(scope["path"])
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self._hosts:
            return _refused(403, "This server is not known by that name. Names are set by firesteel.cluster.hosts.")
        changes = scope["method"] not in _SAFE or self._changing_gets.fullmatch(path) is not None
        if changes and not self._same_site(headers, hosts[0]):
            return _refused(403, "Requests that change something are not taken from the pages of other sites.")
        if is_public(scope["method"], path):
            return None
        token = _token(headers)
        allowed = None if token is None else self._tokens.allows(token, changes)
        if allowed is None:
            refusal = _refused(401, "A token is needed: send it as 'Authorization: Bearer …'.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            return refusal
        if not allowed:
            return _refused(403, "This token allows to look, not to change anything.")
        return None

    def _same_site(self, headers: Headers, host: str) -> bool:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        origin = headers.get("origin")
        return origin is None or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def is_public(method: str, path: str) -> bool:
    """What needs no token, because it tells nothing: the page's files, whether the server lives, the way in and out."""
    if method in _SAFE:
        return path in ("/", "/healthz", "/index.html") or path.startswith("/web/")
    return method == "POST" and path in ("/firesteel/v1/login", "/firesteel/v1/logout")


def _name(host: str) -> str:
    """A host without its port.

    >>> _name("localhost:8081"), _name("[::1]:8081"), _name("::1")
    ('localhost', '::1', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.lower() if host.count(":") > 1 else host.partition(":")[0].lower()


def _token(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    try:
        cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[COOKIE].value if COOKIE in cookies else None


def _refused(status: int, text: str) -> JSONResponse:
    return JSONResponse({"errors": [text]}, status)
