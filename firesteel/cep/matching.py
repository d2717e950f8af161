"""The matcher: events in, matches out. It knows nothing of streams or stored state.

A *run* is a partial match: the state it waits in, and its events. Runs that have events in common share them: a run
points to its last event, that one to the one before. An event goes to every run, and each may become none, one or
several: one that takes it, one that passes it by. The run in the start state stays for ever, and is where others begin.

Runs are kept in the order in which they began, in a binary heap like the one that Flink keeps them in: what comes first
of two that began with the same event follows from its layout, and decides which of them a skip strategy leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from firesteel.cep.automaton import Action, Automaton, Edge, State, StateKind
from firesteel.cep.conditions import ConditionContext
from firesteel.cep.skipping import AfterMatchSkipStrategy, EventId

__all__ = ["Match", "Matcher", "Node", "Run", "Runs"]

Match = dict[str, list[Any]]
"""The events of a match by step, steps in the order in which they first appear."""

_TAKE, _IGNORE, _PROCEED = range(3)
_CODES = {Action.TAKE: _TAKE, Action.IGNORE: _IGNORE, Action.PROCEED: _PROCEED}
_LAST: EventId = (2**63 - 1, 2**31 - 1)
"""Where the start state stands in the order of runs."""


class Node(NamedTuple):
    """An event of a match, and those before it."""

    step: str
    event: Any
    id: EventId
    previous: Node | None


class Run(NamedTuple):
    """A partial match."""

    state: State
    node: Node | None
    first: int
    """The time of its first event."""
    last: int
    """The time of its last event."""
    begun: EventId
    """Its first event, or :data:`_LAST` in the start state."""


class RunHeap:
    """A binary heap of runs by the event they began with."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: list[Run] = []
        for run in runs:
            self.add(run)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def add(self, run: Run) -> None:
        runs = self.runs
        runs.append(run)
        place, begun = len(runs) - 1, run.begun
        while place:
            above = (place - 1) >> 1
            if runs[above].begun <= begun:
                break
            runs[place] = runs[above]
            place = above
        runs[place] = run

    def pop(self) -> Run:
        runs = self.runs
        found, last = runs[0], runs.pop()
        if runs:
            self._sink(0, last)
        return found

    def drop_before(self, bound: EventId) -> None:
        """Drops the runs that began before an event."""
        kept = [run for run in self.runs if run.begun >= bound]
        if len(kept) < len(self.runs):
            self.runs = kept
            for place in range((len(kept) >> 1) - 1, -1, -1):
                self._sink(place, kept[place])

    def _sink(self, place: int, run: Run) -> None:
        runs, size, begun = self.runs, len(self.runs), run.begun
        while (below := 2 * place + 1) < size:
            if below + 1 < size and runs[below].begun > runs[below + 1].begun:
                below += 1
            if begun <= runs[below].begun:
                break
            runs[place] = runs[below]
            place = below
        runs[place] = run


class Runs:
    """All that is under way: partial matches, and matches that wait for an earlier one to end."""

    __slots__ = ("complete", "next_number", "partial")

    def __init__(self, partial: RunHeap, complete: RunHeap, next_number: int = 0) -> None:
        self.partial, self.complete = partial, complete
        self.next_number = next_number
        """Numbers events in the order in which they came."""


class _Look(ConditionContext):
    """The event at hand, and the run that may get it."""

    __slots__ = ("answers", "event", "events", "node", "now", "time")

    def __init__(self, event: Any, time: int, now: int) -> None:
        self.event, self.time, self.now = event, time, now
        self.answers: dict[Any, bool] = {}
        """What conditions have said that depend on the event alone."""
        self.node: Node | None = None
        self.events: Match | None = None
        """Those of the run, as soon as somebody asks for them."""

    def get_events_for_pattern(self, step: str) -> list[Any]:
        if self.events is None:
            self.events = _match(self.node)
        return list(self.events.get(step, ()))

    def timestamp(self) -> int:
        return self.time

    def current_processing_time(self) -> int:
        return self.now


