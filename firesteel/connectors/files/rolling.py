"""When a part file is finished and the next one begins."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from firesteel.errors import ProgramError

__all__ = ["DefaultRollingPolicy", "OnCheckpointRollingPolicy", "PartFileInfo", "RollingPolicy", "size_limit"]


@dataclass
class PartFileInfo:
    """What is known of a part file that is being written."""

    bucket_id: str
    creation_time: int
    last_update_time: int
    size: int = 0


class RollingPolicy(ABC):
    """Says when to roll. Subclass it for rules of your own.

    >>> policy = RollingPolicy.default_rolling_policy(part_size=100)
    >>> policy.should_roll_on_event(PartFileInfo("", 0, 0, size=100), "element")
    True
    """

    @abstractmethod
    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """Asked when a micro-batch ends."""

    @abstractmethod
    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        """Asked before an element is written: True puts it into a new part."""

    @abstractmethod
    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        """Asked when a micro-batch ends, and from time to time where none does."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> DefaultRollingPolicy:
        """Rolls by size in bytes, by age and by inactivity in milliseconds, whichever comes first."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Rolls whenever a micro-batch ends: results are seen soonest, in the smallest files."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """By size, age and inactivity."""

    part_size: int = 128 * 1024 * 1024
    rollover_interval: int = 60_000
    inactivity_interval: int = 60_000

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval", "inactivity_interval"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ProgramError(f"A rolling policy's {name} is an int of at least 1, got {value!r}.")

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return part.size >= self.part_size

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return part.size >= self.part_size

    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        return (
            current_time - part.creation_time >= self.rollover_interval
            or current_time - part.last_update_time >= self.inactivity_interval
        )


def size_limit(policy: RollingPolicy) -> float | None:
    """The bytes with which a part ends before the next element; None for a policy that has to be asked.

    >>> size_limit(DefaultRollingPolicy(part_size=100)), size_limit(OnCheckpointRollingPolicy())
    (100, inf)
    """
    asked = type(policy).should_roll_on_event
    if isinstance(policy, DefaultRollingPolicy) and asked is DefaultRollingPolicy.should_roll_on_event:
        return policy.part_size
    return math.inf if asked is OnCheckpointRollingPolicy.should_roll_on_event else None


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """With every micro-batch."""

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return True

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return False

    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        return False
