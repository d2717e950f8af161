"""Calling a user's function for each of many values, at C speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["call_for_each"]

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
        # values, and would lose the rest without a word.
        stopped = RuntimeError("The function raised StopIteration. Give next() a default, or catch it.")
        raise failed(stopped, values[len(results)])
    return results
