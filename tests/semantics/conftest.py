"""Fixtures of the programs here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from databasekit import db, short_pauses, sqlite
from savepointkit import Halves
from sparkkit import eventually

__all__ = ["db", "short_pauses", "sqlite"]


@pytest.fixture(params=[1, 2, 3])
def parallelism(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(autouse=True)
def _no_job_stays_behind() -> Iterator[None]:
    """A job that a test leaves running would be found by tests after it, in whatever order they run."""
    before = _job_threads()
    yield
    assert eventually(lambda: not _job_threads() - before), "the test has left a job running"


def _job_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("firesteel-")}


@pytest.fixture
def halves(tmp_path: Path) -> Iterator[Halves]:
    made = Halves(tmp_path)
    yield made
    made.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A program that hangs must not hold up the others for long."""
    for item in items:
        if "semantics" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))
