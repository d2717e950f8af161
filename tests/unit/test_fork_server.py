"""The process that Spark's Python processes are forked from: what a fork is like, and what happens without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sparkkit import eventually

from firesteel.engine.spark import fork_server

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only on Linux")

REPORT = """
import json, os, sys
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "variables": [os.environ.get(name) for name in ("ONE", "TWO\\nLINES", "PYSPARK_PYTHON")],
    "path": sys.path[:2],
    "parent": os.getppid(),
    "input": sys.stdin.read(),
    "loaded": "pyarrow" in sys.modules,
    "title": open("/proc/self/cmdline").read().split("\\0")[:4],
}), flush=True)
print("an error", file=sys.stderr)
import atexit
atexit.register(print, "the end")
sys.exit(7)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    folder = tmp_path_factory.mktemp("one") / "forks"
    python = fork_server.started_beside(folder, sys.executable, os.environ)
    process = fork_server._servers[folder]
    assert eventually(lambda: (folder / "fork").exists())
    yield SimpleNamespace(python=python, process=process, folder=folder)
    assert process.stdin is not None
    # As when the driver ends, however that happens.
    process.stdin.close()
    assert process.wait(60) == 0
    del fork_server._servers[folder]


def test_a_fork_stands_for_the_process_that_was_asked_for(server: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "report.py").write_text(REPORT, encoding="utf-8")
    libraries = tmp_path / "libraries"
    done = subprocess.run(
        [server.python, "-m", "report", "a b", ""],
        cwd=tmp_path,
        env={"ONE": "1 =", "TWO\nLINES": "x\ny", "PYTHONPATH": str(libraries)},
        input="typed",
        capture_output=True,
        text=True,
    )
    report, end = done.stdout.splitlines()
    assert json.loads(report) == {
        "name": "__main__",
        "arguments": ["a b", ""],
        "folder": str(tmp_path),
        "variables": ["1 =", "x\ny", None],
        "path": [str(tmp_path), str(libraries)],
        "parent": server.process.pid,
        "input": "typed",
        "loaded": True,
        "title": ["python", "-m", "report", "a b"],
    }
    assert (end, done.stderr, done.returncode) == ("the end", "an error\n", 7)


