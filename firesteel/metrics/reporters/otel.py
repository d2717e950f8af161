"""OpenTelemetry: metrics by OTLP, to a collector or to a system that speaks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.errors import ConfigurationError, ConnectorError
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import COUNTER, METER, Sample

__all__ = ["OpenTelemetryReporter"]


class OpenTelemetryReporter(MetricReporter):
    """To ``exporter.endpoint``, by ``exporter.protocol`` HTTP or gRPC."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        protocol = settings.text("exporter.protocol", "HTTP").upper()
        if protocol not in ("HTTP", "GRPC"):
            raise ConfigurationError(f"metrics.reporter.{settings.name}.exporter.protocol must be HTTP or gRPC.")
        self._exporter = _exporter(protocol, settings)
        from opentelemetry.sdk.resources import Resource

        attributes = {"service.name": settings.text("service.name", "firesteel")}
        if "service.version" in settings.values:
            attributes["service.version"] = settings.text("service.version")
        self._resource = Resource.create(attributes)
        self._seconds = settings.seconds("exporter.timeout", 10.0)
        self._started = time.time_ns()

    def report(self, samples: Sequence[Sample]) -> None:
        from opentelemetry.sdk.metrics import export
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        scope = export.ScopeMetrics(InstrumentationScope("firesteel"), self._metrics(samples), "")
        data = export.MetricsData([export.ResourceMetrics(self._resource, [scope], "")])
        result = self._exporter.export(data, timeout_millis=self._seconds * 1000)
        if result is not export.MetricExportResult.SUCCESS:
            raise ConnectorError("The metrics were not taken by the OpenTelemetry endpoint.")

    def _metrics(self, samples: Sequence[Sample]) -> list[Any]:
        from opentelemetry.sdk.metrics import export

        now = time.time_ns()
        points: dict[tuple[str, bool], list[Any]] = {}
        for sample in samples:
            base = f"flink.{sample.logical_identifier()}"
            for part, number in sample.numbers():
                name = base if not part or (sample.kind == METER and part == "rate") else f"{base}.{part}"
                is_sum = sample.kind == COUNTER
                point = export.NumberDataPoint(dict(sample.variables), self._started, now, number)
                points.setdefault((name, is_sum), []).append(point)
        cumulative = export.AggregationTemporality.CUMULATIVE
        # Users' counters may be counted down, so none is said to only grow.
        return [
            export.Metric(name, None, None, export.Sum(found, cumulative, False) if is_sum else export.Gauge(found))
            for (name, is_sum), found in points.items()
        ]

    def close(self) -> None:
        self._exporter.shutdown()


def _exporter(protocol: str, settings: ReporterSettings) -> Any:
    endpoint, seconds = settings.text("exporter.endpoint"), int(settings.seconds("exporter.timeout", 10.0))
    try:
        if protocol == "GRPC":
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc

            return Grpc(endpoint=endpoint, timeout=seconds, insecure=endpoint.startswith("http://"))
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http
    except ImportError as error:
        package = "opentelemetry-exporter-otlp-proto-grpc" if protocol == "GRPC" else "'firesteel[otel]'"
        raise ConfigurationError(
            f"The reporter for OpenTelemetry by {protocol} needs more packages: pip install {package}."
        ) from error
    path = "/v1/metrics"
    return Http(endpoint=endpoint if endpoint.endswith(path) else endpoint.rstrip("/") + path, timeout=seconds)
