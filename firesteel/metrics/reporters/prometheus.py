"""Prometheus: a page that it scrapes, and its push gateway for jobs that do not live long enough for that.

Names are those of Flink's reporter: ``flink_``, the scope, the metric's name; counters are gauges.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.errors import ConfigurationError, SetupError
from firesteel.metrics.exposition import families, fit
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import Sample

__all__ = ["PrometheusReporter", "PushGatewayReporter"]


def _client() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        raise ConfigurationError(
            "The reporter for Prometheus needs the package prometheus_client: pip install 'firesteel[prometheus]'."
        ) from error
    return prometheus_client


class _Samples:
    """A collector, as prometheus_client calls it."""

    def __init__(self, collect: Callable[[], Sequence[Sample]], filtered: bool) -> None:
        self._collect = collect
        self._fit = fit if filtered else str

    def collect(self) -> Iterable[Any]:
        from prometheus_client.metrics_core import GaugeMetricFamily

        for family in families(self._collect(), self._fit):
            found = GaugeMetricFamily(family.name, family.help)
            for labels, number in family.values:
                found.add_sample(family.name, labels, number)
            yield found

    def describe(self) -> Iterable[Any]:
        """Nothing to say beforehand. Without it the metrics would be collected for it."""
        return ()


class PrometheusReporter(MetricReporter):
    """Serves the metrics over HTTP, on loopback, at the first free port of ``port`` (9249, or a range)."""

    scheduled = False

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        client = _client()
        registry = client.CollectorRegistry(auto_describe=False)
        registry.register(_Samples(collect, settings.flag("filterLabelValueCharacters", True)))
        host = settings.text("host", "127.0.0.1")
        ports = list(settings.ports("port", "9249"))
        for port in ports:
            try:
                self._server, self._thread = client.start_http_server(port, host, registry)
                self.port: int = self._server.server_port
                return
            except OSError:
                continue
        raise SetupError(
            f"No port of metrics.reporter.{settings.name}.port is free on {host} ({settings.text('port', '9249')}). "
            "Give a range, such as 9250-9260."
        )

    def report(self, samples: Sequence[Sample]) -> None:
        """It is asked."""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class PushGatewayReporter(MetricReporter):
    """Pushes to a gateway, and takes the metrics away when the job has ended, unless told otherwise."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        self._client = _client()
        self._url = settings.text("hostUrl")
        name = settings.text("jobName", "") or settings.job_name or "firesteel"
        suffix = uuid.uuid4().hex if settings.flag("randomJobNameSuffix", True) else ""
        self._job = f"{name}{suffix}"
        # k1=v1;k2=v2
        pairs = (pair.partition("=") for pair in settings.text("groupingKey", "").split(";") if pair.strip())
        self._grouping = {key.strip(): value.strip() for key, _, value in pairs}
        self._deletes = settings.flag("deleteOnShutdown", True)
        self._filtered = settings.flag("filterLabelValueCharacters", True)
        self._seconds = settings.seconds("timeout", 10.0)

    def report(self, samples: Sequence[Sample]) -> None:
        registry = self._client.CollectorRegistry(auto_describe=False)
        registry.register(_Samples(lambda: samples, self._filtered))
        self._client.push_to_gateway(self._url, self._job, registry, self._grouping, timeout=self._seconds)

    def close(self) -> None:
        if self._deletes:
            self._client.delete_from_gateway(self._url, self._job, self._grouping, timeout=self._seconds)
