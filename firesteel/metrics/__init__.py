"""Metrics: what functions count and measure while they run."""

from firesteel.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricGroup, MetricValue

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup", "MetricValue"]
