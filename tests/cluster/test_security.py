"""Who may ask the job manager for what. Each point is tried on every route where it matters."""

from __future__ import annotations

import io
import os
import socket
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterkit import FakeLauncher, client_of, finish, has_state, running_cluster, submit, wait_for_process
from starlette.testclient import TestClient

from firesteel.cluster.program_store import ProgramStore
from firesteel.cluster.rest import endpoints
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.rest.security import is_public
from firesteel.cluster.tokens import read_token
from firesteel.errors import SetupError

ID = "0" * 32


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    launcher = FakeLauncher()
    launcher.name = "<script>alert(1)</script>"
    launcher.configuration = {"shop.password": "******", "shop.url": "jdbc://me:topsecret@host/"}
    with running_cluster(tmp_path_factory.mktemp("cluster") / "c", launcher, max_upload=100_000) as found:
        yield found


def all_routes() -> list[tuple[str, str]]:
    """Every method and path there is, with values in the place of names."""
    from firesteel.cluster.managed_jobs import ManagedJobs
    from firesteel.cluster.own_api import own_routes

    found = [(one.method, prefix + one.path) for one in endpoints.all_endpoints() for prefix in one.prefixes]
    own = own_routes(ManagedJobs(None, None, ()))  # type: ignore[arg-type]
    found += [(method, route.path) for route in own for method in route.methods - {"HEAD"}]  # type: ignore[attr-defined]
    return sorted({(method, _filled(path)) for method, path in found if not is_public(method, path)})


def _filled(path: str) -> str:
    return "/".join(ID if part.startswith("{") else part for part in path.split("/"))


ROUTES = all_routes()
CHANGING_GETS = {
    prefix + _filled(one.path)
    for one in endpoints.all_endpoints()
    for prefix in one.prefixes
    if one.changes and one.method == "GET"
}


def bare(cluster: Cluster, **headers: str) -> TestClient:
    return TestClient(build(cluster), base_url="http://127.0.0.1:8081", headers=headers, raise_server_exceptions=False)


def test_there_are_routes_to_try() -> None:
    assert len(ROUTES) > 140
    assert ("PATCH", f"/v1/jobs/{ID}") in ROUTES
    assert ("GET", f"/firesteel/v1/jobs/{ID}/logs") in ROUTES
    assert {path.rpartition("/")[2] for path in CHANGING_GETS} >= {"yarn-cancel", "plan", "status", "sessions"}
    assert ("GET", f"/v3/sessions/{ID}/operations/{ID}/result/{ID}") in ROUTES


# 1


def test_it_listens_on_loopback_only() -> None:
    """Another address takes TLS: see test_supervisor::test_another_address_takes_tls."""
    from firesteel.cluster.server import _listening
    from firesteel.cluster.settings import ClusterSettings

    with _listening(ClusterSettings(port=0)) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        taken = listening.getsockname()[1]
        with pytest.raises(SetupError, match="cannot listen"):
            _listening(ClusterSettings(port=taken))


# 2


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic abc"},
        {"Cookie": "firesteel-token=wrong"},
        {"Cookie": "\x01=;;;"},
    ],
)
def test_no_or_a_wrong_token(cluster: Cluster, headers: dict[str, str]) -> None:
    client = bare(cluster, **headers)
    for method, path in ROUTES:
        answer = client.request(method, path)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert list(answer.json()) == ["errors"]


def test_a_token_in_the_address_does_not_count(cluster: Cluster) -> None:
    assert bare(cluster).get("/jobs", params={"token": cluster.tokens.full}).status_code == 401


def test_a_token_that_allows_looking_only(cluster: Cluster) -> None:
    client = client_of(cluster, cluster.tokens.read_only)
    refused = 0
    for method, path in ROUTES:
        answer = client.request(method, path)
        if method != "GET" or path in CHANGING_GETS:
            assert answer.status_code == 403, (method, path)
            refused += 1
        else:
            assert answer.status_code != 403, (method, path)
    assert refused > 25
    assert client.get("/jobs/overview").status_code == 200


def test_what_needs_no_token_tells_nothing(cluster: Cluster) -> None:
    assert bare(cluster).get("/healthz").json() == {"status": "ok"}
    assert bare(cluster).get("/no/such/path").status_code == 401, "not even what there is"


