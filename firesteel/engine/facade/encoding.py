"""Frozen records as JSON values, and back again with their types checked."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

__all__ = ["decoded", "encoded"]


_PLAIN = frozenset((str, int, float, bool, type(None)))


def encoded(value: Any) -> Any:
    """A JSON value. An enum becomes the name of its member.

    >>> from firesteel.engine.facade.answers import SubtaskMetrics, TaskMetrics
    >>> encoded(TaskMetrics(1, 0, records_in=7))
    {'stage': 1, 'subtask': 0, 'records_in': 7, 'bytes_out': 0, 'busy_ms': 0.0}
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    names = _names(kind)
    if names is not None:
        return {name: encoded(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): encoded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(one) for one in value]
    # A user's metric may be anything.
    return value if value is None or isinstance(value, str | int | float) else str(value)


@lru_cache(256)
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a record; None for what is none. Remembered: most of the time would go into asking each value."""
    return tuple(one.name for one in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def decoded(kind: Any, value: Any) -> Any:
    """A value of a type from what ``encoded`` made of it. Raises ValueError where it does not fit. Fields that the type
    does not have are left out: another version may have written them.

    >>> from firesteel.engine.facade.answers import TaskMetrics
    >>> decoded(TaskMetrics, {"stage": 1, "subtask": 0, "new": True})
    TaskMetrics(stage=1, subtask=0, records_in=0, bytes_out=0, busy_ms=0.0)
    >>> decoded(TaskMetrics, {"stage": "1", "subtask": 0})
    Traceback (most recent call last):
    ValueError: stage: '1' is not of type int
    """
    if kind is Any:
        return value
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _of_union(kind, value)
    if origin is tuple:
        (element, _) = get_args(kind)
        return tuple(decoded(element, one) for one in _list(value))
    if origin is dict:
        _, element = get_args(kind)
        return {str(key): decoded(element, one) for key, one in _object(value).items()}
    if dataclasses.is_dataclass(kind):
        return _of_record(kind, _object(value))
    if issubclass(kind, Enum):
        if value not in kind.__members__:
            raise ValueError(f"{value!r} is not of type {kind.__name__}")
        return kind[value]
    # A bool is an int for Python, and for nobody else.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r} is not of type {kind.__name__}")
    return value


def _of_union(kind: Any, value: Any) -> Any:
    """Of unions there are only those with None."""
    (other,) = (one for one in get_args(kind) if one is not type(None))
    return None if value is None else decoded(other, value)


def _of_record(kind: Any, values: Mapping[str, Any]) -> Any:
    found = {}
    for name, (hint, required) in _fields(kind).items():
        if name in values:
            try:
                found[name] = decoded(hint, values[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        elif required:
            raise ValueError(f"{name} is missing")
    return kind(**found)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """By field its type, and whether there is no default."""
    hints = get_type_hints(kind)
    missing = dataclasses.MISSING
    return {
        one.name: (hints[one.name], one.default is missing and one.default_factory is missing)
        for one in dataclasses.fields(kind)
    }


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an object")
    return value
