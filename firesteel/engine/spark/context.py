"""Spark's context: the one that runs in this process, or a new one with what Firesteel needs and nothing that slows a
short job down.

A new one is started in a JVM of ours, in the JVM of ``spark-submit``, or in the one that a stopped context has left.
What the user set counts in each case: ``spark-defaults.conf``, the arguments of ``spark-submit``, and the settings
of the job.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from firesteel.common.parsing import parse_memory_bytes
from firesteel.common.process_environment import JVM_FLAGS, LOG_LEVEL, MAKE_ARCHIVE, exported
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.settings import Settings
from firesteel.engine.spark.errors import first_lines
from firesteel.engine.spark.fork_server import started_beside
from firesteel.engine.spark.home import LOCAL_FILES, SparkHome, spark_home
from firesteel.engine.spark.java import Java, find_java
from firesteel.engine.spark.jvm_process import (
    kill_jvm_on_failure,
    own_interrupts,
    remove_with_jvm,
    temporary_folder_flag,
)
from firesteel.engine.spark.masters import AUTO, check_master, is_local
from firesteel.engine.spark.output import forward_worker_output
from firesteel.engine.spark.session_settings import (
    CONTEXT,
    ELSEWHERE,
    FEW_ARENAS,
    FOR_NO_PAGE,
    LOCAL_CONTEXT,
    WORKER_MODULE,
)
from firesteel.engine.spark.spark_defaults import spark_defaults
from firesteel.engine.spark.submit_settings import submitted_by_file
from firesteel.engine.spark.warmup import warm_up_later
from firesteel.errors import ConfigurationError, SetupError

__all__ = [
    "forget_files_of_settings",
    "has_worker_module",
    "of_a_session",
    "running_session",
    "start_facts",
    "start_spark",
    "with_master",
]

_DRIVER_MEMORY = "spark.driver.memory"
logger = logging.getLogger("firesteel")

_FOR_THE_LAUNCHER = tuple(
    f"spark.driver.{what}" for what in ("defaultJavaOptions", "extraJavaOptions", "extraClassPath", "extraLibraryPath")
)
"""What Spark's own launcher puts on the JVM's command line. The home that is made here has none."""

_LATER = ("spark.sql.streaming.minBatchesToRetain",)
"""What a session of its own sets for each job, and Firesteel itself asks for."""

_ours: Any = None
"""The connection to the JVM that was started here."""


def with_master(settings: Settings) -> Settings:
    """Settings with the master that ``auto`` stands for: the running application's, the one that Spark's own settings
    name, or this machine."""
    if settings.master != AUTO:
        return settings
    running = SparkContext._active_spark_context
    master = running.master if running is not None else _users_settings().get("spark.master", "local")
    return replace(settings, master=master)


def has_worker_module(settings: Settings) -> bool:
    """Whether workers of the context that runs, or would be started, are forked from our own process."""
    running = SparkContext._active_spark_context
    key, module = WORKER_MODULE
    if running is not None:
        return bool(running.getConf().get(key) == module)
    return {**dict([WORKER_MODULE]), **_users_settings(), **settings.spark}[key] == module


def running_session(settings: Settings) -> SparkSession | None:
    """The session that this process has, which is the user's; None where Spark does not run."""
    _check_classic(settings.master)
    running = SparkContext._active_spark_context
    if running is None:
        return None
    if settings.master not in (AUTO, running.master) and not (is_local(settings.master) and is_local(running.master)):
        raise ConfigurationError(
            f"The job asks for the Spark master {settings.master!r}, but this process already has a session on "
            f"{running.master!r}. A process has one Spark context: stop it first, or run the job in a process of its "
            "own."
        )
    # Without options it changes nothing. It makes a session only for a bare context.
    return SparkSession.builder.getOrCreate()


def _check_classic(master: str) -> None:
    """Raises where PySpark would give a client of Spark Connect: jobs run in Spark's JVM, which such a one cannot
    reach."""
    # Without the address, which may have a token in it.
    if master.startswith("sc://"):
        found, remedy = "a master with sc://", "name one such as local[4] or spark://host:7077"
    elif "SPARK_REMOTE" in os.environ:
        found, remedy = "the variable SPARK_REMOTE", "unset SPARK_REMOTE"
    elif os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        found, remedy = "the variable SPARK_API_MODE=connect", "unset SPARK_API_MODE"
    elif is_remote():
        found, remedy = "a session of Spark Connect in this process", "run the job in a process of its own"
    else:
        return
    raise SetupError(
        f"Firesteel needs a classic Spark session, and there is {found}: Spark Connect does not run jobs of Firesteel. "
        f"To go on, {remedy}."
    )


def _users_settings() -> dict[str, str]:
    """What the user set for Spark, outside of the job."""
    if _others_jvm():
        SparkContext._ensure_initialized()
        # The properties of the JVM, where spark-submit puts what it was given.
        return dict(SparkConf().getAll())
    return spark_defaults()


