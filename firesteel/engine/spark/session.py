"""The Spark session: found or started, with what Firesteel needs and nothing that slows a short job down."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import socket
import sys
import threading
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.settings import Settings
from firesteel.engine.shipping import archive_of
from firesteel.engine.spark.errors import first_lines
from firesteel.engine.spark.home import SparkHome, spark_home
from firesteel.engine.spark.java import find_java
from firesteel.engine.spark.jvm_process import (
    no_jvm_left_behind,
    own_interrupts,
    remove_with_jvm,
    temporary_folder_flag,
)
from firesteel.engine.spark.masters import check_master, is_local
from firesteel.engine.spark.output import LOG_LEVEL, forward_worker_output
from firesteel.engine.spark.submit_settings import submitted_by_file
from firesteel.engine.spark.warmup import warm_up_later
from firesteel.errors import ConfigurationError, SetupError

__all__ = ["get_session", "import_paths", "ship_files"]

_LOCK = threading.Lock()

_STATE_STORE = "spark.sql.streaming.stateStore"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The state store: RocksDB, and per batch only what changed is uploaded.
    f"{_STATE_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # RocksDB's memory is outside the JVM's heap: without a limit it would grow with the state.
    f"{_STATE_STORE}.rocksdb.boundedMemoryUsage": "true",
    f"{_STATE_STORE}.rocksdb.maxMemoryUsageMB": "512",
    # With a limit, indexes of blocks have to share it, too. With the small blocks that are Spark's default they do not
    # fit when the state is some hundred MB large; then every read loads and unpacks one again, which takes 1.7 ms
    # instead of 0.05.
    f"{_STATE_STORE}.rocksdb.blockSizeKB": "32",
    # Counting rows would cost every write a read.
    f"{_STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # A subtask is a partition: nothing may merge or split partitions behind our back.
    "spark.sql.adaptive.enabled": "false",
    # Plans are tiny and run for a few rows a task: generating and compiling Java for them costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "firesteel.engine.spark.daemon",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    # Spark's own default, here because jobs that share a session may ask for other numbers.
    "spark.sql.streaming.minBatchesToRetain": "100",
    # Frames are large rows: few of them make a batch on the way to Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    # And few bytes: each running task has such a batch in memory.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}

_FEW_ARENAS = ("MALLOC_ARENA_MAX", "2")
"""The C library gives threads heaps of their own, and Spark's state server is a new thread in every batch: what RocksDB
frees in one is not found by the next, and the JVM takes several times the memory that RocksDB is allowed."""

LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.bindAddress": "127.0.0.1",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
}


ELSEWHERE = {f"spark.executorEnv.{_FEW_ARENAS[0]}": _FEW_ARENAS[1]}


def get_session(settings: Settings, name: str, lasting: bool = False) -> SparkSession:
    """The running session if its master fits, else a new one; ``lasting`` says whether it will have much to do."""
    with _LOCK:
        running = SparkContext._active_spark_context
        if running is not None:
            session = SparkSession.builder.getOrCreate()
            _check_master(settings, session)
            _apply(session, settings)
            return session
        return _start(settings, name, lasting)


def _check_master(settings: Settings, session: SparkSession) -> None:
    wanted, there = settings.master, session.sparkContext.master
    if is_local(wanted) and is_local(there):
        return
    if wanted != there:
        raise ConfigurationError(
            f"The job asks for the Spark master {wanted!r}, but this process already has a session on {there!r}. "
            "A process has one Spark session: stop it first, or run the job in a process of its own."
        )


def _apply(session: SparkSession, settings: Settings) -> None:
    """Settings that can change while a session lives."""
    for key, value in {**DEFAULTS, **settings.spark}.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)


def _start(settings: Settings, name: str, lasting: bool) -> SparkSession:
    # The bridge to the JVM logs every call that ends in an exception; what fails is raised, so it need not say so.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    check_master(settings.master)
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    local = is_local(settings.master)
    # No folder for tables in the user's working directory.
    warehouse = {"spark.sql.warehouse.dir": str(scratch_folder() / "warehouse")}
    options = {**DEFAULTS, **warehouse, **(LOCAL if local else ELSEWHERE), **settings.spark}
    if settings.ui:
        options["spark.ui.enabled"] = "true"
    if local:
        # Workers run this interpreter, and find what this process can import.
        options.setdefault("spark.pyspark.python", sys.executable)
        # Blocks of records, in a folder that only this user can open.
        options.setdefault("spark.local.dir", str(scratch_folder()))
    home = spark_home(java)
    _export(home, options, quick=settings.jit == "quick" or (settings.jit == "auto" and not lasting))
    master = settings.master if settings.master != "local" else f"local[{os.cpu_count() or 1}]"
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in options.items():
        builder = builder.config(key, value)
    threading.Thread(target=_preload, name="preload", daemon=True).start()
    submitted = {"spark.master": master, "spark.app.name": name, **options}
    with no_jvm_left_behind(), own_interrupts():
        try:
            with submitted_by_file(submitted, scratch_folder()):
                # Before PySpark starts the JVM for the session: it would put all settings on the command line.
                SparkContext._ensure_initialized()
            session = builder.getOrCreate()
            remove_with_jvm(session.sparkContext._jvm, scratch_folder())
        except Exception as error:
            # As long as the JVM lives: its exceptions are asked for their texts there, so they are no causes either.
            raise _setup_error(error, master, options) from None
    forward_worker_output(session.sparkContext._jvm)
    _skip_installed_sources(session.sparkContext._jvm)
    if local:
        atexit.register(_close_stores, session)
        threading.Thread(target=_first_steps, args=(session,), name="spark-first-steps", daemon=True).start()
    if home is not None and not home.archive.exists():
        warm_up_later(home)
    return session


def _preload() -> None:
    """Loads what PySpark will load for the first batch. This process has nothing else to do while the JVM starts."""
    for name in ("pyarrow", "pandas", "pyspark.sql.streaming.stateful_processor"):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _skip_installed_sources(jvm: Any) -> None:
    """Registering a data source makes Spark look for installed packages that bring some, in a process of its own."""
    with contextlib.suppress(Exception):
        companion = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$")
        manager = getattr(companion, "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Some(jvm.PythonUtils.toScalaMap({})))


def _first_steps(session: SparkSession) -> None:
    """Starts the workers' parent process and loads Spark's machinery while the job is still being planned."""
    # A failure here is no failure of the job, which will meet and report it in its own words.
    with contextlib.suppress(Exception):
        session.range(1).mapInArrow(lambda batches: batches, "id long").toArrow()


def _close_stores(session: SparkSession) -> None:
    """Closes the state stores before the JVM ends, which Spark leaves to chance.

    RocksDB works in threads of its own. When the JVM's exit takes away what they use, they may crash, and the JVM
    reports that among the job's results and in a file of the user's folder.
    """
    # Whatever goes wrong now, the program is done, and what it stored is safe.
    with contextlib.suppress(Exception):
        jvm = session.sparkContext._jvm
        if jvm is not None and not session.streams.active:
            companion = getattr(jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")
            getattr(companion, "MODULE$").stop()


def _export(home: SparkHome | None, options: dict[str, str], quick: bool) -> None:
    """What the JVM learns from its environment."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault(*_FEW_ARENAS)
    os.environ[LOG_LEVEL] = str(logging.getLogger().getEffectiveLevel())
    if home is None:
        return
    os.environ["SPARK_HOME"] = str(home.path)
    flags = [f"-Xmx{options.get('spark.driver.memory', '1g')}", *temporary_folder_flag(scratch_folder())]
    if quick:
        # Without the compiler that takes its time Spark starts a fifth faster; but a count of millions then takes a
        # fifth longer, and a call of the state store three times as long.
        flags.append("-XX:TieredStopAtLevel=1")
    making = os.environ.get("FIRESTEEL_MAKE_ARCHIVE")
    if making:
        flags.append(f"-XX:ArchiveClassesAtExit={making}")
    elif home.archive.exists():
        flags.append(f"-XX:SharedArchiveFile={home.archive}")
    os.environ["FIRESTEEL_JVM_FLAGS"] = " ".join(flags)


