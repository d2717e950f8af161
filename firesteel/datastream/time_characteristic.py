"""The notion of time of a whole job, as older programs set it."""

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """Kept for programs written before Flink 1.12; event time has been the default ever since.

    >>> TimeCharacteristic.EventTime.value
    2
    """

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