def _others_jvm() -> bool:
    """Whether there is a JVM that was not started here: by spark-submit, or by PySpark for a context that has ended."""
    if SparkContext._gateway is None:
        return "PYSPARK_GATEWAY_PORT" in os.environ
    return SparkContext._gateway is not _ours


def start_spark(settings: Settings, name: str, lasting: bool) -> SparkSession:
    """A new context and its first session; ``lasting`` says whether it will have much to do."""
    # The bridge to the JVM logs every call that ends in an exception; what fails is raised, so it need not say so.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    _check_classic(settings.master)
    settings = with_master(settings)
    check_master(settings.master)
    master = _full_name(settings.master)
    options = context_options(settings, name, _users_settings())
    java, home, environment = None, None, {}
    if not _others_jvm():
        java = find_java()
        home = None if options.keys() & set(_FOR_THE_LAUNCHER) else spark_home(java)
        if home is not None and is_local(master):
            options.setdefault(*LOCAL_FILES)
        quick = settings.jit == "quick" or (settings.jit == "auto" and not lasting)
        environment = _environment(java, home, options, quick, lasting)
        if is_local(master):
            environment["PYSPARK_PYTHON"] = started_beside(
                scratch_folder() / "forks", environment["PYSPARK_PYTHON"], dict([FEW_ARENAS])
            )
    with _preloading(), kill_jvm_on_failure(), own_interrupts(), exported(environment):
        try:
            session = _created(master, options, settings.spark, home)
            remove_with_jvm(session.sparkContext._jvm, scratch_folder())
        except Exception as error:
            # As long as the JVM lives: its exceptions are asked for their texts there, so they are no causes either.
            raise _setup_error(error, master, options) from None
    if java is not None:
        forward_worker_output(session.sparkContext._jvm)
        _skip_installed_sources(session.sparkContext._jvm)
    if home is not None and home.takes_archive and not home.has_archive:
        warm_up_later(home)
    return session


def _full_name(master: str) -> str:
    return master if master != "local" else f"local[{os.cpu_count() or 1}]"


def start_facts(settings: Settings) -> dict[str, str]:
    """By name all that a Spark that is started now for a job with these settings, and a long time to run, would be
    started with. Not the job's name, nor what can be set in a session or for a job later on."""
    settings = with_master(settings)
    options = context_options(settings, "", _users_settings())
    java = find_java()
    home = None if options.keys() & set(_FOR_THE_LAUNCHER) else spark_home(java)
    variables = _environment(java, home, options, settings.jit == "quick", lasting=True, archive=False)
    # The workers of a job learn the level from the job, too.
    del variables[LOG_LEVEL]
    asked = {key: value for key, value in settings.spark.items() if key not in _LATER}
    named = {f"variable {name}": value for name, value in variables.items()}
    return {**options, **asked, **named, "spark.master": _full_name(settings.master)}


