"""Calls the form of a function for columns, and knows when not to."""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.table.functions.column_functions.column_form import ColumnForm, plain_function
from firesteel.table.functions.column_functions.column_values import GivenUpError, Value, value_of
from firesteel.table.functions.column_functions.declared_results import is_declarable
from firesteel.table.functions.column_functions.function_source import code_identity
from firesteel.table.functions.column_functions.node_evaluation import NodeEvaluation
from firesteel.table.functions.registry import Datum
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    BooleanType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    VarCharType,
)

__all__ = ["GuardedColumn", "argument_value"]

logger = logging.getLogger("firesteel")

_MOST_DOUBLED = 8


def argument_value(argument: Datum, kind: DataType) -> Value:
    """An argument as the function would get it, for all rows."""
    if isinstance(kind, BooleanType):
        python: type = bool
    elif isinstance(kind, IntegralType):
        python = int
    elif isinstance(kind, FloatType | DoubleType):
        python = float
    elif isinstance(kind, CharType | VarCharType):
        python = str
    else:
        raise GivenUpError(f"an argument of {kind}")
    if argument.type != arrow_type(kind):
        raise GivenUpError(f"an argument of {argument.type}")
    if isinstance(argument, pa.Scalar):
        return value_of(argument.as_py())
    if isinstance(argument, pa.ChunkedArray):
        argument = argument.combine_chunks()
    if isinstance(kind, IntegralType) and argument.type != pa.int64():
        argument = argument.cast(pa.int64())
    elif isinstance(kind, FloatType):
        argument = argument.cast(pa.float64())
    return Value(python, argument)


class GuardedColumn:
    """Computes results for columns, or says that the function has to be called. Of one subtask.

    Where batch after batch is given up, ever fewer are tried, in the end one of 257.
    """

    def __init__(self, form: ColumnForm, result_type: DataType) -> None:
        self.form = form
        self._evaluation = NodeEvaluation(form.body, result_type)
        self._code: types.CodeType | None = None
        self._failures = 0
        self._skipped = 0

    def column(self, called: Any, args: Sequence[Datum], kinds: Sequence[DataType], rows: int) -> pa.Array | None:
        """The results for all rows; None where it is not certain that they would be those of the function."""
        if all(isinstance(each, pa.Scalar) for each in args) or not all(map(is_declarable, kinds)):
            # That is the query's doing and says nothing about other calls of the function.
            return None
        if self._skipped > 0:
            self._skipped -= 1
            return None
        if _is_observed():
            return None
        try:
            found = self.computed(called, args, kinds, rows)
        except Exception as error:
            # Whatever it was: the function itself has the last word.
            logger.debug("a batch of %d rows is computed row by row: %s", rows, error)
            self._skipped = 1 << self._failures
            self._failures = min(self._failures + 1, _MOST_DOUBLED)
            return None
        self._failures = 0
        return found

    def computed(self, called: Any, args: Sequence[Datum], kinds: Sequence[DataType], rows: int) -> pa.Array:
        """The results, or an exception."""
        function = self._checked(called)
        if len(args) != self.form.arguments or all(isinstance(each, pa.Scalar) for each in args):
            raise GivenUpError("no columns as arguments")
        values = [argument_value(each, kind) for each, kind in zip(args, kinds, strict=True)]
        return self._evaluation.column(values, rows, self.form.outer_values(function))

    def _checked(self, called: Any) -> types.FunctionType:
        """The function that would be called, if it still is the one that the form was made of."""
        found = plain_function(called)
        if found is None or found[1] is not self.form.of_method:
            raise GivenUpError("another function")
        function = found[0]
        if function.__code__ is not self._code:
            if code_identity(function.__code__) != self.form.code:
                raise GivenUpError("a function with other code")
            self._code = function.__code__
        if not self.form.means_builtins(function):
            raise GivenUpError("names of Python's own functions with another meaning")
        return function


def _is_observed() -> bool:
    """Whether a debugger, a profiler or a measurement of coverage waits for the lines of the function."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(each) is not None for each in range(6))
