"""What readers and writers of all formats share: fields with a place, and failures that name it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import InputError, ProgramError, TypeMismatchError, short_repr

__all__ = ["MISSING", "FieldError", "converting", "refused", "row_type_of", "undecodable", "unwritable"]

SHOWN_BYTES = 64

MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "nothing"})()
"""A field that a message does not have."""


class FieldError(Exception):
    """A field that cannot be read: its place, what it should be, and what it is instead."""

    def __init__(self, place: str, expected: object, value: Any) -> None:
        self.place, self.expected, self.value = place, expected, value
        super().__init__(place, expected, value)

    def __str__(self) -> str:
        if self.value is MISSING:
            return f"field '{self.place}' ({self.expected}) is missing"
        return f"field '{self.place}' should be {self.expected}, got {short_repr(self.value, 80)}"


def converting(
    convert: Callable[[Any], Any], place: str, expected: object, ignoring: bool = False, required: bool = False
) -> Callable[[Any], Any]:
    """A conversion that lets None through, and whose failure names the field or, if ``ignoring``, gives None."""

    def converted(value: Any) -> Any:
        if value is None:
            return None
        if value is MISSING:
            if required:
                raise FieldError(place, expected, value)
            return None
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError):
            if ignoring:
                return None
            raise FieldError(place, expected, value) from None

    return converted


def row_type_of(type_info: Any, what: str) -> Any:
    """The row type that a schema was given."""
    from firesteel.common.type_system.composite import RowTypeInfo

    if not isinstance(type_info, RowTypeInfo):
        raise ProgramError(
            f"{what} needs a row type such as Types.ROW_NAMED(['id'], [Types.INT()]), got {short_repr(type_info, 80)}."
        )
    return type_info


def refused(what: str, place: str, given: TypeInformation) -> ProgramError:
    """A type that a format has nothing for."""
    return ProgramError(f"{what} has nothing for {given}, the type of field '{place}'.")


def undecodable(what: str, message: Any, error: Exception) -> InputError:
    """A message that cannot be read, with its first bytes."""
    if not isinstance(message, bytes | bytearray | memoryview):
        return InputError(f"{what} reads bytes, got {short_repr(message, 80)}.")
    reason = str(error) or type(error).__name__
    begins = repr(bytes(message[:SHOWN_BYTES]))
    return InputError(
        f"{what} cannot read a message: {reason}. The message has {len(message):,} bytes and begins with {begins}."
    )


def unwritable(what: str, type_info: TypeInformation, element: Any, error: Exception) -> TypeMismatchError:
    """An element that cannot be written."""
    reason = type_info.explain(element) or str(error) or type(error).__name__
    return TypeMismatchError(f"{what} cannot write {short_repr(element, 120)}: {reason}.")
