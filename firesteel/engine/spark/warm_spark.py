"""A Spark that runs before it is known for which job: detached, and attached again for a job that it fits.

A driver of the job manager may be started before there is a job (:mod:`firesteel.cluster.warm_driver`). Its program
must not notice. So:

1. Spark is detached: to this process, and to a program that uses PySpark itself, none runs.
2. When a job asks for Spark, all that a new one would be started with is made out as for any job: settings of the job,
   ``spark-defaults.conf``, ``config.yaml``, environment variables, the working directory.
3. If that is what the detached one was started with, it is attached again. Otherwise its JVM is killed, and
   another one is started. Nothing of a job has run in it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.engine.processes import jvm_process
from firesteel.engine.settings import Settings
from firesteel.engine.spark.context import of_a_session, start_facts

__all__ = ["detach_spark", "differences", "is_alive", "level_for_workers", "reattach_spark"]

logger = logging.getLogger("firesteel")

_STATIC = (
    (SparkContext, "_gateway"),
    (SparkContext, "_jvm"),
    (SparkContext, "_active_spark_context"),
    (SparkSession, "_instantiatedSession"),
    (SparkSession, "_activeSession"),
)
"""Where PySpark keeps what runs in this process."""


@dataclass
class _DetachedSpark:
    """A Spark that runs, and that this process does not know as its own."""

    facts: dict[str, str] = field(repr=False)
    jvm: subprocess.Popen[Any]
    level: int
    """The root logger's, as the workers' parent process has it."""
    static: list[Any] = field(repr=False)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    folder: str = field(default_factory=os.getcwd)
    process: int = field(default_factory=os.getpid)

    def reasons_against(self, settings: Settings) -> list[str]:
        """Why it will not do for a job with these settings."""
        if SparkContext._gateway is not None:
            return ["the program has started Spark itself"]
        if self.jvm.poll() is not None:
            return ["its JVM has ended"]
        found = [name for name in differences(self.facts, start_facts(settings)) if not self._of_a_session(name)]
        found += [f"variable {name}" for name in differences(self.environment, os.environ)]
        return found if self.folder == os.getcwd() else [*found, "the working directory"]

    def _of_a_session(self, key: str) -> bool:
        """Whether a setting is made in the session of each job. Those of the state store hold for the JVM, too."""
        if not key.startswith("spark.sql.") or key.startswith("spark.sql.streaming.stateStore"):
            return False
        return of_a_session(self.static[1], key)

    def kill(self) -> None:
        """Without the JVM's own clean-up: that would remove the folder that the job has its files in, too."""
        self.jvm.kill()
        self.jvm.wait()
        with contextlib.suppress(Exception):
            self.static[0].shutdown()


_detached: _DetachedSpark | None = None
_level: int | None = None
"""The level of the workers' log in a Spark that was attached again."""


def detach_spark(facts: Mapping[str, str]) -> None:
    """Detaches the Spark of this process. ``facts``: what it was started with (:func:`.start_facts`)."""
    global _detached
    jvm = jvm_process()
    assert jvm is not None
    static = [getattr(owner, name) for owner, name in _STATIC]
    _detached = _DetachedSpark(dict(facts), jvm, logging.getLogger().getEffectiveLevel(), static)
    for owner, name in _STATIC:
        setattr(owner, name, None)
    atexit.register(_kill_unused, _detached)


def is_alive() -> bool:
    """Whether there is a detached one whose JVM lives."""
    return _detached is not None and _detached.jvm.poll() is None


def reattach_spark(settings: Settings) -> None:
    """For a job that needs Spark: attaches the detached one again if it is as if it had been started for the job, and
    otherwise ends it."""
    global _detached, _level
    detached = _detached
    if detached is None or detached.process != os.getpid():
        return
    _detached = None
    reasons = detached.reasons_against(settings)
    if reasons:
        logger.info("the Spark of this warm driver is not used, another one is started: %s", ", ".join(reasons))
        detached.kill()
        return
    for (owner, name), value in zip(_STATIC, detached.static, strict=True):
        setattr(owner, name, value)
    _level = detached.level


def level_for_workers() -> dict[str, str]:
    """The level that workers have to be told, because their parent process was started before the program set it."""
    level = logging.getLogger().getEffectiveLevel()
    return {} if _level in (None, level) else {"": logging.getLevelName(level)}


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names whose values are not the same in both.

    >>> differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"})
    ['b', 'c']
    """
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _kill_unused(detached: _DetachedSpark) -> None:
    """At the end of the process: the program has run no job on Spark."""
    if _detached is detached and detached.process == os.getpid():
        detached.kill()
