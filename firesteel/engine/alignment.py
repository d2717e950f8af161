"""Watermark alignment: a source that is far ahead of its group waits for the slowest one that is not idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import OperatorSpec, SourceSpec, TimestampsSpec

__all__ = ["Alignment", "Member", "aligned", "strategy_of", "watermark_assigners"]


@dataclass(frozen=True)
class Member:
    """An operator whose watermarks are aligned with others', and the sources it gets its records from."""

    group: str
    drift: int
    sources: frozenset[str]
    subtasks: int = 1


@dataclass(frozen=True)
class _Level:
    """How far one member is, as far as it has said anything."""

    own: int | None
    idle: bool

    @property
    def heard(self) -> bool:
        return self.idle or self.own is not None


class Alignment:
    """All groups of a job.

    >>> group = {1: Member("g", 50, frozenset({"1"})), 2: Member("g", 50, frozenset({"2"}))}
    >>> Alignment(group).paused({"1/0": {"own": 100}, "2/0": {"own": 900}})
    {'2'}
    >>> Alignment(group).paused({"1/0": {"own": 100, "idle": True}, "2/0": {"own": 900}})
    set()
    """

    def __init__(self, members: dict[int, Member]) -> None:
        self._members = members

    def paused(self, kept: dict[str, dict[str, Any]]) -> set[str]:
        """Sources that may not read now, by what the operators of stage 0 remember."""
        levels = {node_id: self._level(node_id, member, kept) for node_id, member in self._members.items()}
        found: set[str] = set()
        for node_id, member in self._members.items():
            own = levels[node_id].own
            group = [levels[other] for other, one in self._members.items() if one.group == member.group]
            # One that has not said anything yet has just begun, and the others wait for it.
            waiting = not all(level.heard for level in group)
            active = [level.own for level in group if not level.idle and level.own is not None]
            if own is not None and (waiting or (active and own > min(active) + member.drift)):
                found.update(member.sources)
        return found

    @staticmethod
    def _level(node_id: int, member: Member, kept: dict[str, dict[str, Any]]) -> _Level:
        subtasks = [one for place, one in kept.items() if int(place.split("/")[0]) == node_id]
        idle = [one for one in subtasks if one.get("idle")]
        everyone = len(idle) == member.subtasks
        owns = [one["own"] for one in subtasks if "own" in one and (everyone or not one.get("idle"))]
        return _Level(min(owns, default=None), everyone)


def strategy_of(spec: OperatorSpec) -> WatermarkStrategy | None:
    """The strategy by which an operator makes event time; None if it makes none."""
    return spec.strategy if isinstance(spec, SourceSpec | TimestampsSpec) else None


def watermark_assigners(graph: JobGraph) -> dict[int, frozenset[str]]:
    """The operators of stage 0 that have a strategy, and the sources that each gets its records from."""
    assigners = [n for n in graph.stages[0].nodes if strategy_of(graph.graph.nodes[n].spec) is not None]
    return {node_id: frozenset(_sources(graph, [node_id])) for node_id in assigners}


def _sources(graph: JobGraph, waiting: list[int]) -> Iterable[str]:
    while waiting:
        here = waiting.pop()
        if isinstance(graph.graph.nodes[here].spec, SourceSpec):
            yield str(here)
        waiting.extend(edge.source for edge in graph.graph.inputs(here))


def aligned(graph: JobGraph, assigners: dict[int, frozenset[str]]) -> Alignment:
    """The groups of a job. As in Flink, they are of strategies at sources: behind a shuffle nobody can wait."""
    members = {}
    for node_id, sources in assigners.items():
        strategy = strategy_of(graph.graph.nodes[node_id].spec)
        if strategy is not None and strategy.alignment_group is not None:
            subtasks = graph.source_parallelism.get(node_id, graph.graph.nodes[node_id].parallelism)
            members[node_id] = Member(strategy.alignment_group, strategy.max_drift_ms or 0, sources, subtasks)
    return Alignment(members)
