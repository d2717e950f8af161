"""Savepoints that somebody asked a running job for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.taking import abandon
from firesteel.errors import SavepointError, in_a_line

__all__ = ["SavepointRequest", "SavepointRequests"]


logger = logging.getLogger("firesteel")


@dataclass
class SavepointRequest:
    """One savepoint to be taken."""

    target: Place
    stop: bool = False
    """Whether the job ends with it."""
    drain: bool = False
    """Whether event time comes to its end before, so that all windows and timers fire."""
    result: Future[str] = field(default_factory=Future)


class SavepointRequests:
    """Put by anybody, taken by the job's thread."""

    def __init__(self) -> None:
        self._waiting: deque[SavepointRequest] = deque()
        self._wait_reported = False
        self._lock = threading.Lock()
        self._closed: str | None = None
        self.stopping: SavepointRequest | None = None
        """The request that ends the job."""

    def put(self, request: SavepointRequest) -> None:
        with self._lock:
            if self._closed is not None:
                raise SavepointError(f"There is nothing to take a savepoint of: the job {self._closed}.")
            if self.stopping is not None:
                raise SavepointError("The job is stopping with a savepoint already.")
            if request.stop:
                self.stopping = request
            self._waiting.append(request)

    def take(self, begun: Callable[[], bool] = lambda: True) -> SavepointRequest | None:
        """The next request. Before the job has ``begun``, with its first batch, a savepoint would be empty: it waits.
        One that drains makes a batch itself."""
        with self._lock:
            if not self._waiting:
                return None
            if not self._waiting[0].drain and not begun():
                if not self._wait_reported:
                    self._wait_reported = True
                    logger.warning(
                        "the savepoint %s waits for the job's first batch: before that there is nothing to save",
                        self._waiting[0].target.address,
                    )
                return None
            return self._waiting.popleft()

    def fulfil(self, request: SavepointRequest, write: Callable[[Place], None]) -> bool:
        """Takes a savepoint that was asked for. Returns whether it came about; whoever asked knows it, too."""
        began, address = time.monotonic(), request.target.address
        try:
            write(request.target)
        except BaseException as error:
            abandon(request.target)
            logger.warning("the savepoint %s failed: %s", address, in_a_line(error))
            self.gave_up(request)
            request.result.set_exception(error)
            return False
        logger.info("savepoint %s was taken in %.1f s", address, time.monotonic() - began)
        request.result.set_result(address)
        return True

    def gave_up(self, request: SavepointRequest) -> None:
        """A stop did not come about: the job goes on."""
        with self._lock:
            if self.stopping is request:
                self.stopping = None

    def close(self, why: str) -> None:
        """The job is over. Whoever still waits learns it."""
        with self._lock:
            self._closed = why
            stopping = self.stopping
        if stopping is not None and not stopping.result.done():
            stopping.result.set_exception(SavepointError(f"The job {why} before its savepoint was taken."))
        while (request := self.take()) is not None:
            if not request.result.done():
                request.result.set_exception(SavepointError(f"There is nothing to take a savepoint of: the job {why}."))
