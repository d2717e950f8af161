"""What is left of a job that has finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The ID, the running time and the accumulators of a finished job.

    >>> result = JobExecutionResult(JobID("00" * 16), 1234, {"lines": 7})
    >>> result.get_net_runtime(), result.get_accumulator_result("lines")
    (1234, 7)
    """

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """The job's ID."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """How long the job ran, in milliseconds."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """An accumulator's value, or None if there is none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators by name."""
        return dict(self._accumulators)

    def is_job_execution_result(self) -> bool:
        """True: the job has run to its end."""
        return True

    def __str__(self) -> str:
        lines = [f"Job {self._job_id} finished after {self._net_runtime} ms."]
        lines.extend(f"  {name} = {value}" for name, value in self._accumulators.items())
        return "\n".join(lines)
