"""Records as psycopg takes them."""

from __future__ import annotations

import datetime
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.common.types import Row
from firesteel.connectors.jdbc import rows
from firesteel.connectors.postgresql.loading import load_driver

__all__ = ["Rows"]


class Rows(rows.Rows):
    """Turns records of a declared type into rows.

    >>> from firesteel.common import Types
    >>> Rows(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])).row({"n": 1, "word": "a"})
    ('a', 1)
    """

    def __init__(self, declared: RowTypeInfo | TupleTypeInfo) -> None:
        super().__init__(declared, _parameter)


_KNOWN = frozenset({datetime.datetime, datetime.date, datetime.time})


def _parameter(value: Any) -> Any:
    if type(value) in _KNOWN:
        return value
    if isinstance(value, Instant):
        return rows.moment(value)
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
