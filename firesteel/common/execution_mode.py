"""How data moves between operators, as older programs set it."""

from enum import Enum

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """Kept for older programs. Streaming or batch is chosen with ``RuntimeExecutionMode`` nowadays.

    >>> ExecutionMode.PIPELINED.value
    0
    """

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
