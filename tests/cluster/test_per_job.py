"""``firesteel run --supervised``: one job, whose driver is started again when it dies, without a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sparkkit import eventually

PROGRAM = """\
import os, signal, sys
from beside import TEXT
from firesteel.datastream import StreamExecutionEnvironment

def fail_once(number):
    if number == 2 and not os.path.exists(sys.argv[1]):
        open(sys.argv[1], "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{TEXT} {number}"

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection([1, 2, 3]).map(fail_once).print()
env.execute("supervised")
"""

ONCE = [
    "-Drestart-strategy.type=fixed-delay",
    "-Drestart-strategy.fixed-delay.attempts=1",
    "-Drestart-strategy.fixed-delay.delay=10 ms",
]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "firesteel", "run", "--supervised", "-m", "memory", *arguments]


def test_a_driver_that_kills_itself_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("TEXT = 'number'\n")
    ended = subprocess.run(
        command(*ONCE, str(tmp_path / "program.py"), str(tmp_path / "failed")),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert [line for line in ended.stdout.splitlines() if line.startswith("number")][-3:] == [
        "number 1",
        "number 2",
        "number 3",
    ]
    assert (tmp_path / "failed").exists()


def test_a_signal_suspends_the_job(tmp_path: Path) -> None:
    from clusterkit import ENDLESS

    (tmp_path / "endless.py").write_text(ENDLESS)
    place = tmp_path / "tmp"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    with open(tmp_path / "out", "wb") as out:
        process = subprocess.Popen(command(str(tmp_path / "endless.py")), stdout=out, stderr=out, env=environment)
    said = tmp_path / "out"
    assert eventually(lambda: "starts in STREAMING mode" in said.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 143
    assert "suspended after" in said.read_text()
    assert not list(place.glob("firesteel-run-*")), "nothing is left behind"
