"""The clock of leases: it goes on while the machine is suspended, as the clocks of others do."""

from __future__ import annotations

import time

__all__ = ["lease_clock"]


def lease_clock() -> float:
    """Seconds since some moment, whatever people set the time to. Unlike :func:`time.monotonic` it counts the time
    that a machine slept (where the system has such a clock): a lease that ran out meanwhile is over when it wakes up.

    >>> lease_clock() <= lease_clock()
    True
    """
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
