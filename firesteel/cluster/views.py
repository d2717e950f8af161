"""A job as the REST API shows it: its row, what its driver said last, and its graph as Flink's vertices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from firesteel.cluster.managed import now_ms
from firesteel.cluster.masking import Masker
from firesteel.cluster.registry import ENDED, AttemptRow, JobRow
from firesteel.cluster.supervisor import Supervisor
from firesteel.engine.facade import (
    CheckpointStatistics,
    JobDetails,
    JobExceptions,
    JobFailure,
    JobMetrics,
    OperatorMetrics,
)
from firesteel.engine.facade.encoding import decoded

__all__ = ["JobView", "Vertex", "view_of"]


def vertex_id(uid: str) -> str:
    """Vertices have ids of 32 hexadecimal digits in Flink.

    >>> vertex_id("counted")
    'ae7424d6162a89fc73c69c7fc35166cc'
    """
    return hashlib.md5(uid.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Vertex:
    """A chain of operators."""

    id: str
    name: str
    parallelism: int
    nodes: tuple[Mapping[str, Any], ...]
    """As in the plan."""
    operators: tuple[OperatorMetrics, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    """The vertices before it, and how records get from there."""

    @property
    def is_source(self) -> bool:
        return not self.inputs


@dataclass(frozen=True)
class JobView:
    """One job, now."""

    row: JobRow
    details: JobDetails | None = None
    metrics: JobMetrics = field(default_factory=JobMetrics)
    checkpoints: CheckpointStatistics = field(default_factory=CheckpointStatistics)
    exceptions: JobExceptions = field(default_factory=JobExceptions)
    attempts: tuple[AttemptRow, ...] = ()
    masker: Masker = field(default_factory=lambda: Masker({}))
    now: int = field(default_factory=now_ms)

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def ended(self) -> bool:
        return self.row.state in ENDED

    @property
    def start_time(self) -> int:
        return self.row.started or self.row.submitted

    @property
    def end_time(self) -> int:
        return self.row.ended if self.ended else -1

    @property
    def duration(self) -> int:
        return max(0, (self.row.ended if self.ended else self.now) - self.start_time)

    @cached_property
    def vertices(self) -> tuple[Vertex, ...]:
        plan = self.row.plan
        nodes = {node["id"]: node for node in plan.get("nodes", ())}
        measured = {operator.id: operator for operator in self.metrics.operators}
        of_node, chains = {}, plan.get("chains", ())
        for chain in chains:
            first = nodes[chain["nodes"][0]]
            of_node.update(dict.fromkeys(chain["nodes"], vertex_id(first["uid"])))
        found = []
        for chain in chains:
            own = set(chain["nodes"])
            inputs = [
                (of_node[before["id"]], before.get("ship_strategy", "FORWARD"))
                for number in chain["nodes"]
                for before in nodes[number].get("predecessors", ())
                if before["id"] not in own
            ]
            found.append(
                Vertex(
                    of_node[chain["nodes"][0]],
                    chain["name"],
                    chain["parallelism"],
                    tuple(nodes[number] for number in chain["nodes"]),
                    tuple(measured[number] for number in chain["nodes"] if number in measured),
                    tuple(dict.fromkeys(inputs)),
                )
            )
        return tuple(found)

    def vertex(self, wanted: str) -> Vertex | None:
        return next((one for one in self.vertices if one.id == wanted), None)

    @cached_property
    def failures(self) -> tuple[JobFailure, ...]:
        """All failures that are known, the last one first: those that drivers reported, and drivers that crashed."""
        found = list(self.exceptions.failures)
        for attempt in self.attempts:
            for known in attempt.failures:
                found.append(decoded(JobFailure, known))
            if attempt.outcome == "crashed" or (attempt.outcome == "FAILED" and not self.exceptions.failures):
                later = any(other.number > attempt.number for other in self.attempts)
                found.append(
                    JobFailure(
                        timestamp=attempt.ended,
                        attempt=attempt.number,
                        message=attempt.message,
                        exception="firesteel.cluster.DriverCrash" if attempt.outcome == "crashed" else "",
                        restarted=later or not self.ended,
                    )
                )
        unique = {(one.timestamp, one.attempt, one.message): one for one in found}
        return tuple(sorted(unique.values(), key=lambda one: one.timestamp, reverse=True))


def view_of(supervisor: Supervisor, job_id: str, tokens: tuple[str, ...] = ()) -> JobView:
    """Raises JobNotFoundError where there is no such job."""
    row = supervisor.row(job_id)
    attempts = tuple(supervisor.registry.attempts(job_id))
    masker = Masker(row.settings, tokens)
    job = supervisor.managed(job_id)
    if job is not None:
        known = job.snapshot
        if known is None:
            return JobView(row, attempts=attempts, masker=masker)
        parts = (known.status, known.metrics, known.checkpoints, known.exceptions)
        return JobView(row, *parts, attempts, masker)
    return JobView(
        row,
        _part(row, "status", JobDetails, None),
        _part(row, "metrics", JobMetrics, JobMetrics()),
        _part(row, "checkpoints", CheckpointStatistics, CheckpointStatistics()),
        _part(row, "exceptions", JobExceptions, JobExceptions()),
        attempts,
        masker,
    )


def _part(row: JobRow, name: str, kind: Any, missing: Any) -> Any:
    """What the record of a job that has ended has of something; another version may have written it."""
    try:
        return decoded(kind, row.record[name])
    except (KeyError, ValueError):
        return missing
