"""The JVM as a process of ours: it neither outlives a start that was interrupted, nor leaves files behind."""

from __future__ import annotations

import contextlib
import functools
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.java_gateway
from pyspark import SparkContext

from firesteel.engine.scratch import scratch_folder

__all__ = ["kill_jvm_on_failure", "own_interrupts", "remove_with_jvm", "temporary_folder_flag"]


@contextlib.contextmanager
def kill_jvm_on_failure() -> Iterator[None]:
    """Around Spark's start: whatever ends it early, Ctrl-C above all, ends the JVM, too.

    PySpark starts the JVM, waits for it, and forgets it when it is interrupted there. The JVM would end when its
    standard input does, but it looks at that only once it has reported its port, in a folder that is gone by then.
    """
    started: list[subprocess.Popen[Any]] = []
    gateway = pyspark.java_gateway
    original, temporary = gateway.Popen, gateway.tempfile

    def recorded(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
        # An interrupt in the middle of this would leave a process that nobody knows.
        with _signals_later():
            process: subprocess.Popen[Any] = original(*arguments, **options)
            started.append(process)
        return process

    # The folder by which the JVM tells its port goes with all others, should this process be killed right now.
    in_scratch = functools.partial(tempfile.mkdtemp, dir=scratch_folder())
    gateway.tempfile = SimpleNamespace(mkdtemp=in_scratch, mkstemp=tempfile.mkstemp)
    gateway.Popen = recorded
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        if started:
            # Or PySpark would go on with a JVM that is no more when Spark is started again in this process.
            SparkContext._gateway = SparkContext._jvm = None
        raise
    finally:
        gateway.Popen, gateway.tempfile = original, temporary


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Holds back what would end the program until the block is done."""
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for wanted in (signal.SIGINT, signal.SIGTERM):
            # None stands for a handler that was not made in Python.
            if signal.getsignal(wanted) is not None:
                before[wanted] = signal.signal(wanted, lambda received, frame: came.append(received))
    try:
        yield
    finally:
        for wanted, handler in before.items():
            signal.signal(wanted, handler)
        for received in came:
            signal.raise_signal(received)


@contextlib.contextmanager
def own_interrupts() -> Iterator[None]:
    """Around Spark's start: leaves Ctrl-C as it was.

    PySpark has it cancel all jobs of Spark. The batch under way would fail, when it could have ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def temporary_folder_flag(folder: Path) -> list[str]:
    """Where the JVM puts Spark's local files and its native libraries."""
    text = str(folder)
    # The launcher splits its flags at white space.
    return [] if any(letter.isspace() for letter in text) else [f"-Djava.io.tmpdir={text}"]


def remove_with_jvm(jvm: Any, folder: Path) -> None:
    """Has the JVM remove the folder when it ends, also because this process was killed."""
    # Without it the next process of this user removes the folder.
    with contextlib.suppress(Exception):
        jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))
