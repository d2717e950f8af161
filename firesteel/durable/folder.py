"""Files of a checkpoint folder that are not Spark's, and what the coordinator puts into Spark's log of offsets.

| file | content |
|---|---|
| ``firesteel-checkpoint.json`` | whose checkpoint it is: :class:`firesteel.engine.manifest.Manifest` as JSON |
| ``firesteel-job.pkl`` | the job, for ``firesteel replay``: see :func:`encode_job` |
| ``firesteel-files/<name>.zip`` | the files that the job brings, for the same |
| ``firesteel-commits/<batch>`` | what sinks have prepared: a pickle of (version, {uid: committables}) |
| ``firesteel-commits/job`` | the id that the job keeps, as text |
| ``firesteel-sources/coordinator-feedback.json`` | the driver's last feedback, as JSON |
| ``firesteel-sources/<source>/`` | what a source logs for itself: that source's |
| an entry of ``query/offsets`` | the offset of a batch, as JSON: see :class:`Offset` |
| ``firesteel-lock``, ``…-holder.json``, ``…-lease.json`` | who runs the job just now: of no meaning afterwards |

Positions of sources are JSON, and are covered by the version of offsets.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any, TypedDict

from firesteel import __version__
from firesteel.durable.cells import PROTOCOL
from firesteel.durable.versions import COMMITS, FEEDBACK, JOB, OFFSET
from firesteel.errors import CheckpointError

__all__ = [
    "Offset",
    "checked_feedback",
    "checked_offset",
    "decode_commits",
    "decode_job",
    "encode_commits",
    "encode_job",
]


class Offset(TypedDict, total=False):
    """Where a batch ends. Spark logs it before the batch runs."""

    format: int
    batch: int
    time: int
    """The batch's processing time."""
    last: bool
    positions: dict[str, Any]
    """How far each source is read, by the id of its node."""
    kept: dict[str, dict[str, Any]]
    """How far event time is where it is assigned in stage 0, by "node/subtask"."""
    paused: list[str]
    """Sources that may not read, since they are ahead of others."""
    steps: dict[str, int]
    """After how many records of a subtask event time moves within the batch, by the id of the source's node. A source
    that is left out moves it at the batch's end."""


def checked_offset(offset: dict[str, Any], where: str = "") -> dict[str, Any]:
    """The offset itself, if this version can read it. Until they said so, all of them were of version 1."""
    OFFSET.check(offset.get("format", 1), where)
    return offset


def checked_feedback(known: dict[str, Any], where: str = "") -> dict[str, Any]:
    """The fields of the feedback, if this version can read it.

    >>> checked_feedback({"format": 1, "time": 7})
    {'time': 7}
    """
    FEEDBACK.check(known.get("format", 1), where)
    return {name: value for name, value in known.items() if name != "format"}


def encode_commits(prepared: dict[str, list[Any]]) -> bytes:
    """Committables by the uid of their sink. They are the sinks' own objects: users' by their classes, ours by the
    names in :mod:`firesteel.durable.names`."""
    return pickle.dumps((COMMITS.version, prepared), PROTOCOL)


def decode_commits(content: bytes, where: str = "") -> dict[str, list[Any]]:
    """
    >>> decode_commits(encode_commits({"files": ["part-1"]}))
    {'files': ['part-1']}
    """
    found = pickle.loads(content)
    # Version 1 was the committables alone.
    version, prepared = (1, found) if isinstance(found, dict) else found
    COMMITS.check(version, where)
    committables: dict[str, list[Any]] = prepared
    return committables


def encode_job(pickled: bytes) -> bytes:
    """The job as a whole, for those who replay a batch of it: functions, graph and all, pickled by their classes. So it
    is for this very version alone. That is enough: a job that is started again writes it anew."""
    return pickle.dumps({"format": JOB.version, "written by": _writer(), "job": pickled}, PROTOCOL)


def decode_job(content: bytes, where: str) -> bytes:
    """
    >>> decode_job(encode_job(b"job"), "here")
    b'job'
    """
    try:
        found = pickle.loads(content)
    except Exception as error:
        # Before version 2 it was an object of a class that may be gone.
        found = error
    known = found if isinstance(found, dict) else {}
    writer = known.get("written by", "an earlier version")
    if JOB.refusal(known.get("format")) is not None or writer != _writer():
        raise CheckpointError(
            f"The job in {where} was written by {writer}, and this is {_writer()}: it can be loaded by the same "
            "versions only. Name the program to replay the batch with, or use those versions."
        )
    pickled: bytes = known["job"]
    return pickled


def _writer() -> str:
    return f"Firesteel {__version__} on Python {sys.version_info.major}.{sys.version_info.minor}"
