"""A thread that commits what sinks have prepared as soon as the engine has logged the batch.

Spark does not notify anybody when it has logged a batch, and the next batch may begin much later. So this thread polls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from firesteel.engine.commits import Commits
from firesteel.engine.job_log import job_thread

__all__ = ["CommitWatcher"]

POLL = 0.02


class CommitWatcher:
    """Looks for logged batches while something is pending, and sleeps otherwise."""

    def __init__(self, commits: Commits, failed: Callable[[BaseException], None]) -> None:
        self._commits = commits
        self._failed = failed
        self._over = threading.Event()
        self._thread = job_thread(self._watch, "firesteel-commits")

    def start(self) -> None:
        if self._commits.used:
            self._thread.start()

    def stop(self) -> None:
        """Returns when the thread does nothing any more."""
        self._over.set()
        # It may sleep until something is pending.
        self._commits.waiting.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._commits.waiting.wait()
            if self._over.wait(POLL):
                return
            try:
                self._commits.settle()
            except BaseException as error:
                self._failed(error)
                return
