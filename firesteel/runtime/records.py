"""Records that cannot change hands: too large, or not to be pickled."""

from __future__ import annotations

from typing import Any

from firesteel.errors import FailureKind, ProgramError
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.failures import OperatorFailure, describe
from firesteel.runtime.frames import encode, first_unpicklable

__all__ = ["record_too_large", "size_text", "unpicklable"]

SETTING = "firesteel.frames.max-record"


def size_text(size: int) -> str:
    """
    >>> size_text(1536 << 20), size_text(5 << 20), size_text(300)
    ('1.5 GB', '5.0 MB', '300 bytes')
    """
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def record_too_large(values: list[Any], limit: int) -> ProgramError | None:
    """What is to be said of the first record that is larger than the limit, if there is one."""
    for value in values:
        size = len(encode([value]))
        if size > limit:
            return ProgramError(
                f"A record of {size_text(size)} ({type(value).__name__}) cannot be passed on: the limit is "
                f"{size_text(limit)} ({SETTING}). Pass on where the data is, or cut it into smaller records."
            )
    return None


def unpicklable(error: Exception, values: list[Any], node: StreamNode, subtask: int) -> OperatorFailure:
    """What is to be raised when an operator's records could not be pickled."""
    # Such a record cannot be pickled the next time either; memory may suffice then.
    kind = None if isinstance(error, MemoryError) else FailureKind.PERMANENT
    return describe(error, node.name, node.built_at, subtask, first_unpicklable(values), kind=kind)
