"""Records as parameters of a statement: checked against the declared types, in the form that the driver takes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.common.types import Row
from firesteel.connectors.postgresql.loading import load_driver
from firesteel.errors import TypeMismatchError

__all__ = ["Rows"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Rows:
    """Turns records of a declared type into rows.

    >>> from firesteel.common import Types
    >>> Rows(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])).row({"n": 1, "word": "a"})
    ('a', 1)
    """

    def __init__(self, declared: RowTypeInfo | TupleTypeInfo) -> None:
        self._declared = declared
        self._fits = declared.checker() or (lambda value: True)
        self._converted: Callable[[Any], Any] = declared.converter() or (lambda value: value)

    def row(self, value: Any) -> tuple[Any, ...]:
        if value is None or not self._fits(value):
            why = self._declared.explain(value) or f"expected {self._declared}, got None"
            raise TypeMismatchError(f"{why}. The statement's parameters come from the fields of {self._declared}.")
        fields: Sequence[Any] = self._converted(value)
        return tuple([item if type(item) in _AS_THEY_ARE else _parameter(item) for item in fields])


_AS_THEY_ARE = frozenset({int, str, float, bool, bytes, type(None), datetime.datetime, datetime.date, datetime.time})


def _parameter(value: Any) -> Any:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict | Row):
        # Needed here only, and the package is optional.
        load_driver()
        from psycopg.types.json import Jsonb

        return Jsonb(value if isinstance(value, dict) else value.as_dict(recursive=True))
    if isinstance(value, list | tuple):
        return [_parameter(item) for item in value]
    return value
