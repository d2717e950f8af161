"""Requests while one job manager takes over from another: nothing is done twice, and nobody else is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from clusterkit import FakeLauncher, client_of, finish, has_state, running_cluster, wait_for_process
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.leadership import Switch
from firesteel.cluster.processes import start_of
from firesteel.cluster.registry import JobRow, Leader, StaleEpochError
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.rest.standby import standby_app
from firesteel.errors import JobCommandError, JobManagerError, SavepointError


@contextlib.contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", access_log=False))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


class Lossy:
    """The first answer to each request that changes something is lost: the client learns only that it failed."""

    def __init__(self, app: ASGIApp, status: int) -> None:
        self._app, self._status = app, status
        self.lost: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope["path"])
        if scope["method"] == "GET" or path in self.lost or path == "/jars/upload":
            await self._app(scope, receive, send)
            return
        self.lost.append(path)

        async def nothing(message: Message) -> None:
            pass

        await self._app(scope, receive, nothing)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"errors": ["Try again."]}'})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path / "c", FakeLauncher()) as found:
        yield found


@pytest.mark.parametrize("status", [502, 503])
def test_what_was_asked_for_twice_is_done_once(cluster: Cluster, tmp_path: Path, status: int) -> None:
    program = tmp_path / "p.py"
    program.write_text("print()\n")
    lossy = Lossy(build(cluster), status)
    with served(lossy) as address:
        # Two addresses, as of a cluster: then requests are repeated.
        client = ClusterClient(f"{address},{address}", cluster.tokens.full)
        job = client.submit(str(program))
        assert [row.id for row in cluster.supervisor.rows()] == [job]
        with pytest.raises(SavepointError, match="cannot be asked"):
            client.job(job).savepoint()
        # The job has ended by the time that it is asked for again, as one that was stopped has.
        wait_for_process(cluster, job)
        begin = cluster.operations.stop

        def stop(*given: object) -> object:
            operation = begin(*given)  # type: ignore[arg-type]
            finish(cluster, job)
            assert has_state(cluster, job, "FINISHED")
            cluster.operations.stop = begin  # type: ignore[method-assign]
            return operation

        cluster.operations.stop = stop  # type: ignore[method-assign, assignment]
        with pytest.raises(SavepointError, match="cannot be asked"):
            client.job(job).stop()
        with pytest.raises(JobCommandError, match="has ended"):
            client.job(job).savepoint()
    assert lossy.lost == [lossy.lost[0], f"/jobs/{job}/savepoints", f"/jobs/{job}/stop"]


def test_what_may_have_been_done_is_not_answered_with_try_again(cluster: Cluster) -> None:
    add = cluster.supervisor.registry.add_job

    def lost(row: JobRow) -> None:
        add(row)
        raise StaleEpochError("Another job manager has taken over.")

    cluster.supervisor.registry.add_job = lost  # type: ignore[method-assign]
    program = cluster.programs.put("p.py", b"print()\n")
    answer = client_of(cluster).post(f"/jars/{program.id}/run", json={})
    assert (answer.status_code, "Look what was done" in answer.text) == (502, True)
    assert len(cluster.supervisor.registry.jobs()) == 1


# A job manager that stands by


def test_a_job_manager_that_stands_by_is_stopped_alone(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[bool] = []
    object.__setattr__(cluster, "stop", ended.append)
    with served(build(cluster)) as leader:
        standing_by = standby_app(cluster.settings, cluster.tokens, "http://x:1", lambda: Leader(1, f"http://{leader}"))
        with served(standing_by) as address:
            client = ClusterClient(address, cluster.tokens.full)
            assert client.leads() is False
            assert ClusterClient(leader, cluster.tokens.full).leads() is True
            with pytest.raises(JobManagerError, match="not the leader"):
                client.end(leave_jobs=False)
            # The same by the command line, on a machine where nobody leads.
            process = subprocess.Popen(["sleep", "1000"])
            cluster.folder.members.mkdir()
            known = {"address": f"http://{address}", "pid": process.pid, "started": start_of(process.pid)}
            (cluster.folder.members / "one.json").write_text(json.dumps(known))
            assert main(["cluster", "stop", "--dir", str(cluster.folder.path)]) == 0
            assert process.wait(300) == -signal.SIGTERM
            assert ended == []
            ClusterClient(leader, cluster.tokens.full).end(leave_jobs=True)
            assert ended == [True]
    assert "has ended" in capsys.readouterr().out


def test_requests_that_wait_for_a_leader_hold_up_nobody_who_is_elected(cluster: Cluster) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        switch = Switch(standby_app(cluster.settings, cluster.tokens, "http://x:1", lambda: Leader(1, address)))
        headers = {"Authorization": f"Bearer {cluster.tokens.full}"}
        accepted: list[socket.socket] = []

        async def ask() -> int:
            transport = httpx.ASGITransport(switch)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=None
            ) as client:
                waiting = [asyncio.create_task(client.get("/jobs/overview")) for _ in range(40)]
                # Each of them has reached the leader that says nothing.
                for _ in waiting:
                    accepted.append((await asyncio.to_thread(silent.accept))[0])
                switch.app = build(cluster)
                async with asyncio.timeout(60):
                    answer = await client.get("/jobs/overview")
                for line in accepted:
                    line.close()
                await asyncio.gather(*waiting)
                return answer.status_code

        assert asyncio.run(ask()) == 200


def test_nobody_without_a_token_fills_the_memory_of_a_standby(cluster: Cluster) -> None:
    asked: list[int] = []

    def nobody() -> None:
        asked.append(1)

    app = standby_app(cluster.settings, cluster.tokens, "http://x:1", nobody)

    def post(path: str, size: int) -> int:
        with served(app) as address:
            headers = {"Authorization": f"Bearer {cluster.tokens.full}"}
            return httpx.post(f"http://{address}{path}", content=b"x" * size, headers=headers, timeout=60).status_code

    assert post("/firesteel/v1/login", 5000) == 413
    assert post("/jobs/x/savepoints", (1 << 20) + 1) == 413
    assert asked == []
    assert post("/jars/upload", (1 << 20) + 1) == 503
    assert post("/firesteel/v1/login", 100) == 503
