"""The time that an operator sees."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["Clock"]


@dataclass(slots=True)
class Clock:
    """The batch's processing time and the operator's own watermark."""

    processing_time: int = 0
    watermark: int = MIN_TIMESTAMP
    timestamp: int = MIN_TIMESTAMP
    """Of the element (or timer) being processed."""
