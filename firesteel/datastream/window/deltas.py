"""How far two elements are apart, as the delta trigger and the delta evictor ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from firesteel.errors import ProgramError, short_repr

__all__ = ["DeltaFunction", "as_delta"]


class DeltaFunction(ABC):
    """The distance between two elements.

    >>> class Price(DeltaFunction):
    ...     def get_delta(self, old_data_point, new_data_point):
    ...         return abs(new_data_point - old_data_point)
    >>> as_delta(Price(), "of")(3, 5)
    2
    """

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """How far the newer one is from the older one."""


def as_delta(what: Any, where: str) -> Callable[[Any, Any], float]:
    """The function behind a :class:`DeltaFunction`, or a callable as it is."""
    if isinstance(what, type):
        raise ProgramError(f"{where} got the class {what.__name__} itself. Pass an instance: {what.__name__}().")
    found = getattr(what, "get_delta", what)
    if not callable(found):
        raise ProgramError(f"{where} takes a DeltaFunction or a callable f(old, new), got {short_repr(what, 60)}.")
    function: Callable[[Any, Any], float] = found
    return function
