"""The example with Kafka and PostgreSQL gives the visits and alerts that its demo works out for itself."""

from __future__ import annotations

import runpy
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kafkakit import Broker
from postgreskit import Database

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def demo() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "kafka_clicks_demo.py"))


def test_visits_and_alerts(
    run: Any, demo: dict[str, Any], broker: Broker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGUSER", database.user)
    monkeypatch.setenv("PGPASSWORD", database.password)
    prefix = f"{uuid.uuid4().hex[:8]}-"
    broker.server.create_topic(f"{prefix}clicks", demo["PARTITIONS"])
    broker.server.create_topic(f"{prefix}alerts")
    address = database.url.removeprefix("jdbc:")
    with psycopg.connect(address) as connection:
        connection.execute(demo["TABLE"])
    clicks = demo["make_clicks"](2000)
    visits, alerts = demo["expected"](clicks)
    assert visits.total() > 20
    assert alerts.total() > 5
    for _ in demo["send"](broker.servers, clicks, topic=f"{prefix}clicks"):
        pass
    assert run("kafka_clicks.py", broker.servers, database.url, "--bounded", "--prefix", prefix) == []
    assert demo["read_visits"](address) == visits
    assert demo["read_alerts"](broker.servers, f"{prefix}alerts") == alerts


def test_what_the_demo_expects(demo: dict[str, Any]) -> None:
    """Else the demo and the job could be wrong together."""
    steps = [("ada", "/home", 0), ("bob", "/login-failed", 1), ("ada", "/paid", 30_000), ("bob", "/login-failed", 2)]
    steps += [("ada", "/home", 60_001), ("bob", "/login-failed", 3), ("bob", "/login-failed", 4)]
    visits, alerts = demo["expected"](steps)
    assert visits == Counter([("ada", 0, 30_000, 2, True), ("ada", 60_001, 60_001, 1, False), ("bob", 1, 4, 4, False)])
    assert alerts == Counter([("bob", 3)])
