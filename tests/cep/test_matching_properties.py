"""The matcher against one that tries all subsequences, for patterns whose meaning can be said in a few words.

A match gives each step some of the events, all in order. Between two neighbours of a match may lie: nothing, if the
later one is strict; nothing that the later one's step would have taken, if it is relaxed; anything else. Nothing that
fits a forbidden step may lie between its two neighbours. All of it lies within the window. A group that repeats is its
steps written one after the other, as often as it may come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from firesteel.cep import AfterMatchSkipStrategy, Pattern
from firesteel.cep.automaton import compile_pattern
from firesteel.cep.matching import Matcher
from firesteel.common.time import Duration

Event = tuple[str, int]
"""Its kind, and its place in the input."""
Chosen = tuple[tuple[int, int], ...]
"""Places in the input with the numbers of their steps."""


@dataclass(frozen=True)
class Step:
    how: str
    kinds: str
    at_least: int = 1
    at_most: int | None = 1
    """None if there is no end."""
    inner: str = "followed_by"
    is_optional: bool = False
    name: str = ""

    @property
    def is_not(self) -> bool:
        return self.how.startswith("not")

    @property
    def repeats(self) -> bool:
        return (self.at_least, self.at_most) != (1, 1)


@dataclass(frozen=True)
class Group:
    how: str
    steps: tuple[Step, ...]
    at_least: int
    at_most: int
    inner: str

    @property
    def repeats(self) -> bool:
        return (self.at_least, self.at_most) != (1, 1)

    def unfolded(self) -> Iterator[tuple[Step, ...]]:
        """Its steps one after the other, for each number of times that it may come."""
        first, *others = self.steps
        for times in range(self.at_least, self.at_most + 1):
            how = [self.how] + [self.inner] * (times - 1)
            yield tuple(step for one in how for step in (replace(first, how=one), *others))


@dataclass(frozen=True)
class Case:
    steps: tuple[Step | Group, ...]
    window: int | None
    kinds: str
    times: tuple[int, ...]

    def events(self) -> list[Event]:
        return list(zip(self.kinds, range(len(self.kinds)), strict=True))


# Firesteel.


def matched(case: Case) -> list[Chosen]:
    matcher = Matcher(compile_pattern(_pattern(case)), AfterMatchSkipStrategy.no_skip())
    runs = matcher.initial()
    found: list[Chosen] = []
    for event, time in zip(case.events(), case.times, strict=True):
        freed, _ = matcher.advance(runs, time)
        for match in [*freed, *matcher.process(runs, event, time)]:
            found.append(tuple(sorted((one[1], int(name)) for name, events in match.items() for one in events)))
    return sorted(found)


def _pattern(case: Case) -> Any:
    pattern: Any = Pattern
    for step in case.steps:
        pattern = _grouped(pattern, step) if isinstance(step, Group) else _added(pattern, step)
    if case.window is not None:
        pattern.within(Duration.of_millis(case.window))
    return pattern


def _grouped(pattern: Any, group: Group) -> Any:
    steps: Any = Pattern
    for step in group.steps:
        steps = _added(steps, step)
    return _repeated(getattr(pattern, group.how)(steps), group)


def _added(pattern: Any, step: Step) -> Any:
    pattern = getattr(pattern, step.how)(step.name)
    pattern.where(lambda event, kinds=step.kinds: event[0] in kinds)
    _repeated(pattern, step)
    return pattern.optional() if step.is_optional else pattern


def _repeated(pattern: Pattern, step: Step | Group) -> Pattern:
    if step.at_most is None:
        pattern.times_or_more(step.at_least)
    elif step.repeats:
        pattern.times(step.at_least, step.at_most)
    if step.inner == "next":
        pattern.consecutive()
    elif step.inner == "followed_by_any":
        pattern.allow_combinations()
    return pattern


# All subsequences.


def enumerated(case: Case) -> list[Chosen]:
    return sorted(
        chosen
        for steps in _unfolded(case.steps)
        for chosen in _choices(Straight(steps, case.kinds), 0, ())
        if chosen and _in_time(case, chosen)
    )


@dataclass(frozen=True)
class Straight:
    """A pattern without groups, and what it is tried on."""

    steps: tuple[Step, ...]
    kinds: str


def _unfolded(steps: tuple[Step | Group, ...]) -> Iterator[tuple[Step, ...]]:
    if not steps:
        yield ()
        return
    first, *others = steps
    for begin in first.unfolded() if isinstance(first, Group) else [(first,)]:
        for end in _unfolded(tuple(others)):
            yield *begin, *end


def _in_time(case: Case, chosen: Chosen) -> bool:
    return case.window is None or case.times[chosen[-1][0]] - case.times[chosen[0][0]] < case.window


def _choices(case: Straight, number: int, chosen: Chosen) -> Iterator[Chosen]:
    """The matches that begin with what was chosen, when the steps before this one are done."""
    if number == len(case.steps):
        yield chosen
        return
    step = case.steps[number]
    if step.is_not:
        yield from _choices(case, number + 1, chosen)
        return
    if step.is_optional:
        yield from _choices(case, number + 1, chosen)
    yield from _repetitions(case, number, chosen, 0)


def _repetitions(case: Straight, number: int, chosen: Chosen, done: int) -> Iterator[Chosen]:
    step = case.steps[number]
    if done >= step.at_least:
        yield from _choices(case, number + 1, chosen)
    if done == step.at_most:
        return
    how = step.inner if done else step.how
    after = chosen[-1][0] + 1 if chosen else 0
    for place in range(after, len(case.kinds)):
        fits = case.kinds[place] in step.kinds
        between = case.kinds[after:place]
        if fits and (done or not chosen or _allowed(case, number, between + case.kinds[place])):
            yield from _repetitions(case, number, (*chosen, (place, int(step.name))), done + 1)
        if chosen and (how == "next" or (how == "followed_by" and fits)):
            # What comes later would have this one in between.
            return


def _allowed(case: Straight, number: int, kinds: str) -> bool:
    """Whether the forbidden step before this one, if there is one, allows what lies between its neighbours."""
    before = case.steps[number - 1]
    if before.how == "not_next":
        return kinds[0] not in before.kinds
    return before.how != "not_followed_by" or not set(kinds) & set(before.kinds)


# What is tried.


KINDS = st.sampled_from(("abc", "ab", "bc", "a", "b", "c"))
HOW = st.sampled_from(("next", "followed_by", "followed_by_any"))
TIMES = st.sampled_from(((1, 1), (1, 1), (1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (1, None), (2, None)))


@st.composite
def single(draw: st.DrawFn, how: str) -> Step:
    at_least, at_most = draw(TIMES)
    inner = draw(HOW) if (at_least, at_most) != (1, 1) else "followed_by"
    return Step(how, draw(KINDS), at_least, at_most, inner, draw(st.integers(0, 3)) == 0)


@st.composite
def groups(draw: st.DrawFn, how: str) -> Group:
    """One or two steps, which come once each. How often the group comes is open only if nothing may lie in between: a
    group that could come once more lets events pass, and does so even before a strict step. Flink does the same."""
    steps = tuple(Step("begin" if not n else draw(HOW), draw(KINDS)) for n in range(draw(st.integers(1, 2))))
    times = draw(st.sampled_from(((1, 1), (2, 2), (2, 2), (3, 3), (1, 2), (2, 3))))
    inner = draw(HOW) if times[0] == times[1] != 1 else "next" if times[1] > 1 else "followed_by"
    return Group(how, steps, *times, inner)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    alphabet = "abc"
    steps: list[Step | Group] = []
    for number in range(draw(st.sampled_from((2, 1, 3, 4)))):
        how = draw(HOW) if number else "begin"
        # A forbidden step has a single one before and behind it, which an event that is forbidden does not fit.
        before = steps[-1] if steps else None
        wanted = draw(KINDS)
        others = sorted(set(alphabet) - set(wanted))
        alone = isinstance(before, Step) and not before.repeats and not before.is_optional
        if alone and others and draw(st.integers(0, 4)) == 0:
            forbidden = draw(st.sampled_from(others))
            steps += [Step(draw(st.sampled_from(("not_next", "not_followed_by"))), forbidden), Step(how, wanted)]
        else:
            made: Step | Group = draw(groups(how)) if draw(st.integers(0, 2)) == 0 else draw(single(how))
            steps.append(made)
    length = draw(st.integers(4, 8) | st.integers(1, 3))
    gaps = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    return Case(
        steps=_named(steps),
        window=draw(st.none() | st.integers(2, 10)),
        kinds="".join(draw(st.lists(st.sampled_from(alphabet), min_size=length, max_size=length))),
        times=tuple(sum(gaps[: place + 1], 1) for place in range(length)),
    )


def _named(steps: list[Step | Group]) -> tuple[Step | Group, ...]:
    numbers = count()

    def named(step: Step) -> Step:
        return replace(step, name=str(next(numbers)))

    return tuple(
        replace(step, steps=tuple(named(one) for one in step.steps)) if isinstance(step, Group) else named(step)
        for step in steps
    )


LOOP_THEN_B = (Step("begin", "a", 1, None, name="0"), Step("followed_by", "b", name="1"))


@settings(max_examples=400)
@given(cases())
@example(Case(LOOP_THEN_B, None, "abab", (1, 2, 3, 4)))
@example(Case(LOOP_THEN_B, 3, "abab", (1, 2, 3, 4)))
def test_all_subsequences_that_fit_are_found_and_no_others(case: Case) -> None:
    assert matched(case) == enumerated(case)


def test_what_is_tried_matches_often_enough() -> None:
    """The two ways to match would agree on nothing at all, too."""
    counts: list[tuple[int, bool]] = []

    @settings(max_examples=400, derandomize=True, database=None)
    @given(cases())
    def note(case: Case) -> None:
        counts.append((len(enumerated(case)), any(isinstance(step, Group) and step.repeats for step in case.steps)))

    note()
    assert sum(1 for number, _ in counts if number) > len(counts) / 6
    assert sum(1 for number, has_group in counts if number and has_group) > 10
    assert max(counts)[0] > 10
