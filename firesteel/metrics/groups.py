"""Groups give metrics their names and know them all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from firesteel.errors import ProgramError, short_repr
from firesteel.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricValue

__all__ = ["MetricGroup"]

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

    def __init__(self, scope: tuple[str, ...] = (), variables: dict[str, str] | None = None) -> None:
        self._scope = scope
        self._variables = dict(variables or {})
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[tuple[str, ...], MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside this one; with ``extra`` a key and a value, which also becomes a variable."""
        path = (name,) if extra is None else (name, extra)
        group = self._groups.get(path)
        if group is None:
            variables = self._variables if extra is None else {**self._variables, f"<{name}>": extra}
            group = self._groups[path] = MetricGroup((*self._scope, *path), variables)
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

    def _ask(self, question: Callable[[Metric], MetricValue]) -> Iterator[tuple[str, type[Metric], MetricValue]]:
        for identifier, metric in self.metrics():
            try:
                yield identifier, type(metric), question(metric)
            except Exception:
                logger.warning("Metric %s could not be read and is left out.", identifier, exc_info=True)
