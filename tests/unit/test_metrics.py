"""Metrics in memory."""

from __future__ import annotations

import logging

import pytest

from firesteel.errors import ProgramError
from firesteel.metrics import Distribution, Meter, MetricGroup


def test_a_snapshot_holds_every_metric_by_identifier() -> None:
    root = MetricGroup(("map",))
    root.counter("seen").inc(3)
    root.gauge("size", lambda: 7)
    root.add_group("db", "users").distribution("latency").update(2.5)
    root.add_group("db", "users").counter("errors").dec()
    assert root.snapshot() == {
        "map.seen": 3,
        "map.size": 7,
        "map.db.users.latency": {"count": 1, "sum": 2.5, "min": 2.5, "max": 2.5, "mean": 2.5},
        "map.db.users.errors": -1,
    }
    assert root.add_group("db", "users").get_all_variables() == {"<db>": "users"}


def test_asking_twice_gives_the_same_metric() -> None:
    group = MetricGroup()
    assert group.counter("a") is group.counter("a")
    assert group.add_group("g") is group.add_group("g")


def test_one_name_for_two_kinds_is_refused() -> None:
    group = MetricGroup(("op",))
    group.counter("a")
    with pytest.raises(ProgramError, match=r"Metric 'op\.a' is a Counter already and cannot be a Meter too"):
        group.meter("a")
    with pytest.raises(ProgramError, match=r"Gauge 'op\.b' needs a callable without arguments, got 5"):
        group.gauge("b", 5)  # type: ignore[arg-type]


def test_a_gauge_that_raises_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    group = MetricGroup()
    group.counter("fine").inc()
    group.gauge("broken", lambda: 1 // 0)
    with caplog.at_level(logging.WARNING):
        assert group.snapshot() == {"fine": 1}
    assert "Metric broken could not be read" in caplog.text


def test_a_meter_forgets_what_is_older_than_its_span() -> None:
    now = 0.0
    meter = Meter(10, clock=lambda: now)
    meter.mark_event(20)
    assert meter.read() == {"count": 20, "rate": 2.0}
    now = 9.5
    assert meter.get_rate() == 2.0
    now = 10.0
    assert meter.read() == {"count": 20, "rate": 0.0}


def test_an_empty_distribution() -> None:
    assert Distribution().read() == {"count": 0, "sum": 0, "min": 0, "max": 0, "mean": 0.0}
