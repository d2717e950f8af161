"""The REST API: Flink's shapes, and what it does with jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterkit import FakeLauncher, client_of, finish, has_state, running_cluster, submit, wait_for_process
from sparkkit import eventually
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from firesteel.cluster.rest.calls import Cluster
from firesteel.common import JobStatus
from firesteel.datastream.checkpoint_config import INTERVAL, MIN_PAUSE
from firesteel.engine.facade import (
    CheckpointStatistics,
    CheckpointSummary,
    JobDetails,
    JobExceptions,
    JobFailure,
    JobMetrics,
    JobSnapshot,
    OperatorMetrics,
    SubtaskMetrics,
)

FLINK: dict[str, Any] = json.loads((Path(__file__).parent / "expected" / "flink_answers.json").read_text())
"""What a real Flink 2.3.0 answered, by path; lists and texts are cut."""


def snapshot(job_id: str, pid: int) -> JobSnapshot:
    """What a driver would say."""
    numbers = tuple(SubtaskMetrics(0, 100, 5, records_in=0, bytes_out=1000) for _ in range(1))
    counted = tuple(
        SubtaskMetrics(one, 40 * one, 5, {"calls": 7}, records_in=50, bytes_in=500, busy_ms=12.5) for one in range(2)
    )
    done = CheckpointSummary(3, True, 1_000, 20, 100, 4_000, 8_000, {"counted": 800})
    failed = CheckpointSummary(4, False, 2_000, 5, failure="bad")
    return JobSnapshot(
        JobDetails(
            job_id, "fake", JobStatus.RUNNING, "spark", "STREAMING", pid, 1, checkpoint_folder="/ck", records=100
        ),
        JobMetrics(
            (
                OperatorMetrics(1, "numbers", "Source: numbers", 0, 1, subtasks=numbers),
                OperatorMetrics(2, "counted", "counted", 1, 2, 800, counted),
            )
        ),
        CheckpointStatistics(1, 1, 0, (done, failed)),
        JobExceptions((JobFailure(2_000, 0, "bad", "builtins.ValueError", True, "counted", 1, trace="Traceback"),)),
    )


def run_as(cluster: Cluster, job_id: str) -> None:
    """Has the supervisor believe that the driver has answered."""
    process = wait_for_process(cluster, job_id)
    job = cluster.supervisor.managed(job_id)
    assert job is not None
    with cluster.supervisor._lock:
        job.snapshot, job.reached = snapshot(job_id, process.pid), True
        cluster.supervisor._become(job, "RUNNING")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    launcher = FakeLauncher(checkpointing=True)
    launcher.configuration = {"execution.checkpointing.interval": "2 s", "shop.limit": "3"}
    with running_cluster(tmp_path_factory.mktemp("cluster") / "c", launcher) as found:
        yield found


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> TestClient:
    return client_of(cluster)


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> str:
    row = submit(cluster)
    run_as(cluster, row.id)
    return row.id


def fits(ours: Any, flinks: Any, where: str) -> list[str]:
    """Where an answer of ours lacks something that Flink's clients may read, or has another type there."""
    if isinstance(flinks, dict):
        if not isinstance(ours, dict):
            return [f"{where} is no object"]
        if flinks and all(re.fullmatch("[0-9a-f]{32}", key) for key in flinks):
            # By vertex.
            return [
                text for key, one in ours.items() for text in fits(one, next(iter(flinks.values())), f"{where}.{key}")
            ]
        missing = [f"{where}.{key} is missing" for key in flinks if key not in ours]
        return missing + [
            text for key in flinks if key in ours for text in fits(ours[key], flinks[key], f"{where}.{key}")
        ]
    if isinstance(flinks, list):
        if not isinstance(ours, list):
            return [f"{where} is no list"]
        return [text for one in ours[:1] for element in flinks[:1] for text in fits(one, element, f"{where}[0]")]
    if flinks is None or ours is None or "NaN" in (flinks, ours):
        return []
    numbers = (int, float)
    if isinstance(flinks, bool) or isinstance(ours, bool):
        return [] if type(ours) is type(flinks) else [f"{where} is {ours!r}, Flink has {flinks!r}"]
    alike = isinstance(ours, numbers) if isinstance(flinks, numbers) else isinstance(ours, type(flinks))
    return [] if alike else [f"{where} is {ours!r}, Flink has {flinks!r}"]


