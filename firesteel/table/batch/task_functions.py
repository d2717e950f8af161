"""Users' functions inside Spark SQL, where no operator is that would open and close them."""

from __future__ import annotations

from pyspark import TaskContext

from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.errors import ProgramError
from firesteel.metrics import MetricGroup
from firesteel.table.functions.contracts import UserDefinedFunction
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.expressions import Expression, UserCall

__all__ = ["TaskRuntime", "have_to_be_closed", "user_functions"]


class TaskRuntime:
    """What functions may ask of the task that they run in. Their metrics are counted and shown nowhere.

    >>> TaskRuntime("city: Rome").get_job_parameter("city", "Oslo")
    'Rome'
    """

    def __init__(self, job_parameters: str) -> None:
        """``job_parameters`` as in ``pipeline.global-job-parameters``."""
        settings = Configuration.from_dict({"pipeline.global-job-parameters": job_parameters})
        self._parameters = ExecutionConfig().configure(settings).get_global_job_parameters()
        self._metrics = MetricGroup()
        self._task = TaskContext.get()

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        return self._parameters.get(key, default_value)

    def get_task_name(self) -> str:
        return "Calc"

    def get_task_name_with_subtasks(self) -> str:
        return f"{self.get_task_name()} ({self.get_index_of_this_subtask() + 1})"

    def get_index_of_this_subtask(self) -> int:
        return self._task.partitionId() if self._task is not None else 0

    def get_attempt_number(self) -> int:
        return self._task.attemptNumber() if self._task is not None else 0

    def get_number_of_parallel_subtasks(self) -> int:
        raise ProgramError(
            "In batch mode a function cannot ask how many subtasks there are: Spark decides it while the query runs. "
            "get_index_of_this_subtask() tells them apart."
        )

    get_max_number_of_parallel_subtasks = get_number_of_parallel_subtasks


def user_functions(expression: Expression) -> list[UserFunction]:
    """The users' functions of an expression, each once."""
    found: list[UserFunction] = []

    def visit(part: Expression) -> None:
        if isinstance(part, UserCall) and part.user not in found:
            found.append(part.user)
        for argument in getattr(part, "args", ()):
            visit(argument)

    visit(expression)
    return found


def have_to_be_closed(functions: list[UserFunction]) -> bool:
    """Whether one of them does something when it is closed."""
    own = [user.function for user in functions if isinstance(user.function, UserDefinedFunction)]
    return any(type(function).close is not UserDefinedFunction.close for function in own)
