"""Partial matches as plain data, which is what a checkpoint keeps.

Events and the nodes that lead to them are written once, however many runs share them.
"""

from __future__ import annotations

from typing import Any

from firesteel.cep.automaton import Automaton
from firesteel.cep.matching import Node, Run, RunHeap, Runs
from firesteel.errors import CheckpointError, FailureKind

__all__ = ["ChangedPatternError", "from_plain", "to_plain"]


class ChangedPatternError(CheckpointError):
    """Stored partial matches wait in states that the pattern does not have any more."""

    kind = FailureKind.PERMANENT


def to_plain(runs: Runs) -> dict[str, Any]:
    """What there is, as numbers, names and events."""
    events: list[Any] = []
    nodes: list[tuple[Any, ...]] = []
    places: dict[int, int] = {}
    known: dict[tuple[int, int], int] = {}

    def place_of(node: Node | None) -> int:
        path = []
        while node is not None and id(node) not in places:
            path.append(node)
            node = node.previous
        place = -1 if node is None else places[id(node)]
        for one in reversed(path):
            event = known.get(one.id)
            if event is None:
                event = known[one.id] = len(events)
                events.append((*one.id, one.event))
            nodes.append((one.step, event, place))
            place = places[id(one)] = len(nodes) - 1
        return place

    def plain(run: Run) -> tuple[Any, ...]:
        return (run.state.name, place_of(run.node), run.first, run.last, *run.begun)

    # The start state is always there; where it stands decides on the order of others.
    partial = [plain(run) if run.node is not None else None for run in runs.partial]
    complete = [plain(run) for run in runs.complete]
    return {
        "partial": partial,
        "complete": complete,
        "steps": nodes,
        "events": events,
        "next": runs.next_number,
    }


def from_plain(stored: dict[str, Any], automaton: Automaton, start: Runs) -> Runs:
    """The runs that were stored, on top of what a key begins with."""
    events = stored["events"]
    nodes: list[Node] = []
    for step, event, previous in stored["steps"]:
        time, number, value = events[event]
        nodes.append(Node(step, value, (time, number), nodes[previous] if previous >= 0 else None))

    def run(plain: tuple[Any, ...]) -> Run:
        name, node, first, last, time, number = plain
        state = automaton.states.get(name)
        if state is None:
            raise ChangedPatternError(
                f"Stored partial matches wait in state {name!r}, which the pattern does not have any more; it has "
                f"{', '.join(automaton.states)}. Keep that step as it was, or start the operator without its state: "
                "give it another uid."
            )
        return Run(state, nodes[node] if node >= 0 else None, first, last, (time, number))

    # The very heaps that were stored.
    partial, complete = RunHeap(), RunHeap()
    (begin,) = start.partial
    partial.runs = [begin if one is None else run(one) for one in stored["partial"]]
    complete.runs = [run(one) for one in stored["complete"]]
    return Runs(partial, complete, stored["next"])
