"""The other end of the REST API: for the command line, tests, and programs that steer jobs.

    manager = ClusterClient.find()
    job_id = manager.submit("orders.py")
    manager.job(job_id).savepoint()

Needs nothing that the job manager needs: Python's own HTTP client.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import ssl
import time
import urllib.parse
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from firesteel.cluster.folders import default_folder
from firesteel.cluster.registry import ENDED
from firesteel.cluster.starting import find_members, find_running
from firesteel.cluster.tokens import read_token
from firesteel.engine.facade import Cancel, Command, JobDetails, JobFacade, Stop, TakeSavepoint
from firesteel.engine.facade.encoding import decoded
from firesteel.errors import (
    FiresteelError,
    JobCommandError,
    JobExecutionError,
    JobManagerError,
    JobNotFoundError,
    ProgramError,
    SavepointError,
)

__all__ = ["FORWARDED", "LEADER", "ClusterClient", "ClusterJob", "Place", "packed_program"]

AnswerT = TypeVar("AnswerT")

LEADER = "Firesteel-Leader"
"""The header of answers that were passed on: it says where the leader is."""
FORWARDED = "Firesteel-Forwarded"
"""The header of requests that were passed on: they are passed on once."""
SECONDS = 30.0
SECONDS_TO_PLAN = 300.0
SECONDS_TO_FAIL_OVER = 30.0
SHORTEST_PAUSE = 0.05
"""Between two looks at a log that grows."""


@dataclass(frozen=True)
class Place:
    """Where a job manager listens.

    >>> str(Place.of("localhost:8081")), str(Place.of("https://jobs.example.org"))
    ('http://localhost:8081', 'https://jobs.example.org:443')
    """

    secure: bool
    host: str
    port: int

    @staticmethod
    def of(address: str) -> Place:
        parts = urllib.parse.urlsplit(address if "//" in address else f"http://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise JobManagerError(f"{address!r} is not an address of a job manager: host:port, or https://host:port.")
        secure = parts.scheme == "https"
        return Place(secure, parts.hostname, parts.port or (443 if secure else 8081))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def same_as(self, other: Place) -> bool:
        names = {"localhost": "127.0.0.1"}
        return (names.get(self.host, self.host), self.port) == (names.get(other.host, other.host), other.port)


class ClusterClient:
    """A job manager, or several of a cluster, as its clients see it."""

    def __init__(self, address: str, token: str | None, authorities: str | None = None) -> None:
        """``address``: ``host:port``, or several of a cluster, separated by commas. ``authorities``: a file with
        certificates to trust, for a server whose own one is not known otherwise."""
        self._places = [Place.of(one.strip()) for one in address.split(",")]
        self._token = token
        self._authorities = authorities

    @property
    def address(self) -> str:
        """The one that answered last."""
        return str(self._places[0])

    @staticmethod
    def find(address: str | None = None, folder: Path | None = None) -> ClusterClient | None:
        """The job manager of an address, or else the one that works in this user's folder; None where none does.

        The token is FIRESTEEL_TOKEN, or in the file FIRESTEEL_TOKEN_FILE, or in the folder; from there it is sent to
        the job manager of that folder only."""
        folder = folder or default_folder()
        running = find_running(folder)
        token = os.environ.get("FIRESTEEL_TOKEN")
        if not token and os.environ.get("FIRESTEEL_TOKEN_FILE"):
            token = read_token(Path(os.environ["FIRESTEEL_TOKEN_FILE"]))
        authorities = os.environ.get("FIRESTEEL_CA_FILE")
        if address is None:
            if running is None:
                return None
            return ClusterClient(running.address, token or read_token(folder / "token"), authorities)
        client = ClusterClient(address, token, authorities)
        own = [Place.of(one.address) for one in (running, *find_members(folder)) if one is not None]
        if not token and all(any(place.same_as(one) for one in own) for place in client._places):
            client._token = read_token(folder / "token")
        return client

    # Requests

    def get(self, path: str, **query: Any) -> Any:
        return self.request("GET", path, query=query)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        seconds: float = SECONDS,
        idempotent: bool = False,
    ) -> Any:
        """Asks for JSON. A refusal becomes an error with the server's text. ``idempotent``: it may be sent again where
        it is not known whether it has arrived."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        known = {key: str(value) for key, value in (query or {}).items() if value is not None}
        target = path + (f"?{urllib.parse.urlencode(known)}" if known else "")
        answer, _ = self._ask(method, target, content, headers, seconds, idempotent)
        return json.loads(answer) if answer.strip() else {}

    def text(self, path: str, **query: Any) -> tuple[str, Mapping[str, str]]:
        """Asks for a text; returns it with the headers of the answer."""
        known = {key: str(value) for key, value in query.items() if value is not None}
        target = path + (f"?{urllib.parse.urlencode(known)}" if known else "")
        answer, headers = self._ask("GET", target, None, {}, SECONDS)
        return answer.decode(errors="replace"), headers

    def _ask(
        self,
        method: str,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
        idempotent: bool = False,
    ) -> tuple[bytes, Mapping[str, str]]:
        """One of several job managers takes over when another one dies. That takes some seconds, which are waited."""
        idempotent |= method == "GET"
        # 503: nothing was done. 502: it may have been.
        passing = (502, 503) if idempotent else (503,)
        deadline = time.monotonic() + (SECONDS_TO_FAIL_OVER if len(self._places) > 1 else 0)
        while True:
            for _ in self._places:
                status, answer, known, failure = self._ask_first(method, target, content, headers, seconds)
                if status is not None and status not in passing:
                    if status >= 400:
                        raise _error(status, answer, self.address)
                    return answer, known
                if failure is not None and not idempotent and not isinstance(failure, ConnectionRefusedError):
                    # It may have arrived, and must not come twice.
                    raise JobManagerError(f"The job manager at {self.address} gave no answer: {failure}.") from failure
                if len(self._places) > 1:
                    self._places.append(self._places.pop(0))
            if time.monotonic() > deadline:
                break
            time.sleep(0.3)
        if status is not None:
            raise _error(status, answer, self.address)
        addresses = ", ".join(str(place) for place in self._places)
        raise JobManagerError(f"No job manager answers at {addresses}: {failure}.") from failure

    def _ask_first(
        self, method: str, target: str, content: bytes | None, headers: Mapping[str, str], seconds: float
    ) -> tuple[int | None, bytes, Mapping[str, str], Exception | None]:
        sent = dict(headers)
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        connection = self._connection(seconds)
        try:
            connection.request(method, target, content, sent)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders()), None
        except (OSError, http.client.HTTPException) as error:
            return None, b"", {}, error
        finally:
            connection.close()

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        place = self._places[0]
        if place.secure:
            context = ssl.create_default_context(cafile=self._authorities)
            return http.client.HTTPSConnection(place.host, place.port, timeout=seconds, context=context)
        return http.client.HTTPConnection(place.host, place.port, timeout=seconds)

    # The job manager itself

    def leads(self) -> bool | None:
        """Whether the one that answers leads; None while nobody does."""
        try:
            _, headers = self.text("/firesteel/v1/manager")
        except JobManagerError:
            return None
        return LEADER.lower() not in {name.lower() for name in headers}

    def end(self, leave_jobs: bool) -> None:
        """Ends the job manager at this address, if it leads, and no other one."""
        self._ask(
            "DELETE", f"/firesteel/v1/manager?leaveJobs={str(leave_jobs).lower()}", None, {FORWARDED: "1"}, SECONDS
        )

    # Jobs

    def upload(self, program: str) -> str:
        """Uploads a program; returns its id."""
        name, content = packed_program(program)
        boundary = uuid.uuid4().hex
        safe = name.replace('"', "_").replace("\r", "_").replace("\n", "_")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; filename="{safe}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        # A program is stored under its hash.
        answer, _ = self._ask("POST", "/jars/upload", body, headers, SECONDS_TO_PLAN, idempotent=True)
        return str(json.loads(answer)["filename"]).rpartition("/")[2]

    def submit(
        self,
        program: str,
        arguments: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        savepoint: str | None = None,
        lenient: bool = False,
    ) -> str:
        """Uploads a program and runs it as a job; returns the job's id."""
        job_id = uuid.uuid4().hex
        body: dict[str, Any] = {
            "jobId": job_id,
            "programArgsList": list(arguments),
            "flinkConfiguration": dict(settings or {}),
            "allowNonRestoredState": lenient,
        }
        if savepoint:
            body["savepointPath"] = savepoint
        uploaded = self.upload(program)
        try:
            self.request("POST", f"/jars/{uploaded}/run", body, seconds=SECONDS_TO_PLAN, idempotent=True)
        except ProgramError as error:
            # Nobody else has this id: it was submitted by an earlier try, whose answer was lost.
            if f"There is a job {job_id} already" not in str(error):
                raise
        return job_id

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, oldest first."""
        found: list[dict[str, Any]] = self.get("/firesteel/v1/manager/jobs")["jobs"]
        return found

    def job(self, job_id: str) -> ClusterJob:
        return ClusterJob(self, self.get(f"/firesteel/v1/manager/jobs/{job_id}"))

    def logs(self, job_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/firesteel/v1/manager/jobs/{job_id}/logs")["logs"]
        return found

    def follow_log(self, job_id: str, name: str, start: int, follow: bool) -> Iterator[str]:
        """A log file from a byte on; with ``follow`` until the job has ended and all of it was read."""
        pause = SHORTEST_PAUSE
        while True:
            ended = not follow or self.job(job_id).known["state"] in ENDED
            text, headers = self.text(f"/firesteel/v1/manager/jobs/{job_id}/logs/{name}", start=start)
            end = int({key.lower(): value for key, value in headers.items()}["firesteel-log-end"])
            if text:
                pause = SHORTEST_PAUSE
                yield text
            if end == start:
                if ended:
                    return
                time.sleep(pause)
                pause = min(2 * pause, 0.5)
            # A smaller one: the file was full, and another one has its name now.
            start = end


class ClusterJob(JobFacade):
    """A job of a job manager."""

    def __init__(self, client: ClusterClient, known: Mapping[str, Any]) -> None:
        self._client = client
        self.known = known
        """What the job manager said of it last."""

    @property
    def id(self) -> str:
        return str(self.known["id"])

    @property
    def name(self) -> str:
        return str(self.known["name"])

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        answer: AnswerT = decoded(command.answer, self._answer(command))
        return answer

    def _answer(self, command: Command[Any]) -> Any:
        match command:
            case TakeSavepoint():
                return self._operation("savepoints", {"target-directory": command.directory, "cancel-job": False})
            case Stop():
                return self._operation("stop", {"targetDirectory": command.directory, "drain": command.drain})
            case Cancel():
                self._client.request("PATCH", f"/jobs/{self.id}", query={"mode": "cancel"})
                self.wait()
                return self._read("status")
        if command.parts:
            return {part: self._read(part) for part in command.parts}
        return self._read(command.name)

    def _read(self, what: str) -> Any:
        try:
            return self._client.get(f"/firesteel/v1/manager/jobs/{self.id}/answers/{what}")["answer"]
        except JobCommandError:
            if what != "status":
                raise
            # Its driver has not answered yet, or never did. The job manager knows as much as there is.
            return self.refresh()._outline()

    def listed(self) -> JobDetails:
        """What a list of jobs shows of it: no more is asked for."""
        details: JobDetails = decoded(JobDetails, self._outline())
        return details

    def _outline(self) -> dict[str, Any]:
        known = self.known
        state = "CREATED" if known["state"] == "INITIALIZING" else known["state"]
        return {
            "id": self.id,
            "name": self.name,
            "status": state,
            "engine": known.get("engine") or "spark",
            "mode": known["mode"],
            "pid": known.get("pid") or 0,
            "started": known.get("started") or known["submitted"],
            "ended": known.get("ended"),
            "parallelism": known["parallelism"],
            "attempt": known["attempt"],
            "failure": known.get("failure"),
            "records": known["records"],
            "batches": known["batches"],
            "watermark": known.get("watermark"),
            "checkpoint_folder": known.get("checkpointFolder"),
        }

    def refresh(self) -> ClusterJob:
        self.known = self._client.get(f"/firesteel/v1/manager/jobs/{self.id}")
        return self

    def wait(self, seconds: float | None = None) -> str:
        """Waits for its end; returns the state that it has then, or after so many seconds."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.refresh().known["state"] not in ENDED:
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return str(self.known["state"])

    def _operation(self, what: str, body: Mapping[str, Any]) -> dict[str, Any]:
        given = {key: value for key, value in body.items() if value is not None}
        # With an id of its own it is the same operation, however often it is asked for.
        given["triggerId"] = uuid.uuid4().hex
        trigger = self._client.request("POST", f"/jobs/{self.id}/{what}", given, idempotent=True)["request-id"]
        while True:
            answer = self._client.get(f"/jobs/{self.id}/savepoints/{trigger}")
            if answer["status"]["id"] == "COMPLETED":
                break
            time.sleep(0.2)
        operation = answer["operation"]
        if "failure-cause" in operation:
            raise SavepointError(operation["failure-cause"]["stack-trace"])
        return {"path": operation["location"]}


