"""Flink's own command line, SQL client and history server, unmodified, against the job manager and its archives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterkit import ENDLESS, FakeLauncher, finish, has_state, running_cluster, submit, wait_for_process
from flink_tools import flink, flink_command, sql_client, why_no_sql_client, why_not
from local_server import free_ports
from sparkkit import eventually

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.starting import find_running


def skip_because(missing: str) -> None:
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="module", autouse=True)
def flinks_programs() -> None:
    # Here, not where tests are collected: they may have to be downloaded.
    skip_because(why_not())


@pytest.fixture(scope="module")
def cluster(flinks_programs: None, tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("manager") / "c"
    patch = pytest.MonkeyPatch()
    patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    patch.setenv("FIRESTEEL_CLUSTER_DIR", str(folder))
    assert main(["cluster", "start", "--port", "0", "--warm-drivers", "0", "--slots", "4"]) == 0
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


STATEMENTS = """\
CREATE TABLE orders (id BIGINT, who STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen',
  'number-of-rows' = '4', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '4');
CREATE TABLE kept (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{kept}', 'format' = 'csv');
SHOW TABLES;
DESCRIBE orders;
SELECT id > 3 AS big, COUNT(*) AS many FROM orders GROUP BY id > 3;
SELECT CAST(1.25 AS DECIMAL(10, 2)) AS price, TIMESTAMP '2026-01-02 03:04:05.678' AS at, X'0102' AS code,
  ARRAY[1, 2] AS list, MAP['a', 1] AS names, INTERVAL '1' DAY AS pause, CAST(NULL AS INT) AS nothing;
SET 'table.dml-sync' = 'true';
INSERT INTO kept SELECT id FROM orders WHERE id < 3;
SHOW JOBS;
SET 'table.dml-sync' = 'false';
EXECUTE STATEMENT SET BEGIN
INSERT INTO kept SELECT id + 10 FROM orders;
INSERT INTO kept SELECT id + 20 FROM orders;
END;
SHOW CREATE VIEW prepared;
SELECT nobody FROM orders;
SELECT 'not reached';
"""


def test_flinks_sql_client_runs_a_file(cluster: Path, tmp_path: Path) -> None:
    skip_because(why_no_sql_client())
    client = ClusterClient.find()
    assert client is not None
    kept, script, beginning = tmp_path / "kept", tmp_path / "statements.sql", tmp_path / "beginning.sql"
    script.write_text(STATEMENTS.format(kept=kept))
    beginning.write_text("CREATE VIEW prepared AS SELECT 1 AS one;\nSET 'pipeline.name' = 'by-the-client';\n")
    settings = {
        "firesteel.master": "memory",
        "parallelism.default": "1",
        "sql-client.execution.result-mode": "tableau",
    }
    given = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    address, token = client.address.removeprefix("http://"), (cluster / "token").read_text()
    ended = sql_client(address, token, tmp_path, "-i", str(beginning), *given, "-f", str(script))
    said = re.sub(r"\x1b\[[0-9;]*m", "", ended.stdout)
    lines = [re.sub(r"\s+", " ", line) for line in said.splitlines()]
    assert "Successfully initialized from sql script" in said, said + ended.stderr
    assert [line for line in lines if line in ("| orders |", "| kept |", "| prepared |")] == [
        "| kept |",
        "| orders |",
        "| prepared |",
    ], said
    assert "| id | BIGINT | FALSE | PRI(id) | | |" in lines, said
    counted = [line for line in lines if re.match(r"\| [-+][IU] \| (TRUE|FALSE) ", line)]
    assert counted == [
        "| +I | FALSE | 1 |",
        "| -U | FALSE | 1 |",
        "| +U | FALSE | 2 |",
        "| -U | FALSE | 2 |",
        "| +U | FALSE | 3 |",
        "| +I | TRUE | 1 |",
    ], said
    row = "| +I | 1.25 | 2026-01-02 03:04:05.678 | x'0102' | [1, 2] | {a=1} | +1 00:00:00.000 | <NULL> |"
    assert row in lines, said
    # The first INSERT has ended when the client says so; the set is a job that goes on.
    assert "Complete execution of the SQL update statement" in said, said
    assert [line for line in lines if re.search(r"\| \w{32} \| by-the-client \| FINISHED \|", line)], said
    (job,) = re.findall(r"Job ID: (\w{32})", said)
    assert client.job(job).wait(180) == "FINISHED"
    written = sorted(int(line) for file in kept.glob("[!._]*") for line in file.read_text().split())
    assert written == [1, 2, 11, 12, 13, 14, 21, 22, 23, 24]
    # The first error ends a file, and has its place.
    assert re.search(r"\[There is no column nobody\..*\n +SELECT nobody FROM orders\n +\^{6}\]", said), said
    assert "not reached" not in said


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
