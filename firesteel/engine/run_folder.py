"""The folder by which this user's jobs are known: those that run and those that have ended. Only this user can open it.

    <folder>/
      <id>.json               the descriptor of a job that runs
      <id>.sock               where it listens, see :mod:`firesteel.engine.control`
      finished/<engine>/
        <id>.json             what is known of a job that has ended, see :mod:`firesteel.engine.job_records`

It is in FIRESTEEL_RUNTIME_DIR, else in XDG_RUNTIME_DIR, else in the folder for temporary files. So what is known of
ended jobs goes when the machine starts again, or (XDG_RUNTIME_DIR) when the user has logged out everywhere.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from firesteel.engine.scratch import own_folder
from firesteel.errors import SetupError

__all__ = ["JOB_ID", "jobs_folder", "own_jobs_folder", "read_json"]

JOB_ID = re.compile("[0-9a-f]{32}")


def jobs_folder() -> Path:
    """Where this user's jobs are known."""
    runtime = os.environ.get("FIRESTEEL_RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime else Path(tempfile.gettempdir())
    return parent / ("firesteel" if runtime else f"firesteel-{os.getuid()}")


def own_jobs_folder(*parts: str) -> Path:
    """The folder, or one inside it, made where it is missing. Raises SetupError where others can open it: then it may
    hold anything."""
    folder = jobs_folder()
    try:
        own_folder(folder)
        for part in parts:
            folder = own_folder(folder / part)
    except SetupError as error:
        raise SetupError(f"{error} Set FIRESTEEL_RUNTIME_DIR to a folder of your own.") from None
    return folder


def read_json(path: Path, longest: int) -> Any:
    """A file of the folder. Raises ValueError where it is none of ours, OSError where it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no file")
        return json.loads(file.read(longest))
