"""The contract of all types, and the type of everything that has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.errors import ProgramError, short_repr

__all__ = ["ALWAYS", "PickledBytesTypeInfo", "TypeInformation", "expected"]

ALWAYS = "True"
"""The canonical source of a type that never changes a value."""


def expected(what: object, value: Any) -> str:
    """The one sentence every mismatch ends with."""
    return f"expected {what}, got {type(value).__name__} {short_repr(value, 120)}"


class TypeInformation(ABC):
    """A type declared for the elements of a stream or for state.

    For the runtime a type answers four questions, each with a function that is made once and used for every
    element. They go in this order: a value the checker accepts is given to the converter, and only what comes
    out of that to the formatter.

    * :meth:`checker`: does this value fit? None of them allows everything, but every one allows ``None``.
    * :meth:`converter`: what does the declaration make of it?
    * :meth:`explain`: why does it not fit?
    * :meth:`formatter`: what does ``print()`` show?
    """

    columnar: ClassVar[bool] = False
    """Whether an element is a batch of rows in columns, which is sent and counted as such."""

    # -- what the runtime asks ------------------------------------------------------------------------------

    def checker(self) -> Callable[[Any], bool] | None:
        """A fast predicate, or None if every value is accepted."""
        scope = Scope()
        source = self._check_source("v", "v", scope)
        return None if source is None else compile_expression(source, scope, f"checker of {self}")

    def converter(self) -> Callable[[Any], Any] | None:
        """A function from an accepted value to what Flink would deliver; None if that is the value itself."""
        scope = Scope()
        canonical = self._canonical_source("v", "v", scope)
        if canonical == ALWAYS:
            return None
        convert = self._slow_converter()
        if canonical is None:
            return convert
        source = f"v if v is None or {canonical} else {scope.bind(convert)}(v)"
        return compile_expression(source, scope, f"converter of {self}")

    @abstractmethod
    def explain(self, value: Any) -> str | None:
        """None if ``value`` fits, else one line that says what was expected and what came instead."""

    def formatter(self) -> Callable[[Any], str]:
        """The text that ``print()`` gives for a value of this type."""
        return self._nested_formatter()

    def field_index(self, name_or_pos: str | int) -> int:
        """The position of a field of a tuple or row."""
        raise ProgramError(f"{self} has no fields, so there is no field {name_or_pos!r} to pick.")

    # -- what types implement -------------------------------------------------------------------------------
    # ``first`` is the expression to use where the value is looked at first; it may bind ``name``, which is
    # the expression to use after that. So a field is read from its tuple once.

    @abstractmethod
    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        """The source of the check in parentheses, or None if every value is accepted."""

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        """The source of a test that a value needs no conversion; it need not allow None.

        ALWAYS if no value ever does, None if nothing short of converting tells.
        """
        return ALWAYS

    def _slow_converter(self) -> Callable[[Any], Any]:
        """The conversion of any accepted value."""
        return _unchanged

    def _nested_formatter(self) -> Callable[[Any], str]:
        """The text for a value inside another one, where Java's ``toString`` rules even for rows."""
        return java_text

    # -- identity -------------------------------------------------------------------------------------------

    @abstractmethod
    def _key(self) -> Hashable:
        """What makes two types of one class equal."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    @abstractmethod
    def __repr__(self) -> str: ...


class PickledBytesTypeInfo(TypeInformation):
    """The type of anything that can be pickled: no check, no conversion, printed as Python does.

    >>> anything = PickledBytesTypeInfo()
    >>> anything.checker(), anything.converter(), anything.formatter()({"a": True})
    (None, None, "{'a': True}")
    """

    def explain(self, value: Any) -> str | None:
        return None

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        return None

    def _nested_formatter(self) -> Callable[[Any], str]:
        return str

    def _key(self) -> Hashable:
        return ()

    def __repr__(self) -> str:
        return "PICKLED_BYTE_ARRAY"


def java_text(value: Any) -> str:
    """``str``, with Java's word for None."""
    return "null" if value is None else str(value)


def _unchanged(value: Any) -> Any:
    return value
