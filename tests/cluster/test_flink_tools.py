"""Flink's own command line and history server, unmodified, against Firesteel's job manager and its archives."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterkit import ENDLESS, FakeLauncher, finish, has_state, running_cluster, submit, wait_for_process
from flink_tools import flink, flink_command, why_not
from local_server import free_ports
from sparkkit import eventually

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.starting import find_running


@pytest.fixture(scope="module", autouse=True)
def flinks_programs() -> None:
    # Here, not where tests are collected: they may have to be downloaded.
    if why_not():
        pytest.skip(why_not())


@pytest.fixture(scope="module")
def cluster(flinks_programs: None, tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("manager") / "c"
    patch = pytest.MonkeyPatch()
    patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    patch.setenv("FIRESTEEL_CLUSTER_DIR", str(folder))
    assert main(["cluster", "start", "--port", "0", "--slots", "4"]) == 0
    yield folder
    assert main(["cluster", "stop"]) == 0
    patch.undo()


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, short: Path, cluster: Path) -> None:
    monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    monkeypatch.setenv("FIRESTEEL_CLUSTER_DIR", str(cluster))


class Flink:
    """Flink's command line, pointed at the job manager."""

    def __init__(self, folder: Path, conf: Path, token: str = "token") -> None:
        running = find_running(folder)
        assert running is not None
        self._address, self._conf = running.address.removeprefix("http://"), conf
        self._token = (folder / token).read_text()

    def __call__(self, *arguments: str, code: int = 0) -> str:
        ended = flink(self._address, self._token, self._conf, *arguments)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


def running(client: ClusterClient, program: Path) -> str:
    program.write_text(ENDLESS)
    job = client.submit(str(program), settings={"firesteel.master": "memory"})
    assert eventually(lambda: client.job(job).known["records"] > 0)
    return job


def test_flinks_command_line_steers_jobs(cluster: Path, tmp_path: Path) -> None:
    client = ClusterClient.find()
    assert client is not None
    ask = Flink(cluster, tmp_path)
    job = running(client, tmp_path / "endless.py")
    listed = ask("list")
    assert re.search(rf"{job} : endless \(RUNNING\)", listed), listed
    # What is wrong with a savepoint is said, though the job runs on.
    (tmp_path / "file").touch()
    said = ask("savepoint", job, str(tmp_path / "file" / "inside"), code=1)
    assert re.search(r"Caused by: firesteel\.errors\.FiresteelError: .*File exists", said), said
    saved = ask("savepoint", job, str(tmp_path / "saved"))
    (path,) = re.findall(r"Savepoint completed\. Path: (\S+)", saved)
    assert Path(path).is_dir()
    assert re.search(r"Checkpoint\(\w+\) \d+ for job \w+ completed|[Cc]heckpoint.*completed", ask("checkpoint", job))
    stopped = ask("stop", "--drain", "-p", str(tmp_path / "stopped"), job)
    (path,) = re.findall(r"Savepoint completed\. Path: (\S+)", stopped)
    assert json.loads(next(Path(path).glob("*.json")).read_text())["drained"] is True
    assert client.job(job).wait(180) == "FINISHED"
    other = running(client, tmp_path / "endless.py")
    assert "Cancelled job" in ask("cancel", other)
    assert client.job(other).wait(180) == "CANCELED"
    everything = ask("list", "-a")
    assert f"{job} : endless (FINISHED)" in everything
    assert f"{other} : endless (CANCELED)" in everything
    # What cannot be done ends with an error, and who may look only cannot change anything.
    ask("savepoint", job, str(tmp_path / "saved"), code=1)
    looking = Flink(cluster, tmp_path, "read-token")
    assert job in looking("list", "-a")
    assert "allows to look" in looking("cancel", other, code=1)


def test_flinks_history_server_reads_our_archives(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    launcher.name = "archived"
    with running_cluster(tmp_path / "c", launcher) as manager:
        row = submit(manager)
        wait_for_process(manager, row.id)
        finish(manager, row.id)
        assert has_state(manager, row.id, "FINISHED")
        assert eventually(lambda: (manager.folder.archive / row.id).exists())
    (port,) = free_ports(1)
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {
        "historyserver.archive.fs.dir": f"file://{tmp_path / 'c' / 'archive'}",
        "historyserver.archive.fs.refresh-interval": "200",
        "historyserver.web.address": "127.0.0.1",
        "historyserver.web.port": str(port),
        "historyserver.web.tmpdir": str(tmp_path / "web"),
        "io.tmp.dirs": str(tmp_path),
    }
    (conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    name = "org.apache.flink.runtime.webmonitor.history.HistoryServer"
    command, environment = flink_command(name, conf, "--configDir", str(conf))
    with open(tmp_path / "out", "wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)

    def asked(path: str) -> dict[str, object]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
                found: dict[str, object] = json.load(answer)
                return found
        except OSError:
            return {}

    try:
        assert eventually(lambda: asked("/jobs/overview").get("jobs") or server.poll() is not None)
        assert server.poll() is None, (tmp_path / "out").read_text()
        (job,) = asked("/jobs/overview")["jobs"]  # type: ignore[misc]
        assert (job["jid"], job["name"], job["state"]) == (row.id, "archived", "FINISHED")
        details = asked(f"/jobs/{row.id}")
        assert [vertex["name"] for vertex in details["vertices"]] == ["Source: numbers", "counted"]  # type: ignore[attr-defined]
        assert asked(f"/jobs/{row.id}/checkpoints")["counts"]
        vertex = details["vertices"][1]["id"]  # type: ignore[index]
        assert asked(f"/jobs/{row.id}/vertices/{vertex}")["parallelism"] == 2
    finally:
        server.kill()
        server.wait()
