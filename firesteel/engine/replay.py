"""One recorded micro-batch again, in this process: for a debugger.

1. The job is what the checkpoint folder keeps of it, or a program of today that has the same operators.
2. Spark's log says what the batch read, and at what time; the state store has the state from before it.
3. The tasks run here one after the other, in the main thread, as they ran in Spark's workers. Sinks are replaced: what
   they would have got is printed. Nothing is changed in the folder, and nothing is written anywhere.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firesteel.datastream.dependencies import Dependencies
from firesteel.durable.folder import decode_job
from firesteel.engine.cached_files import JobCache
from firesteel.engine.coordinator import Coordinator
from firesteel.engine.imports import IMPORTS
from firesteel.engine.inbox import Inbox
from firesteel.engine.kept_files import kept_files
from firesteel.engine.manifest import JOB, CheckpointFolder, stored_folder
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import without_sinks
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.settings import Settings
from firesteel.engine.shipping import gather
from firesteel.errors import CheckpointError
from firesteel.filesystems import joined
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.stage_loop import run_stages
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.task import StageTask

__all__ = ["OverlayStore", "Replayed", "replay"]

ReadStores = Callable[[CheckpointFolder, int, int, int], dict[tuple[int, int], StateStore]]
"""Of a folder, a batch, the number of stages with state and their width: the stores by (stage, subtask)."""


@dataclass(frozen=True)
class Replayed:
    """How a replay went."""

    job: str
    batch: int
    records: int
    emitted: dict[str, int]
    """Records that each operator put out."""


def replay(
    path: str,
    batch: int | None,
    read_stores: ReadStores,
    program: JobSpec | None = None,
    dependencies: Dependencies | None = None,
) -> Replayed:
    """Runs a batch of a checkpoint again. Raises what its functions raise, as the job did. ``dependencies`` are the
    files that ``program`` brings."""
    folder = stored_folder(path)
    number = _chosen(folder, batch)
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="replay-", dir=scratch_folder()))
        if program is None:
            payload = _stored_job(folder, directory)
            files = payload.files
            # Also while the batch runs: functions may import what they need when they are called.
            stack.enter_context(IMPORTS.of(files))
            job = _loaded(payload, folder)
        else:
            files = gather(dependencies or Dependencies(), program.storage)
            stack.enter_context(IMPORTS.of(files))
            job = program
        job = without_sinks(job if files is None else replace(job, files=JobCache(files)))
        return _replay(folder, number, job, read_stores, directory)


def _replay(folder: CheckpointFolder, number: int, job: JobSpec, read_stores: ReadStores, directory: str) -> Replayed:
    start, end = _offsets(folder, number)
    copied = os.path.join(directory, "sources")
    if os.path.isdir(folder.sources):
        shutil.copytree(folder.sources, copied)
    coordinator = Coordinator(job.graph, Settings(), copied)
    try:
        shares = coordinator.plan(coordinator.initial() if start is None else start, end)
        stages = len(job.graph.stages) - 1
        stores = read_stores(folder, number - 1, stages, job.graph.parallelism) if start is not None else {}
        inbox = Inbox(job, lambda batch, prepared: None)
        try:
            cells = _run(job, shares, stores)
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure
        inbox.take(number, cells)
    finally:
        coordinator.stop()
    names = {node.id: node.name for node in job.graph.graph.nodes.values()}
    emitted = {names[node]: count for node, count in inbox.progress.emitted.items()}
    return Replayed(job.name, number, inbox.progress.batch_records, emitted)


def _chosen(folder: CheckpointFolder, batch: int | None) -> int:
    newest = folder.last_batch
    if newest is None:
        raise CheckpointError(f"The checkpoint {folder.path} has no batch to replay.")
    if batch is None:
        return newest
    kept = sorted(int(name) for name in folder.storage.sizes(joined(folder.query, "offsets")) if name.isdigit())
    if batch not in kept:
        raise CheckpointError(
            f"The checkpoint {folder.path} has no batch {batch}: its log has {kept[0]} to {kept[-1]}."
        )
    return batch


def _offsets(folder: CheckpointFolder, batch: int) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    end = folder.offset(batch)
    if batch == 0:
        return None, end
    try:
        return folder.offset(batch - 1), end
    except FileNotFoundError as error:
        text = f"What came before batch {batch} is no longer in the checkpoint {folder.path}."
        raise CheckpointError(text) from error


def _stored_job(folder: CheckpointFolder, directory: str) -> JobPayload:
    try:
        content = folder.storage.read(joined(folder.path, JOB))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"The checkpoint {folder.path} does not have the job itself ({JOB}). Name the program to replay it with."
        ) from error
    payload: JobPayload = pickle.loads(decode_job(content, joined(folder.path, JOB)))
    if payload.files is not None:
        payload = replace(payload, files=kept_files(payload.files, folder.path, folder.storage, directory))
    return payload


def _loaded(payload: JobPayload, folder: CheckpointFolder) -> JobSpec:
    try:
        return payload.load_here()
    except ImportError as error:
        raise CheckpointError(
            f"The job in {folder.path} needs {error.name or 'a module'!r}, which is not importable here ({error}). "
            "Install it, or name the program that brings it: --program program.py."
        ) from error


def _run(job: JobSpec, shares: Sequence[SourceShare], stores: dict[tuple[int, int], StateStore]) -> list[bytes]:
    tasks: list[StageTask] = []

    def task(stage: int, subtask: int) -> StageTask:
        tasks.append(StageTask(job, stage, subtask))
        return tasks[-1]

    try:
        return run_stages(job.graph, shares, task, lambda *place: OverlayStore(stores.get(place)))
    finally:
        for one in tasks:
            try:
                one.close()
            except Exception as error:
                print(f"closing a function failed: {error}", file=sys.stderr)


class OverlayStore:
    """A store over another one: what is written stays here.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> below = MemoryStore({b"a": b"1", b"b": b"2"})
    >>> store = OverlayStore(below)
    >>> store.write([(b"a", None), (b"c", b"3")])
    >>> store.get_many([b"a", b"b", b"c"]), below.content
    ([None, b'2', b'3'], {b'a': b'1', b'b': b'2'})
    """

    def __init__(self, below: StateStore | None) -> None:
        self._below = below
        self._written: dict[bytes, bytes | None] = {}

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        missing = [key for key in keys if key not in self._written]
        found = self._below.get_many(missing) if self._below is not None and missing else [None] * len(missing)
        below = dict(zip(missing, found, strict=True))
        return [self._written[key] if key in self._written else below[key] for key in keys]

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._written.update(changes)


def shown(replayed: Replayed) -> Iterator[str]:
    """A few lines on how it went."""
    yield f"batch {replayed.batch} of {replayed.job!r}: {replayed.records:,} records read"
    for name, count in replayed.emitted.items():
        yield f"  {name}: {count:,} records out"
