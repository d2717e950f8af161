"""The port through which functions see time and set timers."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Time and timers, both in milliseconds since the epoch.

    A timer belongs to the key that was current when it was set, and to that key a time can be set only once:
    setting it again changes nothing.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event-time watermark; -2^63 before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Asks for ``on_timer`` once the wall clock reaches ``timestamp``."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Asks for ``on_timer`` once the watermark reaches ``timestamp``."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Takes such a timer back; nothing happens if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Takes such a timer back; nothing happens if there is none."""
