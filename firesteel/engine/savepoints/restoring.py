"""Begins a job with a savepoint: checks that it fits, and shares out its files among the tasks of stage 0."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from firesteel.common.path_names import path_name
from firesteel.common.private_files import make_private_folder
from firesteel.engine.savepoints.manifest import NAME, OperatorEntry, PartFile, SavepointManifest, StateEntry
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.errors import SavepointError
from firesteel.filesystems import StorageOptions
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.snapshots.saved import Facts, StateChunk
from firesteel.runtime.watermarks import MAX_WATERMARK

__all__ = ["Restore", "RestoreShare", "load_manifest"]

_ROWS = 16384
_BYTES = 1 << 20


def load_manifest(place: Place) -> SavepointManifest:
    """The manifest of a savepoint, or an error that says why there is none."""
    file = place.inside(NAME)
    if not file.exists():
        hint = "The folder is there, but a savepoint was never completed in it" if place.exists() else "It is not there"
        raise SavepointError(f"{place.address} is not a savepoint: it has no {NAME}. {hint}.")
    return SavepointManifest.from_json(file.read().decode(), place.address)


@dataclass(frozen=True)
class Restore:
    """A savepoint that a job begins with, checked against the job's program."""

    place: Place
    manifest: SavepointManifest

    @staticmethod
    def of(address: str, graph: JobGraph, allow_non_restored: bool, options: StorageOptions | None = None) -> Restore:
        place = Place.of(address, options)
        manifest = load_manifest(place)
        _check(place, manifest, graph, allow_non_restored)
        for entry in manifest.operators:
            for state in entry.states:
                for file in state.files:
                    _metadata(place, file)
        return Restore(place, manifest)

    def positions(self, graph: JobGraph) -> dict[str, Any]:
        """How far each source of the program was read, by its node; those that the savepoint does not know are not
        in it."""
        known = {entry.uid: entry.position for entry in self.manifest.operators if entry.position is not None}
        return {
            str(node.id): known[node.uid]
            for node in graph.graph.nodes.values()
            if isinstance(node.spec, SourceSpec) and node.uid in known
        }

    def kept(self, graph: JobGraph) -> dict[str, dict[str, Any]]:
        """What operators that make event time go on from, by "node/subtask". Without splits the slowest former subtask
        decides for all; splits have an event time of their own, which follows them."""
        by_uid: dict[str, list[dict[str, Any]]] = {}
        for name, kept in self.manifest.event_time.items():
            by_uid.setdefault(name.rpartition("/")[0], []).append(kept)
        found: dict[str, dict[str, Any]] = {}
        for node in graph.graph.nodes.values():
            former = by_uid.get(node.uid, [])
            levels = [kept["own"] for kept in former if kept.get("own", MAX_WATERMARK) < MAX_WATERMARK]
            if levels:
                stage = graph.stages[graph.stage_of(node.id)]
                found.update({f"{node.id}/{subtask}": {"own": min(levels)} for subtask in range(stage.parallelism)})
            splits = {name: level for kept in former for name, level in kept.get("splits", {}).items()}
            if splits:
                found.setdefault(f"{node.id}/0", {})["splits"] = splits
        return found

    def bring_files(self, directory: str) -> None:
        """Puts what sources kept in files of their own to where they look for it, unless it is there already."""
        kept = self.place.inside("sources")
        if not kept.exists():
            return
        # Once the folders had the uids themselves for names.
        names = {entry.uid: path_name(entry.uid) for entry in self.manifest.operators}
        for source in kept.filesystem.get_file_info(fs.FileSelector(kept.path)):
            there = os.path.join(directory, names.get(source.base_name, source.base_name))
            if not os.path.exists(there):
                beside = f"{there}.new"
                shutil.rmtree(beside, ignore_errors=True)
                make_private_folder(beside)
                fs.copy_files(source.path, beside, source_filesystem=kept.filesystem)
                os.rename(beside, there)

    def shares(self, graph: JobGraph, width: int) -> list[RestoreShare]:
        """What each task of stage 0 reads: of every state a stretch of its rows, in order. State without keys is
        small, and how it is shared out depends on all of it, so the first task reads that alone."""
        pieces: list[list[Piece]] = [[] for _ in range(width)]
        alone: list[tuple[OperatorEntry, StateEntry]] = []
        facts: list[Facts] = []
        parallelism = {node.uid: node.parallelism for node in graph.graph.nodes.values()}
        stateful = {node.uid for node in graph.graph.nodes.values() if node.spec.needs_store}
        for entry in self.manifest.operators:
            if entry.uid not in stateful:
                continue
            own = [state for state in entry.states if state.scope == "operator"]
            mark = entry.watermark if entry.watermark is not None and entry.watermark < MAX_WATERMARK else None
            facts.append(Facts(entry.uid, mark, entry.layout, bool(own)))
            alone += [(entry, state) for state in own]
            for state in entry.states:
                if state.scope != "operator":
                    self._cut(entry.uid, state, pieces)
        return [
            RestoreShare(
                self.place,
                tuple(pieces[subtask]),
                tuple(facts) if subtask == 0 else (),
                tuple(alone) if subtask == 0 else (),
                parallelism,
            )
            for subtask in range(width)
        ]

    def _cut(self, uid: str, state: StateEntry, pieces: list[list[Piece]]) -> None:
        groups: list[tuple[str, int, int]] = []
        for file in state.files:
            metadata = _metadata(self.place, file)
            groups += [(file.path, n, metadata.row_group(n).num_rows) for n in range(metadata.num_row_groups)]
        total, seen = sum(rows for _, _, rows in groups), 0
        for path, number, rows in groups:
            # By the middle of the group, so that each task gets one stretch of about the same length.
            task = min(len(pieces) - 1, (2 * seen + rows) * len(pieces) // max(1, 2 * total))
            pieces[task].append(Piece(uid, state, path, number))
            seen += rows


@dataclass(frozen=True)
class Piece:
    """One row group of one file."""

    uid: str
    state: StateEntry
    path: str
    group: int


@dataclass(frozen=True)
class RestoreShare:
    """What one task of stage 0 reads of a savepoint."""

    place: Place
    pieces: tuple[Piece, ...]
    facts: tuple[Facts, ...]
    alone: tuple[tuple[OperatorEntry, StateEntry], ...]
    parallelism: dict[str, int]

    def __iter__(self) -> Iterator[StateChunk | Facts]:
        yield from self.facts
        for entry, state in self.alone:
            yield from self._without_keys(entry, state)
        for piece in self.pieces:
            known = piece.state.state(piece.uid)
            for places, contents in self._read(piece.path, piece.state, piece.uid, [piece.group]):
                yield StateChunk(known, places, contents)

    def _read(
        self, path: str, entry: StateEntry, uid: str, groups: list[int] | None = None
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        form = RowFormat(entry.state(uid))
        place = self.place.inside(*path.split("/"))
        with place.filesystem.open_input_file(place.path) as opened:
            file = pq.ParquetFile(opened)
            wanted = list(range(file.metadata.num_row_groups)) if groups is None else groups
            for number in wanted:
                group = file.metadata.row_group(number)
                # About a megabyte at once, whatever a row is like.
                size = max(1, group.total_byte_size // max(1, group.num_rows))
                for batch in file.iter_batches(max(1, min(_ROWS, _BYTES // size)), [number]):
                    places, contents = form.rows(batch)
                    yield places, renewed(contents)

    def _without_keys(self, entry: OperatorEntry, state: StateEntry) -> Iterator[StateChunk]:
        now = self.parallelism[entry.uid]
        known = state.state(entry.uid)
        every = range(now)
        before = 0
        for file in state.files:
            for _, contents in self._read(file.path, state, entry.uid):
                if state.kind in ("union", "broadcast"):
                    yield StateChunk(known, [], contents, every)
                elif now == entry.parallelism:
                    yield StateChunk(known, [], contents, (file.subtask,))
                else:
                    for target, part in _evenly(contents, before, state.rows, now):
                        yield StateChunk(known, [], part, (target,))
                before += len(contents)


def _evenly(elements: list[Any], first: int, total: int, parallelism: int) -> Iterator[tuple[int, list[Any]]]:
    """Shares elements, of which the first is number ``first`` of all, in stretches that differ by one at most.

    >>> list(_evenly(["a", "b", "c", "d", "e"], 0, 5, 2))
    [(0, ['a', 'b', 'c']), (1, ['d', 'e'])]
    """
    base, larger = divmod(total, parallelism)
    ends = [(base + 1) * (n + 1) if n < larger else base * (n + 1) + larger for n in range(parallelism)]
    at = 0
    for target, end in enumerate(ends):
        count = min(len(elements) - at, max(0, end - first - at))
        if count:
            yield target, elements[at : at + count]
            at += count


def renewed(values: list[Any]) -> list[Any]:
    """Objects of dataclasses that got new fields since they were saved: they get the fields' defaults."""
    kinds = {type(value) for value in values}
    for kind in kinds:
        if dataclasses.is_dataclass(kind):
            renew = _renewer(kind)
            values = [renew(value) if type(value) is kind else value for value in values]
        elif kind is tuple:
            # A position, a map's key or the time of last use stands before the value.
            values = [
                (*value[:-1], *renewed([value[-1]])) if type(value) is tuple and value else value for value in values
            ]
    return values


def _renewer(kind: type) -> Callable[[Any], Any]:
    fields = dataclasses.fields(kind)

    def renew(value: Any) -> Any:
        for field in fields:
            if not hasattr(value, field.name) or _only_the_class_has(value, field.name):
                if field.default is not dataclasses.MISSING:
                    object.__setattr__(value, field.name, field.default)
                elif field.default_factory is not dataclasses.MISSING:
                    object.__setattr__(value, field.name, field.default_factory())
                else:
                    raise SavepointError(
                        f"{kind.__qualname__} has got a field {field.name!r} without a default since the savepoint was "
                        "taken. Give it a default: what was saved has no value for it."
                    )
        return value

    return renew


def _only_the_class_has(value: Any, name: str) -> bool:
    own = getattr(value, "__dict__", None)
    return own is not None and name not in own


def _metadata(place: Place, file: PartFile) -> pq.FileMetaData:
    """A file's metadata, if it is the file that the manifest describes."""
    there = place.inside(*file.path.split("/"))
    try:
        with there.filesystem.open_input_file(there.path) as opened:
            metadata = pq.ParquetFile(opened).metadata
    except (OSError, pa.ArrowException) as error:
        raise SavepointError(f"The savepoint {place.address} is damaged: {file.path}: {error}.") from error
    if metadata.num_rows != file.rows:
        raise SavepointError(
            f"The savepoint {place.address} is damaged: {file.path} has {metadata.num_rows} rows, its manifest says "
            f"{file.rows}."
        )
    return metadata


def _check(place: Place, manifest: SavepointManifest, graph: JobGraph, allow_non_restored: bool) -> None:
    """Whether a program can take over what the savepoint has."""
    nodes = {node.uid: node for node in graph.graph.nodes.values()}
    homeless = []
    for entry in manifest.operators:
        node = nodes.get(entry.uid)
        takes = node is not None and (
            isinstance(node.spec, SourceSpec) if entry.kind == "source" else node.spec.needs_store
        )
        if not takes and entry.holds_state:
            homeless.append(f"{entry.name!r} (uid {entry.uid})")
    if homeless and not allow_non_restored:
        named = ", ".join(homeless[:3]) + (f" and {len(homeless) - 3} more" if len(homeless) > 3 else "")
        raise SavepointError(
            f"The savepoint {place.address} has state of {named}, which no operator of the program takes over. States "
            "are matched by uid: give the operator the uid it had, or allow non-restored state (firesteel run -n, "
            "execution.state-recovery.ignore-unclaimed-state) to leave that state behind."
        )
