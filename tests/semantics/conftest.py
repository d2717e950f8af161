"""Small functions that many programs here are made of."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import RuntimeExecutionMode

BATCH = RuntimeExecutionMode.BATCH
STREAMING = RuntimeExecutionMode.STREAMING


class Field(TimestampAssigner):
    """Takes the event time from one field of a tuple."""

    def __init__(self, position: int = 1) -> None:
        self.position = position

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time: int = value[self.position]
        return time


def ascending(position: int = 1) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field(position))


@pytest.fixture(params=[1, 2, 3])
def parallelism(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A program that hangs must not hold up the others for long."""
    for item in items:
        if "semantics" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(30))
