"""Transformations: what the fluent builder writes down, one frozen record per call."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import Location
from firesteel.graph.specs import OperatorSpec

__all__ = ["Chaining", "Edge", "Partitioning", "Program", "Ship", "Transformation"]


class Ship(enum.Enum):
    """How records choose the subtask of the next operator. Values are the names that Flink's plan shows."""

    FORWARD = "FORWARD"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    GLOBAL = "GLOBAL"
    BROADCAST = "BROADCAST"
    HASH = "HASH"
    CUSTOM = "CUSTOM"


class Chaining(enum.Enum):
    """Whether an operator may share a task with its neighbours."""

    ALWAYS = "ALWAYS"
    HEAD = "HEAD"
    NEVER = "NEVER"


@dataclass(frozen=True)
class Partitioning:
    """A way to ship, with the user's functions where it needs them."""

    ship: Ship = Ship.FORWARD
    selector: Any = None
    partitioner: Any = None
    explicit: bool = False
    """Whether the user asked for it. An implicit FORWARD gives way where the parallelism differs."""
    key_type: TypeInformation | None = None
    """What the user declared of the keys."""


@dataclass(frozen=True)
class Edge:
    """An input of a transformation: the main output of another one, or a side output."""

    source: int
    partitioning: Partitioning = field(default_factory=Partitioning)
    tag: str | None = None
    ordinal: int = 0
    """Which input of the transformation it feeds: 0, or 1 for the second stream of two connected ones."""


@dataclass(frozen=True)
class Transformation:
    """One operator of the program as the user wrote it."""

    id: int
    name: str
    spec: OperatorSpec
    inputs: tuple[Edge, ...]
    built_at: Location
    output_type: TypeInformation | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    description: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    slot_sharing_group: str | None = None
    parallel: bool = True
    """False where the operator can only ever have one subtask."""


class Program:
    """All transformations of one environment. Builder calls that change one (``name``, ``uid``) replace it."""

    def __init__(self) -> None:
        self._nodes: dict[int, Transformation] = {}
        self._next = 1

    def add(self, **fields: Any) -> Transformation:
        node = Transformation(id=self._next, **fields)
        self._nodes[node.id] = node
        self._next += 1
        return node

    def get(self, node_id: int) -> Transformation:
        return self._nodes[node_id]

    def change(self, node_id: int, **fields: Any) -> None:
        self._nodes[node_id] = replace(self._nodes[node_id], **fields)

    def nodes(self) -> list[Transformation]:
        return list(self._nodes.values())

    def forget_sinks(self) -> None:
        """After an execution: streams may be built on further, but what was executed is not executed again."""
        self._nodes = {node_id: node for node_id, node in self._nodes.items() if not node.spec.is_sink}

    def remove_sinks(self) -> list[Transformation]:
        """Takes the sinks out, for a job that is not theirs; :meth:`put_back` puts them back."""
        waiting = [node for node in self._nodes.values() if node.spec.is_sink]
        self.forget_sinks()
        return waiting

    def put_back(self, sinks: list[Transformation]) -> None:
        """Adds the sinks that :meth:`remove_sinks` has taken out."""
        nodes = {**self._nodes, **{node.id: node for node in sinks}}
        self._nodes = dict(sorted(nodes.items()))
