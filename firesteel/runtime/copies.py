"""What leaves an operator while the operator may still change it.

Functions run on whole chunks, so a result waits for its frame while the next records are processed. If it is an object
that the function keeps in its state and changes later, the change must not reach what was yielded before.
"""

from __future__ import annotations

import datetime
import pickle
import uuid
from decimal import Decimal
from typing import Any

from firesteel.common.typeinfo import BasicTypeInfo, TupleTypeInfo, TypeInformation
from firesteel.datastream.output_tag import OutputTag

__all__ = ["detached", "may_change"]

_ATOMS = frozenset(
    {
        *(str, bytes, int, float, bool, complex, type(None), Decimal, uuid.UUID),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)


def may_change(declared: TypeInformation | None) -> bool:
    """Whether values of a type can be changed in place.

    >>> from firesteel.common.typeinfo import Types
    >>> may_change(Types.TUPLE([Types.STRING(), Types.INT()])), may_change(Types.LIST(Types.INT())), may_change(None)
    (False, True, True)
    """
    if isinstance(declared, TupleTypeInfo):
        return any(map(may_change, declared.get_field_types()))
    return not isinstance(declared, BasicTypeInfo)


def detached(value: Any) -> Any:
    """The value itself if nobody can change it, else a copy.

    >>> kept, pair = {"n": 1}, ("a", 1)
    >>> detached(kept) is kept, detached(pair) is pair
    (False, True)
    """
    kind = value.__class__
    if kind in _ATOMS:
        return value
    if kind is tuple:
        if len(value) == 2 and isinstance(value[0], OutputTag):
            return value[0], detached(value[1])
        for field in value:
            if field.__class__ not in _ATOMS:
                break
        else:
            return value
    try:
        return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:
        # It cannot be sent anywhere either: whoever tries names it.
        return value
