"""The sessions that jobs run in: our own, beside the user's, on the same Spark context.

A session has SQL settings, temporary views and data sources of its own. So a job in a notebook or under spark-submit
leaves the user's session as it is, and two jobs side by side have each their own settings. Spark never forgets all of a
session, so one that a job has left serves the next job.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.engine.settings import Settings
from firesteel.engine.shipping import archive_of
from firesteel.engine.spark.callbacks import not_a_failed_batch
from firesteel.engine.spark.context import running_session, start_spark
from firesteel.engine.spark.masters import is_local
from firesteel.engine.spark.session_settings import FILE_MANAGER, REQUIRED, WORKER_MODULE, overruled, session_settings
from firesteel.engine.spark.warm_spark import reattach_spark

__all__ = [
    "active_queries",
    "get_session",
    "import_paths",
    "job_session",
    "keep_to_df",
    "release_session",
    "ship_files",
]

logger = logging.getLogger("firesteel")

_LOCK = threading.Lock()


class _Sessions:
    """Sessions of our own on one context."""

    def __init__(self, root: SparkSession) -> None:
        self.root = root
        self.context = root.sparkContext
        self.conf = dict(self.context.getConf().getAll())
        """What the context was started with."""
        self._to_df = RDD.toDF
        self._idle: list[SparkSession] = []
        self._made: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        """Our settings in each."""
        self._shared: dict[str, SparkSession] = {}
        self._file_manager = _class_is_there(root.sparkContext._jvm, FILE_MANAGER[1])
        self.in_use = 0
        logging.getLogger("py4j.clientserver").addFilter(not_a_failed_batch)
        self._warn_of_worker_module()

    def take(self, settings: Settings, local_files: bool) -> SparkSession:
        """A session for one job, which gives it back."""
        session = self._idle.pop() if self._idle else self._new()
        self.in_use += 1
        self._apply(session, settings, local_files, of_job=True)
        self._warn_of_overruled(settings.spark)
        return session

    def give_back(self, session: SparkSession) -> None:
        if session in self._made and session not in self._idle:
            self.in_use -= 1
            self._idle.append(session)

    def shared(self, purpose: str, settings: Settings) -> SparkSession:
        """A session for all that has the same purpose."""
        session = self._shared.get(purpose)
        if session is None:
            session = self._shared[purpose] = self._new()
        self._apply(session, settings, local_files=True, of_job=False)
        return session

    @property
    def queries(self) -> list[StreamingQuery]:
        """Those that run in any of them."""
        return [query for session in list(self._made) for query in session.streams.active]

    def _new(self) -> SparkSession:
        session = self.root.newSession()
        self.keep_to_df()
        self._made[session] = {}
        return session

    def keep_to_df(self) -> None:
        """PySpark has ``rdd.toDF()`` make frames of the session that was made last. It shall be the user's."""
        RDD.toDF = self._to_df

    def _apply(self, session: SparkSession, settings: Settings, local_files: bool, of_job: bool) -> None:
        local_files = local_files and self._file_manager
        local = is_local(self.context.master)
        wanted = session_settings(self.conf, settings.spark, local, local_files, of_job)
        for key in settings.spark.keys() & wanted.keys():
            # What a session cannot change belongs to the context.
            if not session.conf.isModifiable(key):
                del wanted[key]
        before = self._made[session]
        for key in before.keys() - wanted.keys():
            if key in self.conf:
                session.conf.set(key, self.conf[key])
            else:
                session.conf.unset(key)
        for key, value in wanted.items():
            if before.get(key) != value:
                session.conf.set(key, value)
        self._made[session] = wanted
        self._warn_of_settings({key: value for key, value in settings.spark.items() if key not in wanted})

    def _warn_of_worker_module(self) -> None:
        key, module = WORKER_MODULE
        if self.conf.get(key) != module:
            logger.warning(
                "this Spark application was started without Firesteel's worker module, and cannot change that while it "
                "runs. Jobs give the same results, but the batches of a subtask run in any Python worker: open() is "
                "called in each of them, attributes of a function do not last from batch to batch, close() may be "
                "missing, state in memory is read again from the store, and workers start slower. Start the "
                "application with %s=%s to have all that.",
                key,
                module,
            )

    @staticmethod
    def _warn_of_overruled(asked: Mapping[str, str]) -> None:
        for key in overruled(asked):
            logger.warning(
                "the setting %s=%s of the job has no effect: with it results would be wrong, so jobs run with %s.",
                key,
                asked[key],
                REQUIRED[key],
            )

    def _warn_of_settings(self, asked: Mapping[str, str]) -> None:
        without_effect = sorted(key for key, value in asked.items() if not _has_effect(key, value, self.conf))
        if without_effect:
            logger.warning(
                "Spark runs already, so these settings of the job have no effect: %s. They count when they are set for "
                "the application that starts Spark.",
                ", ".join(without_effect),
            )


