"""What happens after a failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from firesteel.errors import ProgramError, short_repr

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """The root of the strategies' settings."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in words."""


@dataclass(frozen=True)
class _NoRestart(RestartStrategyConfiguration):
    """A failure ends the job."""

    def get_description(self) -> str:
        return "no restart"


@dataclass(frozen=True)
class _Fallback(RestartStrategyConfiguration):
    """The cluster's configuration decides."""

    def get_description(self) -> str:
        return "as the cluster is configured"


@dataclass(frozen=True)
class _FixedDelay(RestartStrategyConfiguration):
    """So many restarts, with the same pause before each."""

    restart_attempts: int
    delay_between_attempts_interval: timedelta

    def __post_init__(self) -> None:
        pause = _pause(self.delay_between_attempts_interval)
        object.__setattr__(self, "delay_between_attempts_interval", pause)

    def get_restart_attempts(self) -> int:
        """How many restarts there are at most."""
        return self.restart_attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        """The pause before each."""
        return self.delay_between_attempts_interval

    def get_description(self) -> str:
        return f"up to {self.restart_attempts} restarts, {self.delay_between_attempts_interval} apart"


@dataclass(frozen=True)
class _FailureRate(RestartStrategyConfiguration):
    """Restarts as long as failures are rare enough."""

    max_failure_rate: int
    failure_interval: timedelta
    delay_between_attempts_interval: timedelta

    def __post_init__(self) -> None:
        object.__setattr__(self, "failure_interval", _pause(self.failure_interval))
        pause = _pause(self.delay_between_attempts_interval)
        object.__setattr__(self, "delay_between_attempts_interval", pause)

    def get_max_failure_rate(self) -> int:
        """How many failures an interval may see."""
        return self.max_failure_rate

    def get_failure_interval(self) -> timedelta:
        """The interval over which failures are counted."""
        return self.failure_interval

    def get_delay_between_attempts_interval(self) -> timedelta:
        """The pause before each restart."""
        return self.delay_between_attempts_interval

    def get_description(self) -> str:
        return (
            f"restarts while there are at most {self.max_failure_rate} failures in {self.failure_interval}, "
            f"{self.delay_between_attempts_interval} apart"
        )


class RestartStrategies:
    """Where restart strategies come from. Whole numbers are milliseconds.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'up to 3 restarts, 0:00:10 apart'
    """

    NoRestartStrategyConfiguration = _NoRestart
    FixedDelayRestartStrategyConfiguration = _FixedDelay
    FailureRateRestartStrategyConfiguration = _FailureRate
    FallbackRestartStrategyConfiguration = _Fallback

    @staticmethod
    def no_restart() -> _NoRestart:
        """A failure ends the job."""
        return _NoRestart()

    @staticmethod
    def fall_back_restart() -> _Fallback:
        """The cluster's configuration decides."""
        return _Fallback()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: int | timedelta) -> _FixedDelay:
        """So many restarts, with the same pause before each."""
        return _FixedDelay(restart_attempts, _pause(delay_between_attempts))

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int | timedelta, delay_interval: int | timedelta
    ) -> _FailureRate:
        """Restarts as long as an interval sees no more than so many failures."""
        return _FailureRate(failure_rate, _pause(failure_interval), _pause(delay_interval))


def _pause(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return timedelta(milliseconds=value)
    raise ProgramError(f"A pause is a number of milliseconds or a timedelta, got {short_repr(value, 60)}.")
