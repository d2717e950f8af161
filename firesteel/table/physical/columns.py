"""Expressions as operators want them: something that computes one column of a batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.errors import ProgramError
from firesteel.runtime.watermarks import MIN_TIMESTAMP
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.functions.watermarks import CURRENT_WATERMARK
from firesteel.table.logical.expressions import Call, Expression, UserCall, calls_of

__all__ = ["Column", "ColumnGroup", "columns"]


class _OperatorTime:
    """The watermark of the operator that it is opened with."""

    def __init__(self) -> None:
        self._timers: Any = None

    def open(self, runtime_context: Any) -> None:
        self._timers = runtime_context.timer_service()

    def close(self) -> None:
        self._timers = None

    def watermark(self) -> int | None:
        """None before the first one."""
        if self._timers is None:
            raise ProgramError(f"{CURRENT_WATERMARK} has no meaning here: it may stand in SELECT and WHERE.")
        found: int = self._timers.current_watermark()
        return None if found == MIN_TIMESTAMP else found


class ColumnGroup:
    """Several expressions over the same batches: what they have in common is computed once."""

    def __init__(self, expressions: tuple[Expression, ...], time_zone: str) -> None:
        self.expressions = expressions
        self.time_zone = time_zone
        asks = any(True for each in expressions for _ in calls_of(CURRENT_WATERMARK, each))
        self.time = _OperatorTime() if asks else None
        self._evaluator: Evaluator | None = None
        self._batch: pa.RecordBatch | None = None
        self._results: list[pa.Array] = []

    def column(self, index: int, batch: pa.RecordBatch, now: int) -> pa.Array:
        """One of the results. The others are kept for those who ask next."""
        if batch is not self._batch:
            if self._evaluator is None:
                self._evaluator = Evaluator(self.expressions)
            context = EvaluationContext(batch.num_rows, self.time_zone, now / 1000)
            if self.time is not None:
                context.watermark = self.time.watermark()
            self._results = self._evaluator.columns(batch, context)
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

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """The column for all rows; ``now`` is the processing time, in milliseconds."""
        return self._group.column(self._index, batch, now)

    @property
    def functions(self) -> list[Any]:
        """What is opened and closed with the operator: the users' functions of the whole group, and its time if one of
        the expressions asks for it."""
        found: list[Any] = [] if self._group.time is None else [self._group.time]
        for expression in self._group.expressions:
            _gather_functions(expression, found)
        return found

    def __repr__(self) -> str:
        return str(self._group.expressions[self._index])


def _gather_functions(expression: Expression, found: list[Any]) -> None:
    if isinstance(expression, UserCall) and expression.user not in found:
        found.append(expression.user)
    if isinstance(expression, Call):
        for argument in expression.args:
            _gather_functions(argument, found)


def columns(expressions: tuple[Expression, ...], time_zone: str) -> tuple[Column, ...]:
    """The expressions, which are evaluated together."""
    group = ColumnGroup(expressions, time_zone)
    return tuple(Column(group, index) for index in range(len(expressions)))
