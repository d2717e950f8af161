"""A connection to a database as writers, committers and readers use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["Session"]

PAUSE = 1.0
"""Seconds before the first retry; before the second twice as much, and so on."""
LOCK_SECONDS = 20.0
"""For how long a statement that changes something waits for a lock of somebody else."""

Result = TypeVar("Result")


class Session(ABC):
    """A connection that is made when it is first needed, and anew after it broke. Statements commit by themselves."""

    address: DatabaseAddress

    @property
    @abstractmethod
    def errors(self) -> type[Exception]:
        """What the driver raises."""

    @abstractmethod
    def is_passing(self, error: Exception) -> bool:
        """Whether the same may go well the next time."""

    @abstractmethod
    def as_connector_error(
        self, error: Exception, doing: str, element: object = None, kind: FailureKind | None = None
    ) -> ConnectorError:
        """An error of the driver as a ConnectorError: where, what was tried, what the server said, what to do.
        ``kind`` is for an error that means more at the place where it was caught than its code says."""

    @abstractmethod
    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows."""

    @abstractmethod
    def executemany(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Runs a statement for each row."""

    @abstractmethod
    def transaction(self, force_rollback: bool = False) -> AbstractContextManager[Any]:
        """All or nothing: a transaction of its own, or a part of the one that is open."""

    @abstractmethod
    def stream(self, statement: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query, some at a time, without all of them in memory."""

    @abstractmethod
    def column_type(self, statement: str) -> str:
        """The driver's name for the type of a query's first column, where it has one."""

    @abstractmethod
    def drop(self) -> None:
        """Lets the connection go, with the transaction it may be in."""

    def again(self, action: Callable[[], Result], doing: str, retries: int) -> Result:
        """Does something that may be repeated, up to ``retries`` times after failures that may pass."""
        try:
            return self.retried(action, retries)
        except self.errors as error:
            self.drop()
            raise self.as_connector_error(error, doing) from None

    def retried(self, action: Callable[[], Result], retries: int) -> Result:
        """The same, with the driver's own error if it was of no use. Each try has a new connection."""
        # Only those who talk to a database wait for it to load.
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_incrementing

        database_error = self.errors

        def attempt() -> Result:
            try:
                return action()
            except database_error as error:
                if self.is_passing(error):
                    self.drop()
                raise

        return Retrying(
            stop=stop_after_attempt(retries + 1),
            wait=wait_incrementing(PAUSE, PAUSE, 10 * PAUSE),
            retry=retry_if_exception(lambda error: isinstance(error, database_error) and self.is_passing(error)),
            reraise=True,
        )(attempt)
