"""The web page: static files of this package.

Nothing is built: what the browser loads is what lies in ``web/``. The server's policy allows scripts and styles of its
own files alone, and no inline ones, so that a job's name or a line of its log stays text whatever it holds.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

__all__ = ["page_routes"]

WEB = Path(__file__).parent / "web"

# Browsers ask whether a file has changed before they use what they kept of it.
HEADERS = {"Cache-Control": "no-cache"}

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


def page_routes() -> list[BaseRoute]:
    """The page at ``/``, its files under ``/web/``. They hold nothing secret and need no token: the page asks for one
    where the API wants it."""
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
