"""Reporters of a running job: when they report, and what happens when one fails.

Reports are made when the test asks for them: no interval ever passes here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from reporterkit import SECONDS, job_with_reporters, report, reporter, run_job, wait_until  # noqa: F401 - fixtures

from firesteel.metrics.reporters import MetricReporter, ReporterSettings, Sample

pytestmark = pytest.mark.timeout(300)


class Kept(MetricReporter):
    """A reporter of a user's."""

    reports: list[Sequence[Sample]] = []  # noqa: RUF012
    closed = 0

    def report(self, samples: Sequence[Sample]) -> None:
        Kept.reports.append(samples)

    def close(self) -> None:
        Kept.closed += 1


class Broken(MetricReporter):
    def report(self, samples: Sequence[Sample]) -> None:
        raise OSError("nobody listens")


# Reporters in general


def test_the_log_gets_them(job: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    started_job = job(**reporter("org.apache.flink.metrics.slf4j.Slf4jReporterFactory"))
    with caplog.at_level(logging.INFO, logger="firesteel.metrics"):
        report(started_job)
    assert "jobmanager.State_machine_job.numRestarts: 0" in caplog.text
    assert ".sizes.mean: " in caplog.text


def test_a_users_reporter_gets_a_last_report_when_the_job_has_ended() -> None:
    Kept.reports.clear()
    Kept.closed = 0
    settings = reporter(
        f"{__name__}:Kept", scope__variables__excludes="job_id;tm_id", scope__variables__additional="zone:b"
    )
    ended = run_job("short", 100, **settings)
    ended.get_job_execution_result().result()
    wait_until(lambda: Kept.closed == 1)
    (samples,) = Kept.reports
    totals = [one.value for one in samples if (one.scope, one.name) == ("jobmanager.job", "firesteel.records")]
    assert totals == [100]
    assert all("job_id" not in one.variables and one.variables["zone"] == "b" for one in samples)


def test_a_reporter_reports_by_itself_every_interval() -> None:
    Kept.reports.clear()
    settings = reporter(f"{__name__}:Kept")
    started_job = run_job("often", None, **{**settings, "metrics.reporter.r.interval": "10 ms"})
    try:
        wait_until(lambda: len(Kept.reports) >= 2)
    finally:
        started_job.cancel()


def test_a_reporter_that_fails_is_named_once_and_the_job_goes_on(
    job: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        **reporter(f"{__name__}:Broken", "bad"),
        **reporter("no.such:Class", "none"),
        **reporter(f"{__name__}:Kept", "good"),
    }
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        started_job = job(**settings)
        bad, good = started_job.reporting.threads
        for _ in range(3):
            bad.report()
        Kept.reports.clear()
        good.report()
    assert [r.getMessage() for r in caplog.records if "'bad'" in r.getMessage()] == [
        "the metric reporter 'bad' failed, and the job goes on: OSError: nobody listens"
    ]
    assert (
        "the metric reporter 'none' is left out: metrics.reporter.none.factory.class is 'no.such:Class'" in caplog.text
    )
    assert len(Kept.reports) == 1
    records = started_job.facade.status().records
    wait_until(lambda: started_job.facade.status().records > records)


def test_a_reporter_that_hangs_does_not_keep_the_job_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    from firesteel.engine import reporting

    monkeypatch.setattr(reporting, "LAST_SECONDS", 0.1)
    release = threading.Event()
    monkeypatch.setattr(Kept, "report", lambda self, samples: release.wait(SECONDS))
    ended = run_job("hanging", 10, **reporter(f"{__name__}:Kept"))
    ended.get_job_execution_result().result()
    assert ended.facade.status().status.name == "FINISHED"
    assert not release.is_set()
    release.set()


def test_jobs_without_reporters_have_none() -> None:
    plain = run_job("plain", 10)
    plain.get_job_execution_result().result()
    assert plain.reporting is None


def test_only_listed_reporters_are_made() -> None:
    settings = {**reporter("log", "a"), **reporter("log", "b"), "metrics.reporters": "b"}
    ended = run_job("listed", 10, **settings)
    ended.get_job_execution_result().result()
    assert [thread.name for thread in ended.reporting.threads] == ["b"]


def test_jmx_needs_a_jvm(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        run_job(
            "beans", 10, **reporter("org.apache.flink.metrics.jmx.JMXReporterFactory")
        ).get_job_execution_result().result()
    assert "needs a JVM, and the engine in memory has none" in caplog.text


def test_settings_of_a_reporter_say_what_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    settings = ReporterSettings("x", {"port": "http"})
    with pytest.raises(Exception, match=r"metrics.reporter.x.port is 'http': it must be a whole number"):
        settings.number("port")
    with pytest.raises(Exception, match=r"metrics.reporter.x.port is 'http': it must be a port, or a range"):
        list(settings.ports("port", "1"))
    with pytest.raises(Exception, match=r"metrics.reporter.x.hostUrl is not set"):
        settings.text("hostUrl")
