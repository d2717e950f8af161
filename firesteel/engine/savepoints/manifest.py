"""A savepoint's manifest: everything about it that is not rows. It is written last, so a folder with one is whole."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.durable.headers import StateSchema
from firesteel.durable.types import type_from_json, type_to_json
from firesteel.durable.versions import SAVEPOINT
from firesteel.errors import SavepointError
from firesteel.runtime.snapshots.saved import StateId

__all__ = ["NAME", "OperatorEntry", "PartFile", "SavepointManifest", "StateEntry"]

NAME = "manifest.json"
_PART = re.compile(r"[A-Za-z0-9._=-]+")
"""What a part of a path may consist of: nothing that separates folders, or is decoded, on any file system."""


@dataclass(frozen=True)
class PartFile:
    """One Parquet file: the rows of one former subtask."""

    path: str
    """From the savepoint's folder on."""
    subtask: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class StateEntry:
    """One state of an operator."""

    name: str
    kind: str
    """value, list, map, timers, split, union, raw or broadcast."""
    scope: str
    """key, window, place or operator."""
    declared: str
    """What the program called it: value, list, map, reducing, aggregating."""
    type: Any
    """The declared type, as JSON."""
    expires: bool
    key_type: Any
    """The declared type of the keys, as JSON; None where there is none."""
    files: tuple[PartFile, ...] = ()

    @staticmethod
    def of(state: StateId) -> StateEntry:
        schema = state.schema
        key_type = None if state.key_type is None else type_to_json(state.key_type)
        return StateEntry(
            state.name, state.kind, state.scope, schema.kind, type_to_json(schema.type), schema.expires, key_type
        )

    def state(self, uid: str) -> StateId:
        """The state again, as the runtime knows it."""
        schema = StateSchema(self.declared, type_from_json(self.type), self.expires)
        key_type: TypeInformation | None = None if self.key_type is None else type_from_json(self.key_type)
        return StateId(uid, self.name, self.kind, self.scope, schema, key_type)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class OperatorEntry:
    """One operator of the job."""

    uid: str
    name: str
    kind: str
    """source, state or operator."""
    parallelism: int
    max_parallelism: int
    layout: str | None = None
    """How a keyed operator builds its state."""
    watermark: int | None = None
    position: Any = None
    """How far a source was read."""
    states: tuple[StateEntry, ...] = ()

    @property
    def holds_state(self) -> bool:
        """Whether something would be lost if nobody took it over."""
        return self.position is not None or any(state.rows for state in self.states)


@dataclass(frozen=True)
class SavepointManifest:
    """What a savepoint says of itself."""

    job: str
    job_id: str
    batch: int
    time: int
    """Processing time of the last batch, in milliseconds."""
    created: int
    """When the savepoint was taken, in milliseconds."""
    firesteel: str
    state_backend: str
    operators: tuple[OperatorEntry, ...]
    event_time: dict[str, dict[str, Any]]
    """How far event time was where it is made, at a source or behind one: by "uid/subtask"."""
    drained: bool = False
    format: int = SAVEPOINT.version

    def to_json(self) -> str:
        """Always in the present format, whatever it was read from."""
        return json.dumps(asdict(replace(self, format=SAVEPOINT.version)), indent=2) + "\n"

    @staticmethod
    def from_json(text: str, where: str) -> SavepointManifest:
        try:
            values: dict[str, Any] = json.loads(text)
            writer = values.get("firesteel")
            refusal = SAVEPOINT.refusal(values.get("format"), f"version {writer}" if isinstance(writer, str) else "")
            if refusal is not None:
                raise ValueError(refusal)
            operators = tuple(map(_operator, values.pop("operators")))
            found = SavepointManifest(operators=operators, **values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SavepointError(f"The manifest of the savepoint {where} cannot be read: {error}.") from error
        found.check(where)
        return found

    def check(self, where: str) -> None:
        """Refuses what would mix up states, or lead out of the savepoint's folder: a manifest may have been written by
        anybody."""
        uids: set[str] = set()
        claims: dict[str, str] = {}
        for entry in self.operators:
            if not isinstance(entry.uid, str) or not entry.uid or entry.uid in uids:
                raise SavepointError(
                    f"The savepoint {where} cannot be used: two of its operators have the uid {entry.uid!r}, or it is "
                    "no uid."
                )
            uids.add(entry.uid)
            for state in entry.states:
                claim = f"state {state.name!r} of operator {entry.uid!r}"
                for file in state.files:
                    _check_file(file, claim, where)
                    if file.path in claims:
                        raise SavepointError(
                            f"The savepoint {where} cannot be used: {claims[file.path]} and {claim} both claim the "
                            f"file {file.path}, so one has overwritten the other. Take another savepoint."
                        )
                    claims[file.path] = claim

    def operator(self, uid: str) -> OperatorEntry:
        for entry in self.operators:
            if entry.uid == uid:
                return entry
        known = ", ".join(f"{entry.uid} ({entry.name})" for entry in self.operators)
        raise SavepointError(f"The savepoint has no operator with uid {uid!r}. It has: {known}.")

    def with_operator(self, changed: OperatorEntry) -> SavepointManifest:
        """The same with one operator replaced."""
        return replace(self, operators=tuple(changed if one.uid == changed.uid else one for one in self.operators))


def _check_file(file: PartFile, claim: str, where: str) -> None:
    parts = file.path.split("/") if isinstance(file.path, str) else [""]
    if not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        raise SavepointError(
            f"The savepoint {where} cannot be used: {claim} is said to be in {file.path!r}, which is not a path within "
            "the savepoint's folder."
        )
    if not all(isinstance(number, int) and number >= 0 for number in (file.subtask, file.rows, file.bytes)):
        raise SavepointError(
            f"The savepoint {where} cannot be used: what it says of the file {file.path} is not a size."
        )


def _operator(values: dict[str, Any]) -> OperatorEntry:
    return OperatorEntry(**{**values, "states": tuple(map(_state, values["states"]))})


def _state(values: dict[str, Any]) -> StateEntry:
    return StateEntry(**{**values, "files": tuple(PartFile(**file) for file in values["files"])})
