"""What a job gives back when it is over."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["CleanUp", "guarded"]

logger = logging.getLogger("firesteel")


def guarded(action: Callable[[], object]) -> None:
    """Calls what must not keep the rest from being cleaned up."""
    try:
        action()
    except Exception:
        logger.warning("cleaning up after the job failed", exc_info=True)


class CleanUp:
    """Actions in the opposite order of what made them necessary. One that fails does not keep the others from running.

    >>> clean_up = CleanUp()
    >>> clean_up.add(lambda: print("first made, last removed"))
    >>> clean_up.add(lambda: print("last made, first removed"))
    >>> clean_up.run()
    last made, first removed
    first made, last removed
    >>> clean_up.run()
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []

    def add(self, action: Callable[[], object]) -> None:
        self._actions.append(action)

    def run(self) -> None:
        """Once: what was done is not done again."""
        while self._actions:
            guarded(self._actions.pop())
