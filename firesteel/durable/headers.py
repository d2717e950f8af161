"""The header of a subtask's store as typed records, and how they become plain data.

A header is read when a batch begins and written when it ends. The records of an operator are its memory in between:
tables and timers change the dicts and sets in them in place. ``shapes`` belong to the tables, each of which knows what
is in its own (:class:`LogShape`, :class:`PagesShape`); all of it is plain data.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypedDict

from firesteel.common._types.base import PickledBytesTypeInfo
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.durable.cells import HEADER, PROTOCOL, damaged, decode, encode
from firesteel.durable.types import type_from_json, type_to_json
from firesteel.durable.versions import STORE

__all__ = [
    "UNDECLARED",
    "KeysHeader",
    "ListHeader",
    "LogShape",
    "OperatorHeader",
    "PagesShape",
    "StateHeader",
    "StateSchema",
    "StoreHeader",
    "TablesHeader",
    "ValveHeader",
    "decode_header",
    "encode_header",
]

Plain = dict[str, Any]


LogShape = TypedDict(
    "LogShape",
    {"segments": dict[int, int], "segment bytes": dict[int, int], "bytes": int, "last": int},
    total=False,
)
"""What a log of changes says of itself: entries and bytes of each segment, from old to new; bytes of all; the number of
the newest one."""


class PagesShape(TypedDict, total=False):
    entries: int
    pages: int
    bytes: int
    largest: int
    swept: int


"""What a table in pages says of itself: how many entries, pages and bytes there are; how many entries a page may have,
where that is limited; the page that is looked through next for expired entries."""


@dataclass(frozen=True)
class StateSchema:
    """How a state's entries are built.

    >>> schema = StateSchema("map", Types.MAP(Types.STRING(), Types.DOUBLE()))
    >>> schema.text, schema.shape, schema.columns
    ('map state of MAP<STRING, DOUBLE>', 'map', (STRING, DOUBLE))
    """

    kind: str
    """What the user declared: value, list, map, reducing, aggregating."""
    type: TypeInformation
    expires: bool = False

    @property
    def text(self) -> str:
        expiring = " with a time to live" if self.expires else ""
        return f"{self.kind} state of {self.type}{expiring}"

    @property
    def shape(self) -> str:
        """How an entry is built: one value, a list, or a map."""
        return self.kind if self.kind in ("list", "map") else "value"

    @property
    def columns(self) -> tuple[TypeInformation, ...]:
        """The types of the parts of a row: of the value or element, or of a map's key and value."""
        declared: Any = self.type
        if self.kind == "list":
            return (declared.elem_type,)
        if self.kind == "map":
            return declared._key_type_info, declared._value_type_info
        return (declared,)


UNDECLARED: Final = StateSchema("value", Types.PICKLED_BYTE_ARRAY())
"""Of what operators keep for themselves."""


@dataclass(frozen=True, slots=True)
class KeysHeader:
    """How a keyed operator builds its state."""

    type: TypeInformation | None
    """The declared type of the keys."""
    layout: str
    timers_of: str
    """Whose timers are: key, window or place."""


@dataclass(slots=True)
class StateHeader:
    """One keyed state: which backend keeps it, how its entries are built, what its tables say of themselves."""

    backend: str | None = None
    schema: StateSchema | None = None
    """None of what operators keep for themselves."""
    shapes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the table: entries, blocks."""


@dataclass(slots=True)
class TablesHeader:
    """The keyed states of one backend."""

    states: dict[str, StateHeader] = field(default_factory=dict)
    last_collection: int = -1
    """The number of the last big collection."""


@dataclass(slots=True)
class ListHeader:
    """One state of an operator that belongs to no key."""

    mode: str
    """split, union, raw or broadcast."""
    schema: StateSchema | None = None
    cells: int = 0
    pieces: list[int] | None = None
    """Of raw state that came from several former subtasks: how many bytes each had."""
    shape: dict[str, Any] | None = None
    """Of a broadcast state: what its log says of itself."""


@dataclass(slots=True)
class ValveHeader:
    """Watermarks of an operator's inputs, by (exchange, upstream subtask, origin)."""

    watermark: int | None = None
    levels: dict[tuple[int, int, int], int] = field(default_factory=dict)
    idle: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    """Inputs without records lately: since when, and after how long they count as idle."""


