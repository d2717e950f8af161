"""A job on Spark in a driver of the job manager that was started ahead: in that driver's JVM, and every result once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from folderkit import runtime_folder
from sparkkit import eventually

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.starting import find_running

PROGRAM = """\
import logging, os, sys
from firesteel.common import Types, WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSink

logging.basicConfig(level=logging.INFO)
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(100)

def seen(record):
    if record[1] == 1:
        logging.getLogger("counts").info("the first of %d, %s", record[0], "FIRESTEEL_DRIVER" in os.environ)
    return record

source = DataGeneratorSource(lambda n: (n % 7, 1), count=700)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
counts = numbers.key_by(lambda record: record[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")
texts = counts.map(seen).map(lambda record: f"{record[0]} {record[1]}", Types.STRING())
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
        if find_running(tmp_path / "cluster") is not None:
            main(["cluster", "stop"])


@pytest.mark.timeout(600)
def test_a_job_takes_over_a_driver_and_its_spark(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = folder / "counted.py"
    program.write_text(PROGRAM)
    assert main(["cluster", "start", "--port", "0", "--slots", "1", "--warm-drivers", "1"]) == 0
    client = ClusterClient.find()
    assert client is not None
    assert eventually(lambda: client.get("/firesteel/v1/manager")["warmDrivers"] == 1, 240)
    assert main(["list", "-a"]) == 0
    assert "warm" not in capfd.readouterr().out, "what it ran before is no job"
    assert main(["submit", str(program), str(folder / "out")]) == 0
    job = capfd.readouterr().out.strip()
    assert client.job(job).wait(240) == "FINISHED", client.job(job).known
    log = (folder / "cluster" / "logs" / "jobmanager.log").read_text()
    pid = log.partition(f"job {job} gets a warm driver, process ")[2].split()[0]
    assert f"driver 0 is process {pid}\n" in log
    (written,) = (folder / "cluster" / "jobs" / job / "logs").iterdir()
    # A process of its own writes the log.
    assert eventually(lambda: written.read_text().count("the first of ") >= 7), written.read_text()
    said = written.read_text()
    assert "is not used" not in said, "its Spark was that of the driver"
    assert "starts in STREAMING mode" in said
    # Workers were forked from a process that did not know the level that the program sets.
    assert said.count("the first of ") == 7
    assert "the first of 3, False" in said
    found = [
        tuple(map(int, line.split()))
        for path in (folder / "out").rglob("*")
        if path.is_file() and not path.name.startswith((".", "_"))
        for line in path.read_text().splitlines()
    ]
    assert sorted(found) == [(key, count) for key in range(7) for count in range(1, 101)]