# 3


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8081", "", "localhost@evil.example", "169.254.1.1"]
)
def test_a_foreign_host(cluster: Cluster, host: str) -> None:
    client = client_of(cluster)
    for method, path in [*ROUTES, ("GET", "/"), ("GET", "/healthz"), ("POST", "/firesteel/v1/login")]:
        assert client.request(method, path, headers={"Host": host}).status_code == 403, (method, path)


@pytest.mark.parametrize("host", ["localhost:8081", "127.0.0.1", "[::1]:8081", "LOCALHOST"])
def test_own_names(cluster: Cluster, host: str) -> None:
    assert client_of(cluster).get("/jobs", headers={"Host": host}).status_code == 200


# 4


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_change_nothing(cluster: Cluster, headers: dict[str, str]) -> None:
    client = client_of(cluster)
    tried = 0
    for method, path in ROUTES:
        if method != "GET" or path in CHANGING_GETS:
            assert client.request(method, path, headers=headers).status_code == 403, (method, path)
            tried += 1
    assert tried > 25
    assert client.get("/jobs", headers=headers).status_code == 200


def test_the_own_page_may_change_things(cluster: Cluster) -> None:
    headers = {"Origin": "http://127.0.0.1:8081", "Sec-Fetch-Site": "same-origin"}
    assert client_of(cluster).patch(f"/jobs/{ID}", headers=headers).status_code == 404


def test_the_cookie(cluster: Cluster) -> None:
    client = bare(cluster)
    assert client.post("/firesteel/v1/login", json={"token": "wrong"}).status_code == 401
    assert client.post("/firesteel/v1/login", json={"token": 7}).status_code == 401
    assert client.post("/firesteel/v1/login", content=b"[" * 4000).status_code == 400
    assert client.post("/firesteel/v1/login", content=b" " * 5000).status_code == 413
    answer = client.post("/firesteel/v1/login", json={"token": cluster.tokens.full})
    assert answer.json() == {"readOnly": False}
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/jobs").status_code == 200
    looking = bare(cluster)
    assert looking.post("/firesteel/v1/login", json={"token": cluster.tokens.read_only}).json() == {"readOnly": True}
    assert looking.patch(f"/jobs/{ID}").status_code == 403


# 5


@pytest.mark.parametrize(
    "name",
    [
        "..%252f..%252fetc%252fpasswd",
        "..%2f..%2fetc%2fpasswd",
        "../../../../etc/passwd",
        "%2e%2e%2ftoken",
        "jobmanager.log%00",
        "%00",
        "link.log",
        ".",
        "..",
        "%5c..%5ctoken",
    ],
)
def test_no_way_out_of_the_folder_of_logs(cluster: Cluster, name: str) -> None:
    job = submit(cluster)
    wait_for_process(cluster, job.id)
    for folder in (cluster.folder.logs, cluster.folder.job(job.id).logs):
        link = folder / "link.log"
        if not link.is_symlink():
            link.symlink_to(cluster.folder.token)
    client = client_of(cluster)
    for path in (
        f"/jobmanager/logs/{name}",
        f"/firesteel/v1/manager/jobs/{job.id}/logs/{name}",
        f"/firesteel/v1/jobs/{job.id}/logs/{name}",
        f"/taskmanagers/driver-{job.id[:12]}/logs/{name}",
    ):
        answer = client.get(path)
        assert answer.status_code in (404, 200), path
        assert cluster.tokens.full not in answer.text
        assert "root:" not in answer.text
        if name not in (".", ".."):
            assert answer.status_code == 404, path
    assert "link.log" not in client.get("/jobmanager/logs").text
    cluster.supervisor.cancel(job.id)


# 6


@pytest.mark.parametrize(
    "name", ["../../x.py", "/etc/x.py", "..\\..\\x.py", "x\x00/../y.py", "....//x.py", "a/b/../../../x.py"]
)
def test_an_upload_stays_inside(cluster: Cluster, name: str) -> None:
    answer = client_of(cluster).post("/jars/upload", files={"jarfile": (name, b"print(1)\n")})
    assert answer.status_code in (200, 400)
    found = list(cluster.folder.path.parent.rglob("*.py"))
    assert found
    for path in found:
        assert path.is_relative_to(cluster.folder.programs), path
        assert path.stat().st_mode & 0o077 == 0
    assert not Path("/etc/x.py").exists()


