"""The web page: static files of this package, and the headers that keep them harmless.

Nothing is built: what the browser loads is what lies in ``web/``. The policy allows scripts, styles and requests of
this server alone, and no inline ones, so that a job's name or a line of its log stays text whatever it holds.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

__all__ = ["HEADERS", "page_routes"]

WEB = Path(__file__).parent / "web"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


def page_routes() -> list[BaseRoute]:
    """The page at ``/``, its files under ``/web/``. They hold nothing secret: the page asks for a token where the API
    wants one, so whoever mounts these need not."""
    return [Route("/", _index), Route("/index.html", _index), Route("/web/{path:path}", _file)]


async def _index(request: Request) -> Response:
    return _served(WEB / "index.html")


async def _file(request: Request) -> Response:
    # By what there is, not by joining paths: nothing outside is ever looked at.
    path = _files().get(request.path_params["path"])
    return Response("There is no such file.", 404, HEADERS, "text/plain") if path is None else _served(path)


def _served(path: Path) -> Response:
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=HEADERS)


@cache
def _files() -> dict[str, Path]:
    return {str(path.relative_to(WEB)): path for path in WEB.rglob("*") if path.is_file() and path.suffix in _TYPES}