class Matcher:
    """Runs an automaton."""

    def __init__(self, automaton: Automaton, skip: AfterMatchSkipStrategy, timeouts: bool = False) -> None:
        self.automaton, self._skip, self._timeouts = automaton, skip, timeouts
        self._window = automaton.window
        self._has_step_windows = any(state.window for state in automaton.states.values())
        self.now = 0
        """The processing time, in milliseconds."""
        self._start = Run(automaton.start, None, -1, -1, _LAST)
        self._of_event_alone = automaton.of_event_alone
        self._edges = {state: [_compact(edge) for edge in state.edges] for state in automaton.states.values()}

    def initial(self) -> Runs:
        """Nothing is under way."""
        return Runs(RunHeap([self._start]), RunHeap())

    def is_idle(self, runs: Runs) -> bool:
        """Whether nothing is under way."""
        return len(runs.partial.runs) == 1 and not runs.complete.runs

    def process(self, runs: Runs, event: Any, time: int) -> list[Match]:
        """Takes an event. Those of earlier times came before, and ``advance`` was called with this time."""
        look = _Look(event, time, self.now)
        begun = (time, runs.next_number)
        step, before = self._step, runs.partial.runs
        partial: RunHeap | None = None
        found: RunHeap | None = None
        # Where the event is passed by, whatever was matched so far: many runs wait in a few states.
        passing: set[State] = set()
        for place, run in enumerate(before):
            if run.state in passing:
                if partial is not None:
                    partial.add(run)
                continue
            made = step(run, look, begun)
            stays = len(made) == 1 and made[0] is run
            if stays and run.node is not None and run.state in self._of_event_alone:
                passing.add(run.state)
            if partial is None:
                if stays:
                    continue
                # Most events change nothing, and a heap that is filled in its own order looks the same.
                partial = RunHeap()
                partial.runs = before[:place]
            kept, stopped = [], False
            for one in made:
                kind = one.state.kind
                if kind is StateKind.FINAL:
                    found = found or RunHeap()
                    found.add(one)
                elif kind is StateKind.STOP:
                    stopped = True
                else:
                    kept.append(one)
            if stopped:
                kept = [run] if run.node is None else []
            for one in kept:
                partial.add(one)
        if partial is None:
            return []
        runs.next_number += 1
        runs.partial = partial
        return self._complete(runs, found or ())

    def advance(self, runs: Runs, time: int) -> tuple[list[Match], list[tuple[Match, int]]]:
        """Time comes to ``time``. Returns matches, and partial matches whose time is over with its end."""
        if not self._has_step_windows:
            # The first run began first, so its time is over first.
            earliest = runs.partial.runs[0]
            if earliest.node is None or not self._window or time - earliest.first < self._window:
                return [], []
        ended, found = [], RunHeap()
        partial = RunHeap()
        for run in runs.partial.runs:
            end = self._end(run, time)
            if end is None:
                partial.add(run)
            elif run.state.kind is StateKind.PENDING:
                found.add(run)
            elif self._timeouts:
                ended.append((_match(run.node), end))
        runs.partial = partial
        return self._complete(runs, found), ended

    def deadline(self, runs: Runs) -> int | None:
        """When the next run's time is over."""
        if not self._has_step_windows:
            earliest = runs.partial.runs[0]
            return None if earliest.node is None or not self._window else earliest.first + self._window
        return min((end for run in runs.partial.runs for end in self._ends(run)), default=None)

    def _end(self, run: Run, time: int) -> int | None:
        for end in self._ends(run):
            if time >= end:
                return end
        return None

    def _ends(self, run: Run) -> Iterator[int]:
        if run.node is not None:
            if run.state.window:
                yield run.last + run.state.window
            if self._window:
                yield run.first + self._window

    def _complete(self, runs: Runs, found: Iterable[Run]) -> list[Match]:
        """Emits the matches that nothing earlier can hold back, and drops what they skip."""
        complete, partial, skip = runs.complete, runs.partial, self._skip
        for run in found:
            complete.add(run)
        matches = []
        while complete.runs:
            run = complete.runs[0]
            if skip.skips and partial.runs and partial.runs[0].begun < run.begun:
                break
            complete.pop()
            if skip.skips:
                bound = skip.bound(_match(run.node, ids=True))
                if bound is not None:
                    partial.drop_before(bound)
                    complete.drop_before(bound)
            matches.append(_match(run.node))
        return matches

    def _step(self, run: Run, look: _Look, begun: EventId) -> list[Run]:
        """What an event makes of a run."""
        node = run.node
        look.node, look.events = node, None
        edges_of = self._edges
        made: list[Run] = []
        waiting = [run.state]
        taken: list[tuple[int, State, State]] = []
        while waiting:
            for action, source, target, holds in edges_of[waiting.pop()]:
                if holds(look):
                    if action != _PROCEED:
                        taken.append((action, source, target))
                    elif target.kind is StateKind.STOP:
                        made.append(Run(target, None, 0, 0, begun))
                    else:
                        waiting.append(target)
        for action, source, target in taken:
            if action == _IGNORE:
                if node is not None:
                    made.append(run if target is run.state else run._replace(state=target))
                continue
            last = Node(source.step, look.event, begun, node)
            if node is None:
                one = Run(target, last, look.time, look.time, begun)
            else:
                one = Run(target, last, run.first, look.time, run.begun)
            made.append(one)
            end = self._final_behind(target, look)
            if end is not None:
                made.append(one._replace(state=end))
        if node is None:
            made.append(run)
        return made

    def _final_behind(self, state: State, look: _Look) -> State | None:
        """The end, if it can be reached without another event."""
        waiting = [state]
        while waiting:
            for action, _, target, holds in self._edges[waiting.pop()]:
                if action == _PROCEED and holds(look):
                    if target.kind is StateKind.FINAL:
                        return target
                    waiting.append(target)
        return None


def _compact(edge: Edge) -> tuple[int, State, State, Any]:
    return _CODES[edge.action], edge.source, edge.target, edge.condition.holds


def _match(node: Node | None, ids: bool = False) -> Match:
    """The events up to a node by step, or their ids."""
    path = []
    while node is not None:
        path.append(node)
        node = node.previous
    found: Match = {}
    for one in reversed(path):
        found.setdefault(one.step, []).append(one.id if ids else one.event)
    return found
