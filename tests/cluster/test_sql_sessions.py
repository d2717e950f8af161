"""SQL sessions of a job manager: processes that come and go, limits, errors, what Flink's SQL gateway answers."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterkit import FakeLauncher, client_of, has_state, running_cluster, settings_for
from sparkkit import eventually
from starlette.testclient import TestClient

from firesteel.cluster import sql_sessions
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import Launcher
from firesteel.cluster.processes import Process, session_members
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.sql_line import LineError, SqlLine, TheirError

NUMBERS = "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50')"
NOWHERE = "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')"
MEMORY = {"firesteel.master": "memory", "parallelism.default": "1"}


@pytest.fixture(scope="module")
def real(short: Path) -> Iterator[Cluster]:
    """With sessions and drivers that are processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
        with running_cluster(short / "real", sql_sessions=2) as found:
            yield found


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[Cluster]:
    """With sessions that are threads of this process."""
    with running_cluster(tmp_path / "c", FakeLauncher(), sql_sessions=2) as found:
        yield found


class Gateway:
    """A client of Flink's SQL gateway."""

    def __init__(self, cluster: Cluster, version: str = "v2") -> None:
        self.client: TestClient = client_of(cluster)
        opened = self.client.post(f"/{version}/sessions", json={"properties": MEMORY})
        assert opened.status_code == 200, opened.text
        self.handle = opened.json()["sessionHandle"]
        self.path = f"/{version}/sessions/{self.handle}"

    def execute(self, statement: str) -> str:
        answer = self.client.post(f"{self.path}/statements", json={"statement": statement})
        assert answer.status_code == 200, answer.text
        return f"{self.path}/operations/{answer.json()['operationHandle']}"

    def ready(self, place: str) -> Any:
        """Page 0, once there is one."""
        assert eventually(lambda: self.client.get(f"{place}/status").json()["status"] not in ("PENDING", "RUNNING"))
        return self.client.get(f"{place}/result/0")

    def run(self, statement: str) -> Any:
        answer = self.ready(self.execute(statement))
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_a_story(real: Cluster) -> None:
    """Tables, a query, a job with a password; then the session's process is killed, and the job goes on."""
    gateway = Gateway(real)
    client = gateway.client
    gateway.run(NUMBERS)
    gateway.run(NOWHERE)
    query = gateway.execute("SELECT n FROM numbers")
    assert gateway.ready(query).json()["isQueryResult"] is True
    token = 0
    rows: list[Any] = []
    while not rows:
        token += 1
        rows = client.get(f"{query}/result/{token}").json()["results"]["data"]
    assert rows[0]["kind"] == "INSERT"
    assert isinstance(rows[0]["fields"][0], int)
    assert client.post(f"{query}/cancel").json() == {"status": "CANCELED"}
    gateway.run("SET 'shop.password' = 'hunter2-and-more'")
    job = gateway.run("INSERT INTO nowhere SELECT n FROM numbers")["jobID"]
    assert has_state(real, job, "RUNNING")
    overview = client.get("/jobs/overview").json()["jobs"]
    assert [one["name"] for one in overview if one["jid"] == job] == [
        "insert-into_default_catalog.default_database.nowhere"
    ]
    shown = [f"/jobs/{job}/config", f"/firesteel/v1/manager/jobs/{job}", f"/firesteel/v1/jobs/{job}", gateway.path]
    for path in shown:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "hunter2-and-more" not in answer.text, path
    # What a log says is masked, too: the settings of the job have it.
    real.folder.job(job).log(0).open("a").write("connected with hunter2-and-more\n")
    assert "connected with ******" in client.get(f"/firesteel/v1/manager/jobs/{job}/logs/attempt-0.log").text
    (found,) = client.get("/firesteel/v1/sql/sessions").json()["sessions"]
    process = Process.of(found["pid"])
    os.kill(process.pid, signal.SIGKILL)
    gone = client.post(f"{gateway.path}/statements", json={"statement": "SHOW TABLES"})
    assert gone.status_code == 410
    (why,) = gone.json()["errors"]
    assert f"(number {process.pid}) has ended, killed by signal 9 (SIGKILL)" in why
    assert "begin a new session" in why
    assert session_members(process) == []
    assert real.folder.sql.joinpath(f"{gateway.handle}.log").exists(), "what it said stays"
    assert real.supervisor.row(job).state == "RUNNING"
    real.supervisor.cancel(job)
    assert has_state(real, job, "CANCELED")


