"""State that Spark cannot read: reported as what it is, with the file's name, since no restart will read it either."""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Iterator

from firesteel.errors import CheckpointError
from firesteel.filesystems import resolved

__all__ = ["damaged_files", "damaged_state"]

_LOADING = "CANNOT_LOAD_STATE_STORE"
_DAMAGED = re.compile(
    r"EOFException|Stream is corrupted|[Cc]hecksum (?:error|mismatch)|ChecksumException|ZipException|zip END header"
    r"|RocksDBException.*(?:Corruption|mismatch|truncated|bad magic|Bad table)|CANNOT_READ_\w*FILE"
    r"|CHECKSUM_VERIFICATION|INVALID_CHANGE_LOG|JsonParseException|InvalidProtocolBufferException"
    r"|FileNotFoundException.*(?:No such file or directory|does not exist|[Nn]ot found)"
)
"""What a file that is cut off, garbled or gone gives, in the cause of a failure to load state. A full disk or a broken
connection gives none of these, and a killed worker's end of stream is not the cause of such a failure."""
_NOT_OPENED = re.compile(r"FileNotFoundException.*\((?:Too many open files|Permission denied|No space left)")
"""What Java calls not found is there, but could not be opened. Spark may say that it does not exist, too."""
_NAMED = re.compile(r"\S*/state/\d+/\d+/[^\s,;:'\")\]]+")


def damaged_state(text: str, query: str | None) -> CheckpointError | None:
    """The error for an exception of Spark's whose text says that stored state cannot be read; None for any other.

    >>> text = "SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]\\nCaused by: java.io.EOFException: Stream ended"
    >>> print(damaged_state(text, "/jobs/totals/query"))  # doctest: +ELLIPSIS
    The state of the job cannot be read: a file in /jobs/totals/query/state is damaged (java.io.EOFException: Stream...
    >>> damaged_state("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]\\nCaused by: java.net.ConnectException: refused", None)
    """
    _, loading, cause = text.partition(_LOADING)
    found = [line for line in (loading + cause).splitlines() if _DAMAGED.search(line)]
    if not found or _NOT_OPENED.search(cause):
        return None
    why = found[-1].strip().removeprefix("Caused by: ")
    named = damaged_files(query) if query is not None else []
    if not named:
        named = list(dict.fromkeys(_NAMED.findall(text)))
    where = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
    if not where:
        where = "a file in " + ("its checkpoint folder" if query is None else f"{query}/state")
    verb = "are" if len(named) > 1 else "is"
    return CheckpointError(
        f"The state of the job cannot be read: {where} {verb} damaged ({why}). Bring back what the folder had from a "
        "copy, or begin with a savepoint in another checkpoint folder."
    )


def damaged_files(query: str) -> list[str]:
    """The files of a query's state in a local folder that are not as Hadoop's checksums beside them say."""
    folder = resolved(query)
    return [path for path, sums in _with_checksums(os.path.join(folder, "state")) if not _as_written(path, sums)]


def _with_checksums(folder: str) -> Iterator[tuple[str, bytes]]:
    for parent, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.startswith(".") and name.endswith(".crc"):
                # Spark deletes old ones meanwhile.
                with contextlib.suppress(FileNotFoundError), open(os.path.join(parent, name), "rb") as file:
                    yield os.path.join(parent, name[1 : -len(".crc")]), file.read()


def _as_written(path: str, sums: bytes) -> bool:
    """Whether a file has the checksums: "crc", a zero, the bytes of a chunk, then the CRC-32 of every chunk."""
    if sums[:4] != b"crc\0" or len(sums) < 8:
        return True
    (chunk,) = struct.unpack(">i", sums[4:8])
    found = []
    try:
        with open(path, "rb") as file:
            while block := file.read(chunk):
                found.append(zlib.crc32(block))
    except FileNotFoundError:
        # Spark deletes files of old batches, and their checksums after them.
        return True
    return struct.pack(f">{len(found)}I", *found) == sums[8:]
