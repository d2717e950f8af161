"""What users' functions are subclasses of, and what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from firesteel.errors import ProgramError
from firesteel.table.types.data_types import DataType

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
]

T = TypeVar("T")
ACC = TypeVar("ACC")


class FunctionContext:
    """What a function may ask when it is opened: metrics, parameters of the job, and where it runs.

    >>> FunctionContext().get_job_parameter("city", "Rome")
    'Rome'
    """

    def __init__(self, runtime_context: Any = None) -> None:
        self._context = runtime_context

    def _known(self) -> Any:
        if self._context is None:
            raise ProgramError("The function runs outside of an operator: there is no context to ask.")
        return self._context

    def get_metric_group(self) -> Any:
        """Counters, gauges and the like of this subtask."""
        return self._known().get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter of the job (``pipeline.global-job-parameters``), or the default."""
        if self._context is None:
            return default_value
        found: str = self._context.get_job_parameter(key, default_value)
        return found

    def get_task_name(self) -> str:
        """The name of the operator."""
        return str(self._known().get_task_name())

    def get_task_name_with_subtasks(self) -> str:
        """The name of the operator and the number of the subtask: ``Calc (1/2)``."""
        return str(self._known().get_task_name_with_subtasks())

    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks run the operator."""
        return int(self._known().get_number_of_parallel_subtasks())

    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many subtasks could run the operator."""
        return int(self._known().get_max_number_of_parallel_subtasks())

    def get_index_of_this_subtask(self) -> int:
        """The number of this subtask, from 0."""
        return int(self._known().get_index_of_this_subtask())

    def get_attempt_number(self) -> int:
        """How often the job was restarted."""
        return int(self._known().get_attempt_number())


class UserDefinedFunction(ABC):  # noqa: B024 - its subclasses have abstract methods
    """The root of all functions that are classes."""

    def open(self, function_context: FunctionContext) -> None:  # noqa: B027 - optional to override
        """Called once in each subtask, before all other methods."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once in each subtask, after all other methods."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction):
    """Values of a row to one value."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value for one row; with ``func_type="pandas"`` a Series for all rows of a batch."""


class AsyncScalarFunction(UserDefinedFunction):
    """Values of a row to one value, which may be waited for."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value for one row."""


class TableFunction(UserDefinedFunction):
    """Values of a row to any number of rows."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The rows: a list, a range or a generator of tuples, rows or single values; None for none."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """What aggregate functions and table aggregate functions have in common."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """What a group begins with."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: Any) -> None:
        """Takes a row into the accumulator, which is changed in place."""

    def retract(self, accumulator: ACC, *args: Any) -> None:
        """Takes back a row that was taken in before. Needed where the input takes rows back."""
        raise RuntimeError(f"{type(self).__name__} needs retract(): its input takes rows back.")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Takes what other accumulators have into the first one. Needed for session windows."""
        raise RuntimeError(f"{type(self).__name__} needs merge(): its windows are sessions.")

    def get_result_type(self) -> DataType | str:
        """The type of the result."""
        raise RuntimeError(f"{type(self).__name__} needs get_result_type(): no result_type is given.")

    def get_accumulator_type(self) -> DataType | str:
        """The type of the accumulator."""
        raise RuntimeError(f"{type(self).__name__} needs get_accumulator_type(): no accumulator_type is given.")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Rows of a group to one value."""

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T:
        """The result."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Rows of a group to any number of rows."""

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """The rows of the result."""
