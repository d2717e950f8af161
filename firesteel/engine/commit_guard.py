"""What a process must still hold before any of its jobs commits, beside the lock of the checkpoint folder.

A driver of a job manager holds a lease in the registry (:mod:`firesteel.cluster.driver_lease`). Jobs that were started
by hand have no guard, and pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["check_commit", "set_commit_guard"]

Guard = Callable[[], None]

_guard: Guard | None = None


def set_commit_guard(guard: Guard | None) -> None:
    """``guard`` is called before each commit: it may wait, and raises where this process may not commit any more.

    >>> set_commit_guard(lambda: print("asked"))
    >>> check_commit()
    asked
    >>> set_commit_guard(None)
    >>> check_commit()
    """
    global _guard
    _guard = guard


def check_commit() -> None:
    """Raises where this process may not commit."""
    if _guard is not None:
        _guard()
