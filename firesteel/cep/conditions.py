"""Conditions on events, and what a condition may ask."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.cep.errors import MalformedPatternError
from firesteel.datastream.functions import Function

__all__ = [
    "ALWAYS",
    "Condition",
    "ConditionContext",
    "GivenCondition",
    "IterativeCondition",
    "SimpleCondition",
    "both",
    "either",
    "given",
    "negated",
]


class ConditionContext(ABC):
    """What a condition may ask, beside the event itself. It is good for one call."""

    @abstractmethod
    def get_events_for_pattern(self, step: str) -> list[Any]:
        """The events of a step that the partial match has so far; an empty list if there are none."""

    @abstractmethod
    def timestamp(self) -> int:
        """The time of the event."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The processing time: that of the micro-batch."""


class SimpleCondition(Function):
    """A condition on an event alone, as a class: with ``open(runtime_context)`` and ``close()``, where a callable is
    not enough."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether the event fits."""


class IterativeCondition(Function):
    """The same for a condition that depends on the events matched so far as well."""

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether the event fits into the partial match."""


GivenCondition = Callable[..., Any] | SimpleCondition | IterativeCondition
"""What a program may give."""


class Condition(ABC):
    """Says whether an event fits."""

    parts: tuple[Condition, ...] = ()
    """What it is made of."""

    @property
    def needs_match(self) -> bool:
        """Whether the answer may differ between partial matches that get the same event."""
        return any(part.needs_match for part in self.parts)

    @abstractmethod
    def holds(self, look: Any) -> bool:
        """``look`` is the event at hand and the partial match that may get it: see ``matching``."""

    def functions(self) -> Iterator[Function]:
        """What has to be opened before the first event."""
        for part in self.parts:
            yield from part.functions()


class _Always(Condition):
    def holds(self, look: Any) -> bool:
        return True

    def __reduce__(self) -> str:
        return "ALWAYS"


ALWAYS: Condition = _Always()


class _OfProgram(Condition):
    """Asks a program's function."""

    def __init__(self, function: Callable[..., Any], owner: Function | None = None) -> None:
        self._function, self._owner = function, owner

    def functions(self) -> Iterator[Function]:
        if self._owner is not None:
            yield self._owner


class _OfEvent(_OfProgram):
    """Depends on the event alone: one call serves all partial matches."""

    def holds(self, look: Any) -> bool:
        answers = look.answers
        found: bool | None = answers.get(self)
        if found is None:
            found = answers[self] = bool(self._function(look.event))
        return found


class _OfMatch(_OfProgram):
    """Depends on the events matched so far as well."""

    needs_match = True

    def holds(self, look: Any) -> bool:
        return bool(self._function(look.event, look))


class _Both(Condition):
    def __init__(self, one: Condition, other: Condition) -> None:
        self._one, self._other = self.parts = one, other

    def holds(self, look: Any) -> bool:
        return self._one.holds(look) and self._other.holds(look)


class _Either(Condition):
    def __init__(self, one: Condition, other: Condition) -> None:
        self._one, self._other = self.parts = one, other

    def holds(self, look: Any) -> bool:
        return self._one.holds(look) or self._other.holds(look)


class _Not(Condition):
    def __init__(self, condition: Condition) -> None:
        self.negated = condition
        self.parts = (condition,)

    def holds(self, look: Any) -> bool:
        return not self.negated.holds(look)


def given(function: GivenCondition, method: str) -> Condition:
    """A condition that a program gives: a callable of an event, or of an event and a context, or a class of it."""
    if isinstance(function, SimpleCondition):
        return _OfEvent(function.filter, function)
    if isinstance(function, IterativeCondition):
        return _OfMatch(function.filter, function)
    if not callable(function):
        raise MalformedPatternError(
            f"{method}() takes a callable of an event, or of an event and a context, got {function!r}."
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some built-in functions do not say what they take.
        return _OfEvent(function)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    asked = [one for one in parameters if one.kind in positional and one.default is one.empty]
    if len(asked) == 1:
        return _OfEvent(function)
    if len(asked) == 2:
        return _OfMatch(function)
    raise MalformedPatternError(
        f"{method}() takes a callable of an event, or of an event and a context; this one takes {len(asked)} arguments."
    )


def both(one: Condition | None, other: Condition | None) -> Condition:
    """Holds if both do. None holds always."""
    if one is None or one is ALWAYS:
        return other or ALWAYS
    return one if other is None or other is ALWAYS else _Both(one, other)


def either(one: Condition | None, other: Condition) -> Condition:
    """Holds if one of them does. The first alternative of a step without a condition is the only one."""
    return other if one is None else _Either(one, other)


def negated(condition: Condition) -> Condition:
    return condition.negated if isinstance(condition, _Not) else _Not(condition)
