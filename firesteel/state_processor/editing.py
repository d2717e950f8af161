"""Savepoints made of others, or from nothing: keys removed, values changed, state bootstrapped from tables."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel import __version__
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import StateDescriptor
from firesteel.engine.savepoints.manifest import NAME, OperatorEntry, PartFile, SavepointManifest, StateEntry
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.savepoints.tables import Tables, write_tables
from firesteel.engine.savepoints.writing import state_folder
from firesteel.errors import SavepointError
from firesteel.runtime.snapshots.saved import Rows, StateId
from firesteel.runtime.state.schema import StateSchema, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from firesteel.state_processor.savepoint import Savepoint

__all__ = ["SavepointEditor"]

Rewrite = Callable[[Rows], Rows]

Name = tuple[str, str, str, str]
"""Uid, name, scope and kind: a key, a window and the operator itself may have states of one name."""


class SavepointEditor:
    """Changes that :meth:`save` makes. What is not named stays as it was; the savepoint itself is not touched."""

    def __init__(self, place: Place | None, manifest: SavepointManifest, tables: Tables | None = None) -> None:
        self._place = place
        self._manifest = manifest
        self._tables = dict(tables or {})
        """How states are shown, by uid."""
        self._rewrites: dict[Name, list[Rewrite]] = {}
        self._schemas: dict[Name, StateSchema] = {}
        self._frames: dict[Name, DataFrame] = {}

    @staticmethod
    def new(job: str = "bootstrapped") -> SavepointEditor:
        """A savepoint from nothing."""
        now = int(time.time() * 1000)
        return SavepointEditor(
            None, SavepointManifest(job, uuid.uuid4().hex, 0, now, now, __version__, "hashmap", (), {})
        )

    # Operators

    def remove_operator(self, uid: str) -> SavepointEditor:
        """Leaves out an operator with all it has."""
        self._manifest.operator(uid)
        kept = tuple(entry for entry in self._manifest.operators if entry.uid != uid)
        self._tables.pop(uid, None)
        self._manifest = replace(self._manifest, operators=kept)
        return self

    def rename_operator(self, uid: str, new_uid: str) -> SavepointEditor:
        """Gives what an operator has to the operator of another uid."""
        entry = self._manifest.operator(uid)
        if new_uid != uid and new_uid in {one.uid for one in self._manifest.operators}:
            raise SavepointError(f"The savepoint has an operator with uid {new_uid!r} already: remove it first.")
        self._manifest = replace(
            self._manifest,
            operators=tuple(replace(one, uid=new_uid) if one is entry else one for one in self._manifest.operators),
        )
        if uid in self._tables:
            self._tables[new_uid] = self._tables.pop(uid)
        changes: tuple[dict[Name, Any], ...] = (self._rewrites, self._schemas, self._frames)
        for change in changes:
            for name in [name for name in change if name[0] == uid]:
                change[(new_uid, *name[1:])] = change.pop(name)
        return self

    # Changes

    def filter_keys(self, uid: str, keep: Callable[[Any], bool]) -> SavepointEditor:
        """Keeps only some keys of an operator, in all its states and timers."""
        for state in self._manifest.operator(uid).states:
            if state.scope != "operator":
                self._rewrites.setdefault(_name(uid, state), []).append(_Filter(state.state(uid), keep))
        return self

    def delete_keys(self, uid: str, keys: Iterable[Any]) -> SavepointEditor:
        """Removes keys of an operator, from all its states and timers."""
        gone = set(keys)
        return self.filter_keys(uid, lambda key: key not in gone)

    def map_values(
        self, uid: str, state: str, function: Callable[[Any], Any], type_info: TypeInformation | None = None
    ) -> SavepointEditor:
        """Replaces every value (list element, value of a map) by what a function makes of it; ``type_info`` is the new
        type, if it is another one."""
        entry = self._state(uid, state)
        name = _name(uid, entry)
        known = self._schemas.get(name) or entry.state(uid).schema
        if type_info is not None:
            self._schemas[name] = _retyped(known, type_info)
            self._forget_table(uid, state)
        self._rewrites.setdefault(name, []).append(_Map(entry.kind, known.expires, function))
        return self

    def write_state(
        self, uid: str, descriptor: StateDescriptor, rows: DataFrame, key_type: TypeInformation | None = None
    ) -> SavepointEditor:
        """Gives an operator a keyed state, new or instead of the one it has, from a DataFrame with the columns ``key``
        and ``value``; for a list also ``position``, for a map ``map_key``. All of them need declared types."""
        schema = schema_of(descriptor)
        state = StateId(uid, descriptor.name, schema.shape, "key", schema, key_type)
        names = [name for name in RowFormat(state).schema.names if name.endswith("_pickle")]
        if names or key_type is None:
            raise SavepointError(
                f"State {descriptor.name!r} cannot come from a DataFrame: the types of its keys and values must be "
                f"declared, so that they are columns ({', '.join(names)} would be pickled)."
            )
        if uid not in {entry.uid for entry in self._manifest.operators}:
            operator = OperatorEntry(uid, uid, "state", 1, 128, layout="plain")
            self._manifest = replace(self._manifest, operators=(*self._manifest.operators, operator))
        entry = self._manifest.operator(uid)
        there = [one for one in entry.states if one.scope == "key" and one.kind != "timers"]
        others = tuple(one for one in entry.states if one not in there or one.name != descriptor.name)
        added = StateEntry.of(state)
        self._manifest = self._manifest.with_operator(replace(entry, states=(*others, added)))
        for one in there:
            if one.name == descriptor.name:
                self._rewrites.pop(_name(uid, one), None)
        self._frames[_name(uid, added)] = rows
        self._forget_table(uid, descriptor.name)
        return self

    def _forget_table(self, uid: str, state: str) -> None:
        """What is declared now is shown as it is declared."""
        known = self._tables.get(uid)
        if known is not None:
            self._tables[uid] = replace(known, states=tuple(one for one in known.states if one.state != state))

    # Saving

    def save(self, path: str) -> Savepoint:
        """Writes the changed savepoint into a folder that is not there yet."""
        from firesteel.engine.spark.state_frames import copy_files, rewrite_files, write_frame
        from firesteel.state_processor.savepoint import Savepoint

        target = Place.of(path)
        if target.exists():
            raise SavepointError(f"{target.address} is there already. A savepoint needs a folder of its own.")
        operators = []
        for entry in self._manifest.operators:
            states = []
            for state in entry.states:
                names = _name(entry.uid, state)
                known = state.state(entry.uid)
                folder = state_folder(known)
                files: tuple[PartFile, ...]
                if names in self._frames:
                    files = write_frame(self._frames[names], known, target, folder)
                elif names in self._rewrites:
                    assert self._place is not None
                    state = replace(state, **_declared(self._schemas.get(names)))
                    files = rewrite_files(
                        self._place, state.files, known, state.state(entry.uid), self._rewrites[names], target, folder
                    )
                else:
                    assert self._place is not None
                    files = copy_files(self._place, state.files, target, folder)
                states.append(replace(state, files=files))
            operators.append(replace(entry, states=tuple(states)))
        if self._place is not None:
            _copy_sources(self._place, target)
        whole = replace(self._manifest, operators=tuple(operators), created=int(time.time() * 1000))
        whole.check(target.address)
        target.make()
        write_tables(target, self._tables)
        target.inside(NAME).write(whole.to_json().encode())
        return Savepoint(target, whole, self._tables)

    def _state(self, uid: str, name: str) -> StateEntry:
        for state in self._manifest.operator(uid).states:
            if state.name == name:
                return state
        raise SavepointError(f"Operator {uid!r} has no state {name!r} in the savepoint.")


def _name(uid: str, state: StateEntry) -> Name:
    return uid, state.name, state.scope, state.kind


class _Filter:
    def __init__(self, state: StateId, keep: Callable[[Any], bool]) -> None:
        self._state = state
        self._keep = keep

    def __call__(self, rows: Rows) -> Rows:
        places, contents = rows
        kept = [at for at, key in enumerate(self._state.user_keys(places)) if self._keep(key)]
        return [places[at] for at in kept], [contents[at] for at in kept]


class _Map:
    def __init__(self, kind: str, expires: bool, function: Callable[[Any], Any]) -> None:
        self._paired = kind in ("list", "map", "broadcast")
        self._expires = expires
        self._function = function

    def __call__(self, rows: Rows) -> Rows:
        places, contents = rows
        change = self._change
        return places, [(one[0], change(one[1])) for one in contents] if self._paired else list(map(change, contents))

    def _change(self, value: Any) -> Any:
        return (value[0], self._function(value[1])) if self._expires else self._function(value)


def _retyped(schema: StateSchema, value: TypeInformation) -> StateSchema:
    from firesteel.common.typeinfo import Types

    if schema.kind == "list":
        return replace(schema, type=Types.LIST(value))
    if schema.kind == "map":
        return replace(schema, type=Types.MAP(schema.columns[0], value))
    return replace(schema, type=value)


def _declared(schema: StateSchema | None) -> dict[str, Any]:
    from firesteel.durable.types import type_to_json

    return {} if schema is None else {"type": type_to_json(schema.type)}


def _copy_sources(place: Place, target: Place) -> None:
    from pyarrow import fs

    kept = place.inside("sources")
    if kept.exists():
        there = target.inside("sources")
        there.make()
        fs.copy_files(kept.path, there.path, source_filesystem=kept.filesystem, destination_filesystem=there.filesystem)
