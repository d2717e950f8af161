"""Computes expressions for a batch of rows at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.registry import Datum, find
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, Subquery, UserCall, parts_of
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType

__all__ = ["EvaluationContext", "Evaluator", "as_array", "can_fail", "evaluate", "folded", "is_deterministic"]


@dataclass
class EvaluationContext:
    """What kernels may ask for besides their arguments."""

    rows: int
    time_zone: str = "UTC"
    now: float = field(default_factory=time.time)
    """Seconds since 1970: the same for all rows of a batch."""
    watermark: int | None = None
    """Milliseconds since 1970 that event time has come to; None before the first watermark, and where there is none."""


def as_array(value: Datum, rows: int) -> pa.Array:
    """A column of that many rows."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    return value


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """One expression for all rows of a batch.

    >>> from firesteel.table.types import DataTypes
    >>> batch = pa.record_batch({"a": pa.array([1, None, 3], pa.int32())})
    >>> two = Literal(2, DataTypes.INT(False))
    >>> evaluate(Call("*", (InputRef(0, DataTypes.INT()), two), DataTypes.INT()), batch).to_pylist()
    [2, None, 6]
    """
    return _evaluator((expression,)).columns(batch)[0]


def folded(expression: Expression) -> Expression:
    """The value of an expression that reads no column and is the same whenever it is computed; others as they are.

    >>> from firesteel.table.types import DataTypes
    >>> two = Literal(2, DataTypes.INT(False))
    >>> folded(Call("*", (two, two), DataTypes.INT(False))).value
    4
    """
    if isinstance(expression, Literal) or not is_deterministic(expression):
        return expression
    if any(isinstance(part, InputRef | UserCall | Subquery) for part in parts_of(expression)):
        return expression
    return Literal(evaluate(expression, pa.record_batch({"one": [0]}))[0].as_py(), expression.type)


class Evaluator:
    """Several expressions over the same input. What they have in common is computed once a batch.

    >>> from firesteel.table.types import DataTypes
    >>> number = InputRef(0, DataTypes.INT())
    >>> more = Evaluator([number, Call("IS NULL", (number,), DataTypes.BOOLEAN(False))])
    >>> [column.to_pylist() for column in more.columns(pa.record_batch({"a": pa.array([1, None], pa.int32())}))]
    [[1, None], [False, True]]
    """

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._steps: list[_Step] = []
        self._slots: dict[Expression, int] = {}
        self._results = [self._slot(expression) for expression in expressions]
        self._types = [arrow_type(expression.type) for expression in expressions]

    def columns(self, batch: pa.RecordBatch, context: EvaluationContext | None = None) -> list[pa.Array]:
        """The results, in the order of expressions."""
        rows = batch.num_rows
        found = self._run(batch, context or EvaluationContext(rows))
        columns = [as_array(found[slot], rows) for slot in self._results]
        for column, kind in zip(columns, self._types, strict=True):
            assert column.type == kind, f"A kernel gave {column.type}, the expression is {kind}."
        return columns

    def _run(self, batch: pa.RecordBatch, context: EvaluationContext) -> list[Datum]:
        values: list[Datum] = []
        for step in self._steps:
            values.append(step(batch, values, context))
        return values

    def _slot(self, expression: Expression) -> int:
        known = self._slots.get(expression)
        if known is None:
            step = self._step(expression)
            known = len(self._steps)
            self._steps.append(step)
            if is_deterministic(expression):
                self._slots[expression] = known
        return known

    def _step(self, expression: Expression) -> _Step:
        if isinstance(expression, InputRef):
            return functools.partial(_column, expression.index)
        if isinstance(expression, Literal):
            return functools.partial(_constant, pa.scalar(expression.value, arrow_type(expression.type)))
        assert isinstance(expression, Call)
        if isinstance(expression, UserCall):
            slots = [self._slot(argument) for argument in expression.args]
            return functools.partial(_user_called, expression, [each.type for each in expression.args], slots)
        if expression.function in _LAZY and any(map(_is_held_back, expression.args[1:])):
            return functools.partial(_LAZY[expression.function], expression)
        function = find(expression.function)
        assert function is not None, f"No function {expression.function}."
        slots = [self._slot(argument) for argument in expression.args]
        return functools.partial(_called, function.kernel, expression, slots)


_Step = Callable[[pa.RecordBatch, list[Datum], EvaluationContext], Datum]


@functools.lru_cache(maxsize=256)
def _evaluator(expressions: tuple[Expression, ...]) -> Evaluator:
    return Evaluator(expressions)


def _column(index: int, batch: pa.RecordBatch, values: list[Datum], context: EvaluationContext) -> Datum:
    return batch.column(index)


def _constant(value: pa.Scalar, batch: pa.RecordBatch, values: list[Datum], context: EvaluationContext) -> Datum:
    return value


