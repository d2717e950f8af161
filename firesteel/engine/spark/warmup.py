"""The class-data-sharing archive: the classes Spark loads for a job, ready to be mapped instead of parsed.

It is made once, by running a small job of every kind in a JVM that writes the archive when it exits. A start with it
takes about half the time. The archive lies in the Spark home that :mod:`.home` makes, which is named by Java, PySpark
and flags: when one of them changes, a new archive is made. A JVM ignores an archive that does not fit it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from firesteel.common.process_environment import MAKE_ARCHIVE, environment_of_child
from firesteel.engine.processes import jvm_process
from firesteel.engine.spark.home import SparkHome, spark_home
from firesteel.engine.spark.java import find_java
from firesteel.errors import SetupError

__all__ = ["warm_up", "warm_up_later"]

_STALE_SECONDS = 600


def warm_up() -> Path:
    """Makes the archive and returns its path."""
    home = spark_home(find_java())
    if home is None:
        raise SetupError("The folder for Firesteel's cache cannot be written. Set FIRESTEEL_CACHE_DIR to one that can.")
    draft = home.path / f"classes-{os.getpid()}.tmp"
    done = subprocess.run(
        [sys.executable, "-m", "firesteel.engine.spark.warmup"],
        # Without the settings of the program that caused it: its id, its savepoint.
        env={**environment_of_child(), MAKE_ARCHIVE: str(draft), "FIRESTEEL_MASTER": "local"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if not draft.exists():
        raise SetupError(f"The archive could not be made. The trial job said: {(done.stdout + done.stderr)[-600:]}")
    os.replace(draft, home.archive)
    return home.archive


def warm_up_later(home: SparkHome) -> None:
    """Has the archive made in the background when this process is done, unless someone is at it."""
    if os.environ.get(MAKE_ARCHIVE) or os.environ.get("FIRESTEEL_WARMUP", "auto") == "off":
        return
    atexit.register(_spawn, home)


def _spawn(home: SparkHome) -> None:
    claim = home.path / "warming-up"
    with contextlib.suppress(OSError):
        if claim.exists() and time.time() - claim.stat().st_mtime < _STALE_SECONDS:
            return
        claim.touch()
        subprocess.Popen(
            ["nice", "-n", "15", sys.executable, "-c", "from firesteel.engine.spark.warmup import warm_up; warm_up()"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment_of_child(),
            start_new_session=True,
        )


def _trial() -> None:
    """Small jobs of every kind, so that the classes they need are loaded; then an orderly end of the JVM."""
    from pyspark import SparkContext

    from firesteel.common import Types
    from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2).set_runtime_mode(mode)
        words = env.from_collection(["a b", "b c"]).flat_map(lambda line: line.split())
        pairs = words.map(lambda w: (w, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        pairs.key_by(lambda t: t[0]).sum(1).print()
        env.execute("warm-up")
    context = SparkContext._active_spark_context
    assert context is not None
    process = jvm_process()
    assert process is not None
    assert process.stdin is not None
    context.stop()
    process.stdin.close()
    process.wait(timeout=300)


if __name__ == "__main__":
    _trial()
