"""A Spark standalone cluster on loopback: a master and two workers, one core each."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from chaos.processes import MARK
from firesteel.engine.spark.java import find_java

__all__ = ["standalone_cluster"]

SPARK = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"
SECONDS_TO_START = 300
"""Only ends what hangs."""
_LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@contextmanager
def standalone_cluster(folder: Path, mark: str) -> Iterator[str]:
    """The address of a cluster that is ready, and that is gone afterwards. Its executors bear the mark."""
    ours = ("FIRESTEEL_", "SPARK_", "PYSPARK_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment |= {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "JAVA_HOME": str(find_java().home),
        # They have little to do, and share two cores with those who have.
        "SPARK_DAEMON_JAVA_OPTS": _LIGHT,
        "SPARK_LAUNCHER_OPTS": _LIGHT,
        MARK: mark,
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            command = [str(SPARK / "bin" / "spark-class"), *arguments]
            # spark-class ends in exec: this is the process of the JVM itself.
            started.append(subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out))
        return log

    try:
        log = start("master", f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        address = _wait_for(log, r"Starting Spark master at (spark://\S+)")
        worker = (f"{DEPLOY}.worker.Worker", "-c", "1", "-m", "1500M", "--webui-port", "0", address)
        for log in [start(f"worker-{number}", *worker) for number in (1, 2)]:
            _wait_for(log, "(Successfully registered with master)")
        yield address
    finally:
        # Workers first: they end their executors.
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(log: Path, pattern: str) -> str:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found is not None:
            return found.group(1)
        time.sleep(0.1)
    raise RuntimeError(f"the cluster did not start:\n{log.read_text()}")
