"""The log: all metrics as one message."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from firesteel.metrics.reporters.contract import MetricReporter
from firesteel.metrics.samples import Sample

__all__ = ["LogReporter"]

logger = logging.getLogger("firesteel.metrics")


class LogReporter(MetricReporter):
    """At level INFO, by the logger ``firesteel.metrics``."""

    def report(self, samples: Sequence[Sample]) -> None:
        if logger.isEnabledFor(logging.INFO):
            lines = [
                f"{sample.identifier()}{'.' if part else ''}{part}: {number}"
                for sample in samples
                for part, number in sample.numbers()
            ]
            logger.info("metrics report\n%s", "\n".join(sorted(lines)))
