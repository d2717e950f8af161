"""The manifest of a checkpoint folder: whose it is, so that no other job takes it up or spoils it.

    folder/
      firesteel-checkpoint.json   the manifest
      firesteel-lock              held by the job that runs
      firesteel-sources/          what sources log for themselves
      firesteel-commits/          what sinks have prepared and not yet committed, one file a batch; the job's id
      query/                      Spark's: metadata, offsets, commits, state

1. At the first start the manifest is written, before anything else.
2. When the first batch is done, the manifest says that it has begun: from now on the rest must be there.
3. At every later start it is compared with the program, and the folder is looked over, before Spark touches
   anything. What does not fit is an error, and nothing is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from firesteel.engine.query_files import check_query, newest_entry
from firesteel.errors import CheckpointError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec

__all__ = ["CheckpointFolder", "Manifest", "OperatorEntry"]

FORMAT = 1
NAME = "firesteel-checkpoint.json"
LOCK = "firesteel-lock"
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
    format: int = FORMAT
    begun: bool = False
    """Whether a batch was done: then there are offsets and state."""

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
        return json.dumps(asdict(self), indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Raises ValueError where the text is no manifest."""
        values: dict[str, Any] = json.loads(text)
        if not isinstance(values, dict) or not isinstance(values.get("format"), int):
            raise ValueError("it has no format")
        if values["format"] > FORMAT:
            raise ValueError(f"it has format {values['format']}, of a newer Firesteel; this one reads up to {FORMAT}")
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
            told = [f"it has {_listed(gone)}, which the program lacks"] if gone else []
            told += [f"the program has {_listed(new)}, which it lacks"] if new else []
            told = told or ["the operators come in another order"]
            return f"it is the checkpoint of another program (job {self.job!r}): {'; '.join(told)}"
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


def _called(entry: OperatorEntry) -> str:
    return f"{entry.name!r} (uid {entry.uid})"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class CheckpointFolder:
    """One job's durable folder."""

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest
        self._file = os.path.join(path, NAME)

    @property
    def query(self) -> str:
        return os.path.join(self.path, QUERY)

    @property
    def sources(self) -> str:
        return os.path.join(self.path, SOURCES)

    @property
    def commits(self) -> str:
        return os.path.join(self.path, COMMITS)

    def claim(self) -> bool:
        """Checks a folder that is there, or begins a new one. Returns whether there is something to go on from."""
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise CheckpointError(f"The checkpoint folder {self.path} is a file. Name another folder.")
        if not os.path.exists(self._file):
            if any(os.path.exists(place) for place in (self.query, self.sources, self.commits)):
                raise self._refusal(f"its manifest {NAME} is missing, so nobody knows whose it is")
            self._write(self._manifest)
            return False
        try:
            with open(self._file, encoding="utf-8") as file:
                known = Manifest.from_json(file.read())
        except (OSError, ValueError) as error:
            raise self._refusal(f"its manifest {NAME} cannot be read: {error}") from error
        if not known.begun and newest_entry(os.path.join(self.query, "offsets")) is None:
            # Somebody came as far as the manifest: there is nothing to go on from, and nothing to lose.
            self._write(self._manifest)
            return False
        difference = known.difference(self._manifest)
        if difference is not None:
            raise self._refusal(difference)
        later_stages = max(entry.stage for entry in known.operators)
        damage = check_query(self.query, later_stages, known.width)
        if damage is not None:
            raise self._refusal(damage)
        self._manifest = known
        return True

    def begun(self) -> None:
        """The first batch is done."""
        if not self._manifest.begun:
            self._write(replace(self._manifest, begun=True))

    def _write(self, manifest: Manifest) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
            with open(self._file + ".new", "w", encoding="utf-8") as file:
                file.write(manifest.to_json())
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._file + ".new", self._file)
        except OSError as error:
            raise CheckpointError(f"The checkpoint folder {self.path} cannot be written: {error}.") from error
        self._manifest = manifest

    def delete(self) -> None:
        """Removes what the job left here, and the folder if nothing else is in it."""
        for place in (self.query, self.sources, self.commits):
            for _ in range(10):
                shutil.rmtree(place, ignore_errors=True)
                if not os.path.exists(place):
                    break
                # Spark's maintenance was just uploading something.
                time.sleep(0.2)
        for name in (os.path.join(self.path, LOCK), self._file + ".new", self._file):
            if os.path.exists(name):
                os.remove(name)
        if not os.listdir(self.path):
            os.rmdir(self.path)

    def _refusal(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"The job cannot go on from the checkpoint in {self.path}: {why}. Nothing was changed there. Start the "
            "program that it belongs to, unchanged, or name another folder, or delete this one to begin anew."
        )
