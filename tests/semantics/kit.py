"""What many programs here are made of."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, RuntimeExecutionMode
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.datagen import DataGeneratorSource

BATCH = RuntimeExecutionMode.BATCH
STREAMING = RuntimeExecutionMode.STREAMING
FOREVER = 2**63 - 1
NO_TIME = -(2**63)

busy_seconds = 0.0
"""A clock for tests that hold it. Here, because this module is not copied with the functions of a job."""


class Field(TimestampAssigner):
    """Takes the event time from one field of a tuple."""

    def __init__(self, position: int = 1) -> None:
        self.position = position

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        moment: int = value[self.position]
        return moment


def ascending(position: int = 1) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field(position))


def first(record: Any) -> Any:
    return record[0]


class Counted(MapFunction):
    """Hands records on and counts its calls in a metric."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def map(self, value: Any) -> Any:
        self.calls.inc()
        return value


class TimerLog(KeyedProcessFunction):
    """Registers the event-time timers that a record ``(key, time, timers)`` asks for and logs all that happens."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        for timer in value[2]:
            ctx.timer_service().register_event_time_timer(timer)
        yield "element", value[0], value[1], ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


def slow_numbers(per_second: float = 50) -> Source:
    """Numbers without end, slow enough for processing time to pass."""
    return DataGeneratorSource(lambda index: index, records_per_second=per_second)


def eventually(condition: Callable[[], bool], seconds: float = 120) -> bool:
    """Whether a condition comes true. The time only ends a test that hangs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


class LineServer:
    """A server that sends each client the next of its scripts, and closes the connection in between."""

    def __init__(self, *scripts: bytes, keep_last_open: bool = True) -> None:
        self._scripts = scripts
        self._keep = keep_last_open
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._done = threading.Event()
        self.served = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        for number, script in enumerate(self._scripts):
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                client.sendall(script)
                self.served += 1
                if self._keep and number == len(self._scripts) - 1:
                    self._done.wait(600)

    def __enter__(self) -> LineServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        # Wakes a thread that waits in accept(); closing alone does not.
        with socket.socket() as knock:
            knock.connect_ex(("127.0.0.1", self.port))
        self._socket.close()
        self._thread.join(60)
