"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct

__all__ = ["is_own_user", "process_of_peer"]

_OPTION: int | None = getattr(socket, "SO_PEERCRED", None)
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group, as the kernel knows them."""


def process_of_peer(connection: socket.socket) -> int | None:
    """The id of the process at the other end, where the kernel tells it.

    >>> here, there = socket.socketpair(socket.AF_UNIX)
    >>> process_of_peer(here) in (os.getpid(), None)
    True
    """
    known = _credentials(connection)
    return None if known is None else known[0]


def is_own_user(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user. The kernel answers, not the other process.

    >>> here, there = socket.socketpair(socket.AF_UNIX)
    >>> is_own_user(here)
    True
    """
    if _OPTION is None:
        # Outside Linux the folder in which the socket lies is the only guard.
        return True
    known = _credentials(connection)
    return known is not None and known[1] == os.geteuid()


def _credentials(connection: socket.socket) -> tuple[int, int] | None:
    """Process and user of the other end; None where they are not known."""
    if _OPTION is None:
        return None
    try:
        process, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, _OPTION, _CREDENTIALS.size))
    except OSError:
        return None
    return process, user
