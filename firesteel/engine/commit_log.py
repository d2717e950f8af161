"""The durable list of what sinks have prepared: one file per micro-batch, until its commit is done."""

from __future__ import annotations

import os
import pickle
import uuid
from typing import Any

from firesteel.errors import CheckpointError

__all__ = ["CommitLog", "Prepared", "job_id_of"]

Prepared = dict[str, list[Any]]
"""Committables by the uid of the sink that they belong to."""

JOB = "job"


class CommitLog:
    """The files of one job. An entry is there as a whole or not at all, and survives a loss of power.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = CommitLog(folder)
    ...     log.write(7, {"to-files": ["part-1"]})
    ...     entries = CommitLog(folder).read()
    ...     log.remove(7)
    ...     entries, CommitLog(folder).read()
    ({7: {'to-files': ['part-1']}}, {})
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, batch: int, prepared: Prepared) -> None:
        try:
            content = pickle.dumps(prepared, pickle.HIGHEST_PROTOCOL)
            os.makedirs(self._folder, exist_ok=True)
            _write(self._folder, str(batch), content)
        except OSError as error:
            raise CheckpointError(f"The log of commits in {self._folder} cannot be written: {error}.") from error

    def read(self) -> dict[int, Prepared]:
        """All entries, in the order of their batches."""
        try:
            names = sorted((name for name in os.listdir(self._folder) if name.isdigit()), key=int)
        except FileNotFoundError:
            return {}
        return {int(name): self._read(name) for name in names}

    def _read(self, name: str) -> Prepared:
        path = os.path.join(self._folder, name)
        try:
            with open(path, "rb") as file:
                entry: Prepared = pickle.load(file)
        except Exception as error:
            # Going on without it would lose what it names.
            raise CheckpointError(
                f"The log of commits has an entry that cannot be read: {path} ({type(error).__name__}: {error}). It "
                "names what sinks have prepared and not yet committed. Nothing was changed there. Start the program "
                "that wrote it; or commit or roll back by hand what is prepared, and delete this file."
            ) from error
        return entry

    def remove(self, batch: int) -> None:
        # Not forced to disk: an entry that comes back is committed once more, which changes nothing.
        os.remove(os.path.join(self._folder, str(batch)))


def job_id_of(folder: str, new: str) -> str:
    """The id that a job keeps for as long as it has this folder: the one that is there, or else the ``new`` one."""
    path = os.path.join(folder, JOB)
    try:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        os.makedirs(folder, exist_ok=True)
        _write(folder, JOB, new.encode())
        return new
    except OSError as error:
        raise CheckpointError(f"The checkpoint folder {folder} cannot be read or written: {error}.") from error


def _write(folder: str, name: str, content: bytes) -> None:
    draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, os.path.join(folder, name))
    # The name is on disk only when the folder is.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