def context_options(settings: Settings, name: str, users: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new context: ours, over them the user's, over them the job's.

    Sessions have SQL settings of their own. Here are only those that the user has set for all of them.
    """
    # No folder for tables in the user's working directory.
    warehouse = {"spark.sql.warehouse.dir": str(scratch_folder() / "warehouse")}
    local = is_local(settings.master)
    options = {"spark.app.name": name, **CONTEXT, **warehouse, **(LOCAL_CONTEXT if local else ELSEWHERE), **users}
    options |= {key: value for key, value in settings.spark.items() if not key.startswith("spark.sql.")}
    if settings.ui:
        options["spark.ui.enabled"] = "true"
    if options["spark.ui.enabled"] == "false":
        options = {**FOR_NO_PAGE, **options}
    if local:
        # Workers run this interpreter, and find what this process can import.
        options.setdefault("spark.pyspark.python", sys.executable)
        # Blocks of records, in a folder that only this user can open.
        options.setdefault("spark.local.dir", str(scratch_folder()))
    return options


def _created(master: str, options: dict[str, str], asked: Mapping[str, str], home: SparkHome | None) -> SparkSession:
    """The session. A JVM that does not start with the archive of classes is started once more without it."""
    own = not _others_jvm()
    flags = os.environ.get(JVM_FLAGS, "")
    if home is None or str(home.archive) not in flags.partition("-XX:SharedArchiveFile=")[2]:
        return _create(master, options, asked, own)
    try:
        return _create(master, options, asked, own)
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        logger.warning("Spark's JVM did not start with the archive of classes %s, which is removed", home.archive)
        # The next program makes another one.
        home.stamp.unlink(missing_ok=True)
        home.archive.unlink(missing_ok=True)
        without = " ".join(flag for flag in flags.split() if not flag.startswith("-XX:SharedArchiveFile="))
        with exported({JVM_FLAGS: without}):
            return _create(master, options, asked, own)


def _create(master: str, options: dict[str, str], asked: Mapping[str, str], own_jvm: bool) -> SparkSession:
    global _ours
    builder = SparkSession.builder.master(master)
    if own_jvm and SparkContext._gateway is None:
        with submitted_by_file({**options, "spark.master": master}, scratch_folder()):
            # Before PySpark starts the JVM for the session: it would put all settings on the command line.
            SparkContext._ensure_initialized()
        _ours = SparkContext._gateway
    else:
        SparkContext._ensure_initialized()
        for key, value in options.items():
            builder = builder.config(key, value)
    for key, value in asked.items():
        # Others are for the job's session alone.
        if key.startswith("spark.sql.") and not of_a_session(SparkContext._jvm, key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def of_a_session(jvm: Any, key: str) -> bool:
    """Whether Spark knows an SQL setting and lets a session change it."""
    known = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    return bool(known.containsConfigKey(key) and not known.isStaticConfigKey(key))


@contextlib.contextmanager
def _preloading() -> Iterator[None]:
    """Loads what PySpark will load for the first batch. This process has nothing else to do while the JVM starts."""
    enough = threading.Event()

    def load() -> None:
        for name in ("pyarrow", "pandas", "pyspark.sql.streaming.stateful_processor"):
            if not enough.is_set():
                with contextlib.suppress(Exception):
                    importlib.import_module(name)

    thread = threading.Thread(target=load, name="preload", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        # The interpreter is about to end. Modules run code, and by that a thread that still loads some has CPython
        # forget that it was Ctrl-C that ended the program: its exit status would be that of a failure.
        enough.set()
        thread.join()
        raise


def _skip_installed_sources(jvm: Any) -> None:
    """Registering a data source makes Spark look for installed packages that bring some, in a process of its own."""
    with contextlib.suppress(Exception):
        companion = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$")
        manager = getattr(companion, "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Some(jvm.PythonUtils.toScalaMap({})))


def forget_files_of_settings(context: SparkContext) -> None:
    """Spark sends Hadoop's settings to the tasks of each stage in each batch. Most of the work is to compress, one by
    one, the names of the files that a thousand settings came from, which nobody asks for. Only in a JVM of ours, and
    when a batch was done: Hadoop reads its files anew while Spark loads its classes."""
    with contextlib.suppress(Exception):
        if SparkContext._gateway is _ours and SparkContext._jvm is not None:
            settings = SparkContext._jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
            files = settings.getDeclaredField("updatingResource")
            files.setAccessible(True)
            files.set(context._jsc.hadoopConfiguration(), None)


def _environment(
    java: Java, home: SparkHome | None, options: Mapping[str, str], quick: bool, lasting: bool, archive: bool = True
) -> dict[str, str]:
    """What the JVM, and workers through it, learn from their environment."""
    defaults = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, **dict([FEW_ARENAS])}
    variables = {name: os.environ.get(name, value) for name, value in defaults.items()}
    variables["JAVA_HOME"] = str(java.home)
    variables[LOG_LEVEL] = str(logging.getLogger().getEffectiveLevel())
    if home is None:
        return variables
    variables["SPARK_HOME"] = str(home.path)
    flags = [*_heap_flags(options.get(_DRIVER_MEMORY, "1g"), lasting), *temporary_folder_flag(scratch_folder())]
    if quick:
        # Without the compiler that takes its time Spark starts a fifth faster; but a count of millions then takes a
        # fifth longer, and a call of the state store three times as long.
        flags.append("-XX:TieredStopAtLevel=1")
    making = os.environ.get(MAKE_ARCHIVE)
    if making:
        flags.append(f"-XX:ArchiveClassesAtExit={making}")
    elif archive and home.has_archive:
        flags.append(f"-XX:SharedArchiveFile={home.archive}")
    variables[JVM_FLAGS] = " ".join(flags)
    return variables


def _heap_flags(most: str, lasting: bool) -> list[str]:
    """The heap, at most and at first.

    What a small batch leaves behind, Spark's broadcasts above all, is found by full collections only. Such a one takes
    0.2 s, in which nothing else goes on, and comes every 10 s with a heap of 256 MB, every minute with 512 MB.

    >>> _heap_flags("1g", lasting=True), _heap_flags("1g", lasting=False), _heap_flags("300m", lasting=True)
    (['-Xmx1g', '-Xms512m'], ['-Xmx1g', '-Xms256m'], ['-Xmx300m'])
    """
    first = "512m" if lasting else "256m"
    roomy = parse_memory_bytes(most) >= parse_memory_bytes(first)
    return [f"-Xmx{most}", *([f"-Xms{first}"] if roomy else [])]


def _setup_error(error: Exception, master: str, options: Mapping[str, str]) -> Exception:
    text = str(error)
    # Spark's JVM may end itself over a port without a report to us. So look at the ports in its settings.
    taken = [key for key, value in options.items() if key.endswith(".port") and _answers(value)]
    if taken:
        ports = ", ".join(f"{options[key]} ({key})" for key in taken)
        return SetupError(f"Spark cannot start: a configured port is in use: {ports}. Free it or choose another.")
    if "BindException" in text or "Address already in use" in text:
        return SetupError(f"Spark cannot start: a configured port is in use. {_first_line(text, 'Bind')}")
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