def test_uploads_are_bounded(cluster: Cluster, tmp_path: Path) -> None:
    client = client_of(cluster)
    large = {"jarfile": ("large.py", b"#" * 100_001)}
    assert client.post("/jars/upload", files=large).status_code == 413
    assert client.post("/jars/upload", files={"jarfile": ("huge.py", b"#" * 400_000)}).status_code == 413
    many: Any = [("jarfile", (f"{number}.py", b"#")) for number in range(20)]
    assert client.post("/jars/upload", files=many).status_code == 413
    two: Any = [("jarfile", (f"{number}.py", b"#")) for number in range(2)]
    assert client.post("/jars/upload", files=two).status_code == 400
    assert client.post("/jars/upload", content=b"x" * 10).status_code == 400
    assert client.post("/jars/upload", files={"jarfile": ("a.jar", b"PK")}).status_code == 400
    assert client.post("/jars/upload", files={"jarfile": ("a.zip", b"PK")}).status_code == 400
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", "print(1)")
    assert client.post("/jars/upload", files={"jarfile": ("a.zip", packed.getvalue())}).status_code == 200


def test_a_full_disk_and_too_many_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from firesteel.cluster.program_store import NoRoomError

    store = ProgramStore(tmp_path, 100)
    store.put("a.py", b"#" * 60)
    with pytest.raises(NoRoomError, match="max-programs"):
        store.put("b.py", b"#" * 61)
    store.put("a.py", b"#" * 60)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))  # type: ignore[attr-defined]
    with pytest.raises(NoRoomError, match="not enough room"):
        store.put("c.py", b"#")


# 7


def test_a_browser_runs_nothing_but_the_page(cluster: Cluster) -> None:
    for client, path in ((bare(cluster), "/jobs"), (client_of(cluster), "/jobs"), (client_of(cluster), "/nothing")):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"


def test_hostile_names_and_logs_are_text(cluster: Cluster) -> None:
    job = submit(cluster)
    wait_for_process(cluster, job.id)
    cluster.folder.job(job.id).log(0).write_text("<script>alert(2)</script>\n")
    client = client_of(cluster)
    overview = client.get("/jobs/overview")
    assert overview.headers["Content-Type"] == "application/json"
    assert "<script>alert(1)</script>" in [one["name"] for one in overview.json()["jobs"]]
    log = client.get(f"/firesteel/v1/manager/jobs/{job.id}/logs/attempt-0.log")
    assert log.headers["Content-Type"].startswith("text/plain")
    assert log.text == "<script>alert(2)</script>\n"
    # Flink's page takes this for HTML.
    plan = client.get(f"/jobs/{job.id}/plan").json()["plan"]
    assert all("<script" not in node["description"] for node in plan["nodes"])
    cluster.supervisor.cancel(job.id)


# 8


def test_secrets_are_masked_wherever_they_could_show(cluster: Cluster) -> None:
    job = submit(cluster, **{"shop.password": "hunter2-and-more", "shop.name": "corner"})
    wait_for_process(cluster, job.id)
    folder = cluster.folder.job(job.id)
    folder.log(0).write_text(f"connecting with hunter2-and-more, {cluster.tokens.full}, http://me:topsecret@host/\n")
    finish(cluster, job.id, "FAILED", failure="login with hunter2-and-more failed at jdbc://me:topsecret@host/")
    assert has_state(cluster, job.id, "FAILED")
    client, shown = client_of(cluster), 0
    paths = [path.replace(ID, job.id, 1) for method, path in ROUTES if method == "GET" and "yarn-cancel" not in path]
    for path in [
        *paths,
        f"/firesteel/v1/manager/jobs/{job.id}/logs/attempt-0.log",
        f"/firesteel/v1/jobs/{job.id}/logs/attempt-0.log",
    ]:
        answer = client.get(path)
        for secret in ("hunter2-and-more", "topsecret", cluster.tokens.full, cluster.tokens.read_only):
            assert secret not in answer.text, path
        shown += "******" in answer.text
    assert shown >= 5
    from sparkkit import eventually

    assert eventually(lambda: (cluster.folder.archive / job.id).exists())
    assert "hunter2-and-more" not in (cluster.folder.archive / job.id).read_text()
    assert "corner" in client.get(f"/firesteel/v1/manager/jobs/{job.id}").text


