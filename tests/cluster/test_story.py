"""The command line against a job manager that is a process of its own, with real drivers on the engine in memory."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterkit import ENDLESS
from sparkkit import eventually

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient, packed_program
from firesteel.cluster.processes import Process
from firesteel.cluster.starting import find_running
from firesteel.errors import JobManagerError, ProgramError


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("manager") / "c"
    patch = pytest.MonkeyPatch()
    patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    patch.setenv("FIRESTEEL_CLUSTER_DIR", str(folder))
    assert main(["cluster", "start", "--port", "0", "--warm-drivers", "0", "--slots", "4"]) == 0
    yield folder
    if find_running(folder) is not None:
        assert main(["cluster", "stop"]) == 0
    patch.undo()


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, short: Path, cluster: Path) -> None:
    monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    monkeypatch.setenv("FIRESTEEL_CLUSTER_DIR", str(cluster))


@pytest.fixture
def client(cluster: Path) -> ClusterClient:
    found = ClusterClient.find()
    assert found is not None
    return found


def run(capfd: pytest.CaptureFixture[str], *command: str, code: int = 0) -> str:
    capfd.readouterr()
    got = main(list(command))
    said = capfd.readouterr()
    assert got == code, said
    return said.out if code == 0 else said.err


def works(client: ClusterClient, job: str, drivers: int = 1) -> bool:
    known = client.job(job).known
    return bool(known["state"] == "RUNNING" and known["records"] > 0 and known["drivers"] == drivers)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("programs") / "endless.py"
    path.write_text(ENDLESS)
    return str(path)


def test_from_submission_to_cancellation(
    client: ClusterClient, program: str, tmp_path: Path, cluster: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "4 of 4 free" in run(capfd, "cluster", "status")
    said = run(capfd, "run", "-d", "-m", "memory", program)
    job = said.strip().rpartition(" ")[2]
    assert said == f"Job has been submitted with JobID {job}\n"
    assert eventually(lambda: works(client, job))
    (listed,) = json.loads(run(capfd, "list", "--json"))
    assert (listed["id"], listed["name"], listed["status"]) == (job, "endless", "RUNNING")
    # It is one job, though its socket can be found, too.
    assert run(capfd, "list").count(job) == 1
    assert "the program runs" in run(capfd, "logs", job[:8])
    assert run(capfd, "logs", "endless", "--list").splitlines()[1].startswith("attempt-0.log")
    # The driver is killed, and comes back.
    before = Process.of(int(client.job(job).known["pid"]))
    before.send(signal.SIGKILL)
    assert eventually(lambda: works(client, job, 2))
    assert "was killed by SIGKILL" in run(capfd, "exceptions", job)
    # The job manager is killed, and its successor finds the job as it was.
    driver = Process.of(int(client.job(job).known["pid"]))
    running = find_running(cluster)
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    assert eventually(lambda: find_running(cluster) is None)
    assert run(capfd, "cluster", "status", code=4) == "No job manager runs here.\n"
    assert job in run(capfd, "list"), "the job itself can still be asked"
    run(capfd, "cluster", "start", "--port", "0", "--warm-drivers", "0", "--slots", "4")
    after = ClusterClient.find()
    assert after is not None
    assert eventually(lambda: works(after, job, 2))
    assert Process.of(int(after.job(job).known["pid"])) == driver
    assert "process" in run(capfd, "status", job)
    assert len(json.loads(run(capfd, "metrics", job, "--json"))["operators"]) >= 3
    saved = run(capfd, "savepoint", job, str(tmp_path / "saved")).splitlines()[-1]
    assert Path(saved).is_dir()
    run(capfd, "cancel", job)
    assert not driver.alive
    assert f"{job}  CANCELED" in run(capfd, "list")
    # Once more changes nothing.
    run(capfd, "cancel", job)
    # From the savepoint, then stopped with another one.
    again = run(capfd, "submit", "-s", saved, "-m", "memory", program).strip()
    assert eventually(lambda: works(after, again))
    stopped = run(capfd, "stop", "--drain", "-p", str(tmp_path / "saved"), again).splitlines()[-1]
    assert Path(stopped).is_dir()
    assert after.job(again).wait(180) == "FINISHED"
    assert json.loads(run(capfd, "status", again, "--json"))["status"] == "FINISHED"


def test_jobs_go_on_after_the_job_manager_was_stopped(
    client: ClusterClient, program: str, cluster: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = run(capfd, "submit", "-m", "memory", program).strip()
    client = ClusterClient.find()  # type: ignore[assignment]
    assert eventually(lambda: works(client, job))
    process = Process.of(int(client.job(job).known["pid"]))
    assert "has ended" in run(capfd, "cluster", "stop")
    assert not process.alive
    run(capfd, "cluster", "start", "--port", "0", "--warm-drivers", "0", "--slots", "4")
    client = ClusterClient.find()  # type: ignore[assignment]
    assert eventually(lambda: works(client, job, 2))
    process = Process.of(int(client.job(job).known["pid"]))
    # And they do not stop if they are left running.
    assert "run on" in run(capfd, "cluster", "stop", "--leave-jobs")
    assert process.alive
    run(capfd, "cluster", "start", "--port", "0", "--warm-drivers", "0", "--slots", "4")
    client = ClusterClient.find()  # type: ignore[assignment]
    assert eventually(lambda: works(client, job, 2))
    run(capfd, "cancel", job)


def test_an_attached_run_shows_output_and_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    client = ClusterClient.find()
    assert client is not None
    address = client.address.removeprefix("http://")
    folder = tmp_path / "word_count"
    folder.mkdir()
    (folder / "words.py").write_text("WORDS = ['a', 'b', 'a']\n")
    (folder / "__main__.py").write_text(
        "import sys\nfrom words import WORDS\n"
        "from firesteel.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection(WORDS).map(lambda word: word + sys.argv[1]).print()\n"
        "env.execute('words')\n"
    )
    # A folder is packed: the modules beside the program come along.
    said = run(capfd, "run", "-m", address, "-p", "1", "-Dfiresteel.master=memory", str(folder), "!")
    assert [line for line in said.splitlines() if line.endswith("!")] == ["a!", "b!", "a!"]
    broken = tmp_path / "broken.py"
    broken.write_text((folder / "__main__.py").read_text().replace("from words import WORDS", "WORDS = [1]"))
    capfd.readouterr()
    assert main(["run", "-m", address, "-Dfiresteel.master=memory", str(broken), "x"]) == 1
    assert "TypeError" in capfd.readouterr().err


def test_a_program_that_cannot_run_is_refused_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "wrong.py"
    program.write_text("raise ValueError('not today')\n")
    assert "ValueError: not today" in run(capfd, "submit", str(program), code=1)
    program.write_text("print('nothing')\n")
    assert "ended without executing anything" in run(capfd, "run", "-d", str(program), code=1)
    assert "There is no file" in run(capfd, "run", "-d", str(tmp_path / "none.py"), code=1)
    with pytest.raises(ProgramError, match=r"no __main__\.py"):
        packed_program(str(tmp_path))


def test_exit_codes(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nobody" in run(capfd, "status", "nobody", code=3)
    assert "nobody" in run(capfd, "logs", "nobody", code=3)
    assert "No job manager answers at http://127.0.0.1:1" in run(capfd, "list", "-m", "127.0.0.1:1", code=4)
    client = ClusterClient.find()
    assert client is not None
    monkeypatch.setenv("FIRESTEEL_TOKEN", "wrong")
    assert "A token is needed" in run(capfd, "list", code=4)
    monkeypatch.setenv("FIRESTEEL_TOKEN", "")
    # The token of this user's job manager is sent to no other.
    stranger = ClusterClient.find("127.0.0.1:1")
    assert stranger is not None
    assert not stranger._token
    same = ClusterClient.find(client.address.removeprefix("http://").replace("127.0.0.1", "localhost"))
    assert same is not None
    assert same._token


def test_a_second_job_manager_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert "runs already" in run(capfd, "cluster", "start", "--port", "0", "--warm-drivers", "0", code=1)


def test_an_address_that_is_none() -> None:
    with pytest.raises(JobManagerError, match="not an address of a job manager"):
        ClusterClient("ftp://x", None)
