"""Answers go out in the order of their elements, or in any between two watermarks, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.runtime.answers import Answers, OrderedAnswers, Request, UnorderedAnswers
from firesteel.runtime.frames import Watermark

steps = st.lists(st.sampled_from(["expect", "mark", "answer", "answer", "take"]), max_size=60)


def flat(elements: list[Any]) -> list[Any]:
    """Results one by one, each with its timestamp, and watermarks."""
    found: list[Any] = []
    for element in elements:
        if isinstance(element, Watermark):
            found.append(element)
        else:
            values, times = element
            found += zip(values, times or [None] * len(values), strict=True)
    return found


def play(answers: Answers, plan: list[str], data: st.DataObject) -> tuple[list[Any], list[Any]]:
    """What was asked for, in order, and what went out. Request n has n % 3 results; every second one has a time."""
    asked: list[Any] = []
    out: list[Any] = []
    waiting: list[Request] = []
    released = 0

    def answer() -> None:
        nonlocal released
        request = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        released += answers.answer(request, [request.value] * (request.value % 3))

    for number, step in enumerate(plan):
        if step == "expect":
            request = Request(number, number if number % 2 else None)
            asked.append(request)
            waiting.append(request)
            answers.expect(request)
        elif step == "mark":
            asked.append(Watermark(0, number))
            answers.mark(Watermark(0, number))
        elif step == "answer" and waiting:
            answer()
        elif step == "take":
            out += flat(answers.take())
    while waiting:
        answer()
    out += flat(answers.take())
    assert released == len([entry for entry in asked if isinstance(entry, Request)])
    return asked, out


def results(asked: list[Any]) -> list[Any]:
    found: list[Any] = []
    for entry in asked:
        found += [entry] if isinstance(entry, Watermark) else [(entry.value, entry.timestamp)] * (entry.value % 3)
    return found


def segments(entries: list[Any]) -> list[Any]:
    """The results between watermarks, without their order."""
    found: list[Any] = [[]]
    for entry in entries:
        if isinstance(entry, Watermark):
            found += [entry, []]
        else:
            found[-1].append(entry)
    return [sorted(part, key=repr) if isinstance(part, list) else part for part in found]


@given(steps, st.data())
def test_ordered(plan: list[str], data: st.DataObject) -> None:
    asked, out = play(OrderedAnswers(), plan, data)
    assert out == results(asked)


@given(steps, st.data())
def test_unordered_between_watermarks(plan: list[str], data: st.DataObject) -> None:
    asked, out = play(UnorderedAnswers(), plan, data)
    assert segments(out) == segments(results(asked))


def test_unordered_gives_an_answer_out_at_once_before_the_next_watermark() -> None:
    answers = UnorderedAnswers()
    first, second, third = (Request(name, None) for name in "abc")
    answers.expect(first)
    answers.expect(second)
    answers.mark(Watermark(0, 7))
    answers.expect(third)
    assert (answers.answer(second, ["B"]), answers.take()) == (1, [(["B"], None)])
    assert (answers.answer(third, ["C"]), answers.take()) == (0, [])
    assert (answers.answer(first, ["A"]), answers.take()) == (2, [(["A"], None), Watermark(0, 7), (["C"], None)])


@pytest.mark.parametrize("kind", [OrderedAnswers, UnorderedAnswers])
def test_cleared_answers_know_nothing(kind: type[Answers]) -> None:
    answers = kind()
    answers.expect(Request("a", None))
    answers.mark(Watermark(0, 7))
    answers.clear()
    again = Request("b", None)
    answers.expect(again)
    assert (answers.answer(again, ["B"]), answers.take()) == (1, [(["B"], None)])
