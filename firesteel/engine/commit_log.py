"""The durable list of what sinks have prepared: one file per micro-batch, until its commit is done."""

from __future__ import annotations

from typing import Any

from firesteel.durable.folder import decode_commits, encode_commits
from firesteel.errors import CheckpointError, kind_of_file_error
from firesteel.filesystems import LOCAL, Storage, joined

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

    def __init__(self, folder: str, storage: Storage = LOCAL) -> None:
        self._folder = folder
        self._storage = storage

    def write(self, batch: int, prepared: Prepared) -> None:
        try:
            self._storage.write(joined(self._folder, str(batch)), encode_commits(prepared))
        except OSError as error:
            raise CheckpointError(
                f"The log of commits in {self._folder} cannot be written: {error}.", kind=kind_of_file_error(error)
            ) from error

    def read(self) -> dict[int, Prepared]:
        """All entries, in the order of their batches."""
        names = sorted((name for name in self._storage.sizes(self._folder) if name.isdigit()), key=int)
        return {int(name): self._read(name) for name in names}

    def _read(self, name: str) -> Prepared:
        path = joined(self._folder, name)
        try:
            return decode_commits(self._storage.read(path), path)
        except CheckpointError:
            raise
        except Exception as error:
            # Going on without it would lose what it names.
            raise CheckpointError(
                f"The log of commits has an entry that cannot be read: {path} ({type(error).__name__}: {error}). It "
                "names what sinks have prepared and not yet committed. Nothing was changed there. Start the program "
                "that wrote it; or commit or roll back by hand what is prepared, and delete this file.",
                kind=kind_of_file_error(error) if isinstance(error, OSError) else None,
            ) from error

    def remove(self, batch: int) -> None:
        # Not forced to disk: an entry that comes back is committed once more, which changes nothing.
        self._storage.delete(joined(self._folder, str(batch)))


def job_id_of(folder: str, new: str, storage: Storage = LOCAL) -> str:
    """The id that a job keeps for as long as it has this folder: the one that is there, or else the ``new`` one."""
    path = joined(folder, JOB)
    try:
        if storage.exists(path):
            return storage.read(path).decode().strip()
        storage.write(path, new.encode())
        return new
    except OSError as error:
        raise CheckpointError(f"The checkpoint folder {folder} cannot be read or written: {error}.") from error
