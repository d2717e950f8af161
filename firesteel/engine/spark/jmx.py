"""JMX: metrics as beans of Spark's JVM, with the library that Spark's own metrics are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.errors import ConfigurationError
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import Sample

__all__ = ["JmxReporter"]

DOMAIN = "org.apache.flink"
_UNFIT = re.compile(r'[,=:*?"\s]')
"""What has a meaning in the name of a bean."""


class JmxReporter(MetricReporter):
    """A bean for each number, of the domain ``org.apache.flink``, with the attribute ``Value``. Values are as old as
    the last report. Whether JMX can be reached from outside is up to ``spark.driver.extraJavaOptions``."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        jvm = settings.jvm
        if jvm is None:
            raise ConfigurationError("A reporter for JMX needs a JVM, and the engine in memory has none.")
        metrics = jvm.com.codahale.metrics
        self._gauge = metrics.DefaultSettableGauge
        self._registry = metrics.MetricRegistry()
        self._beans = metrics.jmx.JmxReporter.forRegistry(self._registry).inDomain(DOMAIN).build()
        self._beans.start()
        self._known: dict[str, Any] = {}

    def report(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            base = sample.identifier()
            for part, number in sample.numbers():
                name = _UNFIT.sub("_", f"{base}.{part}" if part else base)
                gauge = self._known.get(name)
                if gauge is None:
                    # Registered with its value, so that no bean is ever seen without one.
                    self._known[name] = gauge = self._gauge(number)
                    self._registry.register(name, gauge)
                else:
                    gauge.setValue(number)

    def close(self) -> None:
        self._beans.close()
