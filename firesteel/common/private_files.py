"""Files and folders that nobody but their owner can open, whatever the umask is.

What a job keeps (state, positions, what sinks have prepared, the job itself) is as confidential as its records. What is
written for others to read, such as the output of a file sink, is not made here.
"""

from __future__ import annotations

import os
from typing import IO, Any

__all__ = ["make_private_folder", "open_private"]


def open_private(path: str, mode: str, **options: Any) -> IO[Any]:
    """Like :func:`open`; a file that is made by it has mode 0600. One that was there keeps its mode.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_private(f"{folder}/state", "wb") as file:
    ...         oct(os.fstat(file.fileno()).st_mode)
    '0o100600'
    """
    return open(path, mode, opener=_opener, **options)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def make_private_folder(path: str) -> None:
    """Makes a folder, and those above it that are missing, with mode 0700. One that was there keeps its mode.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_private_folder(f"{folder}/jobs/one")
    ...     [oct(os.stat(f"{folder}/{name}").st_mode) for name in ("jobs", "jobs/one")]
    ['0o40700', '0o40700']
    """
    # os.makedirs would make the folders above with the umask alone.
    missing = []
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        try:
            os.mkdir(one, 0o700)
        except FileExistsError:
            # Another process was faster; if it is no folder, the next step says so.
            if not os.path.isdir(one):
                raise