FREE = ("user-config", "applications[0].jobs")
"""Objects whose keys are the user's."""


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize("path", sorted(FLINK))
def test_answers_have_flinks_shape(client: TestClient, job: str, path: str, prefix: str) -> None:
    vertices = client.get(f"/jobs/{job}").json()["vertices"]
    named = {
        "{jobid}": job,
        "{applicationid}": job,
        "{vertexid}": vertices[1]["id"],
        "{subtaskindex}": "0",
        "{attempt}": "0",
        "{checkpointid}": "3",
        "{taskmanagerid}": f"driver-{job[:12]}",
    }
    filled = re.sub("{[a-z]+}", lambda match: named[match[0]], path)
    # Flink's client sends an empty object with every GET.
    answer = client.request("GET", prefix + filled, content=b"{}")
    assert answer.status_code == 200, answer.text
    wrong = [text for text in fits(answer.json(), FLINK[path], path) if not any(f".{free}." in text for free in FREE)]
    assert wrong == []


def test_numbers_of_vertices(client: TestClient, job: str) -> None:
    source, counted = client.get(f"/jobs/{job}").json()["vertices"]
    assert source["metrics"]["write-records"] == 100
    assert source["metrics"]["read-records"] == 0
    assert counted["metrics"]["read-records"] == 100
    assert counted["metrics"]["read-bytes"] == 1000
    assert (source["status"], counted["tasks"]["RUNNING"]) == ("RUNNING", 2)
    assert re.fullmatch("[0-9a-f]{32}", counted["id"])
    base = f"/jobs/{job}/vertices/{counted['id']}"
    found = client.get(f"{base}/subtasks/metrics", params={"get": "numRecordsOut,busyTimeMsPerSecond"}).json()
    assert found[0] == {"id": "numRecordsOut", "min": 0.0, "max": 40.0, "avg": 20.0, "sum": 40.0, "skew": 100.0}
    assert client.get(f"{base}/metrics", params={"get": "1.counted.calls"}).json() == [
        {"id": "1.counted.calls", "value": "7"}
    ]
    assert client.get(f"{base}/subtasks/metrics", params={"get": "numRecordsOut", "agg": "max"}).json() == [
        {"id": "numRecordsOut", "max": 40.0}
    ]
    assert client.get(f"{base}/subtasks/metrics", params={"get": "numRecordsOut", "agg": "best"}).status_code == 400
    assert {"id": "numRestarts"} in client.get(f"/jobs/{job}/metrics").json()


def test_exceptions_and_checkpoints(client: TestClient, job: str) -> None:
    (entry,) = client.get(f"/jobs/{job}/exceptions").json()["exceptionHistory"]["entries"]
    assert entry["exceptionName"] == "builtins.ValueError"
    assert entry["taskName"] == "counted (2)"
    assert client.get(f"/jobs/{job}/exceptions?maxExceptions=0").json()["exceptionHistory"]["truncated"]
    known = client.get(f"/jobs/{job}/checkpoints").json()
    assert known["counts"]["completed"] == 1
    assert known["latest"]["failed"]["failure_message"] == "bad"
    assert known["latest"]["completed"]["external_path"] == "/ck"
    assert client.get(f"/jobs/{job}/checkpoints/config").json()["interval"] == 2000
    tasks = client.get(f"/jobs/{job}/checkpoints/details/3").json()["tasks"]
    assert sorted(one["state_size"] for one in tasks.values()) == [0, 800]
    assert client.get(f"/jobs/{job}/checkpoints/details/9").status_code == 404


