"""What a task must know: of its job, and of its share of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.connectors.source import SplitRange
from firesteel.datastream.connectors.base import SinkIdentity
from firesteel.datastream.functions import DistributedCache
from firesteel.filesystems import StorageOptions
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.context import NoFiles
from firesteel.runtime.crash_points import CrashPoints
from firesteel.runtime.frames import FRAMES_MEMORY, MAX_RECORD
from firesteel.runtime.snapshots.saved import Facts, StateChunk
from firesteel.runtime.state.factories import HashMapTables
from firesteel.runtime.state.tables import TableFactory

__all__ = ["JobSpec", "SourceShare"]


@dataclass(frozen=True)
class JobSpec:
    """What a worker must know of a job."""

    job_id: str
    name: str
    graph: JobGraph
    batch_mode: bool = False
    attempt: int = 0
    job_parameters: dict[str, str] = field(default_factory=dict)
    tables: TableFactory = field(default_factory=HashMapTables)
    """The state backend."""
    frames_memory: int = FRAMES_MEMORY
    """How many bytes of a batch's frames a subtask holds in memory; more wait in a file."""
    max_record: int = MAX_RECORD
    """The largest record, pickled, that may change hands."""
    lineage: str = ""
    """The id that stays when the job is started again with its checkpoint folder; the job's own where it is empty."""
    restored: bool = False
    """Whether the job goes on from a checkpoint."""
    crash_points: CrashPoints = field(default_factory=CrashPoints)
    storage: StorageOptions = field(default_factory=StorageOptions)
    """How to get into object stores."""
    files: DistributedCache = field(default_factory=NoFiles)
    """What the job brings for its functions."""
    busy_time: bool = True
    """Whether it is measured how long each operator works."""

    def identity_of(self, node: StreamNode) -> SinkIdentity:
        """What a sink of this job is known by outside."""
        return SinkIdentity(self.name, self.lineage or self.job_id, node.uid, self.attempt, self.restored)


@dataclass(frozen=True)
class SourceShare:
    """What one task of stage 0 reads in one batch."""

    subtask: int
    time: int
    last: bool
    shares: dict[int, list[SplitRange[Any]]]
    """Per source node what this subtask reads of it."""
    ended: frozenset[int]
    """Sources that have nothing left after this batch."""
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What operators that make event time had to remember of the last batch."""
    splits: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)
    """Per source that has splits those of this subtask: with records before the batch's end, with records after it."""
    paused: frozenset[int] = frozenset()
    """Operators that make event time and whose source may not read, since it is ahead of others."""
    steps: dict[int, int] = field(default_factory=dict)
    """Per source after how many records of a subtask event time moves, where it does so within the batch."""
    restored: Iterable[StateChunk | Facts] | None = None
    """State that this subtask is to send to others before anything else, read while it is gone through: its share of
    the savepoint that a job begins with."""
    pending: dict[int, int] = field(default_factory=dict)
    """In the share of subtask 0: by source how many records wait behind this batch, where the source knows."""

    def splits_of(self, source: int) -> tuple[list[str], list[str]] | None:
        """The splits of a source. Those that are new in this batch are among the former, too: time waits for them from
        the batch's first record on."""
        known = self.splits.get(source)
        if known is None:
            return None
        here = [one.name for one in self.shares.get(source, ()) if one.name is not None]
        return list(dict.fromkeys([*known[0], *here])), known[1]
