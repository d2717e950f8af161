"""What a state that was saved with one type can become: rows may get fields, and numbers may get wider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.composite import RowTypeInfo
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row
from firesteel.runtime.state.schema import StateSchema

__all__ = ["evolution"]

_WIDTHS = (BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG)

Renew = Callable[[Any], Any]


def evolution(saved: StateSchema, now: StateSchema) -> Renew | None:
    """From a saved value (or list element, or value of a map) to one of the type it has now; None if there is no way.

    >>> from firesteel.common.typeinfo import Types
    >>> old = StateSchema("value", Types.ROW_NAMED(["name"], [Types.STRING()]))
    >>> new = StateSchema("value", Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]))
    >>> evolution(old, new)(Row(name="Ada"))
    Row(name='Ada', age=None)
    >>> evolution(new, old) is None
    True
    """
    if (saved.kind, saved.expires) != (now.kind, now.expires):
        return None
    *saved_keys, saved_value = saved.columns
    *keys, value = now.columns
    renew = _between(saved_value, value) if saved_keys == keys else None
    if renew is None or not now.expires:
        return renew
    inner = renew
    return lambda stamped: (stamped[0], inner(stamped[1]))


def _between(saved: TypeInformation, now: TypeInformation) -> Renew | None:
    if saved == now:
        return _same
    if isinstance(saved, BasicTypeInfo) and isinstance(now, BasicTypeInfo):
        if (saved.kind, now.kind) == (BasicType.FLOAT, BasicType.DOUBLE):
            return _same
        wider = saved.kind in _WIDTHS and now.kind in _WIDTHS and _WIDTHS.index(saved.kind) < _WIDTHS.index(now.kind)
        return _same if wider else None
    if isinstance(saved, RowTypeInfo) and isinstance(now, RowTypeInfo):
        return _between_rows(saved, now)
    return None


def _between_rows(saved: RowTypeInfo, now: RowTypeInfo) -> Renew | None:
    before = dict(zip(saved.get_field_names(), saved.get_field_types(), strict=True))
    after = dict(zip(now.get_field_names(), now.get_field_types(), strict=True))
    if not before.keys() <= after.keys():
        return None
    fields = {name: _between(before[name], after[name]) for name in before}
    if None in fields.values():
        return None
    names = list(after)
    old_names = list(before)

    def renew(row: Any) -> Any:
        if row is None:
            return None
        values = dict(zip(old_names, row, strict=True))
        return Row(**{name: fields[name](values[name]) if name in values else None for name in names})  # type: ignore[misc]

    return renew


def _same(value: Any) -> Any:
    return value
