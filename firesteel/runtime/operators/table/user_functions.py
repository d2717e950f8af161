"""Users' functions of an operator: opened before the first record, closed after the last one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["UserFunctions"]


class UserFunctions:
    """Those that expressions say they have (``functions``), each once.

    >>> class Counting:
    ...     def open(self, context): print("open")
    ...     def close(self): print("closed")
    >>> class Expression:
    ...     functions = [Counting()]
    >>> opened = UserFunctions([Expression(), None, Expression()], None)
    open
    >>> opened.close()
    closed
    """

    def __init__(self, expressions: Iterable[Any], runtime_context: Any) -> None:
        self._opened: list[Any] = []
        for expression in expressions:
            for function in getattr(expression, "functions", ()):
                if not any(function is known for known in self._opened):
                    function.open(runtime_context)
                    self._opened.append(function)

    def close(self) -> None:
        """Closes them, the last one first."""
        while self._opened:
            self._opened.pop().close()