def test_an_error_is_shown_as_python_shows_it(server: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("raise ValueError('no')", encoding="utf-8")
    done = subprocess.run([server.python, "-m", "wrong"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr.splitlines()[-1], done.returncode) == ("ValueError: no", 1)


def test_nothing_is_said_where_nobody_waits(server: SimpleNamespace, tmp_path: Path) -> None:
    """A query that was stopped while it started has closed the port to which its processes connect."""
    (tmp_path / "late.py").write_text(
        "from pyspark.util import local_connect_and_auth\nlocal_connect_and_auth(1, 'secret')", encoding="utf-8"
    )
    done = subprocess.run([server.python, "-m", "late"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on(server: SimpleNamespace, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "waits.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    waiting = subprocess.Popen([server.python, "-m", "waits"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    forked = int(waiting.stdout.readline())
    assert forked != waiting.pid
    waiting.send_signal(number)
    assert waiting.wait(60) == 128 + number
    # The pipe ends when all who could write to it have ended.
    assert waiting.stdout.read() == ""
    assert eventually(lambda: not Path(f"/proc/{forked}").exists())


CLEANS_UP = """
import os, pathlib, sys, time
print(os.getpid(), flush=True)
sys.stdin.read()
time.sleep(0.2)
pathlib.Path("clean").touch()
"""


def test_a_signal_waits_for_one_that_ends_by_itself(server: SimpleNamespace, tmp_path: Path) -> None:
    """Spark ends a daemon by a signal and by the end of its input, which is when it removes its files."""
    (tmp_path / "cleans.py").write_text(CLEANS_UP, encoding="utf-8")
    cleaning = subprocess.Popen(
        [server.python, "-m", "cleans"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert cleaning.stdin is not None
    assert cleaning.stdout is not None
    cleaning.stdout.readline()
    cleaning.terminate()
    cleaning.stdin.close()
    assert cleaning.wait(60) == 128 + signal.SIGTERM
    assert (tmp_path / "clean").exists()


def test_a_signal_before_there_is_a_process_reaches_it(tmp_path: Path) -> None:
    """The server is busy when the launcher asks, and the launcher is ended meanwhile."""
    folder = tmp_path / "forks"
    python = fork_server._write_launcher(folder, sys.executable, os.environ)
    assert python is not None
    listener = fork_server._listen(str(folder))
    forked = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    asking = subprocess.Popen([python, "-m", "some"], stdout=subprocess.DEVNULL)
    line, _ = listener.accept()
    # From here on it does not end by a signal.
    assert line.recv(4)
    asking.terminate()
    line.sendall(b"%d\n" % forked.pid)
    assert (asking.wait(60), forked.wait(60)) == (128 + signal.SIGTERM, -signal.SIGTERM)
    listener.close()
    line.close()


IGNORES = """
import os, resource, signal
print([signal.getsignal(n) == signal.SIG_IGN for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)])
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == resource.getrlimit(resource.RLIMIT_NOFILE)[1])
"""


def test_signals_that_spark_ignores_are_ignored(server: SimpleNamespace, tmp_path: Path) -> None:
    """The JVM ignores Ctrl-C, which is for the driver, and so does what it starts. It may open any number of files."""
    (tmp_path / "ignores.py").write_text(IGNORES, encoding="utf-8")
    program = f"trap '' INT HUP; exec {server.python} -m ignores"
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[True, True, False]", "True"]
    (tmp_path / "waits.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    waiting = subprocess.Popen(
        ["bash", "-c", program.replace("ignores", "waits")], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(60) == 128 + signal.SIGTERM, "not the first one"


def test_what_an_interpreter_reads_at_its_start_needs_a_start(server: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text("import os, time\nprint(time.strftime('%Z'), os.getppid())")
    environment = {**os.environ, "TZ": "Asia/Tokyo"}
    done = subprocess.run([server.python, "-m", "clock"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["JST", str(os.getpid())]


def test_a_folder_that_is_gone(server: SimpleNamespace, tmp_path: Path) -> None:
    """Drivers are started in folders that somebody removes."""
    (tmp_path / "found.py").write_text("print('found')", encoding="utf-8")
    (tmp_path / "gone").mkdir()
    program = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec {server.python} -m found"
    done = subprocess.run(
        ["bash", "-c", program], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout == "found\n"


LEAVES = """
import os, time
if os.fork() == 0:
    time.sleep(600)
print(os.getpid(), flush=True)
"""


def test_what_it_has_forked_itself_does_not_hold_its_launcher(server: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES, encoding="utf-8")
    with open(tmp_path / "said", "wb") as said:
        assert subprocess.run([server.python, "-m", "leaves"], cwd=tmp_path, stdout=said).returncode == 0
    forked = int((tmp_path / "said").read_text())
    # It was the first of its group, in which its child still is.
    os.killpg(forked, signal.SIGKILL)


def test_one_that_is_killed_ends_its_launcher(server: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert subprocess.run([server.python, "-m", "dies"], cwd=tmp_path).returncode == 1


def test_what_is_no_module_is_run_by_the_interpreter(server: SimpleNamespace) -> None:
    done = subprocess.run([server.python, "-c", "import os; print(os.getppid())"], capture_output=True, text=True)
    assert int(done.stdout) == os.getpid()


def test_it_is_started_once(server: SimpleNamespace) -> None:
    assert fork_server.started_beside(server.folder, sys.executable, {}) == server.python
    assert fork_server._servers[server.folder] is server.process


def _gone(folder: Path) -> None:
    (folder / "fork").unlink(missing_ok=True)


def _ends_before_it_answers(folder: Path) -> None:
    """A server that takes an order and is killed."""
    listener = fork_server._listen(str(folder))
    if os.fork() == 0:
        listener.accept()
        os._exit(0)
    listener.close()


def _dead(folder: Path) -> None:
    """The socket that a killed server leaves behind."""
    fork_server._listen(str(folder)).close()


@pytest.mark.parametrize("state", [_gone, _dead, _ends_before_it_answers])
def test_without_a_server_the_launcher_becomes_the_interpreter(tmp_path: Path, state: Callable[[Path], None]) -> None:
    python = fork_server._write_launcher(tmp_path / "forks", sys.executable, os.environ)
    assert python is not None
    state(tmp_path / "forks")
    (tmp_path / "plain.py").write_text("import os, sys\nprint(os.getppid(), sys.executable, *sys.argv[1:])")
    done = subprocess.run([python, "-m", "plain", "x"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(os.getpid()), sys.executable, "x"]


def test_where_forks_are_of_no_use_spark_runs_what_it_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fork_server.started_beside(tmp_path / "other", "/usr/bin/other-python", {}) == "/usr/bin/other-python"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert fork_server.started_beside(tmp_path / "noexec", sys.executable, {}) == sys.executable
    assert not fork_server._servers.keys() & {tmp_path / "other", tmp_path / "noexec"}
