"""Restart strategies: whether a job that failed is started again, and after how long.

A strategy is three pieces: its settings (frozen), what it remembers of past failures, and :meth:`Restarts.after`,
which gets a failure and answers with a pause, or None if the job has failed for good.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError

__all__ = ["ExponentialDelay", "FailureRate", "FixedDelay", "NoRestarts", "Restarts", "restarts_of"]

_KEY = "restart-strategy"
_UNLIMITED = 2**31 - 1


class Restarts(ABC):
    """What a job does after a failure."""

    possible = True
    """Whether there may be a restart at all."""

    @abstractmethod
    def after(self, now: float) -> float | None:
        """Told of a failure at ``now`` (seconds): the pause in seconds before the restart, or None for none."""


class NoRestarts(Restarts):
    """A failure ends the job."""

    possible = False

    def after(self, now: float) -> float | None:
        return None


class FixedDelay(Restarts):
    """So many restarts, with the same pause before each.

    >>> strategy = FixedDelay(attempts=2, delay=1.5)
    >>> [strategy.after(now) for now in (0, 10, 20)]
    [1.5, 1.5, None]
    """

    def __init__(self, attempts: int = 1, delay: float = 1.0) -> None:
        self._left = attempts
        self._delay = delay

    def after(self, now: float) -> float | None:
        self._left -= 1
        return self._delay if self._left >= 0 else None


class FailureRate(Restarts):
    """Restarts as long as no interval sees more than so many failures.

    >>> strategy = FailureRate(failures=2, interval=60, delay=1)
    >>> [strategy.after(now) for now in (0, 30, 100, 110, 120)]
    [1, 1, 1, 1, None]
    """

    def __init__(self, failures: int = 1, interval: float = 60.0, delay: float = 1.0) -> None:
        self._recent: deque[float] = deque(maxlen=failures + 1)
        self._interval = interval
        self._delay = delay

    def after(self, now: float) -> float | None:
        self._recent.append(now)
        full = len(self._recent) == self._recent.maxlen
        return None if full and now - self._recent[0] <= self._interval else self._delay


class ExponentialDelay(Restarts):
    """Longer and longer pauses, up to a limit; short ones again after the job has run well for a while.

    >>> strategy = ExponentialDelay(initial=1, longest=3, multiplier=2, reset_after=100, jitter=0)
    >>> [strategy.after(now) for now in (0, 1, 2, 3, 1000)]
    [1, 2.0, 3.0, 3.0, 1]
    """

    def __init__(
        self,
        initial: float = 1.0,
        longest: float = 60.0,
        multiplier: float = 1.5,
        reset_after: float = 3600.0,
        jitter: float = 0.1,
        attempts: int = _UNLIMITED,
        random_number: Callable[[], float] = random.random,
    ) -> None:
        self._initial = initial
        self._longest = longest
        self._multiplier = multiplier
        self._reset_after = reset_after
        self._jitter = jitter
        self._attempts = attempts
        self._random = random_number
        self._made = 0
        self._pause = 0.0
        self._last: float | None = None

    def after(self, now: float) -> float | None:
        # The job ran from the end of the last pause until now.
        if self._last is None or now - self._last - self._pause >= self._reset_after:
            self._made, grown = 0, self._initial
        else:
            grown = min(self._pause * self._multiplier, self._longest)
        self._last, self._pause = now, float(grown)
        self._made += 1
        if self._made > self._attempts:
            return None
        # Jobs that failed together shall not come back together.
        with_jitter = self._pause * (1 + self._jitter * (2 * self._random() - 1))
        return max(self._initial, min(with_jitter, self._longest))


def restarts_of(configuration: Configuration, checkpointing: bool) -> Restarts:
    """The strategy that the configuration names; without one a job with checkpoints is restarted, others are not.

    >>> type(restarts_of(Configuration(), checkpointing=True)).__name__
    'ExponentialDelay'
    >>> type(restarts_of(Configuration.from_dict({"restart-strategy.type": "none"}), checkpointing=True)).__name__
    'NoRestarts'
    """
    default = "exponential-delay" if checkpointing else "none"
    kind = configuration.get_string(f"{_KEY}.type", default).lower()
    if kind not in _KINDS:
        raise ConfigurationError(
            f"Setting '{_KEY}.type' should be none, fixed-delay, failure-rate or exponential-delay, got {kind!r}."
        )
    return _KINDS[kind](_Reader(configuration))


class _Reader:
    """Reads a strategy's settings and refuses what makes no sense."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def seconds(self, key: str, default_ms: int) -> float:
        return self._configuration.get_duration_ms(f"{_KEY}.{key}", default_ms) / 1000

    def count(self, key: str, default: int, least: int) -> int:
        found = self._configuration.get_integer(f"{_KEY}.{key}", default)
        return int(self._checked(key, found, least, _UNLIMITED))

    def number(self, key: str, default: float, least: float, most: float) -> float:
        return self._checked(key, self._configuration.get_float(f"{_KEY}.{key}", default), least, most)

    @staticmethod
    def _checked(key: str, value: float, least: float, most: float) -> float:
        if not least <= value <= most:
            raise ConfigurationError(f"Setting '{_KEY}.{key}' should lie between {least} and {most}, got {value}.")
        return value


def _fixed_delay(read: _Reader) -> Restarts:
    return FixedDelay(read.count("fixed-delay.attempts", 1, 0), read.seconds("fixed-delay.delay", 1000))


def _failure_rate(read: _Reader) -> Restarts:
    return FailureRate(
        read.count("failure-rate.max-failures-per-interval", 1, 0),
        read.seconds("failure-rate.failure-rate-interval", 60_000),
        read.seconds("failure-rate.delay", 1000),
    )


def _exponential_delay(read: _Reader) -> Restarts:
    initial = read.seconds("exponential-delay.initial-backoff", 1000)
    longest = read.seconds("exponential-delay.max-backoff", 60_000)
    if initial > longest:
        raise ConfigurationError(
            f"Setting '{_KEY}.exponential-delay.max-backoff' ({longest} s) should not be below "
            f"'{_KEY}.exponential-delay.initial-backoff' ({initial} s)."
        )
    return ExponentialDelay(
        initial,
        longest,
        read.number("exponential-delay.backoff-multiplier", 1.5, 1.0, 1e9),
        read.seconds("exponential-delay.reset-backoff-threshold", 3_600_000),
        read.number("exponential-delay.jitter-factor", 0.1, 0.0, 1.0),
        read.count("exponential-delay.attempts-before-reset-backoff", _UNLIMITED, 0),
    )


_KINDS: dict[str, Callable[[_Reader], Restarts]] = {
    **dict.fromkeys(("none", "off", "disable"), lambda read: NoRestarts()),
    **dict.fromkeys(("fixed-delay", "fixeddelay"), _fixed_delay),
    **dict.fromkeys(("failure-rate", "failurerate"), _failure_rate),
    **dict.fromkeys(("exponential-delay", "exponentialdelay"), _exponential_delay),
}
