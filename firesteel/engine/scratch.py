"""Temporary files of this process: one private folder, which never outlives the process by more than seconds.

    <temporary folder>/firesteel-<user>/
      <random>/         all temporary files of one process: job folders, Spark's local files, native libraries
        lock            held by that process for as long as it lives

1. The folder is removed when the process ends; where a JVM still uses it then, by that JVM when it ends, which also
   covers a driver that was killed.
2. If both were killed, the next process of the same user removes it: a lock that nobody holds says that its owner is
   gone. Process ids would not do: they are reused, and containers that share a temporary folder count their own.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import shutil
import stat
import tempfile
import threading
from pathlib import Path

from filelock import FileLock, Timeout

from firesteel.engine.processes import jvm_process
from firesteel.errors import SetupError

__all__ = ["own_folder", "scratch_folder", "user_folder"]

logger = logging.getLogger("firesteel")

LOCK = "lock"

_MAKING = threading.Lock()
_LOCKS: list[FileLock] = []
"""Held until the process ends."""
_made: dict[int, Path] = {}
"""By process id: a forked child has a folder of its own."""


def user_folder() -> Path:
    """Where the temporary folders of this user's processes are."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"firesteel-{user}"


def own_folder(folder: Path) -> Path:
    """Makes a folder that only this user can open, or checks that the one that is there is such a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or (
        hasattr(os, "getuid") and (info.st_uid != os.getuid() or info.st_mode & 0o077)
    ):
        raise SetupError(f"{folder} belongs to somebody else, or others can open it.")
    return folder


def scratch_folder() -> Path:
    """This process's folder for temporary files, made on first use.

    >>> scratch_folder() == scratch_folder(), oct(scratch_folder().stat().st_mode)[-3:]
    (True, '700')
    """
    with _MAKING:
        folder = _made.get(os.getpid())
        if folder is None:
            folder = _made[os.getpid()] = _make()
        return folder


def _make() -> Path:
    try:
        parent = own_folder(user_folder())
    except (OSError, SetupError) as error:
        # Jobs run all the same; what a killed process leaves there is then found by nobody.
        logger.warning("temporary files go to a folder without a name: %s", error)
        folder = Path(tempfile.mkdtemp(prefix="firesteel-"))
        atexit.register(_remove, folder, os.getpid())
        return folder
    _remove_left_behind(parent)
    while True:
        folder = parent / secrets.token_hex(6)
        folder.mkdir(mode=0o700)
        # Another process may take the lock, and the folder with it, before this one does. Then once more.
        with contextlib.suppress(FileNotFoundError):
            _LOCKS.append(_lock_of(folder))
            _LOCKS[-1].acquire(timeout=10)
            atexit.register(_remove, folder, os.getpid())
            return folder


def _lock_of(folder: Path) -> FileLock:
    return FileLock(folder / LOCK, mode=0o600, thread_local=False)


def _remove_left_behind(parent: Path) -> None:
    """Removes the folders of processes that are gone."""
    for path in parent.glob(f"*/{LOCK}"):
        with contextlib.suppress(Timeout, OSError), _lock_of(path.parent).acquire(timeout=0):
            shutil.rmtree(path.parent, ignore_errors=True)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process and not _jvm_lives():
        shutil.rmtree(folder, ignore_errors=True)


def _jvm_lives() -> bool:
    """Whether a JVM of this process may still write there: it removes the folder itself when it ends."""
    process = jvm_process()
    return process is not None and process.poll() is None
