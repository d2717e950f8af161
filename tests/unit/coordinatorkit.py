"""A coordinator whose clock and feedback are in a test's hands."""

from __future__ import annotations

from typing import Any

from sourcekit import read

from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.engine.coordinator import Coordinator, CoordinatorFeedback
from firesteel.engine.processing_time import ProcessingClock
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.specs import SourceSpec
from firesteel.graph.stream_graph import build_stream_graph

NONE = WatermarkStrategy.no_watermarks()


class Clock(ProcessingClock):
    """A clock that somebody sets. What passes on the other one is reported in seconds."""

    def __init__(self) -> None:
        self.now = 1000
        self.passed = 0.0
        super().__init__(lambda: self.now, lambda: self.passed)

    def jump(self, milliseconds: int) -> None:
        self.now += milliseconds

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.passed += milliseconds / 1000


NO_NEWS = CoordinatorFeedback()


def coordinator(
    build: Any,
    parallelism: int = 2,
    settings: Settings | None = None,
    wake_at: Any = None,
    clock: Any = None,
    feedback: Any = None,
    patience: float = 0.0,
) -> Coordinator:
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env)
    graph = build_job_graph(build_stream_graph(env.program, parallelism))
    return Coordinator(
        graph,
        settings or Settings(),
        "/nonexistent",
        feedback or (lambda: CoordinatorFeedback(wake_at() if wake_at is not None else None)),
        clock or Clock(),
        patience=patience,
    )


def numbers(end: int) -> Any:
    return lambda env: env.from_source(NumberSequenceSource(1, end), NONE, "n").print()


def batches(c: Coordinator, start: Any = None) -> list[dict[str, Any]]:
    offset = start or c.initial()
    found = []
    while not offset["last"]:
        offset = c.next(offset)
        found.append(offset)
    return found


def records_of(c: Coordinator, start: Any, end: Any) -> list[list[Any]]:
    """What each task reads between two offsets."""
    nodes = c._graph.graph.nodes
    found = []
    for share in c.plan(start, end):
        records: list[Any] = []
        for node_id, part in sorted(share.shares.items()):
            spec = nodes[node_id].spec
            assert isinstance(spec, SourceSpec)
            records += read(spec.reader, [part])
        found.append(records)
    return found
