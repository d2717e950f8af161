"""Turns a type into one Python expression, compiled once and run for every element.

Walking a tree of type objects per element costs more than most user functions do. So each type contributes
the source of an expression, parents embed those of their children, and the whole becomes a single lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Scope", "compile_expression"]


class Scope:
    """The names an expression under construction may use."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self._count = 0

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, value: Any) -> str:
        """A name for an object that the expression refers to."""
        name = self._fresh("_g")
        self.globals[name] = value
        return name

    def variable(self) -> str:
        """A new local name, to be bound with ``:=`` or by a comprehension."""
        return self._fresh("x")


def compile_expression(source: str, scope: Scope, label: str) -> Callable[[Any], Any]:
    """The function of ``v`` that the expression describes.

    The file name starts with ``<firesteel`` so that tracebacks shown to users leave these frames out.
    """
    code = compile(f"lambda v: {source}", f"<firesteel {label}>", "eval")
    function: Callable[[Any], Any] = eval(code, scope.globals)
    return function
