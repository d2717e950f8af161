"""Headers of stores as bytes: the records of :mod:`firesteel.durable.headers` as plain data, with a version."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

from firesteel.common.type_system.base import PickledBytesTypeInfo
from firesteel.common.typeinfo import TypeInformation
from firesteel.durable.cells import HEADER, PROTOCOL, damaged, decode, encode
from firesteel.durable.former import header_of_version_1
from firesteel.durable.headers import (
    KeysHeader,
    ListHeader,
    OperatorHeader,
    StateHeader,
    StateSchema,
    StoreHeader,
    ValveHeader,
)
from firesteel.durable.types import type_from_json, type_to_json
from firesteel.durable.versions import STORE

__all__ = ["decode_header", "encode_header"]

Plain = dict[str, Any]


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
