"""Reporters: where a job's metrics go. See docs/metrics.md for those that come with Firesteel and for writing one."""

from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import COUNTER, GAUGE, HISTOGRAM, METER, Sample

__all__ = ["COUNTER", "GAUGE", "HISTOGRAM", "METER", "MetricReporter", "ReporterSettings", "Sample"]
