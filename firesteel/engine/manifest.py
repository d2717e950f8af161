"""The manifest of a checkpoint folder: whose it is, so that no other job takes it up or spoils it.

    folder/
      firesteel-checkpoint.json   the manifest
      firesteel-lock              held by the job that runs; firesteel-holder.json says which
      firesteel-coordinator-lock  held by the process that plans its batches
      firesteel-lease.json        the hold on a folder that only Spark reaches
      firesteel-job.pkl           the job itself, for those who replay a batch of it
      firesteel-tables.json       how the state of queries is shown as tables
      firesteel-files/            the files that the job brings, for the same
      firesteel-sources/          what sources log for themselves, and the driver's last feedback to the coordinator
      firesteel-commits/          what sinks have prepared and not yet committed, one file a batch; the job's id
      query/                      Spark's: metadata, offsets, commits, state

1. The job takes the folder for itself, for as long as it lives.
2. At the first start the manifest is written, before anything else.
3. When the first batch is done, the manifest says that it has begun: from now on the rest must be there.
4. At every later start it is compared with the program, and the folder is looked over, before Spark touches
   anything. What does not fit is an error, and nothing is changed.
"""

from __future__ import annotations

import json
import logging
import pickle
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from firesteel import __version__
from firesteel.durable.cells import PROTOCOL
from firesteel.durable.folder import checked_offset, encode_job
from firesteel.durable.state_tables import OperatorTables, tables_from_json, tables_to_json
from firesteel.durable.versions import CHECKPOINT
from firesteel.engine.folder_lease import LEASE, FolderLease
from firesteel.engine.folder_lock import COORDINATOR_LOCK, HOLDER, LOCK, FolderLock, Holder
from firesteel.engine.kept_files import FILES, keep_files
from firesteel.engine.payload import JobPayload
from firesteel.engine.query_files import check_query, newest_entry
from firesteel.errors import CheckpointError, kind_of_file_error
from firesteel.filesystems import LOCAL, Storage, joined
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec

logger = logging.getLogger("firesteel")

__all__ = ["CheckpointFolder", "Manifest", "OperatorEntry", "is_checkpoint", "stored_folder"]

NAME = "firesteel-checkpoint.json"
JOB = "firesteel-job.pkl"
TABLES = "firesteel-tables.json"
QUERY = "query"
SOURCES = "firesteel-sources"
COMMITS = "firesteel-commits"


@dataclass(frozen=True)
class OperatorEntry:
    """One operator, as far as a checkpoint depends on it."""

    id: int
    uid: str
    name: str
    kind: str
    stage: int
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint folder says of itself."""

    job: str
    state_backend: str
    width: int
    """Partitions of every stage: the parallelism of the widest operator."""
    operators: tuple[OperatorEntry, ...]
    format: int = CHECKPOINT.version
    begun: bool = False
    """Whether a batch was done: then there are offsets and state."""
    union_lists: bool = False
    """Whether an operator has union list state, which a restart must merge."""
    firesteel: str = ""
    """The version that wrote it last."""

    @staticmethod
    def of(job_name: str, graph: JobGraph, state_backend: str) -> Manifest:
        entries = []
        for node in graph.graph.nodes.values():
            kind = "source" if isinstance(node.spec, SourceSpec) else "state" if node.spec.stateful else "operator"
            stage = graph.stage_of(node.id)
            entry = OperatorEntry(node.id, node.uid, node.name, kind, stage, node.parallelism, node.max_parallelism)
            entries.append(entry)
        return Manifest(job_name, state_backend, graph.parallelism, tuple(entries))

    def to_json(self) -> str:
        """Always in the present format, whatever it was read from."""
        written = replace(self, format=CHECKPOINT.version, firesteel=__version__)
        return json.dumps(asdict(written), indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Raises ValueError where the text is no manifest."""
        values: dict[str, Any] = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("it has no format")
        refusal = CHECKPOINT.refusal(values.get("format"), _writer(values))
        if refusal is not None:
            raise ValueError(refusal)
        try:
            operators = tuple(OperatorEntry(**entry) for entry in values.pop("operators"))
            return Manifest(operators=operators, **values)
        except (TypeError, KeyError) as error:
            raise ValueError(f"it lacks something or has too much: {error}") from None

    def difference(self, now: Manifest) -> str | None:
        """Why a job that is ``now`` so cannot go on from here; None if it can."""
        before = {entry.uid: entry for entry in self.operators}
        after = {entry.uid: entry for entry in now.operators}
        if list(before) != list(after):
            gone = [_called(before[uid]) for uid in before if uid not in after]
            new = [_called(after[uid]) for uid in after if uid not in before]
            differences = [f"it has {_listed(gone)}, which the program lacks"] if gone else []
            differences += [f"the program has {_listed(new)}, which it lacks"] if new else []
            differences = differences or ["the operators come in another order"]
            return f"it is the checkpoint of another program (job {self.job!r}): {'; '.join(differences)}"
        for uid, there in before.items():
            here = after[uid]
            for what, old, own in (
                ("parallelism", there.parallelism, here.parallelism),
                ("maximum parallelism", there.max_parallelism, here.max_parallelism),
            ):
                if old != own:
                    return f"{_called(there)} had {what} {old} and has {own} now; state is kept per subtask"
            if (there.id, there.stage, there.kind) != (here.id, here.stage, here.kind):
                return f"{_called(there)} has another place in the program now"
        if self.width != now.width:
            return f"the widest operator had parallelism {self.width} and has {now.width} now"
        if self.state_backend != now.state_backend:
            return f"its state was kept by the backend {self.state_backend!r}; the job has {now.state_backend!r} now"
        return None