# 9


def test_files_are_their_owners_alone(cluster: Cluster) -> None:
    for path in (cluster.folder.token, cluster.folder.read_token, cluster.folder.registry):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for folder in (cluster.folder.path, cluster.folder.jobs, cluster.folder.programs, cluster.folder.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("x" * 43)
    path.chmod(0o644)
    with pytest.raises(SetupError, match="others can read it"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == "x" * 43
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(SetupError):
        read_token(link)


def test_a_folder_that_others_can_open_is_refused(tmp_path: Path) -> None:
    from firesteel.cluster.folders import ClusterFolder

    (tmp_path / "c").mkdir(mode=0o755)
    with pytest.raises(SetupError, match="others can open it"):
        ClusterFolder.make(tmp_path / "c")


def test_tokens_are_not_shown_by_objects(cluster: Cluster) -> None:
    for one in (cluster, cluster.tokens):
        assert cluster.tokens.full not in repr(one)
    from firesteel.cluster.client import ClusterClient

    assert cluster.tokens.full not in repr(vars(cluster.tokens).keys())
    assert cluster.tokens.full not in repr(ClusterClient("localhost:1", cluster.tokens.full))


# 10


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A job manager as a process of its own."""
    folder = tmp_path_factory.mktemp("served") / "c"
    (folder.parent / "config.yaml").write_text("firesteel.cluster.request-timeout: 1 s\n")
    environment = {**os.environ, "FIRESTEEL_CLUSTER_DIR": str(folder), "FIRESTEEL_CONF_DIR": str(folder.parent)}
    command = [
        sys.executable,
        "-m",
        "firesteel",
        "cluster",
        "start",
        "--foreground",
        "--port",
        "0",
        "--warm-drivers",
        "0",
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    assert "listens at http://127.0.0.1:" in first, first
    yield int(first.strip().rpartition(":")[2]), folder
    process.terminate()
    said = first + process.communicate(timeout=300)[0]
    token = (folder / "token").read_text()
    assert process.returncode == 0
    assert token not in said
    assert token not in (folder / "logs" / "jobmanager.log").read_text()


def test_slow_and_huge_requests_are_bounded(served: tuple[int, Path]) -> None:
    port, folder = served
    # A connection that says nothing is closed.
    with socket.create_connection(("127.0.0.1", port), timeout=300) as silent:
        silent.sendall(b"GET / HT")
        assert silent.recv(100) == b""
    # Headers without an end are refused.
    with socket.create_connection(("127.0.0.1", port), timeout=300) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert b" 400 " in endless.recv(100)
    # A body that is too large is refused by what it says of itself, before it comes.
    token = (folder / "token").read_text()
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {10**12}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=300) as large:
        large.sendall(head.encode())
        assert b" 413 " in large.recv(100)
    # The token is on no command line.
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert token.encode() not in one.read_bytes()
        except OSError:
            continue


def test_bodies_are_bounded(cluster: Cluster) -> None:
    client = client_of(cluster)
    path = f"/jars/{'0' * 32}_a.py/run"
    assert client.post(path, content=b" " * ((1 << 20) + 1)).status_code == 413
    assert client.post(path, content=b"[" * 100_000).status_code == 400
    assert client.post(path, content=b"[]").status_code == 400
    assert client.post(path, content=b"{").status_code == 400


def test_a_body_that_does_not_come_is_given_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from firesteel.cluster.rest import app as module

    monkeypatch.setattr(module, "SECONDS_TO_READ", 0.05)
    app = build(cluster)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(1000)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {cluster.tokens.full}".encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/jobs",
        "raw_path": b"/jobs",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("localhost", 1),
        "root_path": "",
    }
    asyncio.run(app(scope, never, send))
    assert sent[0]["status"] == 408
