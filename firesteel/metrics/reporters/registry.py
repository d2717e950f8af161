"""Reporters by the names that configurations have for them: Flink's factories, short names, import paths of users'."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from firesteel.errors import ConfigurationError
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings

__all__ = ["configured_reporters", "create_reporter"]

_HERE = "firesteel.metrics.reporters"
_FLINK = "org.apache.flink.metrics"

REPORTERS = {
    "prometheus": f"{_HERE}.prometheus:PrometheusReporter",
    "prometheus-push-gateway": f"{_HERE}.prometheus:PushGatewayReporter",
    "statsd": f"{_HERE}.statsd:StatsDReporter",
    "graphite": f"{_HERE}.graphite:GraphiteReporter",
    "datadog": f"{_HERE}.datadog:DatadogReporter",
    "otel": f"{_HERE}.otel:OpenTelemetryReporter",
    "jmx": "firesteel.engine.spark.jmx:JmxReporter",
    "log": f"{_HERE}.log:LogReporter",
}

FACTORIES = {
    f"{_FLINK}.prometheus.PrometheusReporterFactory": "prometheus",
    f"{_FLINK}.prometheus.PrometheusPushGatewayReporterFactory": "prometheus-push-gateway",
    f"{_FLINK}.statsd.StatsDReporterFactory": "statsd",
    f"{_FLINK}.graphite.GraphiteReporterFactory": "graphite",
    f"{_FLINK}.datadog.DatadogHttpReporterFactory": "datadog",
    f"{_FLINK}.otel.OpenTelemetryMetricReporterFactory": "otel",
    f"{_FLINK}.jmx.JMXReporterFactory": "jmx",
    f"{_FLINK}.slf4j.Slf4jReporterFactory": "log",
}
"""Flink's class names."""

_PREFIX = "metrics.reporter."


def configured_reporters(configuration: Mapping[str, object]) -> list[ReporterSettings]:
    """The reporters that a configuration has: those that ``metrics.reporters`` lists, or all.

    >>> keys = {"metrics.reporter.a.factory.class": "log", "metrics.reporter.a.interval": "5 s",
    ...         "metrics.reporter.b.factory.class": "statsd"}
    >>> configured_reporters(keys)[0]
    ReporterSettings('a', factory.class='log', interval='5 s')
    >>> [one.name for one in configured_reporters({**keys, "metrics.reporters": "b"})]
    ['b']
    """
    found: dict[str, dict[str, object]] = {}
    for key, value in configuration.items():
        if key.startswith(_PREFIX):
            name, _, rest = key[len(_PREFIX) :].partition(".")
            found.setdefault(name, {})[rest] = value
    listed = str(configuration.get("metrics.reporters", "")).replace(";", ",")
    wanted = [name.strip() for name in listed.split(",") if name.strip()]
    return [ReporterSettings(name, values) for name, values in found.items() if not wanted or name in wanted]


def create_reporter(settings: ReporterSettings) -> MetricReporter:
    """The reporter that the settings name.

    >>> create_reporter(ReporterSettings("x", {"factory.class": "collectd"}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: metrics.reporter.x.factory.class is 'collectd'. It must be one of ...
    """
    wanted = settings.text("factory.class").strip()
    path = REPORTERS.get(FACTORIES.get(wanted, wanted), wanted)
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError) as error:
        if path != wanted:
            raise
        raise _unknown(settings, wanted) from error
    if kind is None:
        raise _unknown(settings, wanted)
    reporter = kind()
    if not isinstance(reporter, MetricReporter):
        raise ConfigurationError(f"metrics.reporter.{settings.name}: {wanted} is not a MetricReporter.")
    return reporter


def _unknown(settings: ReporterSettings, wanted: str) -> ConfigurationError:
    return ConfigurationError(
        f"metrics.reporter.{settings.name}.factory.class is {wanted!r}. It must be one of {', '.join(REPORTERS)}, one "
        "of Flink's factories, or the import path of a MetricReporter, such as my_module:MyReporter."
    )
