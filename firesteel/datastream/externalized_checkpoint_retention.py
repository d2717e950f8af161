"""What becomes of a job's checkpoint folder when the job is cancelled."""

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether checkpoints outlive a cancellation. After a failure they always stay, so that the job can go on.

    >>> ExternalizedCheckpointRetention["RETAIN_ON_CANCELLATION"].value
    1
    """

    DELETE_ON_CANCELLATION = 0
    """Cancelling the job deletes them."""
    RETAIN_ON_CANCELLATION = 1
    """They stay; a program started again goes on from them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """The default: deleted, as with ``DELETE_ON_CANCELLATION``."""
