"""Which metrics a reporter gets, and with which labels: Flink's ``filter.*`` and ``scope.variables.*`` keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firesteel.metrics.reporters.contract import ReporterSettings
from firesteel.metrics.samples import Sample

__all__ = ["SampleFilter"]


@dataclass(frozen=True)
class _Rule:
    """``<scope>[:<name>[,<name>][:<type>[,<type>]]]``, with ``*`` for anything."""

    scope: re.Pattern[str]
    names: tuple[re.Pattern[str], ...]
    kinds: frozenset[str]

    @staticmethod
    def of(text: str) -> _Rule:
        scope, names, kinds = [*(part.strip() for part in text.split(":")), "*", "*"][:3]
        chosen = frozenset() if kinds == "*" else frozenset(kind.strip() for kind in kinds.split(","))
        return _Rule(_pattern(scope), tuple(_pattern(name.strip()) for name in names.split(",")), chosen)

    def fits(self, sample: Sample) -> bool:
        return (
            self.scope.fullmatch(sample.scope) is not None
            and any(name.fullmatch(sample.name) for name in self.names)
            and (not self.kinds or sample.kind in self.kinds)
        )


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"))


class SampleFilter:
    """What the settings of a reporter leave of all metrics.

    >>> rules = {"filter.includes": "*:num*:counter;jobmanager.job", "filter.excludes": "*:numBytes*"}
    >>> settings = ReporterSettings("p", rules)
    >>> task = "taskmanager.job.task"
    >>> samples = [Sample(task, "numRecordsIn", 1, "counter"), Sample("jobmanager.job", "uptime", 5),
    ...            Sample(task, "numBytesIn", 1, "counter"), Sample(task, "busyTimeMsPerSecond", 5)]
    >>> [sample.name for sample in SampleFilter(settings).of(samples)]
    ['numRecordsIn', 'uptime']
    """

    def __init__(self, settings: ReporterSettings) -> None:
        self._includes = [_Rule.of(text) for text in _list(settings.text("filter.includes", "*:*:*"), ";")]
        self._excludes = [_Rule.of(text) for text in _list(settings.text("filter.excludes", ""), ";")]
        self._hidden = {name.strip("<>") for name in _list(settings.text("scope.variables.excludes", ""), ";")}
        pairs = (pair.partition(":") for pair in _list(settings.text("scope.variables.additional", ""), ","))
        self._added = {key.strip(): value.strip() for key, _, value in pairs}

    def of(self, samples: Iterable[Sample]) -> Sequence[Sample]:
        chosen = [
            sample
            for sample in samples
            if any(rule.fits(sample) for rule in self._includes)
            and not any(rule.fits(sample) for rule in self._excludes)
        ]
        if not self._hidden and not self._added:
            return chosen
        return [replace(sample, variables=self._variables(sample)) for sample in chosen]

    def _variables(self, sample: Sample) -> dict[str, str]:
        kept = {name: value for name, value in sample.variables.items() if name not in self._hidden}
        return {**kept, **self._added}


def _list(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]
