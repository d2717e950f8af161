"""The rolling aggregates of keyed streams as reduce functions: sum, min, max, min_by, max_by."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions import ReduceFunction
from firesteel.errors import ProgramError

__all__ = ["Accumulate", "accumulate"]

_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": lambda old, new: new if new < old else old,
    "max": lambda old, new: new if new > old else old,
}
_BETTER: dict[str, Callable[[Any, Any], bool]] = {"min_by": operator.lt, "max_by": operator.gt}


class Accumulate(ReduceFunction):
    """Folds one field; the other fields stay those of the first record (``min_by``: the whole record moves)."""

    def __init__(self, kind: str, position: int | str) -> None:
        self._kind = kind
        self._position = position

    def reduce(self, value1: Any, value2: Any) -> Any:
        composite = isinstance(value2, tuple | list | Row)
        if not composite and self._position != 0:
            raise ProgramError(
                f"{self._kind}({self._position!r}) selects a field, but the records are of type "
                f"{type(value2).__name__}, which has none. Use {self._kind}() for the record itself."
            )
        if self._kind in _BETTER:
            old, new = (value1[self._position], value2[self._position]) if composite else (value1, value2)
            return value2 if _BETTER[self._kind](new, old) else value1
        fold = _FOLDS[self._kind]
        if not composite:
            return fold(value1, value2)
        return _with_field(value1, self._position, fold(value1[self._position], value2[self._position]))


def _with_field(record: Any, position: Any, value: Any) -> Any:
    """A copy with one field replaced: the old record may still be on its way to someone."""
    if isinstance(record, Row):
        copy = Row(*list(record))
        names = getattr(record, "_fields", None)
        if names:
            copy.set_field_names(list(names))
        copy.set_row_kind(record.get_row_kind())
        copy[position] = value
        return copy
    fields = list(record)
    fields[position] = value
    if isinstance(record, tuple):
        make = getattr(type(record), "_make", None)
        return make(fields) if make is not None else tuple(fields)
    return fields


def accumulate(kind: str, position: int | str) -> ReduceFunction:
    """
    >>> accumulate("sum", 1).reduce(("a", 1, "x"), ("a", 2, "y"))
    ('a', 3, 'x')
    >>> accumulate("max_by", 1).reduce(("a", 1, "x"), ("a", 2, "y"))
    ('a', 2, 'y')
    """
    if not isinstance(position, int | str) or isinstance(position, bool):
        raise ProgramError(
            f"{kind}() takes the position or name of a field, got {type(position).__name__} {position!r}."
        )
    return Accumulate(kind, position)