def _writer(values: dict[str, Any]) -> str:
    version = values.get("firesteel")
    return f"version {version}" if isinstance(version, str) and version else ""


def _called(entry: OperatorEntry) -> str:
    return f"{entry.name!r} (uid {entry.uid})"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class CheckpointFolder:
    """One job's durable folder."""

    def __init__(self, path: str, manifest: Manifest, storage: Storage = LOCAL, sources: str | None = None) -> None:
        self.path = path
        self.storage = storage
        self._manifest = manifest
        self._file = joined(path, NAME)
        self.sources = sources or joined(path, SOURCES)
        """Where sources keep files of their own: of this machine, whatever the rest is on."""
        self._lock: FolderLock | FolderLease | None = None

    def lock(self, holder: Holder) -> None:
        """Takes the folder for a job, or raises an error that says who has it."""
        storage = self.storage
        lock = FolderLock(self.path, holder) if storage is LOCAL else FolderLease(self.path, storage, holder)
        try:
            if storage.exists(self.path) and not storage.is_folder(self.path):
                raise CheckpointError(f"The checkpoint folder {self.path} is a file. Name another folder.")
            lock.take()
        except OSError as error:
            raise CheckpointError(f"The checkpoint folder {self.path} cannot be reached: {error}.") from error
        self._lock = lock

    def check_lock(self) -> None:
        """Raises where the folder is no longer this job's."""
        if self._lock is not None:
            self._lock.check()

    def release(self) -> None:
        """Others may have the folder."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    @property
    def manifest(self) -> Manifest:
        """What the folder says of itself."""
        return self._manifest

    @property
    def query(self) -> str:
        return joined(self.path, QUERY)

    @property
    def commits(self) -> str:
        return joined(self.path, COMMITS)

    @property
    def last_batch(self) -> int | None:
        """The last batch that began."""
        return newest_entry(joined(self.query, "offsets"), self.storage)

    @property
    def last_commit(self) -> int | None:
        """The last batch that Spark has logged as done."""
        return newest_entry(joined(self.query, "commits"), self.storage)

    @property
    def finished(self) -> bool:
        """Whether the last batch that is done was the job's last one."""
        batch = self.last_commit
        return batch is not None and bool(self.offset(batch)["last"])

    def offset(self, batch: int) -> dict[str, Any]:
        """What the coordinator decided for a batch, from Spark's log."""
        path = joined(self.query, "offsets", str(batch))
        for line in self.storage.read(path).decode().splitlines()[1:]:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and "positions" in value:
                return checked_offset(value, path)
        raise CheckpointError(f"Spark's log of batch {batch} has no positions of sources: {path}.")

    def clear_unless_begun(self) -> None:
        """Before a query starts: where no batch was ever logged, what an earlier start left of one goes.

        Spark takes half-written files of its own for somebody else's, and refuses to begin there. What sources and
        sinks have noted stays.
        """
        if self._manifest.begun:
            return
        logs = (self.storage.sizes(joined(self.query, log)) for log in ("offsets", "commits"))
        if not any(name.isdigit() for log in logs for name in log):
            self.storage.delete(self.query)

    def claim(self) -> bool:
        """Checks a folder that is there, or begins a new one. Returns whether there is something to go on from."""
        try:
            return self._claim()
        except OSError as error:
            raise CheckpointError(f"The checkpoint folder {self.path} cannot be reached: {error}.") from error

    def _claim(self) -> bool:
        storage = self.storage
        if not storage.exists(self._file):
            if any(storage.exists(place) for place in (self.query, joined(self.path, SOURCES), self.commits)):
                raise self._refusal(f"its manifest {NAME} is missing, so nobody knows whose it is")
            self._write(self._manifest)
            return False
        try:
            known = Manifest.from_json(storage.read(self._file).decode())
        except (OSError, ValueError) as error:
            raise self._refusal(f"its manifest {NAME} cannot be read: {error}") from error
        if not known.begun and self.last_batch is None:
            # Somebody came as far as the manifest: there is nothing to go on from, and nothing to lose.
            self._write(self._manifest)
            return False
        difference = known.difference(self._manifest)
        if difference is not None:
            raise self._refusal(difference)
        later_stages = max(entry.stage for entry in known.operators)
        damage = check_query(self.query, later_stages, known.width, storage)
        if damage is not None:
            raise self._refusal(damage)
        self._manifest = known
        if known.format < CHECKPOINT.version:
            # Before anything is written that an earlier version would not understand, so that it refuses the folder.
            self._write(known)
            logger.info(
                "the checkpoint in %s has format %d now; earlier versions of Firesteel no longer read it",
                self.path,
                CHECKPOINT.version,
            )
        return True

    def keep_job(self, payload: JobPayload) -> None:
        """Keeps the job beside its state, for those who replay a batch. The job itself runs without that, too."""
        try:
            self.storage.write(joined(self.path, JOB), encode_job(pickle.dumps(payload, PROTOCOL)))
        except OSError as error:
            logger.warning("%s cannot be written in %s, so no batch can be replayed: %s", JOB, self.path, error)
            return
        if payload.files is not None:
            keep_files(payload.files, self.path, self.storage)

    def keep_tables(self, tables: dict[str, OperatorTables]) -> None:
        """Keeps how states are shown, for those who read them. The job itself runs without that, too."""
        if not tables:
            return
        try:
            self.storage.write(joined(self.path, TABLES), tables_to_json(tables).encode())
        except OSError as error:
            logger.warning("%s cannot be written in %s, so states have no columns: %s", TABLES, self.path, error)

    def kept_tables(self) -> dict[str, OperatorTables]:
        """How states are shown; nothing if that is not known, or cannot be read."""
        try:
            return tables_from_json(self.storage.read(joined(self.path, TABLES)).decode())
        except (OSError, ValueError):
            return {}

    def make_query_folder(self) -> None:
        """Makes the folder of Spark's part before Spark does: what Spark writes has the modes of the umask, and those
        who cannot get in here cannot read it."""
        try:
            self.storage.make_folder(self.query)
        except OSError as error:
            raise self._unwritable(error) from error

    def begun(self, union_lists: bool = False) -> None:
        """The first batch is done."""
        if not self._manifest.begun:
            self._write(replace(self._manifest, begun=True, union_lists=union_lists))

    def _write(self, manifest: Manifest) -> None:
        self._put(self._file, manifest.to_json().encode())
        self._manifest = manifest

    def _put(self, name: str, content: bytes) -> None:
        try:
            self.storage.write(name, content)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> CheckpointError:
        kind = kind_of_file_error(error)
        return CheckpointError(f"The checkpoint folder {self.path} cannot be written: {error}.", kind=kind)

    def delete(self) -> None:
        """Removes what the job left here, and the folder if nothing else is in it."""
        storage = self.storage
        for place in (self.query, joined(self.path, SOURCES), self.commits, joined(self.path, FILES)):
            for _ in range(10):
                storage.delete(place)
                if not storage.exists(place):
                    break
                # Spark's maintenance was just uploading something.
                time.sleep(0.2)
        for name in (JOB, TABLES, NAME, COORDINATOR_LOCK, LEASE, HOLDER, LOCK):
            storage.delete(joined(self.path, name))
        storage.remove_if_empty(self.path)

    def _refusal(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"The job cannot go on from the checkpoint in {self.path}: {why}. Nothing was changed there. Start the "
            "program that it belongs to, unchanged, or name another folder, or delete this one to begin anew."
        )


def is_checkpoint(path: str, storage: Storage = LOCAL) -> bool:
    """Whether a folder is a job's checkpoint."""
    return storage.exists(joined(path, NAME))


def stored_folder(path: str, storage: Storage = LOCAL) -> CheckpointFolder:
    """A checkpoint folder that is there, whatever job it belongs to."""
    try:
        return CheckpointFolder(path, Manifest.from_json(storage.read(joined(path, NAME)).decode()), storage)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read: {error}.") from error