def test_settings_under_older_keys(client: TestClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = cluster.supervisor.launcher
    monkeypatch.setattr(launcher, "configuration", {"state.backend": "rocksdb", MIN_PAUSE: "4 s", INTERVAL: "5 s"})
    monkeypatch.setattr(launcher, "restart", {"restart-strategy": "fixed-delay"})
    base = f"/jobs/{submit(cluster).id}"
    checkpoints = client.get(f"{base}/checkpoints/config").json()
    assert (checkpoints["state_backend"], checkpoints["interval"]) == ("rocksdb", 5000)
    assert checkpoints["min_pause"] == 0, "what has no effect is not shown as if it had"
    assert client.get(f"{base}/config").json()["execution-config"]["restart-strategy"] == "fixed-delay"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/jobs/{other}", 404),
        ("/jobs/xyz", 404),
        ("/jobs/{job}/vertices/{other}", 404),
        ("/jobs/{job}/vertices/{vertex}/subtasks/2", 404),
        ("/jobs/{job}/vertices/{vertex}/subtasks/x", 404),
        ("/jobs/{job}/rescales/history", 404),
        ("/jobs/{job}/vertices/{vertex}/flamegraph", 404),
        ("/taskmanagers/nobody", 404),
        ("/jars/{other}_a.py/plan", 404),
        ("/jobs/{job}/savepoints/{other}", 404),
        ("/datasets", 404),
        ("/nothing/at/all", 404),
        ("/jobs/", 404),
    ],
)
def test_what_is_not_there(client: TestClient, job: str, path: str, status: int) -> None:
    vertex = client.get(f"/jobs/{job}").json()["vertices"][1]["id"]
    answer = client.get(path.format(job=job, other="f" * 32, vertex=vertex))
    assert answer.status_code == status
    assert answer.json()["errors"][0]


def test_a_job_graph_of_java_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/jobs", content=b'{"jobGraphFileName": "x"}')
    assert answer.status_code == 400
    assert "firesteel run -d program.py" in answer.json()["errors"][0]


def test_a_method_that_a_path_does_not_have(client: TestClient) -> None:
    answer = client.put("/jobs")
    assert (answer.status_code, list(answer.json())) == (405, ["errors"])


# Programs and jobs


def uploaded(client: TestClient, text: str = "print(1)\n") -> str:
    answer = client.post("/v1/jars/upload", files={"jarfile": ("my job.py", text.encode())})
    assert answer.json()["status"] == "success"
    return str(answer.json()["filename"].rpartition("/")[2])


def test_a_program_is_uploaded_planned_run_and_deleted(cluster: Cluster, client: TestClient) -> None:
    program = uploaded(client)
    assert program == uploaded(client), "the same content is the same program"
    assert program.endswith("_my_job.py")
    assert program in [one["id"] for one in client.get("/jars").json()["files"]]
    plan = client.post(f"/jars/{program}/plan").json()["plan"]
    assert {node["parallelism"] for node in plan["nodes"]} == {1, 2}
    body = {"programArgsList": ["--a", "b c"], "parallelism": 3, "flinkConfiguration": {"x.y": "z"}}
    started = client.post(f"/jars/{program}/run", json=body).json()
    assert started["jobid"] == started["applicationId"]
    row = cluster.supervisor.row(started["jobid"])
    assert row.arguments == ("--a", "b c")
    assert (row.settings["parallelism.default"], row.settings["x.y"]) == ("3", "z")
    assert client.delete(f"/jars/{program}").status_code == 409
    wait_for_process(cluster, row.id)
    assert client.patch(f"/jobs/{row.id}?mode=cancel").status_code == 202
    assert has_state(cluster, row.id, "CANCELED")
    assert client.patch(f"/jobs/{row.id}").status_code == 202, "once more is fine"
    assert client.delete(f"/jars/{program}").status_code == 200
    assert client.delete(f"/jars/{program}").status_code == 404


