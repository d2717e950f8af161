"""Files and folders that nobody but their owner can open, whatever the umask is.

What a job keeps (state, positions, what sinks have prepared, the job itself) is as confidential as its records. What is
written for others to read, such as the output of a file sink, is not made here.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import IO, Any

__all__ = ["make_private_folder", "open_private", "replace_file", "sync_folder"]


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


def replace_file(path: str, content: bytes, durable: bool = False, private: bool = True) -> None:
    """Writes a file aside and gives it its name: whoever looks sees all of it, or what was there before.

    With ``durable`` that holds after a loss of power, too. It takes two round trips to the disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(f"{folder}/state", b"one")
    ...     replace_file(f"{folder}/state", b"two", durable=True)
    ...     open(f"{folder}/state").read(), os.listdir(folder)
    ('two', ['state'])
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}")
    try:
        with open_private(draft, "wb") if private else open(draft, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        # A full disk, most likely: what was written takes up what little room there is.
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise
    if durable:
        # The name is on disk only when the folder is.
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Forces the names of a folder's files to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
