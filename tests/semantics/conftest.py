"""Fixtures of the programs here."""

from __future__ import annotations

from pathlib import Path

import pytest
from savepointkit import Halves


@pytest.fixture(params=[1, 2, 3])
def parallelism(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A program that hangs must not hold up the others for long."""
    for item in items:
        if "semantics" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(30))