def test_the_body_wins_over_the_query(cluster: Cluster, client: TestClient) -> None:
    """Flink's page puts arguments into the query's savepointPath."""
    program = uploaded(client)
    body = {"programArgsList": ["a"], "savepointPath": None, "entryClass": None, "allowNonRestoredState": None}
    run = client.post(f"/jars/{program}/run?savepointPath=--arguments&parallelism=4", json={**body, "parallelism": 2})
    row = cluster.supervisor.row(run.json()["jobid"])
    assert "execution.state-recovery.path" not in row.settings
    assert row.settings["parallelism.default"] == "2"
    run = client.post(f"/jars/{program}/run?savepointPath=/saved&programArg=x%20y&allowNonRestoredState=true")
    other = cluster.supervisor.row(run.json()["jobid"])
    assert other.settings["execution.state-recovery.path"] == "/saved"
    assert other.settings["execution.state-recovery.ignore-unclaimed-state"] == "true"
    assert other.arguments == ("x", "y")
    for one in (row, other):
        cluster.supervisor.cancel(one.id)
        assert has_state(cluster, one.id, "CANCELED")


@pytest.mark.parametrize(
    "body",
    [
        {"programArgsList": "a"},
        {"programArgsList": [1]},
        {"programArgs": "it's"},
        {"parallelism": 0},
        {"parallelism": "many"},
        {"flinkConfiguration": []},
        {"flinkConfiguration": {"a": {}}},
        {"flinkConfiguration": {"a\x1fb": "c"}},
        {"savepointPath": 7},
        {"jobId": "xyz"},
        {"allowNonRestoredState": "perhaps"},
    ],
)
def test_a_submission_that_makes_no_sense(client: TestClient, body: dict[str, Any]) -> None:
    answer = client.post(f"/jars/{uploaded(client)}/run", json=body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]


def test_a_job_has_the_id_that_it_was_given(cluster: Cluster, client: TestClient) -> None:
    program, wanted = uploaded(client), "ABCDEF00" * 4
    assert client.post(f"/jars/{program}/run", json={"jobId": wanted}).json()["jobid"] == wanted.lower()
    assert client.post(f"/jars/{program}/run", json={"jobId": wanted}).status_code == 400
    cluster.supervisor.cancel(wanted.lower())


# Operations


def test_operations_of_a_job_that_cannot_be_asked(client: TestClient, job: str) -> None:
    for path, status in (("savepoints", "savepoints"), ("stop", "savepoints"), ("checkpoints", "checkpoints")):
        request = client.post(f"/jobs/{job}/{path}", json={}).json()["request-id"]

        def done(at: str = f"/jobs/{job}/{status}/{request}") -> bool:
            return bool(client.get(at).json()["status"]["id"] == "COMPLETED")

        assert eventually(done)
        cause = client.get(f"/jobs/{job}/{status}/{request}").json()["operation"]["failure-cause"]
        assert "cannot be asked now" in cause["stack-trace"]


def test_a_trigger_id_makes_a_request_idempotent(client: TestClient, job: str) -> None:
    wanted = "12" * 16
    for _ in range(2):
        answer = client.post(f"/jobs/{job}/savepoints", json={"triggerId": wanted})
        assert answer.json() == {"request-id": wanted}
    assert client.post(f"/jobs/{job}/stop", json={"triggerId": wanted}).status_code == 400
    assert client.post(f"/jobs/{job}/stop", json={"triggerId": "x"}).status_code == 400


def test_a_savepoint_is_disposed_of(client: TestClient, tmp_path: Path) -> None:
    request = client.post("/savepoint-disposal", json={"savepoint-path": str(tmp_path / "none")}).json()["request-id"]
    assert eventually(lambda: client.get(f"/savepoint-disposal/{request}").json()["status"]["id"] == "COMPLETED")
    assert "failure-cause" in client.get(f"/savepoint-disposal/{request}").json()["operation"]
    assert client.post("/savepoint-disposal", json={}).status_code == 400