@dataclass(slots=True)
class OperatorHeader:
    """What one operator keeps besides its cells."""

    keys: KeysHeader | None = None
    restored_layout: str | None = None
    """How the state was built that a savepoint has brought, until the operator has seen it."""
    valve: ValveHeader = field(default_factory=ValveHeader)
    tables: TablesHeader = field(default_factory=TablesHeader)
    windows: TablesHeader = field(default_factory=TablesHeader)
    event_timers: set[int] = field(default_factory=set)
    """The stretches of about 17 minutes that have timers."""
    processing_timers: set[int] = field(default_factory=set)
    lists: dict[str, ListHeader] = field(default_factory=dict)
    event_time: dict[str, Any] = field(default_factory=dict)
    """Of an operator that assigns watermarks: how far it is."""


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What one subtask of a stage keeps."""

    token: bytes | None = None
    """Of the attempt that wrote it."""
    operators: dict[str, OperatorHeader] = field(default_factory=dict)
    """By uid."""

    def operator(self, uid: str) -> OperatorHeader:
        """The header of an operator, a new one where there is none yet."""
        found = self.operators.get(uid)
        if found is None:
            found = self.operators[uid] = OperatorHeader()
        return found


# Out


def encode_header(header: StoreHeader) -> bytes:
    """
    >>> header = StoreHeader(b"1", {"a": OperatorHeader(event_timers={7})})
    >>> decode_header(encode_header(header)).operators["a"].event_timers
    {7}
    """
    operators = {uid: _operator_out(one) for uid, one in header.operators.items()}
    return encode({"format": STORE.version, "token": header.token, "operators": operators})


def _operator_out(header: OperatorHeader) -> Plain:
    found: Plain = {}
    if header.keys is not None:
        keys = header.keys
        found["keys"] = [None if keys.type is None else _type_out(keys.type), keys.layout, keys.timers_of]
    if header.restored_layout is not None:
        found["restored layout"] = header.restored_layout
    if header.valve.watermark is not None:
        valve = header.valve
        found["valve"] = {"watermark": valve.watermark, "levels": valve.levels, "idle": valve.idle}
    for name, tables in (("tables", header.tables), ("windows", header.windows)):
        if tables.states or tables.last_collection >= 0:
            states = {state: _state_out(one) for state, one in tables.states.items()}
            found[name] = {"states": states, "last collection": tables.last_collection}
    for name, coarse in (("event timers", header.event_timers), ("processing timers", header.processing_timers)):
        if coarse:
            found[name] = sorted(coarse)
    if header.lists:
        found["lists"] = {name: _list_out(one) for name, one in header.lists.items()}
    if header.event_time:
        found["event time"] = header.event_time
    return found


def _state_out(header: StateHeader) -> Plain:
    schema = None if header.schema is None else _schema_out(header.schema)
    return {"backend": header.backend, "schema": schema, "shapes": header.shapes}


def _list_out(header: ListHeader) -> Plain:
    found: Plain = {"mode": header.mode, "cells": header.cells}
    if header.schema is not None:
        found["schema"] = _schema_out(header.schema)
    if header.pieces is not None:
        found["pieces"] = header.pieces
    if header.shape is not None:
        found["shape"] = header.shape
    return found


@lru_cache(1024)
def _schema_out(schema: StateSchema) -> tuple[str, Any, bool]:
    return schema.kind, _type_out(schema.type), schema.expires


def _type_out(declared: TypeInformation) -> Any:
    plain = type_to_json(declared)
    if plain == "PICKLED" and type(declared) is not PickledBytesTypeInfo:
        # A class of the user's, by the user's module path.
        return pickle.dumps(declared, PROTOCOL)
    return plain


# In


def decode_header(cell: bytes | None) -> StoreHeader:
    """The header of a store; an empty one where there is none yet. Raises a CheckpointError where it cannot be read."""
    if not cell:
        return StoreHeader()
    found = decode(cell, HEADER)
    if isinstance(found, tuple):
        # Until version 2 the header did not say which it was.
        from firesteel.durable.former import header_of_version_1

        return header_of_version_1(*found)
    STORE.check(found.get("format") if isinstance(found, dict) else None)
    try:
        return StoreHeader(found["token"], {uid: _operator_in(one) for uid, one in found["operators"].items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(HEADER, error) from error


def _operator_in(plain: Plain) -> OperatorHeader:
    header = OperatorHeader(restored_layout=plain.get("restored layout"), event_time=plain.get("event time", {}))
    if "keys" in plain:
        declared, layout, timers_of = plain["keys"]
        header.keys = KeysHeader(None if declared is None else _type_in(declared), layout, timers_of)
    if "valve" in plain:
        header.valve = ValveHeader(**plain["valve"])
    for name, tables in (("tables", header.tables), ("windows", header.windows)):
        if name in plain:
            tables.states.update((state, _state_in(one)) for state, one in plain[name]["states"].items())
            tables.last_collection = plain[name]["last collection"]
    header.event_timers.update(plain.get("event timers", ()))
    header.processing_timers.update(plain.get("processing timers", ()))
    header.lists.update((name, _list_in(one)) for name, one in plain.get("lists", {}).items())
    return header


def _state_in(plain: Plain) -> StateHeader:
    return StateHeader(plain["backend"], _schema_in(plain["schema"]), plain["shapes"])


def _list_in(plain: Plain) -> ListHeader:
    schema = _schema_in(plain.get("schema"))
    return ListHeader(plain["mode"], schema, plain["cells"], plain.get("pieces"), plain.get("shape"))


def _schema_in(plain: tuple[str, Any, bool] | None) -> StateSchema | None:
    if plain is None:
        return None
    kind, declared, expires = plain
    return StateSchema(kind, _type_in(declared), expires)


def _type_in(plain: Any) -> TypeInformation:
    found: TypeInformation = pickle.loads(plain) if isinstance(plain, bytes) else type_from_json(plain)
    return found
