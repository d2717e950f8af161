"""The page without a job manager: this user's jobs on this machine, those that were started by hand, to look at.

    with JobPage() as page:
        print(page.address, page.token)
        env.execute("orders")

It is served by a thread of this process, on loopback, and takes a token that is made for this page. Nothing can be
changed through it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from types import TracebackType

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from firesteel.cluster.jobs_view import JobsOfUser
from firesteel.cluster.own_api import own_routes
from firesteel.cluster.page import page_routes
from firesteel.cluster.rest.app import guarded_app, login_routes
from firesteel.cluster.rest.information import config_of
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.tokens import Tokens

__all__ = ["JobPage"]


class JobPage:
    """A page between ``with`` and its end."""

    def __init__(self, port: int = 0) -> None:
        """``port``: where it listens; 0 takes any that is free."""
        self.token = secrets.token_urlsafe(16)
        """What the page asks for."""
        # Nobody has the one that allows changes.
        tokens, settings = Tokens(secrets.token_urlsafe(32), self.token), ClusterSettings(port=port)
        routes: list[BaseRoute] = [
            *login_routes(settings, tokens),
            *page_routes(),
            Route("/config", _config),
            *own_routes(JobsOfUser()),
        ]
        app = guarded_app(routes, settings, tokens)
        self._listening = socket.create_server(("127.0.0.1", port))
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._serve, name="firesteel-page", daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> JobPage:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._listening.close()

    def _serve(self) -> None:
        # Not server.run(): that would want to handle signals.
        asyncio.run(self._server._serve([self._listening]))


async def _config(request: Request) -> Response:
    return JSONResponse(config_of(history=True))