def test_an_operation_does_not_outlive_its_job_manager(tmp_path: Path) -> None:
    from firesteel.cluster.registry import OperationRow

    with running_cluster(tmp_path / "c", FakeLauncher()) as first:
        job = submit(first)
        first.supervisor.registry.put_operation(OperationRow("1" * 32, job.id, "savepoint", 1))
    with running_cluster(tmp_path / "c", FakeLauncher()) as second:
        answer = client_of(second).get(f"/jobs/{job.id}/savepoints/{'1' * 32}").json()
        assert "was restarted before this was done" in answer["operation"]["failure-cause"]["stack-trace"]


# History


def test_a_job_that_has_ended_keeps_what_it_knew(cluster: Cluster, client: TestClient) -> None:
    row = submit(cluster)
    run_as(cluster, row.id)
    finish(cluster, row.id)
    assert has_state(cluster, row.id, "FINISHED")
    found = client.get(f"/jobs/{row.id}").json()
    assert (found["state"], found["vertices"][0]["metrics"]["write-records"]) == ("FINISHED", 100)
    assert client.get(f"/jobs/{row.id}/checkpoints").json()["counts"]["completed"] == 1
    assert len(client.get(f"/jobs/{row.id}/exceptions").json()["exceptionHistory"]["entries"]) == 1
    assert (
        client.get(f"/jobs/{row.id}/execution-result").json()["job-execution-result"]["application-status"]
        == "SUCCEEDED"
    )
    logs = client.get(f"/firesteel/v1/manager/jobs/{row.id}/logs").json()["logs"]
    assert [one["name"] for one in logs] == ["attempt-0.log"]
    assert client.post(f"/jobs/{row.id}/savepoints", json={}).status_code == 409
    assert eventually(lambda: (cluster.folder.archive / row.id).exists())
    archive = json.loads((cluster.folder.archive / row.id).read_text())["archive"]
    by_path = {one["path"]: json.loads(one["json"]) for one in archive}
    assert by_path["/jobs/overview"]["jobs"][0]["state"] == "FINISHED"
    for path in (f"/jobs/{row.id}", f"/jobs/{row.id}/checkpoints", f"/jobs/{row.id}/config"):
        assert {**by_path[path], "now": 0} == {**client.get(path).json(), "now": 0}, path


# Logs


def test_parts_of_a_log(cluster: Cluster, client: TestClient, job: str) -> None:
    cluster.folder.job(job).log(0).write_text("".join(f"line {number}\n" for number in range(100)))
    path = f"/firesteel/v1/manager/jobs/{job}/logs/attempt-0.log"
    assert client.get(path, params={"lines": 2}).text == "line 98\nline 99\n"
    first = client.get(path, params={"start": 0, "bytes": 7})
    assert (first.text, first.headers["Firesteel-Log-End"]) == ("line 0\n", "7")
    assert client.get(path, params={"start": 7, "bytes": 7}).text == "line 1\n"
    assert client.get(path, params={"start": -8}).text == "line 99\n"
    assert client.get(path, params={"start": "x"}).status_code == 400


# OpenAPI


def test_the_description_has_every_path(client: TestClient) -> None:
    known = client.get("/openapi.json").json()
    described = {(method.upper(), path) for path, methods in known["paths"].items() for method in methods}
    app = client.app
    assert isinstance(app, Starlette)
    served = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route) and not route.path.startswith(("/v1/", "/v2/", "/v3/", "/web/"))
        for method in route.methods or ()
        if method != "HEAD" and route.path not in ("/", "/index.html")
    }
    assert described == served
    names = [operation["operationId"] for methods in known["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert all(operation["summary"] for methods in known["paths"].values() for operation in methods.values())
