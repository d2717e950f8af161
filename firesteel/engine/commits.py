"""The commit protocol of sinks: what a micro-batch wrote becomes visible exactly once, through any crash.

1. **Prepare** (tasks). When a batch ends, each writer flushes and gives out committables. They travel to the driver
   with the batch's other frames.
   *Crash here:* the batch comes again. What a dead task had prepared, nobody knows of but the outside system; the
   committer finds it there when the next attempt begins (``recover``) and rolls it back.
2. **Log** (driver, :meth:`Commits.log`). When all tasks are done, the committables are written to the checkpoint
   folder, as one file that is forced to disk. This comes before the engine logs the batch, so whatever batch is logged,
   its committables are known.
   *Crash before the batch is logged:* the batch comes again and prepares anew. What is in the file is aborted.
3. **The batch is logged** (engine: Spark's commit log, in memory the commit of the stores). From here on the batch
   never comes again, and what it prepared must become visible.
4. **Commit** (driver, :meth:`Commits.settle`), sink by sink, as soon as that is seen: by a thread that looks for it,
   when the next batch begins, and before the job is over. Then the file is removed.
   *Crash here:* the file is still there. *A sink that fails* keeps none of the others waiting, whose systems may not
   wait for long: all are asked, then the first failure is raised. The file stays, and all of them are asked again.
5. **Recover** (driver, :meth:`Commits.start`, before each attempt begins, and once more when the job has ended). Each
   committer learns what is pending and rolls back what else it finds of its own. Files of logged batches are
   committed (again), those of other batches aborted; then they are removed.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.datastream.connectors.base import Committer, CommitterContext
from firesteel.engine.commit_guard import check_commit
from firesteel.engine.commit_log import CommitLog, Prepared
from firesteel.errors import CheckpointError
from firesteel.filesystems import LOCAL, Storage
from firesteel.graph.specs import SinkSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.crash_points import CrashPoint
from firesteel.runtime.failures import NO_ELEMENT, describe
from firesteel.runtime.job_spec import JobSpec

__all__ = ["Commits"]

logger = logging.getLogger("firesteel")


class _Round:
    """One way through all sinks. One that has failed is left out for the rest of it: its later batches come after its
    earlier ones."""

    def __init__(self, without: Iterable[str] = ()) -> None:
        self._failed = set(without)
        self._first: Exception | None = None

    def goes(self, uid: str) -> bool:
        return uid not in self._failed

    def still(self, prepared: Prepared) -> Iterator[tuple[str, list[Any]]]:
        return ((uid, committables) for uid, committables in prepared.items() if self.goes(uid))

    @contextlib.contextmanager
    def of(self, uid: str) -> Iterator[None]:
        """What is done for a sink that goes."""
        try:
            yield
        except Exception as error:
            self._failed.add(uid)
            if self._first is not None:
                logger.warning("one more sink has failed: %s", error)
            self._first = self._first or error

    def end(self) -> None:
        """Raises what was raised first."""
        if self._first is not None:
            raise self._first


class Commits:
    """The committers of a job and what they still have to do."""

    def __init__(self, job: JobSpec, committed: Callable[[int, float], None] = lambda batch, seconds: None) -> None:
        """``committed`` learns of each batch how long its commit took, in seconds."""
        self._job = job
        self._committed = committed
        nodes = job.graph.graph.nodes.values()
        self._sinks: dict[str, StreamNode] = {node.uid: node for node in nodes if isinstance(node.spec, SinkSpec)}
        self._committers: dict[str, Committer] = {}
        self._contexts: dict[str, CommitterContext] = {}
        self._log: CommitLog | None = None
        self._logged: Callable[[int], bool] = lambda batch: False
        self._guard: Callable[[], None] = lambda: None
        self._pending: dict[int, Prepared] = {}
        self._lock = threading.RLock()
        self._failure: BaseException | None = None
        self._known = False
        """Whether the log was read: before that nobody may say what is pending and what is not."""
        self.waiting = threading.Event()
        """Set while something is pending."""

    @property
    def used(self) -> bool:
        """Whether the job has sinks that may commit."""
        return bool(self._sinks)

    @property
    def pending(self) -> list[int]:
        """The batches whose commit is not done."""
        return sorted(self._pending)

    # Step 5

    def start(
        self,
        job: JobSpec,
        folder: str,
        logged: Callable[[int], bool],
        storage: Storage = LOCAL,
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        """An attempt begins. ``logged`` says of a batch whether the engine has logged it; ``guard`` raises where this
        process may commit no longer, because another one has taken over."""
        # Asked for the batches of jobs that commit nothing, too.
        self._guard = guard
        if not self.used:
            return
        with self._lock:
            self._close()
            self._job, self._log, self._logged, self._failure = job, CommitLog(folder, storage), logged, None
            self._known = False
            going = _Round()
            for uid, node in self._sinks.items():
                with going.of(uid):
                    committer = self._call(uid, -1, [], self._create, node)
                    if committer is not None:
                        self._committers[uid] = committer
            self._read(going)
            self._known = True
            self._recover(going)

    def _create(self, node: StreamNode) -> Committer | None:
        assert isinstance(node.spec, SinkSpec)
        runtime = OperatorContext(node, 0, self._job.attempt, self._job.job_parameters, None)
        self._contexts[node.uid] = CommitterContext(self._job.identity_of(node), runtime, self._job.storage)
        committer: Committer | None = node.spec.sink.create_committer(self._contexts[node.uid])
        return committer

    def _read(self, going: _Round) -> None:
        assert self._log is not None
        self._pending = self._log.read()
        for batch, prepared in self._pending.items():
            unknown = [uid for uid in prepared if uid not in self._committers and going.goes(uid)]
            if unknown:
                raise CheckpointError(
                    f"Batch {batch} of the checkpoint has results that are not committed, of a sink that the program "
                    f"lacks: uid {unknown[0]!r}. Start the program that they belong to."
                )

    def _recover(self, going: _Round) -> None:
        self._check()
        done = {batch for batch in self._pending if self._logged(batch)}
        for uid, committer in self._committers.items():
            waiting = self._of(uid, done)
            with going.of(uid):
                self._call(uid, -1, waiting, committer.recover, list(waiting))
        for batch in sorted(self._pending.keys() - done):
            for uid, stale in going.still(self._pending[batch]):
                with going.of(uid):
                    self._call(uid, batch, stale, self._committers[uid].abort, stale)
            self._remove(batch, going)
        for batch in sorted(done):
            self._commit(batch, going, again=True)
        self._note()
        going.end()

    def _check(self) -> None:
        self._guard()
        check_commit()

    def _of(self, uid: str, batches: set[int]) -> list[Any]:
        return [one for batch in sorted(batches) for one in self._pending[batch].get(uid, ())]

    # Step 2

    def log(self, batch: int, prepared: dict[int, list[Any]]) -> None:
        """All tasks of a batch are done, and this is what their writers prepared, by the number of the sink."""
        nodes = self._job.graph.graph.nodes
        by_uid = {nodes[number].uid: committables for number, committables in prepared.items()}
        by_uid = {uid: found for uid, found in by_uid.items() if uid in self._committers}
        with self._lock:
            # A batch that is logged has to be committed: whoever may not do the one leaves the other, too. And one
            # without anything to commit is still a batch of the checkpoint, which another driver may have by now.
            self._check()
            if not by_uid:
                return
            assert self._log is not None
            self._job.crash_points.reach(CrashPoint.BEFORE_LOG)
            self._log.write(batch, by_uid)
            self._pending[batch] = by_uid
            self.waiting.set()
            self._job.crash_points.reach(CrashPoint.LOGGED)

    # Step 4

    def settle(self) -> None:
        """Commits what belongs to logged batches. Raises what a committer raised, once and for this attempt."""
        if not self._pending:
            return
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self._check()
                going = _Round()
                for batch in [batch for batch in sorted(self._pending) if self._logged(batch)]:
                    # A committer may take it that nothing else is prepared. Engines see to that; where a later batch
                    # is known all the same, it is asked as after a failure.
                    self._commit(batch, going, again=len(self._pending) > 1)
                going.end()
            except BaseException as error:
                self._failure = error
                raise
            finally:
                self._note()

    def _commit(self, batch: int, going: _Round, again: bool = False) -> None:
        crash = self._job.crash_points.reach
        crash(CrashPoint.BEFORE_COMMIT)
        began = time.monotonic()
        for number, (uid, committables) in enumerate(going.still(self._pending[batch])):
            if number:
                crash(CrashPoint.BETWEEN_SINKS)
            with going.of(uid):
                committer = self._committers[uid]
                commit = committer.recover_and_commit if again else committer.commit
                self._call(uid, batch, committables, commit, committables)
        if self._remove(batch, going, lambda: crash(CrashPoint.COMMITTED)):
            self._committed(batch, time.monotonic() - began)

    def _remove(self, batch: int, going: _Round, before: Callable[[], None] = lambda: None) -> bool:
        """The end of a batch, unless there is a sink that has not done its part."""
        assert self._log is not None
        if not all(map(going.goes, self._pending[batch])):
            return False
        before()
        self._log.remove(batch)
        del self._pending[batch]
        return True

    def _note(self) -> None:
        if self._pending:
            self.waiting.set()
        else:
            self.waiting.clear()

    def _call(self, uid: str, batch: int, committables: list[Any], action: Callable[..., Any], *given: Any) -> Any:
        """A failure of the user's code is reported as in a task: by the operator's name and the user's line."""
        try:
            if uid in self._contexts:
                self._contexts[uid]._checkpoint_id = batch
            return action(*given)
        except Exception as error:
            node = self._sinks[uid]
            # Bytes are records that were pickled: they tell nobody anything.
            pickled = any(isinstance(one, bytes) for one in committables)
            element: object = NO_ELEMENT if pickled else committables
            raise describe(error, node.name, node.built_at, 0, element) from error

    # The end

    def end(self) -> None:
        """The job is over, however it ended, and no task runs: nothing stays prepared that nobody would ever commit or
        roll back. What fails here is logged and stays for the next start."""
        with self._lock:
            try:
                if self._committers and self._known:
                    self._recover(_Round(self._sinks.keys() - self._committers.keys()))
            except Exception:
                logger.warning("the sinks of job %r could not be brought to an end", self._job.name, exc_info=True)
            self._close()

    def _close(self) -> None:
        closing, self._committers = self._committers, {}
        for uid, committer in closing.items():
            try:
                committer.close()
            except Exception:
                logger.warning("closing the committer of %r", self._sinks[uid].name, exc_info=True)
