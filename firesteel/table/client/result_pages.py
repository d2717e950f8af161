"""The rows of a result in pages, as they come: few are kept for somebody who does not fetch them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from firesteel.errors import ProgramError

__all__ = ["Page", "ResultPages"]

PAGE_ROWS = 1_000
PAGE_BYTES = 4 << 20
KEPT_ROWS = 5_000
"""So many wait to be fetched. Then the query waits, too."""


@dataclass(frozen=True)
class Page:
    """A part of a result."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    last: bool = False
    """Whether nothing follows."""


class ResultPages:
    """One thread puts batches, another one fetches pages by their number: the one that it had last, again, or the next
    one.

    >>> pages = ResultPages()
    >>> pages.put_all([pa.RecordBatch.from_pydict({"n": [1, 2]})])
    >>> [batch.num_rows for batch in pages.fetch(0).batches], pages.fetch(0) is pages.fetch(0), pages.fetch(1).last
    ([2], True, True)
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[pa.RecordBatch] = deque()
        self._rows = 0
        self._over = False
        self._closed = False
        self._failure: BaseException | None = None
        self._token = -1
        self._page = Page()

    def put_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Takes batches to their end, or until nobody wants them any more."""
        try:
            for batch in batches:
                with self._changed:
                    self._changed.wait_for(lambda: self._rows < KEPT_ROWS or self._closed)
                    if self._closed:
                        return
                    if batch.num_rows:
                        self._waiting.append(batch)
                        self._rows += batch.num_rows
        except BaseException as error:
            self._failure = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    @property
    def over(self) -> bool:
        """Whether all rows have come, fetched or not."""
        return self._over

    @property
    def failure(self) -> BaseException | None:
        """What the query failed with."""
        return self._failure

    def fetch(self, token: int) -> Page:
        """A page, which may be empty. What the query has failed with is raised once its rows were fetched."""
        with self._changed:
            if token == self._token:
                return self._page
            if token != self._token + 1 or self._page.last:
                raise ProgramError(f"The next page is {self._token + 1}, not {token}.")
            batches = self._taken()
            done = self._over and not self._waiting
            if done and not batches and self._failure is not None:
                raise self._failure
            # The end is a page of its own: an error may come in its place.
            self._token, self._page = token, Page(batches, done and not batches)
            self._changed.notify_all()
            return self._page

    def _taken(self) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        room, size = PAGE_ROWS, PAGE_BYTES
        while self._waiting and room > 0 and size > 0:
            batch = self._waiting.popleft()
            # As the average row has it: bounds are no promise to the byte.
            fitting = max(1, min(room, size * batch.num_rows // max(1, batch.nbytes)))
            if fitting < batch.num_rows:
                self._waiting.appendleft(batch.slice(fitting))
                batch = batch.slice(0, fitting)
            found.append(batch)
            self._rows -= batch.num_rows
            room -= batch.num_rows
            size -= batch.nbytes
        return found

    def close(self) -> None:
        """Nobody fetches any more."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._rows = 0
            self._changed.notify_all()
