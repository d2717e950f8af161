"""Virtual environments of the engines that Firesteel is compared with, made once under ``.bench``."""

import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / ".bench"

REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    # PyFlink's dependencies build with what they find in the environment, hence the step before.
    "pyflink": (("setuptools<80", "wheel"), ("apache-flink==2.3.0",)),
    "bytewax": (("bytewax[kafka]>=0.21,<0.22",),),
    "quix": (("quixstreams>=3.28,<4",),),
    # GraphFrames uses typing-extensions, and does not say so.
    "graphframes": (
        ("graphframes-py>=0.12,<0.13", "pyspark==4.3.0", "numpy>=2", "pyarrow>=18", "typing-extensions>=4"),
    ),
}
"""What is installed in each environment, step by step."""


KAFKA_JAR = "flink-sql-connector-kafka-5.0.0-2.2.jar"
"""PyFlink's connector for Kafka: the newest that there is, made for Flink 2.2."""


def kafka_jar() -> Path:
    """The connector's JAR, fetched by Maven if need be."""
    path = BENCH / "jars" / KAFKA_JAR
    if not path.exists():
        artifact, version = KAFKA_JAR.removesuffix(".jar").split("-kafka-")
        coordinates = f"org.apache.flink:{artifact}-kafka:{version}"
        command = [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={coordinates}",
            f"-DoutputDirectory={path.parent}",
        ]
        subprocess.run(command, check=True)
    return path


def python_of(name: str | None) -> Path:
    """The interpreter of an environment; that of this process for None."""
    return Path(sys.executable) if name is None else BENCH / name / "bin" / "python"


def prepare(name: str) -> None:
    """Make the environment ``name`` unless a complete one is there."""
    directory = BENCH / name
    complete = directory / "complete.txt"
    wanted = repr(REQUIREMENTS[name])
    if complete.exists() and complete.read_text() == wanted:
        return
    started = time.monotonic()
    print(f"{name}: making its environment in .bench/{name}", flush=True)
    venv.create(directory, clear=True, with_pip=True)
    for step in REQUIREMENTS[name]:
        print(f"{name}: installing {', '.join(step)}", flush=True)
        command = [str(python_of(name)), "-m", "pip", "install", "--quiet", "--progress-bar", "off", *step]
        subprocess.run(command, check=True)
    complete.write_text(wanted)
    print(f"{name}: ready after {time.monotonic() - started:.0f} s", flush=True)
