"""Which operator of a task is at work, and how long each one was: one look at the clock whenever that changes.

Operators of a task call each other directly, a chunk of records at a time. So the time of each is found by noting the
moment at which the work passes on, and costs nothing per record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["OUTSIDE", "OWN", "Stopwatch"]

OUTSIDE = 0
"""The place of nobody: the task waits for input, or for somebody to take its frames."""
OWN = 1
"""The place of the task itself."""

Take = Callable[[list[Any], list[int] | None], None]


class Stopwatch:
    """Measures one task. A place is a small number: ``OUTSIDE``, ``OWN`` or that of an operator.

    >>> moments = iter([0.0, 1.0, 4.0, 6.0, 8.0])
    >>> watch = Stopwatch(4, clock=lambda: next(moments))
    >>> outer = watch.switch(2)
    >>> inner = watch.switch(3)
    >>> (outer, inner, watch.switch(inner), watch.place)
    (0, 2, 3, 2)
    >>> watch.take()
    [1.0, 0.0, 5.0, 2.0]
    """

    __slots__ = ("_clock", "_since", "_times", "place", "running")

    def __init__(self, places: int, running: bool = True, clock: Callable[[], float] = time.perf_counter) -> None:
        """One that is not ``running`` only knows who is at work where the task itself says so."""
        self._clock = clock
        self._times = [0.0] * places
        self._since = clock() if running else 0.0
        self.running = running
        self.place = OUTSIDE
        """Who is at work."""

    def switch(self, place: int) -> int:
        """From here on somebody else works. Returns who did."""
        before, self.place = self.place, place
        if self.running:
            now = self._clock()
            self._times[before] += now - self._since
            self._since = now
        return before

    def timed(self, place: int, take: Take) -> Take:
        """A call of an operator, measured. Not if it raises: then the task is over."""
        if not self.running:
            return take
        switch = self.switch

        def measured(values: list[Any], timestamps: list[int] | None) -> None:
            outer = switch(place)
            take(values, timestamps)
            switch(outer)

        return measured

    def take(self) -> list[float]:
        """The seconds of each place since the last call."""
        self.switch(self.place)
        taken, self._times = self._times, [0.0] * len(self._times)
        return taken
