"""A pattern as an automaton: states, and edges that an event takes, passes by, or goes on without.

An edge *takes* an event into the match, *ignores* it, or *proceeds*: goes to another state that looks at the same
event. A partial match waits in one state. The automaton is made from the last step to the first, so that each step
knows where it leads to. A step that repeats becomes a state per repetition, and a loop one more that leads to itself.
Steps that must not come are no states of the match: their condition leads to a *stop* from all states that they apply
to.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field

from firesteel.cep.conditions import ALWAYS, Condition, both, negated
from firesteel.cep.errors import MalformedPatternError
from firesteel.cep.pattern import Contiguity, Pattern, Quantifier, WithinType

__all__ = ["Action", "Automaton", "Edge", "State", "StateKind", "compile_pattern"]


class Action(enum.Enum):
    """What an edge does with the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class StateKind(enum.Enum):
    """What it means to be in a state."""

    NORMAL = "normal"
    FINAL = "final"
    STOP = "stop"
    PENDING = "pending"
    """A match if nothing comes until its time is over."""


@dataclass(eq=False)
class State:
    """A state, of a step."""

    name: str
    """Unique, and the same whenever the same pattern is compiled: stored partial matches refer to it."""
    step: str
    kind: StateKind = StateKind.NORMAL
    window: int | None = None
    """The most time since the event before."""
    is_start: bool = False
    edges: list[Edge] = field(default_factory=list, repr=False)

    def add(self, action: Action, condition: Condition, target: State | None = None) -> None:
        self.edges.append(Edge(action, self, target or self, condition))


@dataclass(eq=False)
class Edge:
    """What may be done with an event in a state."""

    action: Action
    source: State
    target: State
    condition: Condition


@dataclass(frozen=True)
class Automaton:
    """A compiled pattern."""

    states: dict[str, State]
    start: State
    window: int
    """The most time from a match's first event to its last one; 0 if there is no limit."""

    @property
    def can_be_empty(self) -> bool:
        """Whether no event at all is a match."""
        return any(state.kind is StateKind.FINAL for state in _reached_without_an_event(self.start))

    @property
    def of_event_alone(self) -> set[State]:
        """The states in which an event means the same to all partial matches."""
        return {
            state
            for state in self.states.values()
            if not any(
                edge.condition.needs_match for one in (state, *_reached_without_an_event(state)) for edge in one.edges
            )
        }


def _reached_without_an_event(start: State) -> set[State]:
    reached: set[State] = set()
    waiting = [start]
    while waiting:
        for edge in waiting.pop().edges:
            if edge.action is Action.PROCEED and edge.target not in reached:
                reached.add(edge.target)
                waiting.append(edge.target)
    return reached


def compile_pattern(pattern: Pattern) -> Automaton:
    """The automaton of a pattern. Refuses what has no clear meaning."""
    _check_names(pattern)
    skip = pattern.skip_strategy
    if skip.step is not None and skip.step not in [step.name for step in pattern.steps() if step.group is None]:
        raise MalformedPatternError(f"The pattern has no step {skip.step!r}, which {skip.kind}() skips to.")
    return _Compiler().compile(pattern)


def _check_names(pattern: Pattern) -> None:
    names = Counter(_names(pattern))
    twice = sorted(name for name, number in names.items() if number > 1)
    if twice:
        raise MalformedPatternError(
            f"Two steps have the name {twice[0]!r}. Names must differ, also those inside groups."
        )


def _names(pattern: Pattern) -> list[str]:
    names: list[str] = []
    for step in pattern.steps():
        names.extend([step.name] if step.group is None else _names(step.group))
    return names


