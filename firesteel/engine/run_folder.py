"""The folder by which this user's jobs are known: those that run and those that have ended. Only this user can open it.

    <folder>/
      <id>.json               the descriptor of a job that runs
      <id>.sock               where it listens, see :mod:`firesteel.engine.control`
      finished/<engine>/
        <id>.json             what is known of a job that has ended, see :mod:`firesteel.engine.job_records`

It is in FIRESTEEL_RUNTIME_DIR, else in the system's folder for such files (XDG_RUNTIME_DIR, /run/user/<uid>), else in
the folder for temporary files. So what is known of ended jobs goes when the machine starts again, or (with a folder of
the system's) when the user has logged out everywhere.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any

import platformdirs

from firesteel.engine.scratch import own_folder
from firesteel.errors import SetupError

__all__ = ["JOB_ID", "jobs_folder", "own_jobs_folder", "read_json"]

JOB_ID = re.compile("[0-9a-f]{32}")


def jobs_folder() -> Path:
    """Where this user's jobs are known."""
    chosen = os.environ.get("FIRESTEEL_RUNTIME_DIR")
    if chosen:
        return Path(chosen) / "firesteel"
    with warnings.catch_warnings():
        # That there is none is nothing to warn of.
        warnings.simplefilter("ignore")
        found = platformdirs.user_runtime_path("firesteel", appauthor=False)
    # Where the system has no such folder, the library names one that anybody may have made.
    return found if _is_own(found.parent) else Path(tempfile.gettempdir()) / f"firesteel-{os.getuid()}"


def _is_own(folder: Path) -> bool:
    try:
        info = folder.stat()
    except OSError:
        return False
    return info.st_uid == os.getuid() and not info.st_mode & 0o022


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
            raise ValueError("it is not a file")
        return json.loads(file.read(longest))