def _setup_error(error: Exception, master: str, options: dict[str, str]) -> Exception:
    text = str(error)
    # Spark's JVM may end itself over a port without a message to us. So look at the ports it was told to use.
    taken = [key for key, value in options.items() if key.endswith(".port") and _answers(value)]
    if taken:
        ports = ", ".join(f"{options[key]} ({key})" for key in taken)
        return SetupError(
            f"Spark cannot start: a port it was told to use is taken: {ports}. Free it or choose another."
        )
    if "BindException" in text or "Address already in use" in text:
        return SetupError(f"Spark cannot start: a port it was told to use is taken. {_first_line(text, 'Bind')}")
    if "JAVA_GATEWAY_EXITED" in text:
        return SetupError(
            f"Spark's JVM ended before it was ready. Is Java in {os.environ.get('JAVA_HOME')} a working one?"
        )
    if "All masters are unresponsive" in text or "Failed to connect" in text:
        return SetupError(f"Nothing answers at the Spark master {master!r}.")
    return SetupError(f"Spark could not be started on {master!r}: {first_lines(text)}")


def _answers(port: str) -> bool:
    if not port.isdigit() or not 0 < int(port) < 65536:
        return False
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def _first_line(text: str, containing: str) -> str:
    return next((line.strip() for line in text.splitlines() if containing in line), "")


def import_paths(settings: Settings) -> tuple[str, ...]:
    """Where local workers should look for modules too: the places this process looks in, the script's folder first."""
    if not is_local(settings.master):
        return ()
    paths = IMPORTS.without_files(sys.path)
    return tuple(os.path.abspath(path or os.curdir) for path in paths if not path.endswith(".zip"))


def ship_files(session: SparkSession, files: JobFiles | None) -> None:
    """Sends the job's Python files to wherever its workers will be. Those of this machine find them where they are."""
    if files is not None and not is_local(session.sparkContext.master):
        session.sparkContext.addArchive(f"{archive_of(files)}#{files.name}")
