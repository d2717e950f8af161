"""The contracts of connectors: a source that streams read from, and a sink with a writer and a committer.

A sink has two phases per micro-batch. Each subtask's *writer* takes records and, when the batch ends, flushes and gives
out *committables* (names of finished files, ids of prepared transactions). The *committer* runs in the driver: it
commits them once the batch is logged as complete. :mod:`firesteel.engine.commits` numbers the steps.
"""

from __future__ import annotations

import enum
import hashlib
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.source import SourceReader, SplitEnumerator, SplitT, T
from firesteel.datastream.functions import RuntimeContext, SinkFunction
from firesteel.errors import ProgramError
from firesteel.filesystems import FileSystem, StorageOptions, file_system_of

__all__ = [
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "Sink",
    "SinkIdentity",
    "SinkWriter",
    "Source",
    "WriterContext",
]


class Source(ABC, Generic[SplitT, T]):
    """What ``from_source`` reads: an enumerator and a reader, generic in the kind of split and of record.

    Both are made when the program is built, and travel to where they run. docs/writing-a-source.md shows how.
    """

    @abstractmethod
    def create_enumerator(self) -> SplitEnumerator[SplitT]:
        """Plans, beside the driver, what each batch reads. Often a
        :class:`~firesteel.connectors.partitions.PartitionEnumerator`."""

    @abstractmethod
    def create_reader(self) -> SourceReader[SplitT, T]:
        """Reads, in each task, what its subtask gets."""

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, where the source knows it."""
        return None

    def with_storage(self, options: StorageOptions) -> Source[SplitT, T]:
        """The source with the access to file systems that the job's settings give, for those that read files.
        ``from_source`` asks for it before the other two are made."""
        return self


class DeliveryGuarantee(enum.Enum):
    """How often a sink writes a record, through failures.

    >>> DeliveryGuarantee.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(frozen=True)
class SinkIdentity:
    """Which sink of which job."""

    job_name: str = "job"
    job_id: str = "job"
    """Stays for as long as the job goes on from the same checkpoint folder, also when its driver was started again.
    Another job has another one, of the same name too."""
    sink_uid: str = "sink"
    attempt: int = 0
    restored: bool = False


class CommitterContext:
    """Whom a committer works for.

    >>> context = CommitterContext(SinkIdentity(job_name="orders", job_id="4711", sink_uid="to-files"))
    >>> context.job_name(), context.sink_uid(), context.attempt(), context.restored()
    ('orders', 'to-files', 0, False)
    >>> context.name_prefix()
    'fs-0f7c416c9d3734e1'
    """

    def __init__(
        self,
        identity: SinkIdentity | None = None,
        runtime: RuntimeContext | None = None,
        storage: StorageOptions | None = None,
    ) -> None:
        self._identity = identity or SinkIdentity()
        self._runtime = runtime
        self._storage = storage or StorageOptions()
        self._checkpoint_id = -1

    def job_name(self) -> str:
        """The job's name."""
        return self._identity.job_name

    def job_id(self) -> str:
        """The job's id. It stays over restarts, also of the driver on the same checkpoint folder; no other job has it,
        not even one of the same name."""
        return self._identity.job_id

    def sink_uid(self) -> str:
        """The uid of the sink, set by ``uid()`` or made from its place in the program."""
        return self._identity.sink_uid

    def attempt(self) -> int:
        """How often this driver has restarted the job."""
        return self._identity.attempt

    def restored(self) -> bool:
        """Whether the job goes on from a checkpoint: after a failure, or started again."""
        return self._identity.restored

    def name_prefix(self) -> str:
        """A short name of letters, digits and dashes that all writers and the committer of this sink share, over
        restarts too, and nobody else. What is named with it can be found again after a crash."""
        text = f"{self._identity.job_id}\0{self._identity.sink_uid}"
        return f"fs-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"

    def checkpoint_id(self) -> int:
        """In a committer: the number of the checkpoint (the micro-batch) that it is called for, -1 in ``recover``."""
        return self._checkpoint_id

    def runtime_context(self) -> RuntimeContext:
        """What functions are opened with: metrics, the job's parameters, names."""
        if self._runtime is None:
            raise ProgramError("This context was made without a runtime context. Pass one where it is made.")
        return self._runtime

    def file_system(self, path: str) -> FileSystem:
        """The file system on which a path lies, with the access that the job's settings give."""
        return file_system_of(path, self._storage)


