"""The settings that are durations. They are checked together when a job is described: some are read late, others only
if something goes wrong, and by then a job has run for a while."""

from __future__ import annotations

from firesteel.common.configuration import Configuration

__all__ = ["DURATIONS", "check_durations"]

DURATIONS = (
    "execution.buffer-timeout.interval",
    "execution.checkpointing.aligned-checkpoint-timeout",
    "execution.checkpointing.interval",
    "execution.checkpointing.min-pause",
    "execution.checkpointing.timeout",
    "firesteel.batch.interval",
    "firesteel.batch.target-duration",
    "metrics.latency.interval",
    "pipeline.auto-watermark-interval",
    "restart-strategy.exponential-delay.initial-backoff",
    "restart-strategy.exponential-delay.max-backoff",
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "restart-strategy.failure-rate.delay",
    "restart-strategy.failure-rate.failure-rate-interval",
    "restart-strategy.fixed-delay.delay",
    "table.exec.async-scalar.retry-delay",
    "table.exec.async-scalar.timeout",
    "table.exec.source.idle-timeout",
    "table.exec.state.ttl",
    "task.cancellation.interval",
    "task.cancellation.timeout",
)


def check_durations(configuration: Configuration) -> None:
    """Raises a ConfigurationError with the key of the first setting that should be a duration and is not.

    >>> check_durations(Configuration.from_dict({"execution.checkpointing.timeout": "10 min"}))
    """
    for key in DURATIONS:
        configuration.get_duration_ms(key, 0)
