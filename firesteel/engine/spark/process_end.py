"""How a process ended, in words."""

from __future__ import annotations

import os
import signal

__all__ = ["ending_of"]

_CRASHES = {
    number
    for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT")
    if (number := getattr(signal, name, None)) is not None
}


def ending_of(status: int | None) -> str:
    """What a wait status says of a process that ended while it worked. None: nobody knows.

    >>> ending_of(9)
    'was killed by SIGKILL in the middle of a batch (the system does that when memory runs out)'
    >>> ending_of(11)
    'was killed by SIGSEGV in the middle of a batch: native code in it crashed'
    >>> ending_of(3 << 8)
    'ended in the middle of a batch with exit code 3'
    """
    if status is None:
        return (
            "ended in the middle of a batch: a signal killed it (the system does that when memory runs out), or native "
            "code in it crashed"
        )
    if not os.WIFSIGNALED(status):
        return f"ended in the middle of a batch with exit code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    text = f"was killed by {name} in the middle of a batch"
    if number == signal.SIGKILL:
        return f"{text} (the system does that when memory runs out)"
    return f"{text}: native code in it crashed" if number in _CRASHES else text
