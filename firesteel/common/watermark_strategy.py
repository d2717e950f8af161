"""How event time advances: where timestamps come from, and how far a watermark trails behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from firesteel.common.time import Duration
from firesteel.errors import ProgramError, short_repr

__all__ = ["TimestampAssigner", "Watermark", "WatermarkGenerator", "WatermarkOutput", "WatermarkStrategy"]


class TimestampAssigner(ABC):
    """Reads an element's event time.

    >>> class FromField(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["at"]
    >>> FromField().extract_timestamp({"at": 5}, -1)
    5
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time in milliseconds. ``record_timestamp`` is the one it had; -2^63 if it had none."""


class Watermark(int):
    """A point in event time, in milliseconds: no element at or before it will follow.

    >>> Watermark(5).timestamp, Watermark(5) == 5
    (5, True)
    """

    MAX_WATERMARK: ClassVar[Watermark]

    @property
    def timestamp(self) -> int:
        """The time in milliseconds."""
        return int(self)

    def __repr__(self) -> str:
        return f"Watermark({int(self)})"


Watermark.MAX_WATERMARK = Watermark(2**63 - 1)


class WatermarkOutput(ABC):
    """Where a generator puts its watermarks."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """Says that no element at or before ``timestamp`` (a number or a :class:`Watermark`) will follow."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Says that others need not wait for this one."""

    @abstractmethod
    def mark_active(self) -> None:
        """Takes :meth:`mark_idle` back."""


class WatermarkGenerator(ABC):
    """Makes watermarks, per event or from time to time. PyFlink offers this in Java only."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for each element, with its timestamp."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called from time to time, and at the end of each micro-batch."""


@dataclass
class WatermarkStrategy:
    """A plain description of how event time advances; the runtime does what it says.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.kind, strategy.max_out_of_orderness_ms
    ('bounded', 5000)
    """

    kind: Literal["monotonous", "bounded", "none", "generator", "ingestion"]
    max_out_of_orderness_ms: int = 0
    idle_timeout_ms: int | None = None
    timestamp_assigner: TimestampAssigner | None = None
    generator_factory: Callable[[], WatermarkGenerator] | None = None
    alignment_group: str | None = None
    max_drift_ms: int | None = None
    alignment_interval_ms: int | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that never go back: the watermark is the last timestamp - 1."""
        return WatermarkStrategy("monotonous")

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """For elements that come late by at most that much."""
        millis = _millis(max_out_of_orderness, "for_bounded_out_of_orderness", minimum=0)
        return WatermarkStrategy("bounded", max_out_of_orderness_ms=millis)

    @staticmethod
    def for_ingestion_time() -> WatermarkStrategy:
        """Event time is when a record came in: the processing time of its micro-batch, which a replay repeats.

        It goes on while nothing comes in. A timestamp that a record may have had is lost, and a timestamp assigner is
        not asked.
        """
        return WatermarkStrategy("ingestion")

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Timestamps only: event time stands still until the end of the input."""
        return WatermarkStrategy("none")

    @staticmethod
    def for_generator(generator_factory: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Watermarks from a generator of your own; the factory, or class, is called once per subtask."""
        if not callable(generator_factory):
            raise ProgramError(
                "for_generator() needs a class or function that makes a WatermarkGenerator, "
                f"got {short_repr(generator_factory, 60)}."
            )
        if isinstance(generator_factory, type):
            expect_generator(generator_factory)
        return WatermarkStrategy("generator", generator_factory=generator_factory)

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner) -> WatermarkStrategy:
        """Reads timestamps with the given assigner."""
        if isinstance(timestamp_assigner, type):
            name = timestamp_assigner.__name__
            raise ProgramError(f"with_timestamp_assigner() got the class {name}. Pass an instance: {name}().")
        if not hasattr(timestamp_assigner, "extract_timestamp"):
            raise ProgramError(
                "with_timestamp_assigner() needs a TimestampAssigner, that is an object with a method "
                f"extract_timestamp(value, record_timestamp), got {short_repr(timestamp_assigner, 60)}."
            )
        # In place, because PyFlink does so and programs may ignore what is returned.
        self.timestamp_assigner = timestamp_assigner
        return self

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Does not wait for a source that has been silent for that long. Keeps the timestamp assigner."""
        return replace(self, idle_timeout_ms=_millis(idle_timeout, "with_idleness", minimum=1))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """Holds sources of one group back that run ahead of the others by more than the drift."""
        interval = Duration.of_seconds(1) if update_interval is None else update_interval
        return replace(
            self,
            alignment_group=watermark_group,
            max_drift_ms=_millis(max_allowed_watermark_drift, "with_watermark_alignment", minimum=0),
            alignment_interval_ms=_millis(interval, "with_watermark_alignment", minimum=1),
        )


def expect_generator(made: Any) -> None:
    """An error unless it has what the runtime calls."""
    missing = [name for name in ("on_event", "on_periodic_emit") if not callable(getattr(made, name, None))]
    if missing:
        raise ProgramError(
            f"for_generator() needs what makes a WatermarkGenerator, got {short_repr(made, 60)} without "
            f"{' and '.join(missing)}()."
        )


def _millis(duration: Any, method: str, minimum: int) -> int:
    if not isinstance(duration, Duration):
        raise ProgramError(
            f"{method}() needs a Duration, such as Duration.of_seconds(5), got {short_repr(duration, 60)}."
        )
    millis = duration.to_millis()
    if millis < minimum:
        raise ProgramError(f"{method}() needs a duration of at least {minimum} ms, got {duration}.")
    return millis