def test_a_session_ends_with_its_processes_and_files(real: Cluster) -> None:
    gateway = Gateway(real)
    (found,) = real.sql.listed()
    process = Process.of(found["pid"])
    assert process.alive
    assert gateway.client.delete(gateway.path).json() == {"status": "CLOSED"}
    assert not process.alive
    assert not real.folder.sql.joinpath(f"{gateway.handle}.log").exists()
    assert gateway.client.get(gateway.path).status_code == 410


def test_a_session_ends_when_the_job_manager_is_gone(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it ended: the system closes its end of the line."""
    process, connection = Launcher(10, 1 << 20, 1).start_session(short / "orphan.log", MEMORY)
    line = SqlLine(connection, lambda what, given: None, lambda error: {})
    threading.Thread(target=line.serve, daemon=True).start()
    line.ask("begin", 120, settings=MEMORY)
    for statement in (NUMBERS, "SELECT n FROM numbers"):
        operation = line.ask("execute", 60, statement=statement)
    assert eventually(lambda: line.ask("status", 60, operation=operation) == "FINISHED")
    assert process.alive
    line.close()
    assert process.wait(60)
    process.reap()


def test_flinks_shapes(threads: Cluster) -> None:
    client = client_of(threads)
    assert client.get("/v1/info").json()["productName"] == "Firesteel"
    assert client.get("/api_versions").json() == {"versions": ["V1", "V2", "V3"]}
    gateway = Gateway(threads, "v3")
    place = gateway.execute("SHOW CATALOGS;")
    first = gateway.ready(place).json()
    assert first == {
        "resultType": "PAYLOAD",
        "isQueryResult": False,
        "resultKind": "SUCCESS_WITH_CONTENT",
        "results": {
            "columns": [
                {
                    "name": "catalog name",
                    "logicalType": {"type": "VARCHAR", "nullable": True, "length": 2147483647},
                    "comment": None,
                }
            ],
            "rowFormat": "JSON",
            "data": [{"kind": "INSERT", "fields": ["default_catalog"]}],
        },
        "nextResultUri": f"{place}/result/1?rowFormat=JSON",
    }
    last = client.get(first["nextResultUri"]).json()
    assert (last["resultType"], last["results"]["data"], "nextResultUri" in last) == ("EOS", [], False)
    assert client.get(f"{place}/result/2").status_code == 400
    assert client.get(f"{place}/result/0?rowFormat=XML").status_code == 400
    assert client.delete(f"{place}/close").json() == {"status": "CLOSED"}
    assert client.get(f"{place}/status").status_code == 404
    assert client.post(f"{gateway.path}/heartbeat").json() == {}
    assert client.post(f"{gateway.path}/configure-session", json={"statement": "SET 'a' = 'b'"}).json() == {}
    assert client.get(gateway.path).json()["properties"]["a"] == "b"
    refused = client.post(f"{gateway.path}/configure-session", json={"statement": "SELECT 1"})
    assert refused.status_code == 400
    wrong = client.post(f"{gateway.path}/configure-session", json={"statement": "CREATE TABEL t (n INT)"})
    assert wrong.status_code == 400
    assert client.post(f"{gateway.path}/statements", json={"statement": " "}).status_code == 400
    assert client.post(f"{gateway.path}/statements", json={}).status_code == 400


def test_an_error_has_its_place(threads: Cluster) -> None:
    gateway = Gateway(threads)
    script = {"script": "SHOW TABLES;\nSELECT 1,\n  x;"}
    answer = gateway.client.post(f"/firesteel/v1/sql/sessions/{gateway.handle}/scripts", json=script).json()
    _, wrong = answer["statements"]
    place = f"{gateway.path}/operations/{wrong['operationHandle']}"
    refused = gateway.ready(place)
    assert refused.status_code == 400
    # Flink's clients cannot read an error that has more than this.
    assert list(refused.json()) == ["errors"]
    told = gateway.client.get(f"{place}/result/0?place=true").json()
    assert told["errors"] == refused.json()["errors"]
    assert told["errors"][0].endswith("\n    x\n    ^")
    assert (wrong["line"], wrong["column"]) == (2, 1)
    assert (told["error"]["line"], told["error"]["column"], told["error"]["length"]) == (2, 3, 1)


def test_an_incomplete_statement_is_marked(threads: Cluster) -> None:
    """Flink's SQL client sends what comes before each semicolon, and reads on when it finds this mark."""
    gateway = Gateway(threads)
    for statement, incomplete in (
        ("EXECUTE STATEMENT SET BEGIN\nINSERT INTO t SELECT 1;", True),
        ("BEGIN STATEMENT SET;", True),
        ("SELECT 1 +", True),
        ("SELECT 1 + FROM t", False),
        ("SELECT x", False),
    ):
        errors = gateway.ready(gateway.execute(statement)).json()["errors"]
        assert (errors[1:] == ['Encountered "<EOF>"']) is incomplete, (statement, errors)
        assert len(errors) == 1 + incomplete


def test_so_many_sessions_and_no_more(threads: Cluster) -> None:
    first = Gateway(threads)
    Gateway(threads)
    refused = first.client.post("/v1/sessions", json={})
    assert refused.status_code == 409
    assert "There are 2 SQL sessions already" in refused.json()["errors"][0]
    first.client.delete(first.path)
    Gateway(threads)


def test_a_session_that_nobody_uses_ends(threads: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    used, idle = Gateway(threads), Gateway(threads)
    now = time.monotonic()
    # Far from the limit: the job manager looks, too, and the sessions may be seconds old already.
    monkeypatch.setattr(sql_sessions.time, "monotonic", lambda: now + 300)
    assert used.client.post(f"{used.path}/heartbeat").status_code == 200
    monkeypatch.setattr(sql_sessions.time, "monotonic", lambda: now + 601)
    threads.sql.end_idle()
    monkeypatch.undo()
    assert eventually(lambda: [one["sessionHandle"] for one in threads.sql.listed()] == [used.handle])
    gone = idle.client.get(idle.path)
    assert gone.status_code == 410
    assert "Nobody used the session for 600 s (sql-gateway.session.idle-timeout)" in gone.json()["errors"][0]


def test_a_session_that_cannot_begin(tmp_path: Path) -> None:
    class Broken(FakeLauncher):
        def start_session(self, log: Path, settings: Any) -> Any:
            process, line = super().start_session(log, settings)
            line.shutdown(socket.SHUT_RDWR)
            return process, line

    with running_cluster(tmp_path / "c", Broken()) as cluster:
        answer = client_of(cluster).post("/v1/sessions", json={})
        assert answer.status_code == 410
        assert cluster.sql.listed() == []
        assert client_of(cluster).post("/v1/sessions", json={"properties": {"a\x1fb": "c"}}).status_code == 400
        assert client_of(cluster).post("/v1/sessions", json={"properties": [1]}).status_code == 400


def test_no_sessions_where_none_are_wanted(tmp_path: Path) -> None:
    assert settings_for(tmp_path, sql_sessions=0).checked().sql_sessions == 0
    with running_cluster(tmp_path / "c", FakeLauncher(), sql_sessions=0) as cluster:
        answer = client_of(cluster).post("/v1/sessions", json={})
        assert answer.status_code == 409
        assert "sql-gateway.session.max-num" in answer.json()["errors"][0]


def test_nothing_is_left_when_the_job_manager_ends(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "c", FakeLauncher()) as cluster:
        Gateway(cluster)
        (found,) = cluster.sql.listed()
        process = Process.of(found["pid"])
    assert not process.alive
    assert list(ClusterFolder(tmp_path / "c").sql.iterdir()) == []


# The line itself.


def pair() -> tuple[SqlLine, SqlLine]:
    def answer(what: str, given: dict[str, Any]) -> Any:
        if what == "fail":
            raise ValueError("no")
        return [what, given]

    left, right = socket.socketpair()
    found = [SqlLine(one, answer, lambda error: {"text": str(error), "more": 1}) for one in (left, right)]
    for one in found:
        threading.Thread(target=one.serve, daemon=True).start()
    return found[0], found[1]


def test_both_sides_of_a_line_ask_and_answer() -> None:
    left, right = pair()
    assert left.ask("one", 30, a="\n") == ["one", {"a": "\n"}]
    assert right.ask("two", 30) == ["two", {}]
    with pytest.raises(TheirError, match="no") as caught:
        left.ask("fail", 30)
    assert caught.value.error["more"] == 1
    right.close()
    with pytest.raises(LineError, match="has ended"):
        left.ask("one", 30)
    left.close()
