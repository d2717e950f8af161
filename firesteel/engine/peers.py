"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct

__all__ = ["is_own_user", "process_of_peer"]

_CREDENTIALS = struct.Struct("3i")
"""Process, user and group, as the kernel knows them."""


def process_of_peer(connection: socket.socket) -> int | None:
    """The id of the process at the other end, where the kernel tells it.

    >>> here, there = socket.socketpair(socket.AF_UNIX)
    >>> process_of_peer(here) in (os.getpid(), None)
    True
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    try:
        process, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    except OSError:
        return None
    return int(process)


def is_own_user(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user. The kernel answers, not the other process.

    >>> here, there = socket.socketpair(socket.AF_UNIX)
    >>> is_own_user(here)
    True
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        # Outside Linux the folder in which the socket lies is the only guard.
        return True
    try:
        _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    except OSError:
        return False
    return bool(user == os.geteuid())
