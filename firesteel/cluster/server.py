"""The process of a job manager: a server until it is stopped. The only one of its folder is elected at the start or
not at all; among several it stands by until it is elected."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from firesteel.cluster.archive import Archive
from firesteel.cluster.election import Election, FileElection
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import Launcher
from firesteel.cluster.leadership import Leadership, Switch
from firesteel.cluster.operations import Operations
from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.registry import Registry
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.rest.standby import standby_app
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sql_sessions import SqlSessions
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.cluster.starting import leave_address, remove_address
from firesteel.cluster.supervisor import Supervisor
from firesteel.cluster.tokens import Tokens
from firesteel.common.private_files import make_private_folder
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
    address: str = "",
    log: str = "jobmanager.log",
) -> Cluster:
    """The parts of a job manager, not yet started. The caller is the one that was elected."""
    registry = registry_of(settings, folder)
    supervisor = None
    try:
        logger.info("epoch %d begins", registry.claim(address))
        programs = ProgramStore(folder.programs, settings.max_programs)
        tokens = Tokens.of(folder)
        archive = Archive(folder, tokens.all)
        supervisor = Supervisor(settings, folder, registry, programs, archive.keep, launcher)
        archive.supervisor = supervisor
        operations = Operations(registry, supervisor)
        operations.give_up_old()
    except BaseException:
        # A job manager among several tries again every second.
        registry.close()
        if supervisor is not None:
            supervisor.stop(leave_jobs=True)
        raise
    sql = SqlSessions(settings, folder, supervisor, programs, supervisor.launcher)
    started = int(time.time() * 1000)
    return Cluster(settings, folder, supervisor, programs, operations, tokens, sql, started, stop, log)


def registry_of(settings: ClusterSettings, folder: ClusterFolder) -> Registry:
    if not settings.highly_available:
        return SqliteRegistry(folder.registry)
    from firesteel.cluster.postgres_registry import PostgresRegistry

    return PostgresRegistry(settings.database, settings.driver_lease_ms / 1000)


def election_of(settings: ClusterSettings, folder: ClusterFolder, address: str) -> Election:
    if not settings.highly_available:
        return FileElection(folder.lock)
    if settings.zookeeper:
        from firesteel.cluster.zookeeper_election import ZookeeperElection

        path = f"{settings.zookeeper_root.rstrip('/')}/{settings.cluster_id}/leader"
        return ZookeeperElection(settings.zookeeper, path, address, settings.lease_ms / 1000)
    from firesteel.cluster.postgres_election import PostgresElection

    return PostgresElection(settings.database, settings.lease_ms / 1000)


def serve(settings: ClusterSettings, ready: Callable[[str], None] = lambda address: None) -> int:
    """Runs a job manager until it is stopped. ``ready`` is called with its address once it answers."""
    folder = ClusterFolder.make(settings.folder)
    if settings.highly_available:
        return _serve_highly_available(settings, folder, ready)
    return _serve_alone(settings, folder, ready)


def _serve_alone(settings: ClusterSettings, folder: ClusterFolder, ready: Callable[[str], None]) -> int:
    election = FileElection(folder.lock)
    if not election.stand(0):
        raise SetupError(f"Another job manager works in {folder.path}: see 'firesteel cluster status'.")
    _log_to(folder.logs / "jobmanager.log")
    listening = _listening(settings)
    ending = _Ending()
    cluster = assemble(settings, folder, ending.begin)
    server = ending.server = _server(settings, build(cluster))
    try:
        cluster.supervisor.start()
        address = _address(settings, listening)
        leave_address(folder.address, address)
        logger.info("the job manager listens at %s", address)
        ready(address)
        _run(server, listening)
    finally:
        cluster.close(ending.leave_jobs)
        folder.address.unlink(missing_ok=True)
        logger.info("the job manager has ended")
        election.resign()
    return 0


def _serve_highly_available(settings: ClusterSettings, folder: ClusterFolder, ready: Callable[[str], None]) -> int:
    listening = _listening(settings)
    address = _address(settings, listening)
    name = re.sub("[^A-Za-z0-9.]", "_", address.partition("//")[2])
    log = f"jobmanager-{name}.log"
    _log_to(folder.logs / log)
    # Says at once if the database cannot be reached, or the package is missing.
    lookup = registry_of(settings, folder)
    election = election_of(settings, folder, address)
    ending = _Ending()
    switch = Switch(standby_app(settings, Tokens.of(folder), address, lookup.leader))

    def announce(leads: bool) -> None:
        if leads:
            leave_address(folder.address, address)
        else:
            remove_address(folder.address, address)

    leadership = Leadership(
        election, lambda: assemble(settings, folder, ending.begin, address=address, log=log), switch, announce
    )
    server = ending.server = _server(settings, switch)
    member = folder.members / f"{name}.json"
    make_private_folder(str(folder.members))
    try:
        leadership.start()
        leave_address(member, address)
        logger.info("the job manager listens at %s", address)
        ready(address)
        _run(server, listening)
    finally:
        leadership.leave_jobs = ending.leave_jobs
        leadership.stop()
        remove_address(member, address)
        lookup.close()
        logger.info("the job manager has ended")
    return 0


class _Ending:
    """How a server is to end, as somebody asked for."""

    def __init__(self) -> None:
        self.leave_jobs = True
        self.server: uvicorn.Server | None = None

    def begin(self, leave_jobs: bool) -> None:
        self.leave_jobs = leave_jobs
        # A moment later, so that whoever asked for it gets an answer.
        if self.server is not None:
            threading.Timer(0.2, setattr, (self.server, "should_exit", True)).start()


def _address(settings: ClusterSettings, listening: socket.socket) -> str:
    """The one that others are given."""
    host, port = listening.getsockname()[:2]
    if settings.highly_available:
        host = settings.public_host
    return f"{settings.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _server(settings: ClusterSettings, app: ASGIApp) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
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
    return uvicorn.Server(config)


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


def _log_to(file: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(file, maxBytes=16 << 20, backupCount=5)
    os.chmod(file, 0o600)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("firesteel", "uvicorn"):
        found = logging.getLogger(name)
        found.addHandler(handler)
        found.setLevel(logging.INFO)


if __name__ == "__main__":
    from firesteel.cluster.starting import settings_from_environment

    sys.exit(serve(settings_from_environment()))
