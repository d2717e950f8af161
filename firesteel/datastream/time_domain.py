"""Which clock a timer follows."""

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Whether a timer fires by the elements' timestamps or by the wall clock.

    >>> TimeDomain.EVENT_TIME.name
    'EVENT_TIME'
    """

    EVENT_TIME = 0
    PROCESSING_TIME = 1
