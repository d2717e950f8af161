"""A real job on Spark under the job manager: its driver, the job manager and the JVM are killed in turn, and every
record is in the output once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from folderkit import runtime_folder
from sparkkit import QUICK_SETTINGS, eventually

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.processes import Process, session_members
from firesteel.cluster.starting import find_running

PROGRAM = """\
import sys
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(100)
source = DataGeneratorSource(lambda n: (n % 7, 1), records_per_second=100.0)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
counts = numbers.key_by(lambda record: record[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")
texts = counts.map(lambda record: f"{record[0]} {record[1]}", Types.STRING())
texts.sink_to(FileSink.for_row_format(sys.argv[1], Encoder.simple_string_encoder()).build()).uid("files")
env.execute("counted")
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    # A short path: that of a socket must be.
    with runtime_folder() as short:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", short)
        monkeypatch.setenv("FIRESTEEL_CLUSTER_DIR", str(tmp_path / "cluster"))
        yield tmp_path
        running = find_running(tmp_path / "cluster")
        if running is not None:
            main(["cluster", "stop"])


def manager() -> ClusterClient:
    found = ClusterClient.find()
    assert found is not None
    return found


def lines(folder: Path) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith((".", "_")):
            found.extend(path.read_text().splitlines())
    return found


def _is_java(process: Process) -> bool:
    try:
        return b"java" in Path(f"/proc/{process.pid}/cmdline").read_bytes()[:200]
    except OSError:
        return False


def driver_of(job: str, number: int, some_records: bool = True) -> Process:
    """The n-th driver, once it has done something."""

    def works() -> bool:
        known = manager().job(job).known
        done = known["batches"] > 1 or not some_records
        return bool(known["drivers"] == number + 1 and known["state"] == "RUNNING" and done)

    assert eventually(works, 240), manager().job(job).known
    return Process.of(int(manager().job(job).known["pid"]))


@pytest.mark.timeout(900)
def test_driver_job_manager_and_jvm_are_killed_in_turn(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program, out = folder / "counted.py", folder / "out"
    program.write_text(PROGRAM)
    assert main(["cluster", "start", "--port", "0", "--warm-drivers", "0"]) == 0
    capfd.readouterr()
    assert main(["submit", "-m", "local[2]", "-D", QUICK_SETTINGS, str(program), str(out)]) == 0
    job = capfd.readouterr().out.strip()
    # 1. The driver: the job manager ends what is left of it and starts the next one, which goes on from the checkpoint.
    first = driver_of(job, 0)
    left = [one for one in session_members(first) if one != first]
    assert left, "a JVM and workers"
    first.send(signal.SIGKILL)
    second = driver_of(job, 1)
    assert not any(one.alive for one in left)
    # 2. The job manager: the job does not notice, and the next one adopts it.
    running = find_running(folder / "cluster")
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    assert eventually(lambda: find_running(folder / "cluster") is None)
    assert main(["cluster", "start", "--port", "0", "--warm-drivers", "0"]) == 0
    assert driver_of(job, 1) == second
    # 3. The JVM: the driver cannot bring it back, so a new driver does.
    # The first one: what it starts has its name for a moment.
    jvm = min((one for one in session_members(second) if _is_java(one)), key=lambda one: one.pid)
    jvm.send(signal.SIGKILL)
    driver_of(job, 2)
    # All that was read arrives, once.
    assert main(["stop", "--drain", "-p", str(folder / "saved"), job]) == 0
    assert manager().job(job).wait(240) == "FINISHED"
    found = [tuple(map(int, line.split())) for line in lines(out)]
    expected = [(key, count) for key in range(7) for count in range(1, len(range(key, len(found), 7)) + 1)]
    assert sorted(found) == expected
    failures = manager().job(job).exceptions().failures
    assert any("was killed by SIGKILL" in one.message for one in failures)
    assert any("JVM" in one.message for one in failures)
    assert main(["list", "-a"]) == 0
    assert f"{job}  FINISHED" in capfd.readouterr().out