def _called(
    kernel: Callable[..., Datum],
    call: Call,
    slots: list[int],
    batch: pa.RecordBatch,
    values: list[Datum],
    context: EvaluationContext,
) -> Datum:
    return kernel(call, [values[slot] for slot in slots], context)


def _user_called(
    call: UserCall,
    kinds: list[DataType],
    slots: list[int],
    batch: pa.RecordBatch,
    values: list[Datum],
    context: EvaluationContext,
) -> Datum:
    found: Datum = call.user.column([values[slot] for slot in slots], kinds, context.rows, context.time_zone)
    return found


def is_deterministic(expression: Expression) -> bool:
    """Whether it gives the same for the same row."""
    if not isinstance(expression, Call):
        return True
    if isinstance(expression, UserCall):
        return expression.user.deterministic and all(map(is_deterministic, expression.args))
    function = find(expression.function)
    return (function is None or function.deterministic) and all(map(is_deterministic, expression.args))


def can_fail(expression: Expression) -> bool:
    """Whether a row can end the job."""
    if not isinstance(expression, Call):
        return False
    if not isinstance(expression, UserCall):
        function = find(expression.function)
        if function is not None and function.fails(expression):
            return True
    # As in PyFlink a user's function is called for all rows, once, however often it stands in the query.
    return any(map(can_fail, expression.args))


def _is_costly(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    function = None if isinstance(expression, UserCall) else find(expression.function)
    return (function is not None and function.costly) or any(map(_is_costly, expression.args))


def _is_held_back(expression: Expression) -> bool:
    return can_fail(expression) or (_is_costly(expression) and is_deterministic(expression))


# Flink does not look at the parts that do not matter: b <> 0 AND a / b > 1 never divides by zero. Where a part can
# fail, or takes long, it is computed for the rows that come to it, and for no others.


def _part(expression: Expression, batch: pa.RecordBatch, context: EvaluationContext) -> pa.Array:
    return _evaluator((expression,)).columns(batch, replace(context, rows=batch.num_rows))[0]


def _lazy_junction(
    stop: bool, call: Call, batch: pa.RecordBatch, values: list[Datum], context: EvaluationContext
) -> Datum:
    """AND stops at FALSE, OR at TRUE."""
    combine = pc.or_kleene if stop else pc.and_kleene
    result = _part(call.args[0], batch, context)
    for argument in call.args[1:]:
        undecided = pc.fill_null(pc.not_equal(result, pa.scalar(stop)), True)
        computed = _part(argument, batch.filter(undecided), context)
        spread = pc.replace_with_mask(pa.repeat(pa.scalar(stop), batch.num_rows), undecided, computed)
        result = combine(result, spread)
    return result


def _lazy_case(call: Call, batch: pa.RecordBatch, values: list[Datum], context: EvaluationContext) -> Datum:
    """CASE WHEN c THEN v ... ELSE v END as (c, v, ..., v)."""
    rows = batch.num_rows
    result = pa.nulls(rows, arrow_type(call.type))
    open_rows = pa.repeat(pa.scalar(True), rows)
    for condition, value in zip(call.args[0:-1:2], call.args[1:-1:2], strict=True):
        holds = pc.fill_null(_part(condition, batch.filter(open_rows), context), False)
        chosen = pc.replace_with_mask(pa.repeat(pa.scalar(False), rows), open_rows, holds)
        result = _replaced(result, chosen, _part(value, batch.filter(chosen), context))
        open_rows = pc.and_not(open_rows, chosen)
    return _replaced(result, open_rows, _part(call.args[-1], batch.filter(open_rows), context))


def _replaced(values: pa.Array, mask: pa.Array, others: pa.Array) -> pa.Array:
    """The values with others where the mask holds. Arrow's own function knows no arrays, maps and rows."""
    if not pa.types.is_nested(values.type):
        return pc.replace_with_mask(values, mask, others)
    places = np.arange(len(values))
    places[mask.to_numpy(zero_copy_only=False)] = len(values) + np.arange(len(others))
    return pa.concat_arrays([values, others.cast(values.type)]).take(pa.array(places))


def _lazy_coalesce(call: Call, batch: pa.RecordBatch, values: list[Datum], context: EvaluationContext) -> Datum:
    result = _part(call.args[0], batch, context)
    for argument in call.args[1:]:
        missing = pc.is_null(result)
        result = _replaced(result, missing, _part(argument, batch.filter(missing), context))
    return result


_LAZY: dict[str, Callable[..., Datum]] = {
    "AND": functools.partial(_lazy_junction, False),
    "OR": functools.partial(_lazy_junction, True),
    "CASE": _lazy_case,
    "COALESCE": _lazy_coalesce,
}
