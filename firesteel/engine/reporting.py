"""A job's reporters: each in a thread of its own, from the job's start to its end.

Nothing that goes wrong here is the job's: a reporter that cannot be made, or that fails, is named in one warning.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from firesteel.engine.facade.commands import GetBatches, GetCheckpoints, GetMetrics, GetStatus
from firesteel.engine.facade.facade import JobFacade
from firesteel.engine.job_log import job_thread
from firesteel.engine.metric_samples import job_samples
from firesteel.errors import FiresteelError, in_a_line
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.reporters.filters import SampleFilter
from firesteel.metrics.reporters.registry import configured_reporters, create_reporter
from firesteel.metrics.samples import Sample
from firesteel.metrics.scopes import ScopeFormats

__all__ = ["ReporterThread", "Reporting"]

logger = logging.getLogger("firesteel")

INTERVAL = 10.0
"""Seconds between two reports, as in Flink."""
LAST_SECONDS = 5.0
"""How long the end of a job waits for the last report."""


class Reporting:
    """All reporters of one job."""

    def __init__(self, job: JobFacade, configuration: Mapping[str, Any], jvm: Any = None) -> None:
        self._job = job
        self._formats = ScopeFormats.of(configuration)
        self._host = socket.gethostname()
        self.threads: list[ReporterThread] = []
        for settings in configured_reporters(configuration):
            settings = replace(settings, job_name=job.name, job_id=job.id, jvm=jvm)
            try:
                self.threads.append(ReporterThread(settings, self))
            except Exception as error:
                logger.warning("the metric reporter %r is left out: %s", settings.name, _error_text(error))

    def samples(self) -> list[Sample]:
        """All metrics of the moment."""
        ask = self._job.execute
        batches = ask(GetBatches()).batches
        return job_samples(
            ask(GetStatus()),
            ask(GetMetrics()),
            ask(GetCheckpoints()),
            batches[-1] if batches else None,
            self._host,
            self._formats,
        )

    def close(self) -> None:
        """The last report of each, and the end."""
        for thread in self.threads:
            thread.stop()
        for thread in self.threads:
            thread.join(LAST_SECONDS)


class ReporterThread:
    """One reporter."""

    def __init__(self, settings: ReporterSettings, reporting: Reporting) -> None:
        self.name = settings.name
        self._reporting = reporting
        self._filter = SampleFilter(settings)
        self._interval = max(0.01, settings.seconds("interval", INTERVAL))
        self._warned = False
        self._done = threading.Event()
        self.reporter: MetricReporter = create_reporter(settings)
        self.reporter.open(settings, self.collect)
        self._thread = job_thread(self._run, f"firesteel-metrics-{self.name}")
        self._thread.start()

    def collect(self) -> Sequence[Sample]:
        """The metrics of the moment that this reporter is to have."""
        return self._filter.of(self._reporting.samples())

    def report(self) -> None:
        """Reports now. What fails is said once, and once more only after it has worked in between."""
        try:
            self.reporter.report(self.collect())
            self._warned = False
        except Exception as error:
            level = logging.DEBUG if self._warned else logging.WARNING
            self._warned = True
            logger.log(level, "the metric reporter %r failed, and the job goes on: %s", self.name, _error_text(error))

    def _run(self) -> None:
        while not self._done.wait(self._interval if self.reporter.scheduled else None):
            self.report()
        if self.reporter.scheduled:
            self.report()
        try:
            self.reporter.close()
        except Exception as error:
            logger.debug("closing the metric reporter %r: %s", self.name, _error_text(error))

    def stop(self) -> None:
        self._done.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)


def _error_text(error: Exception) -> str:
    text = in_a_line(error)
    return text if isinstance(error, FiresteelError) else f"{type(error).__name__}: {text}"
