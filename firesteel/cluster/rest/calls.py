"""How end points are declared: a function that gets a call and answers with JSON, and a few words on it.

One list of them makes the routes, the check of tokens and the OpenAPI description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.operations import Operations
from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sql_sessions import SqlSessions
from firesteel.cluster.supervisor import Supervisor
from firesteel.cluster.tokens import Tokens
from firesteel.cluster.views import JobView, Vertex, view_of
from firesteel.errors import FailureKind, FiresteelError

__all__ = ["Call", "Cluster", "Endpoint", "Endpoints", "File", "RestError", "Upload"]


class RestError(FiresteelError):
    """What a client did wrong, with the status of the answer."""

    kind = FailureKind.PERMANENT

    def __init__(self, status: int, *messages: str, **more: Any) -> None:
        """``more``: what the answer says besides."""
        super().__init__(*messages)
        self.status = status
        self.messages = messages
        self.more = more


@dataclass(frozen=True)
class Cluster:
    """What end points work with."""

    settings: ClusterSettings
    folder: ClusterFolder
    supervisor: Supervisor
    programs: ProgramStore
    operations: Operations
    tokens: Tokens
    sql: SqlSessions
    started: int
    """In milliseconds since 1970."""
    stop: Callable[[bool], None] = lambda leave_jobs: None
    """Ends the job manager; with True its jobs run on."""
    log: str = "jobmanager.log"
    """The name of its own log file."""

    def close(self, leave_jobs: bool) -> None:
        """Ends what it has started: SQL sessions at once, jobs unless they are to run on."""
        self.sql.close()
        self.supervisor.stop(leave_jobs)

    def view(self, job_id: str) -> JobView:
        return view_of(self.supervisor, job_id, self.tokens.all)


@dataclass(frozen=True)
class Upload:
    """A file that came with a request."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class File:
    """An answer that is no JSON."""

    content: bytes
    kind: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One request, read and checked."""

    cluster: Cluster
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)
    """What a request that is JSON has; of some GETs an empty object."""
    uploads: tuple[Upload, ...] = ()
    base: str = ""
    """The address that the client used."""
    prefix: str = ""
    """The version of the API in the path that it used, as /v2."""

    def job(self) -> JobView:
        return self.cluster.view(_job_id(self.path["jobid"]))

    @property
    def job_id(self) -> str:
        return self.cluster.supervisor.row(_job_id(self.path["jobid"])).id

    def vertex(self) -> tuple[JobView, Vertex]:
        view = self.job()
        vertex = view.vertex(self.path["vertexid"])
        if vertex is None:
            raise RestError(404, f"Job {view.id} has no vertex {self.path['vertexid']}.")
        return view, vertex

    def number(self, name: str, most: int = 2**31 - 1) -> int:
        """A whole number in the path."""
        text = self.path[name]
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) > most:
            raise RestError(404, f"{name} should be a number, got {text[:40]!r}.")
        return int(text)

    # What a client sent. The body wins over the query.

    def text(self, name: str, *older: str) -> str | None:
        for key in (name, *older):
            if self.body.get(key) is not None:
                if not isinstance(self.body[key], str):
                    raise RestError(400, f"{key} should be a text.")
                return str(self.body[key]) or None
        for key in (name, *older):
            if self.query.get(key):
                return self.query[key]
        return None

    def flag(self, name: str, *older: str) -> bool:
        for key in (name, *older):
            value = self.body.get(key)
            if isinstance(value, bool):
                return value
            if value is not None and str(value).lower() not in ("true", "false"):
                raise RestError(400, f"{key} should be true or false.")
            if value is not None:
                return str(value).lower() == "true"
        return any(self.query.get(key, "").lower() == "true" for key in (name, *older))

    def whole(self, name: str) -> int | None:
        value = self.body.get(name)
        if value is None:
            value = self.query.get(name) or None
        if value is None:
            return None
        if isinstance(value, bool) or not re.fullmatch("-?[0-9]{1,9}", str(value)):
            raise RestError(400, f"{name} should be a whole number.")
        return int(value)


def _job_id(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{32}", text):
        raise RestError(404, f"A job id has 32 hexadecimal digits, got {text[:40]!r}.")
    return text.lower()


Handler = Callable[[Call], Any]


@dataclass(frozen=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    changes: bool
    """Whether it takes the token that allows changes."""
    upload: bool = False
    status: int = 200
    body: Mapping[str, Any] | None = None
    """The properties of its JSON body, as in a JSON schema."""
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    own: bool = False
    """Whether it is Firesteel's own: without a second path below /v1."""
    versions: tuple[str, ...] = ("v1",)
    """The versions of Flink's API that have it."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What its paths may begin with."""
        return ("",) if self.own else ("", *(f"/{version}" for version in self.versions))

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().splitlines()[0]


class Endpoints(list[Endpoint]):
    """The end points of one part of the API."""

    def get(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("GET", path, more.pop("changes", False), **more)

    def post(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("POST", path, more.pop("changes", True), **more)

    def patch(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("PATCH", path, True, **more)

    def delete(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("DELETE", path, True, **more)

    def _add(self, method: str, path: str, changes: bool, **more: Any) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self.append(Endpoint(method, path, handler, changes, **more))
            return handler

        return add


def inside(folder: Path, name: str) -> Path | None:
    """A plain file of a folder by its name, which may be anything; None where there is none. Nothing that leads out of
    the folder is followed: no separators, no links."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", name):
        return None
    path = folder / name
    return path if path.is_file() and not path.is_symlink() else None
