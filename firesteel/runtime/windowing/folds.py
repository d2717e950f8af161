"""Reduce and aggregate functions as plain callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.functions import AggregateFunction

__all__ = ["Fold"]


class Fold:
    """A reduce or aggregate function as four plain callables."""

    def __init__(self, fold: Any) -> None:
        self.first: Callable[[Any], Any]
        """What one record folds to."""
        self.add: Callable[[Any, Any], Any]
        """Of what is folded, and a record."""
        self.merge: Callable[[Any, Any], Any]
        self.result: Callable[[Any], Any] | None
        if isinstance(fold, AggregateFunction):
            create, add = fold.create_accumulator, fold.add
            self.first = lambda value: add(value, create())
            self.add = lambda folded, value: add(value, folded)
            self.merge, self.result = fold.merge, fold.get_result
        else:
            reduce = getattr(fold, "func", None) or fold.reduce
            self.first = lambda value: value
            self.add = self.merge = reduce
            self.result = None

    def all(self, values: list[Any]) -> Any:
        """What several records fold to; there must be one at least."""
        folded = self.first(values[0])
        for value in values[1:]:
            folded = self.add(folded, value)
        return folded if self.result is None else self.result(folded)