class WriterContext(CommitterContext):
    """Where a writer runs and for whom.

    >>> context = WriterContext(SinkIdentity(), subtask=1, parallelism=2)
    >>> context.subtask(), context.parallelism()
    (1, 2)
    >>> context.writer_id() != WriterContext(SinkIdentity(), subtask=1, parallelism=2).writer_id()
    True
    """

    def __init__(
        self,
        identity: SinkIdentity | None = None,
        subtask: int = 0,
        parallelism: int = 1,
        *,
        runtime: RuntimeContext | None = None,
        clock: Callable[[], int] | None = None,
        watermark: Callable[[], int] | None = None,
        input_type: TypeInformation | None = None,
        storage: StorageOptions | None = None,
    ) -> None:
        super().__init__(identity, runtime, storage)
        self._subtask, self._parallelism = subtask, parallelism
        self._clock, self._watermark, self._input_type = clock, watermark, input_type
        self._writer_id = f"{subtask}-{uuid.uuid4().hex[:12]}"

    def subtask(self) -> int:
        """The number of this subtask, from 0."""
        return self._subtask

    def parallelism(self) -> int:
        """How many subtasks write."""
        return self._parallelism

    def writer_id(self) -> str:
        """A name that no other writer has, neither another subtask's nor one of this subtask before or after a
        failure: a task that is thought dead may still be writing. With a counter it makes unique names."""
        return self._writer_id

    def current_processing_time(self) -> int:
        """The time of the batch in milliseconds, the same for all its records."""
        return int(time.time() * 1000) if self._clock is None else self._clock()

    def current_watermark(self) -> int:
        """The watermark of this subtask, -2^63 where there is none. In ``flush`` it is that at the end of the batch."""
        return -(1 << 63) if self._watermark is None else self._watermark()

    def input_type(self) -> TypeInformation | None:
        """The declared type of the stream; None where there is none."""
        return self._input_type


class SinkWriter(ABC):
    """Writes the records of one subtask. It serves many batches; after a failure there is a new one."""

    @abstractmethod
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Takes one record."""

    write_all: Callable[[Iterator[Any], list[int] | None], None] | None = None
    """Optional, and called in place of ``write`` where a writer has it: takes the records of an iterator one after the
    other, and their timestamps, where they have some. An exception is taken to be about the last one that was taken."""

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - optional to override
        """The batch has no more records; with ``end_of_input`` the whole stream has none. Comes before
        ``prepare_commit``. A writer without committables sends off here what it holds."""

    def prepare_commit(self) -> list[Any]:
        """Ends a batch: makes what was written durable but not yet visible, and names it.

        The committables are pickled, into the frames on their way to the driver and into its log.
        """
        return []

    def wake_at(self) -> int | None:
        """When the writer must be flushed at the latest, in milliseconds of processing time, though no records come.
        Asked at the end of each batch."""
        return None

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once after the last record, or when the attempt ends otherwise. What was prepared is not the
        writer's any more; what was not is to be dropped."""


class Committer(ABC):
    """Makes prepared writes visible. It lives in the driver; each attempt of a job has a new one."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Commits what a batch prepared. An exception fails the job; after the restart they come again."""

    def abort(self, committables: list[Any]) -> None:  # noqa: B027 - optional to override
        """Drops what a batch prepared that comes again and prepares anew. May come again, too."""

    def recover(self, pending: list[Any]) -> None:  # noqa: B027 - optional to override
        """Called whenever no writer is at work: before each attempt begins, and when the job has ended.

        ``pending`` is all that is prepared and to be committed, and will be, right after this call. Anything else
        that bears this sink's ``name_prefix`` was left by a task that died before the driver knew of it: it is to be
        rolled back, for its records come again.
        """

    def recover_and_commit(self, committables: list[Any]) -> None:
        """Commits after a failure. Some or all may be committed already; those must stay as they are."""
        self.commit(committables)

    def close(self) -> None:  # noqa: B027 - optional to override
        """The attempt is over."""


class Sink(ABC):
    """What ``sink_to`` writes to.

    >>> class ListWriter(SinkWriter):
    ...     def __init__(self): self.pending = []
    ...     def write(self, value, context): self.pending.append(value)
    ...     def prepare_commit(self):
    ...         pending, self.pending = self.pending, []
    ...         return pending
    >>> class ListSink(Sink):
    ...     def create_writer(self, context): return ListWriter()
    >>> writer = ListSink().create_writer(WriterContext())
    >>> writer.write(1, None)
    >>> writer.flush(end_of_input=True)
    >>> writer.prepare_commit()
    [1]
    """

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer for one subtask; called in the task."""

    def create_committer(self, context: CommitterContext) -> Committer | None:
        """The committer, called in the driver once per attempt; None where writing alone is enough."""
        return None