_PATHS = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles")


def _has_effect(key: str, value: str, running: Mapping[str, str]) -> bool:
    """Whether an application has a setting of a job. Spark puts flags of its own in front of those for JVMs, and makes
    URIs of paths.

    >>> key = "spark.executor.extraJavaOptions"
    >>> _has_effect(key, "-XX:+UseSerialGC", {key: "--add-opens=a=b -XX:+UseSerialGC"})
    True
    >>> _has_effect("spark.executor.memory", "1g", {"spark.executor.memory": "2 1g"})
    False
    >>> _has_effect("spark.jars", "/a.jar,/b.jar", {"spark.jars": "file:///a.jar,file:///b.jar"})
    True
    """
    found = running.get(key)
    if found is not None and key in _PATHS:
        found, value = found.replace("file://", ""), value.replace("file://", "")
    return found == value or (found is not None and key.endswith("JavaOptions") and found.endswith(f" {value}"))


_sessions: _Sessions | None = None


def _of_spark(settings: Settings, name: str, lasting: bool) -> tuple[_Sessions, bool]:
    """The sessions of the running context, or of a new one, and whether it is new."""
    global _sessions
    reattach_spark(settings)
    root = running_session(settings)
    fresh = root is None
    if root is None:
        root = start_spark(settings, name, lasting)
    if _sessions is None or _sessions.context is not root.sparkContext:
        _sessions = _Sessions(root)
        if fresh and is_local(root.sparkContext.master):
            atexit.register(_close_stores, _sessions)
    return _sessions, fresh


def job_session(settings: Settings, name: str, lasting: bool = False, local_files: bool = True) -> SparkSession:
    """A session for one job, to be given back with :func:`release_session`. Starts Spark where it does not run.

    ``lasting`` says whether the job will have much to do, ``local_files`` whether its checkpoint is in a local folder.
    """
    with _LOCK:
        sessions, fresh = _of_spark(settings, name, lasting)
        session = sessions.take(settings, local_files)
    if fresh and is_local(session.sparkContext.master):
        threading.Thread(target=_first_steps, args=(session,), name="spark-first-steps", daemon=True).start()
    return session


def release_session(session: SparkSession) -> None:
    """The job has ended, and its session may serve another one."""
    with _LOCK:
        if _sessions is not None:
            _sessions.give_back(session)


def active_queries() -> list[StreamingQuery]:
    """The queries of all jobs that run. A session knows its own ones only."""
    with _LOCK:
        return [] if _sessions is None else _sessions.queries


def get_session(settings: Settings, purpose: str) -> SparkSession:
    """A session of ours that all share who name the same purpose."""
    with _LOCK:
        return _of_spark(settings, purpose, lasting=False)[0].shared(purpose, settings)


def keep_to_df() -> None:
    """For the callback of a query: PySpark makes a session object for every batch."""
    if _sessions is not None:
        _sessions.keep_to_df()


def _class_is_there(jvm: Any, name: str) -> bool:
    try:
        return jvm.java.lang.Class.forName(name) is not None
    except Exception:
        return False


def _first_steps(session: SparkSession) -> None:
    """Starts the workers' parent process and loads Spark's machinery while the job is still being planned."""
    # A failure here is no failure of the job, which will meet and report it in its own words.
    with contextlib.suppress(Exception):
        session.range(1).mapInArrow(lambda batches: batches, "id long").toArrow()


def _close_stores(sessions: _Sessions) -> None:
    """Closes the state stores before the JVM ends, which Spark leaves to chance.

    RocksDB works in threads of its own. When the JVM's exit takes away what they use, they may crash, and the JVM
    reports that among the job's results and in a file of the user's folder.
    """
    # Whatever goes wrong now, the program is done, and what it stored is safe.
    with contextlib.suppress(Exception):
        jvm = SparkContext._jvm
        if jvm is not None and not sessions.in_use and not sessions.root.streams.active:
            companion = getattr(jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")
            getattr(companion, "MODULE$").stop()


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
