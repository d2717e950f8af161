"""Expressions as operators want them: something that computes one column of a batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.logical.expressions import Expression

__all__ = ["Column", "ColumnGroup", "columns"]


class ColumnGroup:
    """Several expressions over the same batches: what they have in common is computed once."""

    def __init__(self, expressions: tuple[Expression, ...], time_zone: str) -> None:
        self.expressions = expressions
        self.time_zone = time_zone
        self._evaluator: Evaluator | None = None
        self._batch: pa.RecordBatch | None = None
        self._results: list[pa.Array] = []

    def column(self, index: int, batch: pa.RecordBatch) -> pa.Array:
        """One of the results. The others are kept for those who ask next."""
        if batch is not self._batch:
            if self._evaluator is None:
                self._evaluator = Evaluator(self.expressions)
            self._results = self._evaluator.columns(batch, EvaluationContext(batch.num_rows, self.time_zone))
            self._batch = batch
        result = self._results[index]
        if index == len(self._results) - 1:
            # Asked for in order: nobody comes for these any more.
            self._batch, self._results = None, []
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {"expressions": self.expressions, "time_zone": self.time_zone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class Column:
    """One expression of a group."""

    def __init__(self, group: ColumnGroup, index: int) -> None:
        self._group = group
        self._index = index

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """The column for all rows."""
        return self._group.column(self._index, batch)

    def __repr__(self) -> str:
        return str(self._group.expressions[self._index])


def columns(expressions: tuple[Expression, ...], time_zone: str) -> tuple[Column, ...]:
    """The expressions, which are evaluated together."""
    group = ColumnGroup(expressions, time_zone)
    return tuple(Column(group, index) for index in range(len(expressions)))
