"""One coordinator at a time for a checkpoint folder.

When a job is restarted, the coordinator of the attempt before may still be on its way out, and a source of it may
still write what it receives. The new one waits until it is gone. It also finds here that another job, perhaps on
another machine, runs with the same folder.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import IO

from firesteel.errors import CheckpointError

__all__ = ["hold_folder"]

LOCK = "firesteel-lock"
"""As in :mod:`firesteel.engine.manifest`, which the processes of a source need not load."""


def hold_folder(folder: str, seconds: float = 30) -> IO[str] | None:
    """Takes the folder for this process, until the file that it returns is closed or the process ends.

    None where the system or the file system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    os.makedirs(folder, exist_ok=True)
    file = open(os.path.join(folder, LOCK), "a", encoding="utf-8")  # noqa: SIM115 - it stays open on purpose
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() >= deadline:
                file.close()
                raise CheckpointError(
                    f"Another job has used the checkpoint folder {folder} for the last {seconds:.0f} s. Cancel it, or "
                    "give this one another folder."
                ) from None
            time.sleep(0.02)
        except OSError:
            with contextlib.suppress(OSError):
                file.close()
            return None
