"""The example with PostgreSQL prints what is in the tables."""

from __future__ import annotations

from typing import Any

import pytest
from postgreskit import Database


def test_orders(run: Any, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", database.user)
    monkeypatch.setenv("PGPASSWORD", database.password)
    expected = ["order 1 Ada 20", "order 2 Bob 35", "order 3 Ada 10", "order 4 Cid 5", "order 5 Bob 15"]
    expected += ["total Ada 30", "total Bob 50", "total Cid 5"]
    assert run("postgres_orders.py", database.url) == expected