class _Compiler:
    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._numbers: Counter[str] = Counter()
        self._stops: dict[str, State] = {}
        self._window: int | None = None
        self._group: Pattern | None = None
        """The group whose steps are worked on."""
        self._following: Pattern | None = None
        """The step behind the one that is worked on."""
        self._repeating: set[Pattern] = set()
        """Groups of which a repetition is made, that is not the first."""
        self._before_greedy: dict[State, State] = {}
        """Targets of greedy loops, as they were before they gave way to the loop."""

    def compile(self, pattern: Pattern) -> Automaton:
        end = self._state("$end", StateKind.FINAL)
        self._window = pattern.window()
        first, sink = self._down_to_first(pattern, end)
        start = self._convert(first, sink)
        start.is_start = True
        self._check_windows(pattern)
        self._check_loops()
        return Automaton(self._states, start, self._window or 0)

    def _check_loops(self) -> None:
        if any(state in _reached_without_an_event(state) for state in self._states.values()):
            raise MalformedPatternError(
                "A group repeats as often as it comes, and all its steps may be left out: it would repeat for ever "
                "without an event. Make one of its steps necessary, or give it a number of times."
            )

    def _check_windows(self, last: Pattern) -> None:
        for state in self._states.values():
            if self._window is not None and state.window is not None and state.window > self._window:
                raise MalformedPatternError(
                    f"Step {state.step!r} has a window of {state.window:,} ms since the event before, which is longer "
                    f"than that of the whole pattern, {self._window:,} ms."
                )
        own = last.window(WithinType.PREVIOUS_AND_CURRENT) or 0
        if last.contiguity is Contiguity.NOT_FOLLOWED and not self._window and own <= 0:
            raise MalformedPatternError(
                f"The pattern ends with not_followed_by({last.name!r}) and has no within(): it could never be known "
                "that nothing comes."
            )

    def _down_to_first(self, last: Pattern, sink: State) -> tuple[Pattern, State]:
        """Makes the states of all steps but the first."""
        step = last
        while step.previous is not None:
            if step.contiguity is Contiguity.NOT_FOLLOWED:
                sink = self._not_followed(step, sink)
            elif step.contiguity is Contiguity.NOT_NEXT:
                sink = self._not_next(step, sink)
            else:
                sink = self._convert(step, sink)
            self._following = step
            step = step.previous
            window = step.window()
            if window is not None and (self._window is None or window < self._window):
                self._window = window
        return step, sink

    # Steps that must not come.

    def _not_followed(self, step: Pattern, sink: State) -> State:
        # In the middle of a pattern it is a matter of the states around: see _stops_of.
        if sink.kind is not StateKind.FINAL or not (self._window or step.window(WithinType.PREVIOUS_AND_CURRENT)):
            return sink
        waiting = self._state_of(step, StateKind.PENDING)
        condition = self._taking(step)
        waiting.add(Action.PROCEED, condition, self._stop(step))
        waiting.add(Action.IGNORE, negated(condition))
        return waiting

    def _not_next(self, step: Pattern, sink: State) -> State:
        state = self._state_of(step)
        condition = self._taking(step)
        stop = self._stop(step)
        # At the end of a pattern an event has to come that does not fit.
        action = Action.IGNORE if sink.kind is StateKind.FINAL else Action.PROCEED
        state.add(action, negated(condition), sink)
        state.add(Action.PROCEED, condition, stop)
        return state

    def _stop(self, step: Pattern) -> State:
        stop = self._stops.get(step.name)
        if stop is None:
            stop = self._stops[step.name] = self._state(step.name, StateKind.STOP)
        return stop

    def _nots_before(self, step: Pattern) -> list[Pattern]:
        """The steps that must not come before this one: those between it and the last one that must."""
        found = []
        while step.previous is not None and (
            step.previous.is_optional or step.previous.contiguity is Contiguity.NOT_FOLLOWED
        ):
            step = step.previous
            if step.contiguity is Contiguity.NOT_FOLLOWED:
                found.append(step)
        return found

    def _add_stops(self, state: State, step: Pattern) -> None:
        for forbidden in self._nots_before(step):
            state.add(Action.PROCEED, self._taking(forbidden), self._stop(forbidden))

    def _add_stop_behind(self, state: State) -> None:
        """What must not come behind a step that repeats must not come between its repetitions either."""
        behind = self._following
        if behind is not None and behind.contiguity is Contiguity.NOT_FOLLOWED:
            state.add(Action.PROCEED, self._taking(behind), self._stop(behind))

    def _without_nots(self, state: State, step: Pattern) -> State:
        """Where an optional step leads to that was there: what must not come before it does not matter any more."""
        forbidden = {one.name for one in self._nots_before(step)}
        if not forbidden or not step.is_optional:
            return state
        copy = self._state(state.step, state.kind)
        for edge in state.edges:
            target = edge.target
            if edge.action is Action.PROCEED:
                if target.kind is StateKind.STOP:
                    if target.step in forbidden:
                        continue
                else:
                    target = self._without_nots(target, step)
            elif target is state:
                target = copy
            copy.add(edge.action, edge.condition, target)
        return copy

    # Steps that must come.

    def _convert(self, step: Pattern, sink: State) -> State:
        """The states of a step that leads to ``sink``. Returns the one to begin in."""
        if step.quantifier is Quantifier.LOOP:
            self._repeating.add(step)
            looping = self._loop(step, self._without_nots(sink, step))
            self._repeating.discard(step)
            first = self._repetitions(step, looping, sink)
        elif step.quantifier is Quantifier.TIMES:
            first = self._repetitions(step, sink, sink)
        else:
            first = self._once(step, sink, sink, self._taking(step), self._ignoring(step), step.is_optional)
        self._add_stops(first, step)
        return first

    def _once(
        self,
        step: Pattern,
        sink: State,
        proceed: State | None,
        taking: Condition,
        ignoring: Condition | None,
        is_optional: bool,
    ) -> State:
        """One repetition: a state that waits for an event, and may be left for ``proceed`` without one."""
        if step.group is not None:
            return self._group_once(step, sink, proceed if is_optional else None)
        state = self._state_of(step)
        sink = self._without_nots(sink, step)
        state.add(Action.TAKE, taking, sink)
        if is_optional:
            assert proceed is not None
            self._add_proceeding(state, proceed, step)
        if ignoring is not None:
            waiting = state
            if is_optional or self._begins_optional_group(step):
                # Once an event was passed by, the step is not left out any more.
                waiting = self._state(step.name)
                waiting.add(Action.TAKE, taking, sink)
                waiting.add(Action.IGNORE, ignoring)
                self._add_stops(waiting, step)
            state.add(Action.IGNORE, ignoring, waiting)
        return state

    def _add_proceeding(self, state: State, target: State, step: Pattern) -> None:
        going_on = self._always()
        until = step.until_condition
        if step.is_greedy and until is not None:
            original = self._before_greedy.get(target)
            if original is not None:
                state.add(Action.PROCEED, both(going_on, until), original)
            going_on = both(going_on, negated(until))
        state.add(Action.PROCEED, going_on, target)

    def _repetitions(self, step: Pattern, sink: State, proceed: State) -> State:
        taking = self._unless(step.until_condition, self._taking(step))
        inner = self._between(step)
        ignoring = None if inner is None else self._unless(step.until_condition, inner)
        if step.group is not None:
            self._repeating.add(step)
        if step.is_greedy and step.at_least != step.at_most:
            if step.until_condition is not None:
                self._before_greedy[sink] = self._copy(sink)
            self._give_way(sink, taking)
        last = sink
        for _ in range(step.at_most - step.at_least):
            last = self._once(step, last, proceed, taking, ignoring, True)
            self._add_stop_behind(last)
        for _ in range(step.at_least - 1):
            last = self._once(step, last, None, taking, ignoring, False)
            self._add_stop_behind(last)
        self._repeating.discard(step)
        return self._once(step, last, proceed, taking, self._ignoring(step), step.is_optional)

    def _loop(self, step: Pattern, sink: State) -> State:
        """A state that any number of events is taken in."""
        if step.group is not None:
            return self._group_loop(step, sink)
        until = step.until_condition
        taking = self._unless(until, self._taking(step))
        inner = self._between(step)
        ignoring = None if inner is None else self._unless(until, inner)
        state = self._state_of(step)
        going_on = self._always()
        if step.is_greedy:
            if until is not None:
                copy = self._copy(sink)
                state.add(Action.PROCEED, both(going_on, until), copy)
                self._before_greedy[sink] = copy
                going_on = both(going_on, negated(until))
            state.add(Action.PROCEED, going_on, sink)
            self._give_way(sink, self._taking(step))
        else:
            state.add(Action.PROCEED, going_on, sink)
        state.add(Action.TAKE, taking)
        self._add_stop_behind(state)
        if ignoring is not None:
            waiting = self._state(step.name)
            waiting.add(Action.TAKE, taking, state)
            waiting.add(Action.IGNORE, ignoring)
            state.add(Action.IGNORE, ignoring, waiting)
            self._add_stop_behind(waiting)
        return state

    def _give_way(self, state: State, taking: Condition) -> None:
        """A greedy step comes first: what it could take leads nowhere else."""
        for edge in state.edges:
            edge.condition = both(edge.condition, negated(taking))

    def _copy(self, state: State) -> State:
        copy = self._state(state.step, state.kind)
        for edge in state.edges:
            copy.add(edge.action, edge.condition, copy if edge.target is state else edge.target)
        return copy

    # Groups.

    def _group_once(self, step: Pattern, sink: State, proceed: State | None) -> State:
        going_on = self._always()
        first = self._inside(step, sink)
        if proceed is not None:
            first.add(Action.PROCEED, going_on, proceed)
        return first

    def _group_loop(self, step: Pattern, sink: State) -> State:
        going_on = self._always()
        again = self._state_of(step)
        first = self._inside(step, again)
        first.add(Action.PROCEED, going_on, sink)
        again.add(Action.PROCEED, going_on, first)
        return first

    def _inside(self, step: Pattern, sink: State) -> State:
        assert step.group is not None
        outer = self._group, self._following
        self._group = step
        first, sink = self._down_to_first(step.group, sink)
        made = self._convert(first, sink)
        self._group, self._following = outer
        return made

    def _begins_group(self, step: Pattern) -> bool:
        return self._group is not None and step.previous is None

    def _begins_optional_group(self, step: Pattern) -> bool:
        group = self._group
        return self._begins_group(step) and group is not None and group not in self._repeating and group.is_optional

    # Conditions.

    def _taking(self, step: Pattern) -> Condition:
        return self._unless(self._group_until(), step.condition or ALWAYS)

    def _always(self) -> Condition:
        return self._unless(self._group_until(), ALWAYS)

    def _group_until(self) -> Condition | None:
        return None if self._group is None else self._group.until_condition

    def _unless(self, until: Condition | None, condition: Condition) -> Condition:
        return condition if until is None else both(negated(until), condition)

    def _ignoring(self, step: Pattern) -> Condition | None:
        """Which events may lie before a step; None if there may be none."""
        contiguity = step.contiguity
        if self._begins_group(step):
            assert self._group is not None
            # What lies before a group's first step lies before the group, or between two repetitions of it.
            contiguity = self._group.inner if self._group in self._repeating else self._group.contiguity
        return self._passing(step, contiguity)

    def _between(self, step: Pattern) -> Condition | None:
        """Which events may lie between two of a step."""
        contiguity = step.inner
        if self._begins_group(step):
            assert self._group is not None
            contiguity = self._group.inner
        return self._passing(step, contiguity)

    def _passing(self, step: Pattern, contiguity: Contiguity) -> Condition | None:
        if contiguity is Contiguity.RELAXED:
            condition = negated(step.condition or ALWAYS)
        elif contiguity is Contiguity.ANY:
            condition = ALWAYS
        else:
            return None
        return self._unless(self._group_until(), condition)

    # States.

    def _state(self, step: str, kind: StateKind = StateKind.NORMAL) -> State:
        name = step
        # A user's step may have a name that looks like ours.
        while name in self._states:
            self._numbers[step] += 1
            name = f"{step}:{self._numbers[step]}"
        state = self._states[name] = State(name, step, kind)
        return state

    def _state_of(self, step: Pattern, kind: StateKind = StateKind.NORMAL) -> State:
        """A state that waits for a step's event, within the time that it has since the event before."""
        state = self._state(step.name, kind)
        if step.quantifier is Quantifier.ONCE:
            state.window = step.window(WithinType.PREVIOUS_AND_CURRENT)
        elif state.name != step.name:
            # The first state that is made is that of the last repetition, or of the loop.
            state.window = step.repetition_window
        return state
