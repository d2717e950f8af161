"""Sinks for systems without transactions: the job keeps the records of a micro-batch until it may send them."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.private_files import replace_file
from firesteel.datastream.functions.base import Function

__all__ = ["CheckpointCommitter", "FileCheckpointCommitter", "GenericWriteAheadSink"]


class CheckpointCommitter(ABC):
    """Remembers in some durable place which checkpoints of which subtask were sent, so that none is sent twice."""

    def set_job_id(self, job_id: str) -> None:
        """Called before ``open``."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """Called before ``open``, with the sink's uid."""
        self.operator_id = operator_id

    def open(self) -> None:  # noqa: B027 - optional to override
        """Connects."""

    def create_resource(self) -> None:  # noqa: B027 - optional to override
        """Called after ``open``: creates the place if it is not there."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Lets go of connections."""

    @abstractmethod
    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        """A subtask's records of a checkpoint were sent."""

    @abstractmethod
    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        """Whether they were."""


class FileCheckpointCommitter(CheckpointCommitter):
    """Remembers in a folder, with one small file per subtask.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     committer = FileCheckpointCommitter(folder)
    ...     committer.set_job_id("4711")
    ...     committer.set_operator_id("to-mail")
    ...     committer.create_resource()
    ...     committer.commit_checkpoint(0, 7)
    ...     [committer.is_checkpoint_committed(0, number) for number in (6, 7, 8)]
    [True, True, False]
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def create_resource(self) -> None:
        os.makedirs(self.folder, exist_ok=True)

    def _file(self, subtask: int) -> str:
        operator = re.sub(r"[^A-Za-z0-9._-]", lambda found: f"%{ord(found[0]):x}", self.operator_id)
        return os.path.join(self.folder, f"{self.job_id}-{operator}-{subtask}")

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        replace_file(self._file(subtask_idx), str(checkpoint_id).encode(), durable=True, private=False)

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        # Checkpoints are committed in their order, so the last one is enough.
        try:
            with open(self._file(subtask_idx), encoding="utf-8") as file:
                return checkpoint_id <= int(file.read())
        except FileNotFoundError:
            return False


class GenericWriteAheadSink(Function):
    """Sends the records of each checkpoint once that checkpoint is complete.

    Until then they lie in the job's checkpoint folder, so what a failed batch produced is never sent. The ``committer``
    remembers what was sent. A crash between sending and remembering sends the records of one checkpoint again: make
    ``send_values`` idempotent, or remember in the same transaction. Sending happens in the driver, to which all records
    of this sink travel: use it for results, not for bulk data.

    >>> import tempfile
    >>> class Mail(GenericWriteAheadSink):
    ...     def send_values(self, values, checkpoint_id, timestamp):
    ...         print("sent", values)
    ...         return True
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = env.from_collection(["a", "b"]).sink_to(Mail(FileCheckpointCommitter(folder)))
    ...     _ = env.execute()
    sent ['a', 'b']
    """

    def __init__(self, committer: CheckpointCommitter, retry_seconds: float = 10) -> None:
        """``retry_seconds`` is for how long sending is tried again before the job fails (and tries again)."""
        self.committer = committer
        self.retry_seconds = retry_seconds

    @abstractmethod
    def send_values(self, values: list[Any], checkpoint_id: int, timestamp: int) -> bool:
        """Sends a subtask's records of a checkpoint, in their order; ``timestamp`` is the checkpoint's time in
        milliseconds. Returns whether that was successful; if not, it is tried again."""
