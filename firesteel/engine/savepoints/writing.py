"""Writes a savepoint.

1. Each subtask's store of a committed batch is read and its states are written as Parquet files, one per state: in
   Spark tasks, while the job goes on (:mod:`firesteel.engine.spark.savepoints`), or in place (memory engine).
2. What sources keep in files of their own is copied.
3. What says how states are shown as tables is written, then the manifest. From now on the folder is a savepoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from firesteel.common.path_names import path_name
from firesteel.engine.savepoints.manifest import (
    NAME,
    OperatorEntry,
    PartFile,
    SavepointManifest,
    StateEntry,
)
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.savepoints.tables import Tables, write_tables
from firesteel.errors import SavepointError, short_repr
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.snapshots.saved import Rows, StateId

__all__ = ["SubtaskPart", "complete", "state_folder", "write_rows", "write_subtask"]

ROW_GROUP = 128 * 1024
"""Rows that are compressed together, and that one task reads when a job is restored."""


@dataclass(frozen=True)
class SubtaskPart:
    """What one subtask contributed to an operator."""

    uid: str
    subtask: int
    layout: str | None
    watermark: int | None
    states: tuple[StateEntry, ...]


def state_folder(state: StateId) -> str:
    """Where the files of a state lie, from the savepoint's folder on: a folder that no other state has.

    >>> from firesteel.durable.headers import UNDECLARED
    >>> state_folder(StateId("totals", "count", "value", "key", UNDECLARED))
    'operators/totals/count'
    """
    keyed = state.scope == "key" and state.kind != "timers"
    # No state's own name has a character 0, so what an operator keeps besides a key's state is told apart from it.
    name = state.name if keyed else f"{state.name}\0{state.scope}\0{state.kind}"
    return f"operators/{path_name(state.uid)}/{path_name(name)}"


def write_subtask(stored: StoredSubtask, subtask: int, target: Place) -> Iterator[SubtaskPart]:
    """The files of one subtask of a stage."""
    for uid in stored.headers:
        entries: list[StateEntry] = []
        for state, rows in stored.states(uid):
            if state.kind == "broadcast" and subtask:
                # Every subtask has the same.
                continue
            path = f"{state_folder(state)}/part-{subtask:05d}.parquet"
            entries.append(replace(StateEntry.of(state), files=write_rows(state, rows, target, path, subtask)))
        yield SubtaskPart(uid, subtask, stored.layout(uid), stored.watermark(uid), tuple(entries))


def write_rows(state: StateId, rows: Iterable[Rows], target: Place, path: str, subtask: int) -> tuple[PartFile, ...]:
    """One Parquet file; none where there are no rows."""
    form = RowFormat(state)
    place = target.inside(*path.split("/"))
    writer: pq.ParquetWriter | None = None
    batches: list[pa.RecordBatch] = []
    waiting = total = 0
    try:
        for places, contents in rows:
            if not places:
                continue
            batches.append(_batch(form, state, places, contents))
            waiting += len(places)
            total += len(places)
            if writer is None:
                place.parent().make()
                place.reserve()
                writer = pq.ParquetWriter(place.path, form.schema, filesystem=place.filesystem, compression="zstd")
            if waiting >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(batches, form.schema), row_group_size=ROW_GROUP)
                batches, waiting = [], 0
        if writer is not None and batches:
            writer.write_table(pa.Table.from_batches(batches, form.schema), row_group_size=ROW_GROUP)
    finally:
        if writer is not None:
            writer.close()
    return (PartFile(path, subtask, total, place.size()),) if writer is not None else ()


def _batch(form: RowFormat, state: StateId, places: list[object], contents: list[object]) -> pa.RecordBatch:
    try:
        return form.batch(places, contents)
    except Exception as error:
        for place, content in zip(places, contents, strict=True):
            try:
                form.batch([place], [content])
            except Exception as single:
                raise SavepointError(
                    f"State {state.name!r} of operator {state.uid} cannot be saved: {short_repr(content, 80)} of key "
                    f"{short_repr(place, 60)} does not fit {state.schema.type}: {single}"
                ) from error
        raise


def complete(
    target: Place, manifest: SavepointManifest, parts: Iterable[SubtaskPart], tables: Tables
) -> SavepointManifest:
    """Puts the parts into the manifest and writes it. ``tables``: how states are shown to those who read them."""
    by_uid: dict[str, list[SubtaskPart]] = {}
    for part in parts:
        by_uid.setdefault(part.uid, []).append(part)
    operators = tuple(_together(entry, by_uid.get(entry.uid, [])) for entry in manifest.operators)
    whole = replace(manifest, operators=operators)
    whole.check(target.address)
    target.make()
    write_tables(target, tables)
    target.inside(NAME).write(whole.to_json().encode())
    return whole


def _together(entry: OperatorEntry, parts: list[SubtaskPart]) -> OperatorEntry:
    states: dict[tuple[str, str, str], StateEntry] = {}
    for part in sorted(parts, key=lambda part: part.subtask):
        for state in part.states:
            name = (state.scope, state.kind, state.name)
            known = states.get(name)
            states[name] = state if known is None else replace(known, files=known.files + state.files)
    watermarks = [part.watermark for part in parts if part.watermark is not None]
    layouts = [part.layout for part in parts if part.layout is not None]
    return replace(
        entry,
        states=tuple(states.values()),
        watermark=min(watermarks, default=None),
        layout=layouts[0] if layouts else None,
    )
