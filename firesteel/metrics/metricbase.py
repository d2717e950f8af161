"""The four kinds of metric, and the groups that name them.

A metric lives in the memory of one subtask and can be read as plain data.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from firesteel.errors import ProgramError, short_repr

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup", "MetricValue"]

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


logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Metric)


class MetricGroup:
    """A named place for metrics and further groups.

    >>> root = MetricGroup()
    >>> group = root.add_group("parser").add_group("kind", "json")
    >>> group.counter("errors").inc(3)
    >>> root.snapshot()
    {'parser.kind.json.errors': 3}

    Asking twice for a metric of one name and kind gives the same object, so that a function may ask whenever
    it likes; one name for two kinds is an error.
    """

    def __init__(
        self,
        scope: tuple[str, ...] = (),
        variables: dict[str, str] | None = None,
        logical: tuple[str, ...] | None = None,
    ) -> None:
        """``logical``: the scope without the values of groups that have one."""
        self._scope = scope
        self._logical = scope if logical is None else logical
        self._variables = dict(variables or {})
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[tuple[str, ...], MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside this one; with ``extra`` a key and a value, which also becomes a variable."""
        path = (name,) if extra is None else (name, extra)
        group = self._groups.get(path)
        if group is None:
            variables = self._variables if extra is None else {**self._variables, f"<{name}>": extra}
            group = self._groups[path] = MetricGroup((*self._scope, *path), variables, (*self._logical, name))
        return group

    def counter(self, name: str) -> Counter:
        """The counter of that name."""
        return self._register(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], int | float]) -> None:
        """Registers a function that is asked for its number whenever metrics are read."""
        if not callable(obj):
            raise ProgramError(
                f"Gauge '{self.get_metric_identifier(name)}' needs a callable without arguments, "
                f"got {short_repr(obj, 60)}."
            )
        # A new function replaces the old one: the old one may hold on to a closed function object.
        self._register(name, Gauge, lambda: Gauge(obj), replace=True)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter of that name."""
        return self._register(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """The distribution of that name."""
        return self._register(name, Distribution, Distribution)

    def _register(self, name: str, kind: type[M], make: Callable[[], M], replace: bool = False) -> M:
        known = self._metrics.get(name)
        if known is not None and not isinstance(known, kind):
            raise ProgramError(
                f"Metric '{self.get_metric_identifier(name)}' is a {type(known).__name__} already "
                f"and cannot be a {kind.__name__} too. Give one of them another name."
            )
        if known is None or replace:
            known = self._metrics[name] = make()
        return known

    def get_metric_identifier(self, name: str) -> str:
        """The full name of a metric of this group: the names of its groups and its own, with dots.

        >>> MetricGroup(("job", "map")).get_metric_identifier("errors")
        'job.map.errors'
        """
        return ".".join((*self._scope, name))

    def get_scope_components(self) -> tuple[str, ...]:
        """The names of the groups that lead here."""
        return self._scope

    def get_all_variables(self) -> dict[str, str]:
        """The keys and values of the groups that lead here, keys in angle brackets."""
        return dict(self._variables)

    def metrics(self) -> Iterator[tuple[str, Metric]]:
        """All metrics of this group and those inside it, by identifier."""
        for name, metric in self._metrics.items():
            yield self.get_metric_identifier(name), metric
        for group in self._groups.values():
            yield from group.metrics()

    def snapshot(self) -> dict[str, MetricValue]:
        """The values of all metrics of this group and those inside it, as plain data.

        A gauge that raises is left out and logged: measuring must not fail a job.
        """
        return {identifier: value for identifier, _, value in self._ask(lambda metric: metric.read())}

    def take(self) -> dict[str, tuple[type[Metric], MetricValue]]:
        """What was measured since the last call, with the kind of metric, which knows how to merge such parts."""
        return {identifier: (kind, value) for identifier, kind, value in self._ask(lambda metric: metric.take())}

    def labels(self) -> dict[str, tuple[str, dict[str, str]]]:
        """By identifier, of those metrics whose groups have values: the name without the values, and the variables.

        >>> root = MetricGroup()
        >>> _ = root.add_group("kind", "json").counter("errors")
        >>> root.labels()
        {'kind.json.errors': ('kind.errors', {'kind': 'json'})}
        """
        found = {}
        if self._variables:
            plain = {name.strip("<>"): value for name, value in self._variables.items()}
            for name in self._metrics:
                found[self.get_metric_identifier(name)] = (".".join((*self._logical, name)), plain)
        for group in self._groups.values():
            found.update(group.labels())
        return found

    def _ask(self, question: Callable[[Metric], MetricValue]) -> Iterator[tuple[str, type[Metric], MetricValue]]:
        for identifier, metric in self.metrics():
            try:
                yield identifier, type(metric), question(metric)
            except Exception:
                logger.warning("Metric %s could not be read and is left out.", identifier, exc_info=True)
