"""Requests that overlap: how many are under way, when they time out, and in which order their answers go out.

All of this runs on one event loop and is touched by nobody else, so it needs no locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from firesteel.errors import short_repr
from firesteel.runtime.answers import Answers, Element, OrderedAnswers, Request, UnorderedAnswers
from firesteel.runtime.frames import Watermark

__all__ = ["RequestFailed", "RequestPool", "with_retries"]

Ask = Callable[[Any], Awaitable[list[Any]]]

_TURNS = 128
"""So many answers without a pause, and a worker lets the loop look after the others."""

_GRACE = 5.0
"""Seconds that cancelled requests have to clean up."""


class RequestFailed(Exception):
    """A request's failure and the element it was made for."""

    def __init__(self, error: BaseException, value: Any) -> None:
        super().__init__(error, value)
        self.error = error
        self.value = value


class RequestPool:
    """Keeps up to ``capacity`` requests under way, whatever chunks the elements come in.

    A task of its own for each request would cost more than many a request does. So workers go on with the next
    element when they are done with one. A worker whose request times out is cancelled and never used again.
    """

    def __init__(
        self, ask: Ask, on_timeout: Callable[[Any], list[Any]], timeout: int, capacity: int, ordered: bool
    ) -> None:
        self._ask = ask
        self._on_timeout = on_timeout
        self._timeout = timeout
        self._seconds = timeout / 1000
        self._capacity = capacity
        self._answers: Answers = OrderedAnswers() if ordered else UnorderedAnswers()
        self._loop = asyncio.get_running_loop()
        self._workers: set[asyncio.Task[None]] = set()
        self._running: dict[Request, asyncio.Task[None]] = {}
        """In the order of their starts, and so of their deadlines."""
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reset()

    def _reset(self) -> None:
        self._running.clear()
        self._answers.clear()
        self._open = 0
        self._backlog: Iterator[Request | Watermark] = iter(())
        self._more = False
        self._to_the_end = False
        self._failure: RequestFailed | None = None

    async def feed(self, elements: list[Element], to_the_end: bool) -> list[Element]:
        """Starts a request for each record, and returns what may go out by then.

        Requests that are still under way when the last one was started stay so, unless ``to_the_end`` asks for all.
        After a failure nothing is started any more, until ``cancel``.
        """
        self._backlog = _requests(elements)
        self._more = self._failure is None
        self._to_the_end = to_the_end
        self._start_more()
        if not self._satisfied():
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failure is not None:
            raise self._failure
        return self._answers.take()

    async def cancel(self) -> None:
        """Ends all requests and forgets what they were for."""
        self._reset()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers, timeout=_GRACE)

    # Starting

    def _start_more(self) -> None:
        while (request := self._next()) is not None:
            worker = self._running[request] = self._loop.create_task(self._work(request))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _next(self) -> Request | None:
        """The next element to ask for, if there is one and there is room for it."""
        if self._open >= self._capacity or not self._more:
            return None
        for element in self._backlog:
            if element.__class__ is Watermark:
                self._answers.mark(element)
                continue
            assert isinstance(element, Request)
            self._open += 1
            self._answers.expect(element)
            if self._timeout > 0:
                element.deadline = self._loop.time() + self._seconds
                if self._timer is None:
                    self._timer = self._loop.call_at(element.deadline, self._expire)
            return element
        self._more = False
        return None

    async def _work(self, request: Request | None) -> None:
        ask, running, turn = self._ask, self._running, 0
        me = asyncio.current_task()
        assert me is not None
        while request is not None:
            try:
                answer = await ask(request.value)
            except BaseException as error:
                # Of what timed out or was cancelled by us nobody wants to hear. Anything else is a failure, also a
                # cancellation from elsewhere: without an answer the batch would never end.
                if running.pop(request, None) is not None:
                    self._fail(error, request)
                return
            if running.pop(request, None) is None:
                return
            self._complete(request, answer)
            turn += 1
            if turn % _TURNS == 0:
                await asyncio.sleep(0)
            request = self._next()
            if request is not None:
                running[request] = me
                # One answer can make room for many, where the others waited for their turn behind it.
                if self._open < self._capacity:
                    self._start_more()
        self._notify()

    # Ending

    def _complete(self, request: Request, answer: Any) -> None:
        if answer.__class__ is not list and not isinstance(answer, list):
            advice = "Return [] for no result." if answer is None else "Return [result], also for a single one."
            what = f"An AsyncFunction must return a list of results, it returned {short_repr(answer, 80)}. {advice}"
            self._fail(TypeError(what), request)
            return
        self._open -= self._answers.answer(request, answer)

    def _expire(self) -> None:
        """The oldest request has had its time."""
        self._timer = None
        now = self._loop.time()
        while self._running:
            request = next(iter(self._running))
            if request.deadline > now:
                self._timer = self._loop.call_at(request.deadline, self._expire)
                break
            self._running.pop(request).cancel()
            try:
                answer = self._on_timeout(request.value)
            except Exception as error:
                error.add_note(f"The timeout of this operator is {self._timeout} ms, all attempts together.")
                self._fail(error, request)
                return
            self._complete(request, answer)
        self._start_more()
        self._notify()

    def _fail(self, error: BaseException, request: Request) -> None:
        if self._failure is None:
            self._failure = RequestFailed(error, request.value)
        self._more = False
        self._notify()

    def _satisfied(self) -> bool:
        if self._failure is not None:
            return True
        return not self._more and (not self._to_the_end or not self._open)

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done() and self._satisfied():
            self._waiter.set_result(None)


def _requests(elements: Iterable[Element]) -> Iterator[Request | Watermark]:
    for element in elements:
        if isinstance(element, Watermark):
            yield element
        else:
            values, times = element
            yield from map(Request, values, repeat(None) if times is None else times)


def with_retries(ask: Ask, strategy: Any) -> Ask:
    """Asks again, after a pause, where the strategy says so. Whatever times out meanwhile ends the attempts."""
    predicate = strategy.get_retry_predicate()
    on_result, on_exception = predicate.result_predicate(), predicate.exception_predicate()
    if on_result is None and on_exception is None:
        return ask

    async def ask_again(value: Any) -> list[Any]:
        attempt = 1
        while True:
            try:
                answer = await ask(value)
            except Exception as error:
                if on_exception is None or not on_exception(error) or not strategy.can_retry(attempt):
                    raise
            else:
                wanted = on_result is not None and isinstance(answer, list) and on_result(answer)
                if not wanted or not strategy.can_retry(attempt):
                    return answer
            await asyncio.sleep(strategy.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    return ask_again
