"""Windows as parts of state keys: plain values, cheap to hash and to pickle.

State that belongs to a window lives under the pair (key, token). Windows of our own have small tokens; a window class
of a user's stands for itself.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream.window import CountWindow, GlobalWindow, TimeWindow

__all__ = ["pack", "unpack"]

_GLOBAL = GlobalWindow.get()


def pack(window: Any) -> Any:
    """The token of a window.

    >>> pack(TimeWindow(0, 10)), pack(GlobalWindow.get())
    ((0, 10), None)
    """
    kind = window.__class__
    if kind is TimeWindow:
        return window.start, window.end
    if kind is GlobalWindow:
        return None
    if kind is CountWindow:
        return window.id
    return window


def unpack(token: Any) -> Any:
    """The window of a token.

    >>> unpack((0, 10)) == TimeWindow(0, 10)
    True
    """
    kind = token.__class__
    if kind is tuple:
        return TimeWindow(*token)
    if token is None:
        return _GLOBAL
    if kind is int:
        return CountWindow(token)
    return token
