"""Where checkpoints are kept, as objects. The names are PyFlink's; as there, nothing takes such an object.

A job's checkpoints are in the directory that ``execution.checkpointing.dir`` names.
"""

from __future__ import annotations

from firesteel.errors import ProgramError

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage:
    """The root of all storages."""

    _checkpoint_path: str | None = None

    def get_savepoint_path(self) -> str | None:
        """None: where savepoints go is a setting, ``execution.checkpointing.savepoint-dir``."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._checkpoint_path!r})"


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of Flink's job manager. Without a directory a job of Firesteel's keeps them in a
    temporary one, for as long as it runs.

    >>> JobManagerCheckpointStorage().get_max_state_size()
    5242880
    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = None if checkpoint_path is None else _folder(checkpoint_path)
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        """The directory that was named, or None."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """The number that was set. State may be larger here."""
        return self._max_state_size


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in files.

    >>> FileSystemCheckpointStorage("hdfs://host/checkpoints/").get_checkpoint_path()
    'hdfs://host/checkpoints'
    """

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise ValueError("checkpoint_path must not be None.")
        self._folder = self._checkpoint_path = _folder(checkpoint_path)
        given = -1 if file_state_size_threshold is None else file_state_size_threshold
        self._threshold = given if given >= 0 else 20 * 1024
        self._buffer = write_buffer_size if write_buffer_size >= 0 else 4 * 1024

    def get_checkpoint_path(self) -> str:
        """The directory that was named."""
        return self._folder

    def get_min_file_size_threshold(self) -> int:
        """The number that was set; 20 kB by default."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """The number that was set; 4 kB by default."""
        return self._buffer


class CustomCheckpointStorage(CheckpointStorage):
    """A storage of Java. There is none here."""

    def __init__(self, j_custom_checkpoint_storage: object) -> None:
        raise ProgramError(
            "CustomCheckpointStorage wraps a Java object, and Firesteel has none. Set execution.checkpointing.dir to a "
            "path, or to the URI of a file system that Spark knows."
        )


def _folder(place: str) -> str:
    return place.rstrip("/") or "/"
