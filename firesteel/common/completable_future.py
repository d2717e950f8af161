"""Results that may not be there yet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that somebody else provides, now or later.

    >>> future = CompletableFuture()
    >>> future.done()
    False
    >>> future.complete(42)
    True
    >>> future.result(), future.exception()
    (42, None)
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: Any) -> CompletableFuture[Any]:
        """A future whose result is there already."""
        future: CompletableFuture[Any] = CompletableFuture()
        future.complete(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[Any]:
        """A future that has failed already."""
        future: CompletableFuture[Any] = CompletableFuture()
        future.complete_exceptionally(error)
        return future

    def complete(self, value: T) -> bool:
        """Provides the result; says whether it was the first to do so."""
        if self._future.done():
            return False
        self._future.set_result(value)
        return True

    def complete_exceptionally(self, error: BaseException) -> bool:
        """Provides an exception instead of a result; says whether it was the first to do so."""
        if self._future.done():
            return False
        self._future.set_exception(error)
        return True

    def cancel(self) -> bool:
        """Gives up on the result; says whether that was still possible."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether somebody gave up on the result."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether there is a result, an exception or a cancellation."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Waits for the result and returns it, or raises the exception."""
        return self._future.result(timeout)

    def get(self, timeout: float | None = None) -> T:
        """The same as :meth:`result`, under its name in Java."""
        return self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The exception, if the future has failed already. Does not wait."""
        if not self._future.done():
            return None
        if self._future.cancelled():
            return CancelledError()
        return self._future.exception()

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], None]) -> None:
        """Calls ``callback`` with this future as soon as it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def __str__(self) -> str:
        if not self.done():
            return "CompletableFuture[Not completed]"
        how = "normally" if self.exception() is None else "exceptionally"
        return f"CompletableFuture[Completed {how}]"
