"""Users' aggregate functions as accumulators: rows go into them one by one, in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.operators.table.accumulators import Accumulator, Rows, Values
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = ["EachRowAccumulator", "UserAccumulator", "UserAggregate", "objects", "user_accumulator"]

Array = npt.NDArray[Any]


class UserAggregate(Protocol):
    """A user's aggregate function. It is pickled with the spec."""

    functions: Sequence[Any]
    """What is opened and closed with the operator."""
    state_type: pa.DataType
    """Of accumulators in the store."""
    each_row: bool
    """Whether results are wanted after each row, not only when all rows of a bundle are in."""

    def arguments(self, columns: Sequence[pa.Array], rows: int) -> list[Any]:
        """What :meth:`take` gets of each row."""

    def take(self, accumulator: Any, arguments: Sequence[Any], signs: Sequence[int] | None) -> Any:
        """Takes rows into an accumulator (None: a new one), or with a sign of -1 back out of it. Gives the
        accumulator."""

    def merge(self, accumulators: Sequence[Any]) -> Any:
        """One accumulator for several."""

    def value(self, accumulator: Any) -> Any:
        """The result; a copy, if it is a part of the accumulator."""

    def results(self, values: Sequence[Any]) -> Values:
        """Several of them, as results of aggregates; None is NULL."""

    def store(self, accumulators: Sequence[Any]) -> pa.Array:
        """Accumulators as the store has them."""

    def load(self, column: pa.Array) -> list[Any]:
        """And back."""


def objects(values: Sequence[Any]) -> Array:
    """An array of objects, whatever they are."""
    array = np.empty(len(values), object)
    for at, value in enumerate(values):
        array[at] = value
    return array


@dataclass(frozen=True)
class _Accumulators(SlotColumn):
    user: Any = None

    def to_arrow(self, values: Array) -> pa.Array:
        stored: pa.Array = self.user.store(values.tolist())
        return stored

    def from_arrow(self, column: pa.Array) -> Array:
        return objects(self.user.load(column))


class UserAccumulator(Accumulator):
    """The accumulator of each group is changed in place, so only the state after the last row of a segment is right:
    results are asked for when all rows of a bundle are in."""

    def __init__(self, user: UserAggregate) -> None:
        self._user = user
        self.columns: tuple[SlotColumn, ...] = (_Accumulators("accumulator", user.state_type, object, None, user),)

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        take = self._user.take
        values = rows.values.tolist()
        signs = None if rows.signs is None else rows.signs.tolist()
        found = np.empty(len(segments.starts), object)
        for at, (start, end, accumulator) in enumerate(_spans(segments, base[0])):
            found[at] = take(accumulator, values[start:end], None if signs is None else signs[start:end])
        return [segments.spread(found)]

    def result(self, state: list[Array]) -> Values:
        value = self._user.value
        return self._user.results([None if each is None else value(each) for each in state[0].tolist()])

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        accumulators = states[0].tolist()
        spans = zip(segments.starts.tolist(), (segments.ends + 1).tolist(), strict=True)
        return [objects([self._user.merge(accumulators[start:end]) for start, end in spans])]


class EachRowAccumulator(UserAccumulator):
    """The same with the result after each row, which is kept beside the accumulator."""

    def __init__(self, user: UserAggregate) -> None:
        super().__init__(user)
        self.columns = (*self.columns, SlotColumn("result", None, object, None))

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        user = self._user
        values = rows.values.tolist()
        signs = None if rows.signs is None else rows.signs.tolist()
        found, results = np.empty(len(segments.starts), object), np.empty(segments.rows, object)
        for at, (start, end, accumulator) in enumerate(_spans(segments, base[0])):
            if accumulator is not None and base[1][at] is None:
                # Results are not stored: after a restart they are made anew, before anything changes.
                base[1][at] = user.value(accumulator)
            for row in range(start, end):
                accumulator = user.take(
                    accumulator, values[row : row + 1], None if signs is None else signs[row : row + 1]
                )
                results[row] = user.value(accumulator)
            found[at] = accumulator
        return [segments.spread(found), results]

    def result(self, state: list[Array]) -> Values:
        return self._user.results(state[1].tolist())

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        (merged,) = super().merge(segments, states)
        return [merged, objects([None] * len(merged))]


def _spans(segments: Segments, accumulators: Array) -> Iterator[tuple[int, int, Any]]:
    """From where to where the rows of each segment are, and the accumulator that it begins with."""
    return zip(segments.starts.tolist(), (segments.ends + 1).tolist(), accumulators.tolist(), strict=True)


def user_accumulator(user: UserAggregate) -> UserAccumulator:
    """What works out a call of a user's function."""
    return EachRowAccumulator(user) if user.each_row else UserAccumulator(user)
