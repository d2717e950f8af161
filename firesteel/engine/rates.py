"""Counts per second, over about the last minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Counts", "Rates"]

SPAN = 60.0
"""Over so many seconds a rate is taken, as in Flink."""
STEP = 5.0
"""So many seconds lie between two moments that are remembered."""

Counts = dict[Any, tuple[float, ...]]
"""By whom the counters, which only grow."""


class Rates:
    """Remembers counters at some moments of the last minute.

    >>> now, counts = 0.0, {"map": (0,)}
    >>> rates = Rates(clock=lambda: now)
    >>> now, counts = 10.0, {"map": (500,)}
    >>> rates.note(lambda: counts)
    >>> rates.of(counts)
    {'map': (50.0,)}
    >>> now = 75.0
    >>> rates.of(counts)
    {'map': (0.0,)}
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._moments: deque[tuple[float, Counts]] = deque([(clock(), {})])

    def note(self, counts: Callable[[], Counts]) -> None:
        """Called whenever counters may have grown; they are looked at now and then."""
        with self._lock:
            now = self._clock()
            if now - self._moments[-1][0] >= STEP:
                self._moments.append((now, counts()))
                while len(self._moments) > 1 and self._moments[1][0] <= now - SPAN:
                    self._moments.popleft()

    def of(self, counts: Counts) -> Mapping[Any, tuple[float, ...]]:
        """The rates of all counters, which are as high as ``counts`` now."""
        self.note(lambda: counts)
        with self._lock:
            now = self._clock()
            # The newest moment that lies a whole span back, or the first one that is known.
            base = next((one for one in reversed(self._moments) if one[0] <= now - SPAN), self._moments[0])
        seconds = max(now - base[0], 0.001)
        found = {}
        for key, values in counts.items():
            before = base[1].get(key) or (0,) * len(values)
            found[key] = tuple(max(0.0, high - low) / seconds for high, low in zip(values, before, strict=True))
        return found
