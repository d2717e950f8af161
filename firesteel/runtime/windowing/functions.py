"""Every kind of window function behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.runtime.windowing.contexts import FunctionContext

__all__ = ["Call", "call_of"]

Call = Callable[[Any, Any, list[Any]], Iterable[Any] | None]
"""Of key, window and elements what goes out."""


def call_of(function: Any, context: FunctionContext) -> Call:
    if function is None:
        return lambda key, window, elements: elements
    if isinstance(function, ProcessWindowFunction):
        return lambda key, window, elements: function.process(key, context, elements)
    if isinstance(function, ProcessAllWindowFunction):
        return lambda key, window, elements: function.process(context, elements)
    if isinstance(function, AllWindowFunction):
        return lambda key, window, elements: function.apply(window, elements)
    assert isinstance(function, WindowFunction)
    return function.apply
