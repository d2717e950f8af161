"""Calling a user's function for each of many values, at C speed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from operator import sub
from typing import Any

__all__ = ["call_for_each", "times_of_results"]

Failed = Callable[[Exception, Any], Exception]


def call_for_each(function: Callable[..., Any], values: list[Any], *others: list[Any], failed: Failed) -> list[Any]:
    """The function's result for each value. ``failed`` makes the exception to raise of an error and its value.

    >>> call_for_each(lambda n: 1 // n, [1, 0], failed=lambda error, value: ValueError(f"{error} for {value}"))
    Traceback (most recent call last):
    ValueError: integer division or modulo by zero for 0
    """
    source = iter(values)
    try:
        results = list(map(function, source, *others))
    except Exception as error:
        taken = len(values) - source.__length_hint__()  # type: ignore[attr-defined]
        raise failed(error, values[taken - 1]) from error
    if len(results) < len(values):
        # ``map`` takes a StopIteration that leaves the function (a bare next(…) in it, say) for the end of the
        # values, and would lose the rest silently.
        stopped = RuntimeError("The function raised StopIteration. Give next() a default, or catch it.")
        raise failed(stopped, values[len(results)])
    return results


def times_of_results(timestamps: list[int], ends: list[int]) -> list[int]:
    """The timestamp of each result: that of its record. ``ends`` says how many results there were after each record.

    >>> times_of_results([10, 20, 30], [2, 2, 3])
    [10, 10, 30]
    """
    if ends == list(range(1, len(ends) + 1)):
        return timestamps
    return list(chain.from_iterable(map(repeat, timestamps, map(sub, ends, chain((0,), ends)))))
