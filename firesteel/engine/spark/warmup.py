"""The class-data-sharing archive: the classes Spark loads for a job, ready to be mapped instead of parsed.

It is made once, by running a small job of every kind in a JVM that writes the archive when it exits. A start with it
takes about half the time. The archive lies in the Spark home that :mod:`.home` makes, which is named by Java, PySpark
and flags: when one of them changes, a new archive is made. So it is when the files of Java or PySpark are others than
those that it was made of. A JVM ignores an archive that does not fit it, and one that does not start with the archive
is started without.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
from pathlib import Path

from filelock import FileLock, Timeout

from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import MAKE_ARCHIVE, environment_of_child
from firesteel.engine.processes import jvm_process
from firesteel.engine.spark.home import SparkHome, spark_home
from firesteel.engine.spark.java import find_java
from firesteel.errors import SetupError

__all__ = ["warm_up", "warm_up_later", "warm_up_soon"]

SECONDS = 600.0
"""How long the trial job may take."""


def warm_up() -> Path:
    """Makes the archive and returns its path. Waits where another process is at it, and takes that one's."""
    home = spark_home(find_java())
    if home is None:
        raise SetupError("The folder for Firesteel's cache cannot be written. Set FIRESTEEL_CACHE_DIR to one that can.")
    if not home.takes_archive:
        raise SetupError(f"The JVM takes no archive from {home.path}, because of the blanks in its name.")
    before = _made_at(home)
    with _lock_of(home).acquire(timeout=2 * SECONDS):
        if _made_at(home) == before or not home.has_archive:
            _make(home)
    return home.archive


def _made_at(home: SparkHome) -> int:
    with contextlib.suppress(OSError):
        return home.archive.stat().st_mtime_ns
    return 0


def _lock_of(home: SparkHome) -> FileLock:
    """Held by the one process that makes the archive, as long as it lives."""
    return FileLock(home.path / "classes.lock", mode=0o600)


def _make(home: SparkHome) -> None:
    """1. A JVM writes the archive when it ends. 2. Another one starts with it, and must not do without. 3. It gets its
    name. 4. What it was made of is noted. Whoever starts in between, or after a crash, does without."""
    for left in home.path.glob("classes-*.tmp"):
        left.unlink(missing_ok=True)
    made_of, draft = home.made_of, home.path / f"classes-{os.getpid()}.tmp"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "firesteel.engine.spark.warmup"],
            # Without the settings of the program that caused it: its id, its savepoint.
            env={**environment_of_child(), MAKE_ARCHIVE: str(draft), "FIRESTEEL_MASTER": "local"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if not draft.exists():
            raise SetupError(f"The archive could not be made. The trial job said: {(done.stdout + done.stderr)[-600:]}")
        _check(home, draft)
        home.stamp.unlink(missing_ok=True)
        os.replace(draft, home.archive)
        replace_file(str(home.stamp), made_of.encode())
    finally:
        draft.unlink(missing_ok=True)


def _check(home: SparkHome, archive: Path) -> None:
    command = [
        str(home.java.executable),
        f"-XX:SharedArchiveFile={archive}",
        f"@{home.arguments}",
        "-Xshare:on",
        "-version",
    ]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if tried.returncode:
        raise SetupError(f"The archive that was made cannot be used: {(tried.stdout + tried.stderr)[-600:]}")


def warm_up_later(home: SparkHome) -> None:
    """Has the archive made in the background when this process is done, unless someone is at it."""
    if _is_wanted():
        atexit.register(_spawn, home)


def warm_up_soon() -> None:
    """Has the archive made in the background now, where there is none."""
    home = spark_home(find_java())
    if home is not None and home.takes_archive and not home.has_archive and _is_wanted():
        atexit.unregister(_spawn)
        _spawn(home)


def _is_wanted() -> bool:
    return not os.environ.get(MAKE_ARCHIVE) and os.environ.get("FIRESTEEL_WARMUP", "auto") != "off"


def _spawn(home: SparkHome) -> None:
    # Whatever goes wrong now: jobs start without an archive as well.
    with contextlib.suppress(OSError, Timeout):
        with _lock_of(home).acquire(timeout=0):
            if home.has_archive:
                return
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
