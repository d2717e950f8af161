"""What the builder hands to the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import Dependencies
from firesteel.datastream.state_backend import StateBackend
from firesteel.graph.job_graph import JobGraph

__all__ = ["Submission"]


@dataclass(frozen=True)
class Submission:
    """A program that is ready to run."""

    name: str
    graph: JobGraph
    batch_mode: bool
    configuration: Configuration
    state_backend: StateBackend | None = None
    job_parameters: dict[str, str] = field(default_factory=dict)
    dependencies: Dependencies = field(default_factory=Dependencies)
