"""The state store of a subtask: keys of its cells, and how their contents become bytes.

| key | content |
|---|---|
| ``\\0header`` | the header (:mod:`firesteel.durable.headers`) |
| ``uid \\0 state \\0 entries \\0 number`` | a page, or a segment of a log, of a keyed state |
| ``uid \\0 state \\0 blocks \\0 number`` | the same of the blocks of big collections, or one block |
| ``uid \\0 state \\0 columns \\0 number`` | a segment of the log of a table of columns, or a page of it |
| ``uid \\1w \\0 …`` | the same of the state of windows |
| ``uid \\0\\0e``, ``uid \\0\\0p`` ``\\0s`` or ``\\0c`` and a stretch | timers of event time and of processing time |
| ``uid \\0\\0o name \\0 number`` | a piece of an operator's list, or of its raw bytes |
| ``uid \\0\\0b name \\0 number`` | a segment of the log of a broadcast state |

Contents are pickles of one fixed protocol, except segments of columns: those are Arrow streams of one batch, compressed
with lz4, with the columns of the key (``k0``, ``k1``, …), ``$alive`` (false where a key was removed), and the values.
Pages of columns are Arrow messages of one batch without a schema, which stands in the header: the columns of the key,
``$hash`` (the stable hash of the stream's key), and the values.

| cell | content |
|---|---|
| page | (keys, values), and behind it more such pairs that change it; None is a value that was removed |
| segment | (keys, values), or (keys, None) for keys that were removed |
| block | the block: a list or a dict |
| timers ``s`` | [(time, what is to be added, what is to be deleted), …] |
| timers ``c`` | {stretch: its segments} |
| piece of a list | a list of elements |

Among the values: those of a state with a time to live are pairs (time of last use, value); those of ``reduce``
and of broadcast states are in a tuple of one; a window's folded value is in a list of one. A session is [start, end,
content]. The timer of a session's end may be earlier than that end: whoever fires it moves it on.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any, Final

from firesteel.errors import CheckpointError

__all__ = [
    "BLOCK",
    "HEADER",
    "PAGE",
    "PIECE",
    "PROTOCOL",
    "SEGMENT",
    "TIMERS",
    "FormerUnpickler",
    "broadcast_prefix",
    "damaged",
    "decode",
    "encode",
    "is_list",
    "list_prefix",
    "of_windows",
    "table_prefix",
    "timer_prefix",
]

PROTOCOL: Final = 5
"""Fixed: what is written must not depend on the version of Python, which may be upgraded and downgraded, too."""

HEADER: Final = b"\0header"
"""The cell that holds all that is not keyed: watermarks, shapes of tables, indexes of timers."""

PAGE: Final = struct.Struct(">I")
SEGMENT: Final = struct.Struct(">Q")
BLOCK: Final = struct.Struct(">QI")
TIMERS: Final = struct.Struct(">qI")
PIECE: Final = struct.Struct(">I")

_LIST = b"\0\0o"

_MOVED: Final = {"firesteel.common._types.": "firesteel.common.type_system."}
"""Where modules are now whose paths stand in pickles of version 1."""


class FormerUnpickler(pickle.Unpickler):
    """Reads pickles that name classes by paths of version 1."""

    def find_class(self, module: str, name: str) -> Any:
        for before, now in _MOVED.items():
            module = now + module.removeprefix(before) if module.startswith(before) else module
        return super().find_class(module, name)


def encode(content: Any) -> bytes:
    """The bytes of a cell."""
    return pickle.dumps(content, PROTOCOL)


def decode(cell: bytes, where: bytes) -> Any:
    """What a cell holds, or an error that says that it cannot be read: it will not get better.

    >>> decode(encode([1, 2]), b"count")
    [1, 2]
    """
    try:
        try:
            return pickle.loads(cell)
        except ModuleNotFoundError:
            return FormerUnpickler(io.BytesIO(cell)).load()
    except MemoryError:
        raise
    except Exception as error:
        raise damaged(where, error) from error


def damaged(where: bytes, error: BaseException | str) -> CheckpointError:
    """State that is there and cannot be read."""
    why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    name = where.decode(errors="replace").strip("\0").replace("\0", "/")
    return CheckpointError(
        f"The stored state {name!r} cannot be read ({why}). It is damaged, or it needs a class that the program no "
        "longer has. Start the program that wrote it, or begin with a savepoint or an older checkpoint."
    )


def of_windows(uid: str) -> str:
    """The uid under which an operator keeps the state of its windows."""
    return f"{uid}\1w"


def table_prefix(uid: str, name: str, kind: str) -> bytes:
    """
    >>> table_prefix("counter", "count", "entries")
    b'counter\\x00count\\x00entries'
    """
    return f"{uid}\0{name}\0{kind}".encode()


def timer_prefix(uid: str, event_time: bool) -> bytes:
    return uid.encode() + (b"\0\0e" if event_time else b"\0\0p")


def list_prefix(uid: str, name: str) -> bytes:
    return uid.encode() + _LIST + name.encode() + b"\0"


def is_list(key: bytes) -> bool:
    """Whether a cell is of an operator's list."""
    return _LIST in key


def broadcast_prefix(uid: str, name: str) -> bytes:
    return uid.encode() + b"\0\0b" + name.encode()
