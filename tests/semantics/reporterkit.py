"""Jobs with metric reporters, and what waits for their reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource

NEVER = "1 h"
SECONDS = 120


class Parse(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.calls = group.add_group("parser").add_group("kind", "json").counter("calls")
        self.sizes = group.distribution("sizes")
        self.rate = group.meter("rate")
        group.gauge("below", lambda: -5)

    def map(self, value: int) -> int:
        self.calls.inc()
        self.sizes.update(value % 10)
        self.rate.mark_event()
        return value


def run_job(name: str, records: int | None, **settings: str) -> Any:
    config = {"firesteel.master": "memory", "parallelism.default": "2", **settings}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    source = DataGeneratorSource(lambda n: n, records or 10**9, None if records else 2000)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    parsed = stream.key_by(lambda n: n % 4).map(Parse()).name("Parse -> it").uid("parse")
    parsed.filter(lambda n: False).name("drop").print()
    return env.execute_async(name)


def reporter(kind: str, name: str = "r", **settings: str) -> dict[str, str]:
    values = {"factory.class": kind, "interval": NEVER, **settings}
    return {f"metrics.reporter.{name}.{key.replace('__', '.')}": value for key, value in values.items()}


@pytest.fixture(name="job")
def job_with_reporters(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    jobs: list[Any] = []

    def start(**settings: str) -> Any:
        started_job = run_job("State machine job", None, **settings)
        jobs.append(started_job)
        wait_until(lambda: started_job.facade.status().batches >= 2)
        return started_job

    yield start
    for one in jobs:
        one.cancel()


def wait_until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while True:
        found = holds()
        if found or time.monotonic() > deadline:
            assert found
            return found
        time.sleep(0.05)


def report(started_job: Any) -> Any:
    (thread,) = started_job.reporting.threads
    thread.report()
    return thread.reporter
