"""What a terminal shows of a result that changes: its rows as they are now, or its changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

__all__ = ["Cells", "ChangeView", "ResultView", "TableView"]

Cells = tuple[str, ...]
_TAKEN_BACK = ("-U", "-D")


class ResultView(Protocol):
    """Takes changes, and gives lines to show."""

    @property
    def names(self) -> Sequence[str]:
        """Of the columns."""

    def apply(self, change: Sequence[str]) -> None:
        """One change: its kind, and the row."""

    def rows(self) -> list[Cells]:
        """What is to be shown now."""


class TableView:
    """The rows as they are now. A row that changes stays where it is.

    >>> view = TableView(["city", "n"], 100)
    >>> for change in (("+I", "Rome", "1"), ("+I", "Oslo", "1"), ("-U", "Rome", "1"), ("+U", "Rome", "2")):
    ...     view.apply(change)
    >>> view.rows()
    [('Rome', '2'), ('Oslo', '1')]
    """

    def __init__(self, names: Sequence[str], limit: int) -> None:
        self.names = names
        self.dropped = 0
        """How many rows were too many to be kept."""
        self._limit = limit
        self._rows: dict[int, Cells] = {}
        self._places: dict[Cells, list[int]] = {}
        self._next = 0
        self._free: int | None = None

    def apply(self, change: Sequence[str]) -> None:
        kind, row = change[0], tuple(change[1:])
        if kind in _TAKEN_BACK:
            self._take_back(row, keeps_place=kind == "-U")
            return
        if self._free is not None and kind == "+U":
            place, self._free = self._free, None
        else:
            place, self._next = self._next, self._next + 1
        self._rows[place] = row
        self._places.setdefault(row, []).append(place)
        if len(self._rows) > self._limit:
            self._drop_oldest()

    def _take_back(self, row: Cells, keeps_place: bool) -> None:
        places = self._places.get(row)
        if not places:
            # One that was dropped.
            return
        place = places.pop()
        if not places:
            del self._places[row]
        if keeps_place:
            # The row that replaces it comes next, and its place in the order of the dictionary is kept for it.
            self._forget_free()
            self._free = place
        else:
            del self._rows[place]

    def _forget_free(self) -> None:
        if self._free is not None:
            del self._rows[self._free]
            self._free = None

    def _drop_oldest(self) -> None:
        place, row = next(iter(self._rows.items()))
        del self._rows[place]
        self.dropped += 1
        if place == self._free:
            self._free = None
            return
        self._places[row].remove(place)
        if not self._places[row]:
            del self._places[row]

    def rows(self) -> list[Cells]:
        return [row for place, row in self._rows.items() if place != self._free]


class ChangeView:
    """The last changes, each with its kind.

    >>> view = ChangeView(["n"], 2)
    >>> for number in "123":
    ...     view.apply(("+I", number))
    >>> view.names, view.rows()
    (['op', 'n'], [('+I', '2'), ('+I', '3')])
    """

    def __init__(self, names: Sequence[str], limit: int) -> None:
        self.names = ["op", *names]
        self._changes: deque[Cells] = deque(maxlen=limit)

    def apply(self, change: Sequence[str]) -> None:
        self._changes.append(tuple(change))

    def rows(self) -> list[Cells]:
        return list(self._changes)
