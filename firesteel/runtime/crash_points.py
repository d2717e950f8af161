"""Places in the commit protocol where a test may make a job fail. Off unless ``firesteel.testing.crash-points`` is set.

The setting names a folder. A file in it that is called like a point holds one action per time the point is reached:
``pass``, ``error`` (an exception) or ``kill`` (the process ends at once, as by ``kill -9``); beyond its last action the
point is passed. How often a point was reached is kept beside it, so that it is known over restarts and in every
process. :class:`firesteel.testing.CommitCrashes` writes such a folder.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CrashPoint", "CrashPointError", "CrashPoints"]

SETTING = "firesteel.testing.crash-points"


class CrashPoint(StrEnum):
    """The points, in the order in which a batch comes by."""

    BEFORE_PREPARE = "before-prepare"
    """In a task: all records are written, nothing is flushed."""
    PREPARED = "prepared"
    """In a task: the writer has prepared, the driver does not know of it."""
    BEFORE_LOG = "before-log"
    """In the driver, which has all committables of the batch, in memory only."""
    LOGGED = "logged"
    """In the driver: the committables are logged, the batch is not."""
    BEFORE_COMMIT = "before-commit"
    """In the driver: the batch is logged, no sink has committed."""
    BETWEEN_SINKS = "between-sinks"
    """In the driver: one sink has committed, the next one has not. Reached with two sinks or more."""
    COMMITTED = "committed"
    """In the driver: all sinks have committed, which is not noted yet."""


class CrashPointError(Exception):
    """What an ``error`` at a crash point raises."""


@dataclass(frozen=True)
class CrashPoints:
    """What is to happen at which point.

    >>> CrashPoints().reach(CrashPoint.LOGGED)
    """

    folder: str | None = None

    def reach(self, point: str) -> None:
        """Passes the point, or fails there. A connector's tests may have points of their own."""
        if self.folder is not None:
            _reach(self.folder, point)


def _reach(folder: str, point: str) -> None:
    try:
        with open(os.path.join(folder, point), encoding="utf-8") as file:
            actions = file.read().split()
    except FileNotFoundError:
        return
    import fcntl  # not everywhere, and needed by tests only

    # Subtasks come by at the same time.
    with open(os.path.join(folder, f"{point}.count"), "ab") as counted:
        fcntl.flock(counted, fcntl.LOCK_EX)
        number = os.fstat(counted.fileno()).st_size
        counted.write(b".")
    action = actions[number] if number < len(actions) else "pass"
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "error":
        raise CrashPointError(f"failed on purpose: {point} ({number + 1})")
