"""The group ``latency``: a feed at a steady rate, and a program that says how long its lines take."""

from __future__ import annotations

import socket
import sys
import time
from dataclasses import replace

import pytest

from benchmarks import grid, runner
from benchmarks.cases import BYTEWAX, ENGINES, FIRESTEEL, PYFLINK_10, PYFLINK_100
from benchmarks.catalogue import CASES, GROUPS
from benchmarks.live import STARTING_RATE, Feed

CASE = CASES["latency_200"]


def test_a_trickle_until_the_program_works() -> None:
    feed = Feed(1000)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", int(feed.variables["BENCH_SOCKET"]))) as connection:
        lines = connection.makefile("rb")
        for _ in range(5):
            lines.readline()
        # The first is there at once, and four more take this long, but for the pauses of the feed.
        assert time.monotonic() - began > 3.5 / STARTING_RATE
        began = time.monotonic()
        feed.working.set()
        moments = [float(lines.readline().split(b",")[1]) for _ in range(500)]
        took = time.monotonic() - began
        feed.close()
    assert moments == sorted(moments)
    assert took > 0.4, "no faster than the rate"


def test_firesteel_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the engine without Spark, for two seconds."""
    variables = {"BENCH_SETTLING": "0.2", "BENCH_LIVE": "2", "FIRESTEEL_MASTER": "memory"}
    result = runner.run(CASE, replace(ENGINES[FIRESTEEL], variables=variables), 0, 1, timeout=300)
    figures = result["latency_ms"]
    assert 0 < figures["median"] <= figures["p99"]
    assert figures["results a second"] > 0
    (table,) = grid.tables({CASE.name: {FIRESTEEL: result}}, "latency")
    assert f"| {FIRESTEEL} | {figures['median']:,.0f} |" in table


def test_a_program_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "command_of", lambda case, engine: [sys.executable, "-c", "pass"])
    assert "ended without a result" in runner.run(CASE, ENGINES[FIRESTEEL], 0, 1, timeout=300)["error"]


def test_who_is_compared() -> None:
    assert [case.live_rate for case in GROUPS["latency"] if case.kind == "live"] == [200, 5000]
    assert [case.name for case in GROUPS["latency"] if case.kind == "report"] == ["start_ways"]
    assert {name for case in GROUPS["latency"] for name in case.engines} == {
        FIRESTEEL,
        PYFLINK_10,
        PYFLINK_100,
        BYTEWAX,
    }
    words = runner.command_of(CASE, ENGINES[PYFLINK_10])
    assert words[-4:] == ["--engine", "pyflink", "--bundle-ms", "10"]
