"""The four kinds of metric. Each lives in the memory of one subtask and can be read as plain data."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricValue"]

MetricValue = int | float | dict[str, int | float]


class Metric(ABC):
    """The root of all metrics."""

    @abstractmethod
    def read(self) -> MetricValue:
        """The current value as plain data, to be sent away."""

    def take(self) -> MetricValue:
        """What was measured since the last call. A subtask may move from process to process between batches; what
        all of them gave out, merged, is its metric."""
        return self.read()

    @classmethod
    def merged(cls, total: Any, part: Any) -> MetricValue:
        """A total with one more part."""
        newest: MetricValue = part
        return newest


class Counter(Metric):
    """Counts up and down.

    >>> counter = Counter()
    >>> counter.inc()
    >>> counter.inc(5)
    >>> counter.dec(2)
    >>> counter.get_count()
    4
    """

    def __init__(self) -> None:
        self._count = 0
        self._taken = 0

    def inc(self, n: int = 1) -> None:
        """Adds ``n``."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Takes ``n`` away."""
        self._count -= n

    def get_count(self) -> int:
        """The count."""
        return self._count

    def read(self) -> int:
        return self._count

    def take(self) -> int:
        part, self._taken = self._count - self._taken, self._count
        return part

    @classmethod
    def merged(cls, total: int, part: int) -> int:
        return total + part


class Gauge(Metric):
    """Asks a function for a number whenever somebody wants to know.

    >>> Gauge(lambda: 42).get_value()
    42
    """

    def __init__(self, function: Callable[[], int | float]) -> None:
        self._function = function

    def get_value(self) -> int | float:
        """What the function says now."""
        return self._function()

    def read(self) -> int | float:
        return self._function()


class Meter(Metric):
    """Counts events and tells how many of them there are per second.

    The rate is taken over a span of time that ends now. The clock is a parameter for tests.

    >>> now = 0.0
    >>> meter = Meter(time_span_in_seconds=10, clock=lambda: now)
    >>> meter.mark_event(20)
    >>> now = 4.0
    >>> meter.mark_event(10)
    >>> meter.get_rate(), meter.get_count()
    (3.0, 30)
    >>> now = 12.0
    >>> meter.get_rate()
    1.0
    """

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._span = max(time_span_in_seconds, 1)
        self._clock = clock
        self._count = 0
        self._taken = 0
        # One bucket a second, so that memory depends on the span and not on the number of events.
        self._buckets: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        """Notes that ``value`` events happened."""
        second = int(self._clock())
        self._count += value
        if self._buckets and self._buckets[-1][0] == second:
            self._buckets[-1] = (second, self._buckets[-1][1] + value)
        else:
            self._buckets.append((second, value))
            self._forget(second)

    def _forget(self, second: int) -> None:
        while self._buckets and self._buckets[0][0] <= second - self._span:
            self._buckets.popleft()

    def get_count(self) -> int:
        """All events so far."""
        return self._count

    def get_rate(self) -> float:
        """Events per second over the last span of time."""
        self._forget(int(self._clock()))
        return sum(count for _, count in self._buckets) / self._span

    def read(self) -> dict[str, int | float]:
        return {"count": self._count, "rate": self.get_rate()}

    def take(self) -> dict[str, int | float]:
        part, self._taken = self._count - self._taken, self._count
        return {"count": part, "rate": self.get_rate()}

    @classmethod
    def merged(cls, total: dict[str, int | float], part: dict[str, int | float]) -> dict[str, int | float]:
        return {"count": total["count"] + part["count"], "rate": part["rate"]}


class Distribution(Metric):
    """Tells how values are spread: how many, their sum, the smallest, the largest and the mean.

    >>> sizes = Distribution()
    >>> for size in (3, 1, 5):
    ...     sizes.update(size)
    >>> sizes.read()
    {'count': 3, 'sum': 9, 'min': 1, 'max': 5, 'mean': 3.0}
    """

    def __init__(self) -> None:
        self._count = 0
        self._sum: int | float = 0
        self._min: int | float = 0
        self._max: int | float = 0
        self._part: Distribution | None = None
        """The same since the last take, once there was one."""

    def update(self, value: int | float) -> None:
        """Adds a value."""
        if self._count == 0:
            self._min = self._max = value
        elif value < self._min:
            self._min = value
        elif value > self._max:
            self._max = value
        self._count += 1
        self._sum += value
        if self._part is not None:
            self._part.update(value)

    def get_count(self) -> int:
        """How many values there are."""
        return self._count

    def read(self) -> dict[str, int | float]:
        mean = self._sum / self._count if self._count else 0.0
        return {
            "count": self._count,
            "sum": self._sum,
            "min": self._min,
            "max": self._max,
            "mean": mean,
        }

    def take(self) -> dict[str, int | float]:
        """
        >>> sizes = Distribution()
        >>> sizes.update(5)
        >>> first = sizes.take()
        >>> sizes.update(3)
        >>> Distribution.merged(first, sizes.take())
        {'count': 2, 'sum': 8, 'min': 3, 'max': 5, 'mean': 4.0}
        """
        part = (self._part or self).read()
        self._part = Distribution()
        return part

    @classmethod
    def merged(cls, total: dict[str, int | float], part: dict[str, int | float]) -> dict[str, int | float]:
        if not total["count"] or not part["count"]:
            return total if total["count"] else part
        count, whole = total["count"] + part["count"], total["sum"] + part["sum"]
        return {
            "count": count,
            "sum": whole,
            "min": min(total["min"], part["min"]),
            "max": max(total["max"], part["max"]),
            "mean": whole / count,
        }