def packed_program(program: str) -> tuple[str, bytes]:
    """The name and the content of a program: a file as it is, a folder with a ``__main__.py`` as a zip file."""
    path = Path(program)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise ProgramError(f"The folder {program!r} has no __main__.py.")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in sorted(path.rglob("*")):
                if one.is_file() and "__pycache__" not in one.parts:
                    # A time of its own would make another program of the same files.
                    entry = zipfile.ZipInfo(str(one.relative_to(path)), (1980, 1, 1, 0, 0, 0))
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, one.read_bytes())
        return f"{path.resolve().name}.zip", packed.getvalue()
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise ProgramError(f"There is no file {program!r}.") from error


def _error(status: int, answer: bytes, address: str) -> FiresteelError:
    try:
        text = " ".join(str(one) for one in json.loads(answer)["errors"])
    except (ValueError, KeyError, TypeError):
        text = f"The job manager at {address} answered with status {status}."
    match status:
        case 401:
            return JobManagerError(
                f"{text} The job manager at {address} keeps it in the file 'token' of its folder; set "
                "FIRESTEEL_TOKEN_FILE to a copy of that file."
            )
        case 403 | 502 | 503:
            return JobManagerError(text)
        case 404:
            return JobNotFoundError(text)
        case 409:
            return JobCommandError(text)
        case 400 | 413:
            return ProgramError(text)
    return JobExecutionError(text)
