"""How metrics are called in systems without labels: Flink's ``metrics.scope.*`` formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from firesteel.common.configuration import Configuration

__all__ = ["ScopeFormats"]

_VARIABLE = re.compile(r"<([a-z_]+)>")
_UNFIT = re.compile(r"\s+")


@dataclass(frozen=True)
class ScopeFormats:
    """A format for each scope. ``<variables>`` are replaced; ``*`` at the beginning stands for the scope above.

    >>> formats = ScopeFormats.of({"metrics.scope.operator": "<job_name>.<operator_name>.<subtask_index>"})
    >>> of = {"job_name": "my job", "operator_name": "a", "subtask_index": "0"}
    >>> formats.prefix("taskmanager.job.task.operator", of)
    'my_job.a.0'
    >>> formats.prefix("jobmanager.job", {"host": "web", "job_name": "orders"})
    'web.jobmanager.orders'
    """

    jm_job: str = "<host>.jobmanager.<job_name>"
    task: str = "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>"
    operator: str = "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>"
    delimiter: str = "."

    @staticmethod
    def of(configuration: Mapping[str, str]) -> ScopeFormats:
        """What a configuration says."""
        read = Configuration.from_dict(configuration)
        names = {one.name: f"metrics.scope.{one.name.replace('_', '-')}" for one in fields(ScopeFormats)}
        return ScopeFormats(**{name: read.get_string(key, getattr(ScopeFormats, name)) for name, key in names.items()})

    def _format(self, scope: str) -> str:
        chosen = {"jobmanager.job": self.jm_job, "taskmanager.job.task": self.task}.get(scope, self.operator)
        if chosen.startswith("*."):
            above = "<host>.jobmanager" if scope.startswith("jobmanager") else "<host>.taskmanager.<tm_id>.<job_name>"
            chosen = above + chosen[1:]
        return chosen

    def prefix(self, scope: str, variables: Mapping[str, str]) -> str:
        """The scope of a metric as text."""
        parts = self._format(scope).split(".")
        return self.delimiter.join(_VARIABLE.sub(lambda found: _fit(variables, found), part) for part in parts)


def _fit(variables: Mapping[str, str], found: re.Match[str]) -> str:
    """A variable's value, or the variable itself where it has none."""
    return _UNFIT.sub("_", variables.get(found[1], found[0])).replace('"', "")
