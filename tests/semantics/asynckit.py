"""What tests of asynchronous requests share: functions that answer later, and a look at what they leave behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    RuntimeContext,
)

LIMIT = Time.seconds(300)
"""Only ends what hangs."""

EVENTS: list[Any] = []
"""What functions tell. Jobs in memory run in this process, and this module is not copied with the functions."""


@pytest.fixture(autouse=True)
def no_events() -> None:
    EVENTS.clear()


@pytest.fixture(name="wait", params=["ordered", "unordered"])
def wait_in_both_ways(request: pytest.FixtureRequest) -> Any:
    return getattr(AsyncDataStream, f"{request.param}_wait")


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Threads that were there before a test are none of its business."""
    OTHERS.update(threading.enumerate())


def threads_of_operators() -> list[str]:
    new = set(threading.enumerate()) - OTHERS
    return [thread.name for thread in new if thread.name.startswith("async wait operator")]


class Clock:
    """The time of event loops, where a test holds it: it moves when a function says so, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def move(self, milliseconds: int) -> None:
        """Once all requests that are about to start have started."""
        asyncio.get_running_loop().call_soon(self._move, milliseconds / 1000)

    def _move(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()


@pytest.fixture
def held_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda loop: CLOCK.now)


class Later(AsyncFunction):
    """Waits so many milliseconds as a record's second field says."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(value[1] / 1000)
        return [(self.subtask, value[0])]


class Echo(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]
