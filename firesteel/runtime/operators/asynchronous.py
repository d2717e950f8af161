"""An AsyncFunction: requests of many records overlap, within a batch and not beyond it.

The operator has an event loop in a thread of its own. The task's thread hands chunks over, waits until their requests
have started and sends on what may go out. The requests of one chunk overlap with those of the next; when the batch
ends, all of them are waited for.
"""

from __future__ import annotations

import inspect
from typing import Any

from firesteel.durable.headers import OperatorHeader
from firesteel.graph.specs import AsyncWaitSpec
from firesteel.runtime.answers import Element
from firesteel.runtime.frames import Watermark
from firesteel.runtime.loops import LoopThread
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.requests import RequestFailed, RequestPool, with_retries

__all__ = ["AsyncWaitOperator"]

_HAND_OVER = 512
"""So many records are worth waking the other thread. Smaller chunks wait for each other, at most to the end."""


@handles(AsyncWaitSpec)
class AsyncWaitOperator(Operator):
    spec: AsyncWaitSpec

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._buffered: list[Element] = []
        self._buffered_count = 0
        self._idle: list[tuple[tuple[int, int, int], int | None]] = []
        self._unfinished = False

    # Lifecycle

    def open(self) -> None:
        self._loop = LoopThread(f"{self.node.name} ({self.subtask + 1}/{self.node.parallelism})")
        try:
            self._pool = self._loop.run(self._open())
        except Exception as error:
            self._loop.stop()
            raise self.failure(error) from error

    async def _open(self) -> RequestPool:
        # On the loop, since a client session or a lock made in open() belongs to the loop it is made on.
        spec = self.spec
        await _maybe(spec.function.open(self.context))
        ask = with_retries(spec.function.async_invoke, spec.retry)
        return RequestPool(ask, spec.function.timeout, spec.timeout, spec.capacity, spec.ordered)

    def close(self) -> None:
        try:
            self._loop.run(self._close())
        except Exception as error:
            raise self.failure(error) from error
        finally:
            self._loop.stop()

    async def _close(self) -> None:
        # After a failure, here or elsewhere, requests may be under way. They end before what they use is closed.
        await self._pool.cancel()
        await _maybe(self.spec.function.close())

    def begin(self, store: Any, header: OperatorHeader, now: int) -> None:
        super().begin(store, header, now)
        if self._unfinished:
            # The batch before broke off somewhere else. Its requests are not this batch's.
            self._loop.run(self._pool.cancel())
        self._buffered, self._buffered_count, self._idle = [], 0, []
        self._unfinished = True

    def finish(self, last: bool) -> None:
        self._hand_over(to_the_end=True)
        self._unfinished = False
        for channel, idle_timeout in self._idle:
            super().receive_activity(channel, idle_timeout)
        super().finish(last)

    # Data

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._hold((values, timestamps), len(values))

    def send_watermark(self, origin: int, watermark: int) -> None:
        self._hold(Watermark(origin, watermark), 1)

    def receive_activity(self, channel: tuple[int, int, int], idle_timeout: int | None) -> None:
        if self.valve is None:
            # Sent behind the watermarks that are held back, since each of them takes back an idleness sent before.
            self._idle.append((channel, idle_timeout))
        else:
            super().receive_activity(channel, idle_timeout)

    def _hold(self, element: Element, count: int) -> None:
        self._buffered.append(element)
        self._buffered_count += count
        if self._buffered_count >= _HAND_OVER:
            self._hand_over(to_the_end=False)

    def _hand_over(self, to_the_end: bool) -> None:
        buffered, self._buffered, self._buffered_count = self._buffered, [], 0
        try:
            ready = self._loop.run(self._pool.feed(buffered, to_the_end))
        except RequestFailed as failed:
            raise self.failure(failed.error, failed.value) from failed.error
        except Exception as error:
            raise self.failure(error) from error
        for element in ready:
            if isinstance(element, Watermark):
                self.out.watermark(element.origin, element.value)
            else:
                self.out.emit(*element)


async def _maybe(result: Any) -> None:
    """Waits where a function that may be async is."""
    if inspect.isawaitable(result):
        await result
