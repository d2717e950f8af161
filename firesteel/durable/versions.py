"""The versions of all that is durable: what this Firesteel writes, and what it reads.

A version is raised whenever something is written that the Firesteel before would not understand. What is older is
read as long as that is reasonable; golden data of every version is among the tests. What is newer, or unknown, is
refused with what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from firesteel.errors import CheckpointError

__all__ = [
    "CHECKPOINT",
    "COMMITS",
    "COMPACTION",
    "DRIVER_OUTCOME",
    "DRIVER_PROCESS",
    "FEEDBACK",
    "FILE_POSITION",
    "FOLDER_HOLDER",
    "FOLDER_LEASE",
    "JOB",
    "JOB_RECORD",
    "LEDGER",
    "OFFSET",
    "PARTITIONS",
    "PIECE_LOG",
    "RECORD_LOG",
    "REGISTRY",
    "SAVEPOINT",
    "STAGED",
    "STATE_TABLES",
    "STORE",
    "Format",
]


@dataclass(frozen=True)
class Format:
    """One kind of durable thing.

    >>> Format("the state", version=3, oldest=2).refusal(2) is None
    True
    >>> print(Format("the state", version=3, oldest=2).refusal(4))
    the state has format 4, of a newer Firesteel; this one reads 2 to 3. Use the Firesteel that wrote it, or a newer one
    """

    what: str
    version: int
    """What is written."""
    oldest: int = 1
    """What is still read, at least."""

    def refusal(self, found: Any, writer: str = "") -> str | None:
        """Why a version cannot be read, and what to do; None if it can."""
        if not isinstance(found, int) or isinstance(found, bool):
            return f"{self.what} does not say which format it has ({found!r}). It is damaged, or not Firesteel's"
        by = f" ({writer})" if writer else ""
        known = f"{self.oldest} to {self.version}" if self.oldest < self.version else f"{self.version} only"
        if found > self.version:
            return (
                f"{self.what} has format {found}, of a newer Firesteel{by}; this one reads {known}. Use the Firesteel "
                "that wrote it, or a newer one"
            )
        if found < self.oldest:
            return (
                f"{self.what} has format {found}, which this Firesteel{by} no longer reads; it reads {known}. Start "
                "the job with the Firesteel that wrote it, take a savepoint there, and begin with that"
            )
        return None

    def check(self, found: Any, where: str = "", writer: str = "") -> None:
        """Raises a CheckpointError for a version that cannot be read."""
        why = self.refusal(found, writer)
        if why is not None:
            raise CheckpointError(f"{why[0].upper()}{why[1:]}{f' ({where})' if where else ''}.")


# 1 to 2: classes of the package stood in pickles by their module paths; headers were nested dicts of objects.
STORE: Final = Format("the state of a subtask", version=2)
CHECKPOINT: Final = Format("the checkpoint", version=2)
COMMITS: Final = Format("the list of what sinks have prepared", version=2)
JOB: Final = Format("the job kept for replays", version=2, oldest=2)
OFFSET: Final = Format("the offset of a batch", version=1)
FEEDBACK: Final = Format("the feedback to the coordinator", version=1)
LEDGER: Final = Format("the ledger of a file sink", version=1)
COMPACTION: Final = Format("the log of a file sink's compaction", version=1)
PARTITIONS: Final = Format("the list of partitions that a table sink has yet to mark", version=1)
FILE_POSITION: Final = Format("the position of a file source", version=1)
# One digit, the last byte of the mark before each piece.
PIECE_LOG: Final = Format("the log of received records", version=1)
# What says none is version 1: bytes as they came have no room for it.
RECORD_LOG: Final = Format("the log of a socket", version=1)
SAVEPOINT: Final = Format("the savepoint", version=2)
STAGED: Final = Format("what Spark has computed for a source", version=1)
STATE_TABLES: Final = Format("the description of state as tables", version=1)
# What says none is version 1 in all of the following.
FOLDER_HOLDER: Final = Format("the note of who holds a checkpoint folder", version=1)
FOLDER_LEASE: Final = Format("the lease of a checkpoint folder", version=1)
JOB_RECORD: Final = Format("the record of an ended job", version=1)
DRIVER_PROCESS: Final = Format("the note of a driver's process", version=1)
DRIVER_OUTCOME: Final = Format("the note of how a driver ended", version=1)
REGISTRY: Final = Format("the registry of a job manager", version=1)
