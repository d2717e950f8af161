"""Processing time: the wall clock, made safe against its jumps.

Each batch has a processing time, which is logged with its offset and never goes back. A wall clock does: somebody sets
it, or corrects it after it was wrong for a while. If processing time just waited for it, no timer would fire until the
clock has got there again, which may take hours. So processing time goes on then, as fast as time passes, or rather a
little slower, so that in the end both agree again. The same holds for a job that was started again meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["ProcessingClock"]

logger = logging.getLogger("firesteel")

SPEED = 0.95
"""How fast processing time goes while the wall clock is behind it. Timers are late by a twentieth then, at most."""
WORTH_A_WARNING_MS = 1000
RESTART_MS = 1000
"""How long a restart took at least, where the wall clock cannot tell. Its first batch must be later than the batch
before it: sinks order what they write by the times of batches (``BatchVersions``).
"""


def _wall_clock() -> int:
    return int(time.time() * 1000)


class ProcessingClock:
    """Milliseconds that never go back and never stand still.

    >>> wall, passed = [5_000], [0.0]
    >>> clock = ProcessingClock(lambda: wall[0], lambda: passed[0])
    >>> clock.read(0)
    5000
    >>> wall[0], passed[0] = 2_500, 1.0
    >>> clock.read(5_000)
    5950
    >>> wall[0], passed[0] = 9_000, 2.0
    >>> clock.read(5_950)
    9000
    >>> ProcessingClock(lambda: 2_500).read(9_000)
    10000
    """

    def __init__(self, wall: Callable[[], int] = _wall_clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._reading: float | None = None
        self._read_at = 0.0
        self._behind = False

    def read(self, at_least: int) -> int:
        """The time now. It is not before ``at_least``, the time of the last batch; where that was of an
        earlier run and the clock was set back since then, it is after it."""
        wall, now = self._wall(), self._monotonic()
        reached = float(at_least)
        if self._reading is not None:
            reached = max(reached, self._reading)
        if wall >= reached:
            self._caught_up()
            reading = float(wall)
        else:
            self._warn(int(reached) - wall)
            passed = RESTART_MS if self._reading is None else max(now - self._read_at, 0.0) * 1000 * SPEED
            reading = reached + passed
        self._reading, self._read_at = reading, now
        return int(reading)

    def _warn(self, behind: int) -> None:
        if behind >= WORTH_A_WARNING_MS and not self._behind:
            self._behind = True
            logger.warning(
                "the clock is %.1f s behind the processing time that this job has reached: it was set back, or had "
                "been ahead. Processing time goes on from there, slightly slower, until the clock has caught up.",
                behind / 1000,
            )

    def _caught_up(self) -> None:
        if self._behind:
            self._behind = False
            logger.info("the clock has caught up with processing time")
