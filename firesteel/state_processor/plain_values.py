"""Pickled values that can be loaded without running anybody's code: those that are made of plain values."""

from __future__ import annotations

import io
import pickle
from typing import Any
from zoneinfo import ZoneInfo

from firesteel.errors import FailureKind, SavepointError

__all__ = ["NotPlainError", "load_plain"]

_PLAIN = (
    {("builtins", name) for name in ("complex", "frozenset", "set", "bytearray", "range", "slice")}
    | {
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "time"),
        ("datetime", "timedelta"),
        ("datetime", "timezone"),
        ("decimal", "Decimal"),
        ("collections", "OrderedDict"),
        ("collections", "deque"),
        ("collections", "Counter"),
        ("uuid", "UUID"),
        # What Arrow makes of times with a time zone, and of those with nanoseconds.
        ("zoneinfo", "ZoneInfo"),
        ("pytz", "_UTC"),
        ("pytz", "_p"),
        ("pandas._libs.tslibs.timestamps", "_unpickle_timestamp"),
        ("pandas._libs.tslibs.timedeltas", "_timedelta_unpickle"),
        ("firesteel.common.types", "Row"),
        ("firesteel.common.types", "RowKind"),
    }
    | {("firesteel.durable.names", name) for name in ("row", "row_kind", "duration", "instant", "time")}
)
"""Classes whose objects can be made without running anybody's code."""


class NotPlainError(SavepointError):
    """A value is an object of a class that is not among the plain ones."""

    kind = FailureKind.PERMANENT

    def __init__(self, name: str) -> None:
        super().__init__(f"The stored state has an object of {name}, which is not loaded here: that runs its code.")
        self.name = name


def _of_zones(owner: Any, name: str) -> Any:
    """Time zones are pickled as a call of a method, which has to be got; no other attribute of anything is."""
    if owner is ZoneInfo and name == "_unpickle":
        return ZoneInfo._unpickle  # type: ignore[attr-defined]
    raise NotPlainError(f"builtins.getattr of {name!r}")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _of_zones
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise NotPlainError(f"{module}.{name}")


def load_plain(pickled: bytes) -> Any:
    """What a pickle holds, or an error that names the class of an object in it. Nothing of the program is imported or
    called.

    >>> load_plain(pickle.dumps(("a", 1)))
    ('a', 1)
    """
    return _PlainUnpickler(io.BytesIO(pickled)).load()
