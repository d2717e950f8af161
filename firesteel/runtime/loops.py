"""An event loop in a thread of its own, which runs from its start to its stop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")

_STOP_SECONDS = 10.0


class LoopThread:
    """Runs coroutines for a thread that has no event loop.

    The loop goes on between two calls: requests proceed while their caller works at something else, connections are
    kept alive, timeouts are on time.

    >>> loop = LoopThread("example")
    >>> loop.run(asyncio.sleep(0, "done"))
    'done'
    >>> loop.stop()
    """

    def __init__(self, name: str) -> None:
        self._ready = threading.Event()
        self._ended_by: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _main(self) -> None:
        try:
            # Ends what is left on the loop when it is stopped: tasks, generators, the threads of its executor.
            asyncio.run(self._live())
        except BaseException as error:
            # Such as a SystemExit raised in a callback. Whoever waits for the loop hears of it.
            self._ended_by = error

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for its result."""
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise
        while not concurrent.futures.wait([future], timeout=1).done:
            if not self._thread.is_alive():
                break
        if not future.done() or future.cancelled():
            self._thread.join(_STOP_SECONDS)
            why = self._ended_by
            raise RuntimeError(f"The event loop of this operator was ended by {why!r}.") from why
        return future.result()

    def stop(self) -> None:
        """Ends the loop. It is not waited for beyond a limit: what hangs on it must not hang the task."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_SECONDS)
