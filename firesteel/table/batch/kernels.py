"""Functions of ours inside Spark: an expression becomes one vectorised function over the columns that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.engine.imports import JobFiles
from firesteel.engine.spark.shipped import Shipped
from firesteel.table.batch.layout import from_spark, to_spark
from firesteel.table.batch.spark_types import spark_type
from firesteel.table.batch.task_functions import TaskRuntime, have_to_be_closed, user_functions
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator, is_deterministic
from firesteel.table.logical.expressions import Expression, InputRef, columns_of, rewrite
from firesteel.table.types.data_types import DataType

__all__ = ["KernelContext", "kernel_column"]


@dataclass(frozen=True)
class KernelContext:
    """What is the same for all rows of a query."""

    time_zone: str
    now: float
    """Seconds since 1970, when the query was started: all rows see the same time."""
    paths: tuple[str, ...] = ()
    """Where workers look for modules, too."""
    files: JobFiles | None = None
    """What users' functions brought."""
    job_parameters: str = ""
    """What users' functions may ask for, as in ``pipeline.global-job-parameters``."""

    def shipped(self, function: Callable[..., Any], what: str) -> Shipped:
        """A function on its way to workers."""
        return Shipped(function, self.paths, what, self.files)


class _Compute:
    """Runs in workers."""

    def __init__(self, expression: Expression, kinds: tuple[DataType, ...], context: KernelContext) -> None:
        self._expression, self._kinds, self._context = expression, kinds, context
        self._evaluator: Evaluator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluator": None}

    def __call__(self, *columns: pa.Array) -> pa.Array:
        if self._evaluator is None:
            # Functions register themselves when their modules are loaded.
            import firesteel.table.functions  # noqa: F401

            self._evaluator = Evaluator([self._expression])
            functions = user_functions(self._expression)
            if functions:
                runtime = TaskRuntime(self._context.job_parameters)
                for function in functions:
                    function.open(runtime)
        rows = len(columns[0])
        ours = [from_spark(column, kind) for column, kind in zip(columns, self._kinds, strict=False)]
        # Without a column there is one that only says how many rows there are.
        batch = pa.RecordBatch.from_arrays(ours or [pa.nulls(rows)], [f"c{i}" for i in range(max(1, len(ours)))])
        context = EvaluationContext(rows, self._context.time_zone, self._context.now)
        (result,) = self._evaluator.columns(batch, context)
        return to_spark(result, self._expression.type)


class _ComputeAll(_Compute):
    """The same for all batches of a task, whose functions are closed behind the last one."""

    def each(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        try:
            for columns in batches:
                # Spark makes no tuple of a single column.
                yield self(*(columns if isinstance(columns, tuple) else (columns,)))
        finally:
            if self._evaluator is not None:
                for function in reversed(user_functions(self._expression)):
                    function.close()


def kernel_column(expression: Expression, names: Sequence[str], context: KernelContext) -> Column:
    """A column that ours computes. ``names`` are those of the columns that the expression is over."""
    used = sorted(set(columns_of(expression)))
    places = {index: place for place, index in enumerate(used)}
    kinds: dict[int, DataType] = {}

    def move(part: Expression) -> Expression | None:
        if not isinstance(part, InputRef):
            return None
        kinds[part.index] = part.type
        return InputRef(places[part.index], part.type)

    moved = rewrite(expression, move)
    own = tuple(kinds[index] for index in used)
    function: Any
    if have_to_be_closed(user_functions(expression)):
        compute_all = context.shipped(_ComputeAll(moved, own, context).each, "An expression")

        def all_computed(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
            yield from compute_all(batches)

        function = F.arrow_udf(all_computed, spark_type(expression.type))
    else:
        compute = context.shipped(_Compute(moved, own, context), "An expression")

        def computed(*columns: pa.Array) -> pa.Array:
            return compute(*columns)

        function = F.arrow_udf(computed, spark_type(expression.type))
    if not is_deterministic(expression):
        function = function.asNondeterministic()
    result: Column = function(*([F.col(names[index]) for index in used] or [F.lit(0)]))
    return result
