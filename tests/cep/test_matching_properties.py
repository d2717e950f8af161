"""The matcher against one that tries all subsequences, for patterns whose meaning can be said in a few words.

A match gives each step some of the events, all in order. Between two neighbours of a match may lie: nothing, if the
later one is strict; nothing that the later one's step would have taken, if it is relaxed; anything else. Nothing that
fits a forbidden step may lie between its two neighbours. All of it lies within the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

    @property
    def is_not(self) -> bool:
        return self.how.startswith("not")

    @property
    def repeats(self) -> bool:
        return (self.at_least, self.at_most) != (1, 1)


@dataclass(frozen=True)
class Case:
    steps: tuple[Step, ...]
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


def _pattern(case: Case) -> Pattern:
    pattern: Any = Pattern
    for number, step in enumerate(case.steps):
        pattern = getattr(pattern, step.how)(str(number))
        pattern.where(lambda event, kinds=step.kinds: event[0] in kinds)
        if step.at_most is None:
            pattern.times_or_more(step.at_least)
        elif step.repeats:
            pattern.times(step.at_least, step.at_most)
        if step.inner == "next":
            pattern.consecutive()
        elif step.inner == "followed_by_any":
            pattern.allow_combinations()
        if step.is_optional:
            pattern.optional()
    if case.window is not None:
        pattern.within(Duration.of_millis(case.window))
    return pattern


# All subsequences.


def enumerated(case: Case) -> list[Chosen]:
    return sorted(chosen for chosen in _choices(case, 0, ()) if chosen and _in_time(case, chosen))


def _in_time(case: Case, chosen: Chosen) -> bool:
    return case.window is None or case.times[chosen[-1][0]] - case.times[chosen[0][0]] < case.window


def _choices(case: Case, number: int, chosen: Chosen) -> Iterator[Chosen]:
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


def _repetitions(case: Case, number: int, chosen: Chosen, done: int) -> Iterator[Chosen]:
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
            yield from _repetitions(case, number, (*chosen, (place, number)), done + 1)
        if chosen and (how == "next" or (how == "followed_by" and fits)):
            # What comes later would have this one in between.
            return


def _allowed(case: Case, number: int, kinds: str) -> bool:
    """Whether the forbidden step before this one, if there is one, allows what lies between its neighbours."""
    before = case.steps[number - 1]
    if before.how == "not_next":
        return kinds[0] not in before.kinds
    return before.how != "not_followed_by" or not set(kinds) & set(before.kinds)


# What is tried.


@st.composite
def cases(draw: st.DrawFn) -> Case:
    alphabet = "abc"
    kinds = st.sampled_from(("a", "b", "c", "ab", "bc", "abc"))
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(("next", "followed_by", "followed_by_any"))) if number else "begin"
        wanted = draw(kinds)
        # A forbidden step has a single one before and behind it, which an event that is forbidden does not fit.
        others = set(alphabet) - set(wanted)
        if number and not steps[-1].repeats and not steps[-1].is_optional and others and draw(st.integers(0, 4)) == 0:
            forbidden = draw(st.sampled_from(sorted(others)))
            steps += [Step(draw(st.sampled_from(("not_next", "not_followed_by"))), forbidden), Step(how, wanted)]
            continue
        at_least, more = draw(
            st.sampled_from(((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, None), (2, None)))
        )
        inner = "followed_by"
        if (at_least, more) != (1, 0):
            inner = draw(st.sampled_from(("followed_by", "next", "followed_by_any")))
        at_most = None if more is None else at_least + more
        steps.append(Step(how, wanted, at_least, at_most, inner, draw(st.integers(0, 3)) == 0))
    length = draw(st.integers(1, 8))
    gaps = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    return Case(
        steps=tuple(steps),
        window=draw(st.none() | st.integers(2, 10)),
        kinds="".join(draw(st.lists(st.sampled_from(alphabet), min_size=length, max_size=length))),
        times=tuple(sum(gaps[: place + 1], 1) for place in range(length)),
    )


LOOP_THEN_B = (Step("begin", "a", 1, None), Step("followed_by", "b"))


@settings(max_examples=400)
@given(cases())
@example(Case(LOOP_THEN_B, None, "abab", (1, 2, 3, 4)))
@example(Case(LOOP_THEN_B, 3, "abab", (1, 2, 3, 4)))
def test_all_subsequences_that_fit_are_found_and_no_others(case: Case) -> None:
    assert matched(case) == enumerated(case)


def test_what_is_tried_matches_often_enough() -> None:
    """The two ways to match would agree on nothing at all, too."""
    counts: list[int] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(cases())
    def count(case: Case) -> None:
        counts.append(len(enumerated(case)))

    count()
    assert sum(1 for number in counts if number) > len(counts) / 4
    assert max(counts) > 10
