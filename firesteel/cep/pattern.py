"""Patterns of events, as programs write them."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from firesteel.cep.conditions import Condition, GivenCondition, both, either, given
from firesteel.cep.errors import MalformedPatternError
from firesteel.cep.skipping import AfterMatchSkipStrategy
from firesteel.common.time import Duration, Time
from firesteel.datastream.functions import Function

__all__ = ["Contiguity", "Pattern", "Quantifier", "WithinType"]

_GROUP = "group"


class WithinType(enum.Enum):
    """What :meth:`Pattern.within` limits."""

    FIRST_AND_LAST = "first and last"
    """The time from a match's first event to its last one."""
    PREVIOUS_AND_CURRENT = "previous and current"
    """The time from the event before to the one of this step."""


class Contiguity(enum.Enum):
    """Which events may lie between a step and the one before."""

    STRICT = "next"
    RELAXED = "followed_by"
    ANY = "followed_by_any"
    NOT_NEXT = "not_next"
    NOT_FOLLOWED = "not_followed_by"

    @property
    def is_not(self) -> bool:
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED)


class Quantifier(enum.Enum):
    """How often a step's events come."""

    ONCE = "once"
    TIMES = "times"
    LOOP = "loop"


class Pattern:
    """A sequence of steps. Each method changes the last step, or adds one and returns the longer pattern.

    Conditions are callables of an event, or of an event and a context that knows the events matched so far
    (``get_events_for_pattern(step)``), the event's ``timestamp()`` and ``current_processing_time()``; or a
    ``SimpleCondition`` or ``IterativeCondition``, which can be opened and closed. They must not change anything: how
    often they are called is open.

    >>> small = Pattern.begin("small").where(lambda amount: amount < 10)
    >>> large = small.followed_by("large").where(lambda amount: amount > 1000).within(Duration.of_minutes(1))
    >>> [step.name for step in large.steps()]
    ['small', 'large']
    """

    def __init__(
        self,
        name: str,
        previous: Pattern | None,
        contiguity: Contiguity,
        skip: AfterMatchSkipStrategy,
        group: Pattern | None = None,
    ) -> None:
        self.name = name
        self.previous = previous
        self.contiguity = contiguity
        self.skip_strategy = skip
        self.group = group
        self.condition: Condition | None = None
        self.until_condition: Condition | None = None
        self.windows: dict[WithinType, int] = {}
        self.quantifier = Quantifier.ONCE
        self.at_least = self.at_most = 1
        self.repetition_window: int | None = None
        self.is_optional = self.is_greedy = False
        self.inner = Contiguity.RELAXED
        """Which events may lie between two of the same step."""

    # Steps.

    @staticmethod
    def begin(start: str | Pattern, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
        """A pattern's first step, by name or as a group, and what becomes of other matches when one was found."""
        return _step(start, None, Contiguity.STRICT, skip or AfterMatchSkipStrategy.no_skip())

    def next(self, step: str | Pattern) -> Pattern:
        """The very next event."""
        return self._then(step, Contiguity.STRICT)

    def followed_by(self, step: str | Pattern) -> Pattern:
        """The next event that fits; others in between do not matter."""
        return self._then(step, Contiguity.RELAXED)

    def followed_by_any(self, step: str | Pattern) -> Pattern:
        """Any later event that fits, also after others that did."""
        return self._then(step, Contiguity.ANY)

    def not_next(self, name: str) -> Pattern:
        """The very next event must not fit."""
        return self._then_not(name, Contiguity.NOT_NEXT)

    def not_followed_by(self, name: str) -> Pattern:
        """No event that fits comes before the next step, or within the time of the pattern if this is its last one."""
        return self._then_not(name, Contiguity.NOT_FOLLOWED)

    def _then(self, step: str | Pattern, contiguity: Contiguity) -> Pattern:
        return _step(step, self, contiguity, self.skip_strategy)

    def _then_not(self, name: str, contiguity: Contiguity) -> Pattern:
        if self.is_optional:
            raise MalformedPatternError(
                f"{contiguity.value}({name!r}) cannot come behind the optional step {self.name!r}. Use two "
                "patterns, one with that step and one without it."
            )
        return _step(name, self, contiguity, self.skip_strategy)

    # Conditions.

    def where(self, condition: GivenCondition) -> Pattern:
        """Events of this step must meet the condition, and all that were given before."""
        self._not_for_groups("where")
        self.condition = both(self.condition, given(condition, "where"))
        return self

    def or_(self, condition: GivenCondition) -> Pattern:
        """Events of this step may meet this condition instead of those given before."""
        self._not_for_groups("or_")
        self.condition = either(self.condition, given(condition, "or_"))
        return self

    def subtype(self, kind: type) -> Pattern:
        """Events of this step must be instances of a class."""
        self._not_for_groups("subtype")
        if not isinstance(kind, type):
            raise MalformedPatternError(f"subtype() takes a class, got {kind!r}.")
        self.condition = both(self.condition, given(lambda event: isinstance(event, kind), "subtype"))
        return self

    def until(self, condition: GivenCondition) -> Pattern:
        """Ends a loop: an event that meets the condition is none of its events, and none comes behind it."""
        if self.until_condition is not None:
            raise MalformedPatternError(f"Step {self.name!r} has an until() already.")
        if self.quantifier is not Quantifier.LOOP:
            raise MalformedPatternError(
                f"until() ends a loop, and step {self.name!r} is none. Call one_or_more() or times_or_more() first."
            )
        self.until_condition = given(condition, "until")
        return self

    # How often.

    def one_or_more(self, within: Duration | Time | None = None) -> Pattern:
        """Events that fit, as many as come. ``within`` limits the time between two of them."""
        return self._repeated("one_or_more", Quantifier.LOOP, 1, 1, within)

    def times(self, at_least: int, at_most: int | None = None, within: Duration | Time | None = None) -> Pattern:
        """So many events that fit, or between so many and so many. ``within`` limits the time between two of them."""
        if at_most is None and at_least < 1:
            raise MalformedPatternError(f"times({at_least}): a step comes once at least. optional() makes it optional.")
        made = self._repeated(
            "times", Quantifier.TIMES, at_least or 1, at_least if at_most is None else at_most, within
        )
        if at_least == 0:
            self.is_optional = True
        return made

    def times_or_more(self, times: int, within: Duration | Time | None = None) -> Pattern:
        """So many events that fit, or more. ``within`` limits the time between two of them."""
        return self._repeated("times_or_more", Quantifier.LOOP, times, times, within)

    def _repeated(self, method: str, quantifier: Quantifier, low: int, high: int, within: Any) -> Pattern:
        self._not_for_nots(method)
        if self.quantifier is not Quantifier.ONCE:
            raise MalformedPatternError(f"{method}(): step {self.name!r} says already how often its events come.")
        if low < 1 or high < low:
            raise MalformedPatternError(
                f"{method}({low}, {high}): the numbers must be positive, the smaller one first."
            )
        self.quantifier, self.at_least, self.at_most = quantifier, low, high
        self.repetition_window = None if within is None else _milliseconds(within, method)
        # Saying how often makes a step anew: what was said of it before is forgotten.
        self.is_optional = self.is_greedy = False
        self.inner = Contiguity.RELAXED
        return self

    def optional(self) -> Pattern:
        """The step may be left out."""
        if self.previous is not None and self.previous.is_greedy:
            raise MalformedPatternError(f"The optional step {self.name!r} cannot come behind a greedy one.")
        if self.is_optional:
            raise MalformedPatternError(f"Step {self.name!r} is optional already.")
        self._not_for_nots("optional")
        self.is_optional = True
        return self

    def greedy(self) -> Pattern:
        """A loop takes every event that fits, also one that would fit the next step."""
        self._not_for_nots("greedy")
        if self.group is not None:
            raise MalformedPatternError("greedy() is not for groups.")
        if self.inner is Contiguity.ANY:
            raise MalformedPatternError(f"greedy() and allow_combinations() exclude each other (step {self.name!r}).")
        if self.quantifier is Quantifier.ONCE:
            raise MalformedPatternError(f"greedy() is for steps that repeat, and {self.name!r} comes once.")
        self.is_greedy = True
        return self

    def consecutive(self) -> Pattern:
        """Nothing may lie between the events of this step."""
        return self._inner("consecutive", Contiguity.STRICT)

    def allow_combinations(self) -> Pattern:
        """Events that would fit may be left out between two of this step."""
        return self._inner("allow_combinations", Contiguity.ANY)

    def _inner(self, method: str, contiguity: Contiguity) -> Pattern:
        if self.quantifier is Quantifier.ONCE:
            raise MalformedPatternError(f"{method}() is for steps that repeat, and {self.name!r} comes once.")
        if self.inner is not Contiguity.RELAXED:
            raise MalformedPatternError(f"{method}(): step {self.name!r} says already what may lie between its events.")
        self.inner = contiguity
        return self

    # How long.

    def within(self, time: Duration | Time, kind: WithinType = WithinType.FIRST_AND_LAST) -> Pattern:
        """The most time a match may take, exclusive; or the most between this step's event and the one before."""
        self.windows[kind] = _milliseconds(time, "within")
        return self

    # For those who compile it.

    def steps(self) -> Iterator[Pattern]:
        """The steps from the first to the last one."""
        found: list[Pattern] = []
        step: Pattern | None = self
        while step is not None:
            found.append(step)
            step = step.previous
        return reversed(found)

    def functions(self) -> list[Function]:
        """The conditions that have to be opened before the first event, those of groups as well; each once."""
        found: dict[int, Function] = {}
        for step in self.steps():
            for condition in (step.condition, step.until_condition):
                found |= {} if condition is None else {id(one): one for one in condition.functions()}
            found |= {} if step.group is None else {id(one): one for one in step.group.functions()}
        return list(found.values())

    def window(self, kind: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        return self.windows.get(kind)

    def __repr__(self) -> str:
        return f"Pattern({' '.join(step.name for step in self.steps())})"

    def _not_for_groups(self, method: str) -> None:
        if self.group is not None:
            raise MalformedPatternError(f"{method}() is not for groups. Give the steps inside their conditions.")

    def _not_for_nots(self, method: str) -> None:
        if self.contiguity.is_not:
            raise MalformedPatternError(f"{method}() is not for {self.contiguity.value}({self.name!r}).")


def _step(
    step: str | Pattern, previous: Pattern | None, contiguity: Contiguity, skip: AfterMatchSkipStrategy
) -> Pattern:
    if isinstance(step, Pattern):
        return Pattern(_GROUP, previous, contiguity, skip, step)
    if not isinstance(step, str) or not step:
        raise MalformedPatternError(f"{contiguity.value}() takes the name of a step, or a Pattern, got {step!r}.")
    return Pattern(step, previous, contiguity, skip)


def _milliseconds(time: Any, method: str) -> int:
    if isinstance(time, Time | Duration):
        milliseconds = time.to_milliseconds() if isinstance(time, Time) else time.to_millis()
        if milliseconds >= 0:
            return milliseconds
    raise MalformedPatternError(f"{method}() takes a Duration that is not negative, got {time!r}.")
