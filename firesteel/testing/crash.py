"""Failures on purpose: what a test of recovery needs most."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
import weakref
from typing import Any

from firesteel.errors import ProgramError

__all__ = ["Crash", "CrashError"]


class CrashError(Exception):
    """What a :class:`Crash` raises."""


class Crash:
    """A sentinel that fails the job where it is met, the first so many times or always.

    As an element of a :class:`~firesteel.testing.ListSource` it fails when the source reads it, with the elements
    before it under way. To fail elsewhere, keep it in a function and call :meth:`hit`.

    A function is copied into every task, and copied again after a failure, so the number of failures is kept in a
    small temporary file, which goes with the object that the test holds.

    >>> crash = Crash(times=1)
    >>> crash.hit()
    Traceback (most recent call last):
    firesteel.testing.crash.CrashError: failed on purpose (1)
    >>> crash.hit(), crash.count
    (None, 1)
    """

    def __init__(self, times: int | None = 1) -> None:
        """``times`` None fails always."""
        if times is not None and (not isinstance(times, int) or times < 1):
            raise ProgramError(f"Crash(times=…) takes an int of at least 1, or None for always; got {times!r}.")
        self._times = times
        self._path = os.path.join(tempfile.gettempdir(), f"firesteel-crash-{uuid.uuid4().hex}")
        # Copies know the path but have no such promise to keep.
        weakref.finalize(self, _forget, self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _copy, (self._times, self._path)

    @property
    def count(self) -> int:
        """How often it has failed."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.getsize(self._path)
        return 0

    def hit(self) -> None:
        """Fails if it is still to fail."""
        count = self.count
        if self._times is None or count < self._times:
            with open(self._path, "ab") as file:
                file.write(b".")
            raise CrashError(f"failed on purpose ({count + 1})")


def _copy(times: int | None, path: str) -> Crash:
    crash = Crash.__new__(Crash)
    crash._times, crash._path = times, path
    return crash


def _forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
