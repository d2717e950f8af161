"""How a job runs: as an unending stream or as a batch."""

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING emits results as they change, BATCH only the final ones, AUTOMATIC asks the sources.

    >>> RuntimeExecutionMode["BATCH"].value
    1
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
