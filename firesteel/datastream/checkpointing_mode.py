"""What a checkpoint promises."""

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """Whether each element changes state exactly once, or at least once, across failures.

    >>> CheckpointingMode.EXACTLY_ONCE.value
    0
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
