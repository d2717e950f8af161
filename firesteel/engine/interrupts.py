"""What a process does with its running jobs when it is told to end.

* Ctrl-C (SIGINT) raises KeyboardInterrupt in the main thread, as in any Python program. SIGTERM (Docker, systemd,
  Kubernetes) raises SystemExit there, unless the program handles it itself.
* Whoever waits for a job then suspends it: see :meth:`firesteel.engine.job.EngineJob.suspend`. Jobs that nobody waits
  for are suspended when the interpreter ends, for whatever reason it does.
* A second signal while jobs are being suspended ends the process and its JVM at once. The checkpoint is as it would be
  after a crash. At a prompt and in a notebook it ends only the wait.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from firesteel.engine.processes import jvm_process

if TYPE_CHECKING:
    from firesteel.engine.job import EngineJob

__all__ = ["handle_termination", "second_signal_ends_at_once", "suspended_at_exit"]

_RUNNING: dict[int, EngineJob] = {}
SAME_SIGNAL = 0.5
"""Seconds in which a signal counts as the one before: a shell and a wrapper such as ``timeout`` may both send it."""

_BOTH = (signal.SIGINT, signal.SIGTERM)


def handle_termination() -> None:
    """From now on SIGTERM ends the program as an exception does, so that what it holds is brought to an end."""
    if _in_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit_on_signal)


def _exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def second_signal_ends_at_once() -> Iterator[None]:
    """Around what follows a first signal."""
    if not _in_main_thread():
        yield
        return
    first = time.monotonic()

    def again(number: int, frame: FrameType | None) -> None:
        if time.monotonic() - first <= SAME_SIGNAL:
            return
        if _interactive():
            # Whoever types at a prompt or in a notebook loses the wait for the job, not all that they have.
            raise KeyboardInterrupt
        _end_at_once(number)

    before = {number: signal.signal(number, again) for number in _BOTH}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None stands for a handler that was not made in Python, which cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def _end_at_once(number: int) -> NoReturn:
    jvm = jvm_process()
    if jvm is not None:
        jvm.kill()
    os._exit(128 + number)


def suspended_at_exit(job: EngineJob, running: bool) -> None:
    """Says of a job whether it runs; one that still does when the interpreter ends is suspended then."""
    if running:
        # Each time anew: what was registered last comes first, so before Spark's part is taken down.
        atexit.unregister(_suspend_all)
        atexit.register(_suspend_all)
        _RUNNING[id(job)] = job
    else:
        _RUNNING.pop(id(job), None)


def _suspend_all() -> None:
    with second_signal_ends_at_once():
        for job in list(_RUNNING.values()):
            job.suspend()


def _forget() -> None:
    _RUNNING.clear()


if hasattr(os, "register_at_fork"):
    # The jobs are the parent's.
    os.register_at_fork(after_in_child=_forget)
