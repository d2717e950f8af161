"""Versions for what is written: greater for what is newer, and the same again for a batch that comes again.

They are made of the time of the micro-batch, which is logged before it runs, and of a number that counts within it. A
system that keeps the greater of two versions is as it was after a repetition, and an older one cannot undo a newer one.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BatchVersions"]


class BatchVersions:
    """Counts in one writer.

    >>> now = [1_700_000_000_000]
    >>> versions = BatchVersions(lambda: now[0], per_millisecond=1000)
    >>> versions.take(2), versions.take(3)
    (1700000000000000, 1700000000000002)
    >>> now[0] += 1
    >>> versions.take(1)
    1700000000001000
    """

    def __init__(self, batch_time: Callable[[], int], per_millisecond: int) -> None:
        """``per_millisecond``: so many versions lie between two milliseconds. A batch that needs more of them takes
        longer than the milliseconds that it borrows from."""
        self._batch_time, self._width = batch_time, per_millisecond
        self._time, self._next = -1, 0

    def take(self, count: int) -> int:
        """The first of so many versions in a row."""
        now = self._batch_time()
        if now != self._time:
            self._time, self._next = now, 0
        first = now * self._width + self._next
        self._next += count
        return first
