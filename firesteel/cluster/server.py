"""The process of the job manager: elected, recovered, then a server until it is told to end."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.handlers
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from firesteel.cluster.archive import Archive
from firesteel.cluster.election import FileElection
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import Launcher
from firesteel.cluster.operations import Operations
from firesteel.cluster.processes import start_of
from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.cluster.supervisor import Supervisor
from firesteel.cluster.tokens import Tokens
from firesteel.common.private_files import replace_file
from firesteel.errors import SetupError

__all__ = ["assemble", "serve"]

logger = logging.getLogger("firesteel.cluster")

CONNECTIONS = 200


class _Bounded(H11Protocol):
    """Connections that take their time to say what they want do not hold a place for ever."""

    seconds_to_ask = 15.0
    """One that has not sent a whole request line and headers by then is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._first_request = self.loop.call_later(self.seconds_to_ask, self._close_silent)

    def _close_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._first_request.cancel()
        super().connection_lost(exc)


def assemble(
    settings: ClusterSettings,
    folder: ClusterFolder,
    stop: Callable[[bool], None] = lambda leave_jobs: None,
    launcher: Launcher | None = None,
) -> Cluster:
    """The parts of a job manager, not yet started. The caller is the one that was elected."""
    registry = SqliteRegistry(folder.registry)
    epoch = registry.claim()
    logger.info("epoch %d begins", epoch)
    programs = ProgramStore(folder.programs, settings.max_programs)
    tokens = Tokens.of(folder)
    archive = Archive(folder, tokens.all)
    supervisor = Supervisor(settings, folder, registry, programs, archive.keep, launcher)
    archive.supervisor = supervisor
    operations = Operations(registry, supervisor)
    operations.give_up_old()
    return Cluster(settings, folder, supervisor, programs, operations, tokens, int(time.time() * 1000), stop)


def serve(settings: ClusterSettings, ready: Callable[[str], None] = lambda address: None) -> int:
    """Runs a job manager until it is told to end. ``ready`` is called with its address."""
    folder = ClusterFolder.make(settings.folder)
    election = FileElection(folder.lock)
    if not election.stand(0):
        raise SetupError(f"Another job manager works in {folder.path}: see 'firesteel cluster status'.")
    _log_to(folder)
    listening = _listening(settings)
    leave_jobs = True
    server: uvicorn.Server | None = None

    def stop(leave: bool) -> None:
        nonlocal leave_jobs
        leave_jobs = leave
        # A moment later, so that whoever asked for it gets an answer.
        if server is not None:
            threading.Timer(0.2, setattr, (server, "should_exit", True)).start()

    cluster = assemble(settings, folder, stop)
    config = uvicorn.Config(
        build(cluster),
        http=type("Bounded", (_Bounded,), {"seconds_to_ask": settings.request_ms / 1000}),
        ws="none",
        lifespan="off",
        log_config=None,
        # Paths and queries of requests are nobody's business, and of no use.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 << 10,
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.key or None,
    )
    server = uvicorn.Server(config)
    try:
        cluster.supervisor.start()
        host, port = listening.getsockname()[:2]
        address = f"{settings.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        known = {"address": address, "pid": os.getpid(), "started": start_of(os.getpid())}
        replace_file(str(folder.address), json.dumps(known).encode())
        logger.info("the job manager listens at %s", address)
        ready(address)
        _run(server, listening)
    finally:
        cluster.supervisor.stop(leave_jobs)
        folder.address.unlink(missing_ok=True)
        logger.info("the job manager has ended")
        election.resign()
    return 0


def _run(server: uvicorn.Server, listening: socket.socket) -> None:
    """A signal ends the server; jobs run on, as they do when the process is killed."""

    def leave(number: int, frame: Any) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        # Not server.run(): that would install handlers of its own, and raise the signal once more at the end.
        asyncio.run(server._serve([listening]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listening(settings: ClusterSettings) -> socket.socket:
    kind = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
    try:
        return socket.create_server((settings.address, settings.port), family=kind, backlog=128)
    except OSError as error:
        raise SetupError(
            f"The job manager cannot listen at {settings.address}:{settings.port}: {error.strerror}. Choose another "
            "port with --port (0 takes any that is free)."
        ) from error


def _log_to(folder: ClusterFolder) -> None:
    handler = logging.handlers.RotatingFileHandler(folder.logs / "jobmanager.log", maxBytes=16 << 20, backupCount=5)
    os.chmod(folder.logs / "jobmanager.log", 0o600)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("firesteel", "uvicorn"):
        found = logging.getLogger(name)
        found.addHandler(handler)
        found.setLevel(logging.INFO)


if __name__ == "__main__":
    from firesteel.cluster.starting import settings_from_environment

    sys.exit(serve(settings_from_environment()))
