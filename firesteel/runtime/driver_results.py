"""What a task has for the driver: lines to print, collected records, committables, its report.

It goes to the driver as frames, through Spark, which holds all of a batch's results in the JVM's heap at once. So where
driver and tasks share a file system, what goes beyond some megabytes is written to a file, and the frame says where.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import uuid
from typing import IO, TYPE_CHECKING, Any

from firesteel.common.private_files import open_private
from firesteel.runtime.failures import describe
from firesteel.runtime.frames import encode
from firesteel.runtime.records import record_too_large, unpicklable

if TYPE_CHECKING:
    from firesteel.runtime.job_spec import JobSpec

__all__ = ["ResultFile", "is_elsewhere", "kind_of", "open_result", "remove_results"]

INLINE = 4 << 20
"""So many bytes of a task's results in one batch go through Spark, whatever follows."""

ELSEWHERE = "elsewhere"
"""The kind of a message that says where the real one is."""


class ResultFile:
    """Packs one task's messages for the driver."""

    def __init__(self, folder: str | None, job: JobSpec, stage: int, subtask: int) -> None:
        self._folder = folder
        self._job = job
        self._name = f"{stage}-{subtask}"
        self._subtask = subtask
        self._file: IO[bytes] | None = None
        self.taken = 0
        """Bytes of all messages so far, in all batches."""
        self.begin()

    def begin(self) -> None:
        """A batch begins."""
        self.close()
        self._inline = 0
        self.written = 0
        """Bytes in this batch's file."""

    def packed(self, kind: str, node_id: int, payload: Any) -> bytes:
        """The content of the frame for a message."""
        try:
            content = encode([kind, node_id, payload])
        except Exception as error:
            node = self._job.graph.graph.nodes.get(node_id)
            if node is None:
                raise
            raise unpicklable(error, _records(payload), node, self._subtask) from error
        size = len(content)
        if size > self._job.max_record:
            self._check(node_id, payload)
        self.taken += size
        if self._folder is None or self._inline + size <= INLINE:
            self._inline += size
            return content
        if self._file is None:
            # By a name of its own: an attempt that was given up may still be writing.
            path = os.path.join(self._folder, f"{self._name}-{uuid.uuid4().hex}")
            self._file = open_private(path, "xb")
        place = (self._file.name, self._file.tell(), size)
        self._file.write(content)
        self._file.flush()
        self.written += size
        return encode([ELSEWHERE, node_id, (kind, place)])

    def _check(self, node_id: int, payload: Any) -> None:
        error = record_too_large(_records(payload), self._job.max_record)
        if error is not None:
            node = self._job.graph.graph.nodes[node_id]
            raise describe(error, node.name, node.built_at, self._subtask)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _records(payload: Any) -> list[Any]:
    return payload if isinstance(payload, list) else [payload]


def is_elsewhere(message: list[Any]) -> bool:
    """Whether a message only says where the real one is."""
    return bool(message[0] == ELSEWHERE)


def kind_of(message: list[Any]) -> str:
    kind: str = message[2][0] if is_elsewhere(message) else message[0]
    return kind


def open_result(message: list[Any]) -> list[Any]:
    """The message itself, from its file if that is where it is.

    >>> open_result(["stdout", 3, "a line"])
    ['stdout', 3, 'a line']
    """
    if not is_elsewhere(message):
        return message
    path, start, size = message[2][1]
    with open(path, "rb") as file:
        file.seek(start)
        found: list[Any] = pickle.loads(file.read(size))
    return found


def remove_results(folder: str) -> None:
    """Deletes what the tasks of a batch left in a folder, once the driver has read it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)
