"""One operator under test: the operator of a real job in this process, its state store a dict, its outputs lists.

Nothing of the runtime is imitated. The harness is what a task is to an operator in a job: it opens the function, feeds
it, moves time, and ends batches.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from firesteel.datastream.state import StateDescriptor
from firesteel.datastream.time_domain import TimeDomain
from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import encode_header
from firesteel.durable.headers import OperatorHeader, StoreHeader
from firesteel.errors import ProgramError
from firesteel.graph.specs import AsyncWaitSpec
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.operators import Operator, Placement, create_operator
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.watermarks import MAX_WATERMARK
from firesteel.testing.inlet import Inlet
from firesteel.testing.job_of_function import Plan
from firesteel.testing.recorder import RecordedOutputs
from firesteel.testing.snapshot import Snapshot
from firesteel.testing.steps import chunks, whole

__all__ = ["Harness"]

H = TypeVar("H", bound="Harness")


class Harness(RecordedOutputs):
    """What the harnesses share: life, time, outputs, state. Elements come in through the subclasses."""

    def _set_up(self, plan: Plan, snapshot: Snapshot | None = None, attempt: int = 0) -> None:
        options = plan.options
        # Through pickle, as on the way to a worker: the function under test is a copy of the one that was passed.
        job = plan.payload.load()
        node = job.graph.graph.nodes[plan.node]
        if snapshot is not None:
            snapshot.check(node.name, node.uid, options.backend, options.parallelism, options.subtask)
        self._plan, self._attempt = plan, attempt
        self._store = MemoryStore({} if snapshot is None else dict(snapshot.cells))
        self._header = OperatorHeader() if snapshot is None else snapshot.header()
        self._opened = self._closed = False
        self._to_close = contextlib.ExitStack()
        edges = sorted(job.graph.graph.inputs(node.id), key=lambda edge: edge.ordinal)
        self._operator = create_operator(
            Placement(
                node=node,
                subtask=options.subtask,
                attempt=attempt,
                job_parameters=job.job_parameters,
                channels=tuple((edge.ordinal, 0, edge.source) for edge in edges),
                origins=frozenset(edge.source for edge in edges),
                batch_mode=job.batch_mode,
                to_driver=self._to_driver,
                tables=job.tables,
                identity=replace(job.identity_of(node), attempt=attempt, restored=snapshot is not None),
            )
        )
        self._record(self._operator.out)
        self._inlets = [Inlet(job, edge, self._operator) for edge in edges]
        self._begin(0 if snapshot is None else snapshot.processing_time)

    def _begin(self, now: int) -> None:
        self._operator.begin(self._store, self._header, now)

    # Life

    def open(self: H) -> H:
        """Opens the function. The first element, watermark or moment does so too if nobody did."""
        if not self._opened:
            self._opened = True
            parts: list[Operator | Inlet] = [self._operator, *self._inlets]
            try:
                with self._reporting_failures():
                    for part in parts:
                        part.open()
                        self._to_close.callback(part.close)
            except Exception:
                with contextlib.suppress(Exception):
                    self.close()
                raise
        return self

    def close(self) -> None:
        """Closes what was opened, once."""
        self._closed = self._opened
        with self._reporting_failures():
            self._to_close.close()

    def __enter__(self: H) -> H:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        """A failure of the user's code is reported as a job reports it."""
        try:
            yield
        except OperatorFailure as failure:
            raise failure.failure.to_error() from failure

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        if self._closed:
            raise ProgramError("The harness is closed. restore() gives a new one from a snapshot.")
        self.open()
        with self._reporting_failures():
            yield

    @property
    def function(self) -> Any:
        """The function (or sink) under test: a copy of the one that was passed, as in a job."""
        return self._operator.function or getattr(self._operator.spec, "sink", None)

    # Input

    def _feed(self, ordinal: int, elements: Iterable[Any]) -> None:
        with self._running():
            for values, timestamps in chunks(elements):
                self._inlets[ordinal].feed(values, timestamps)
        if isinstance(self._operator.spec, AsyncWaitSpec):
            # Requests are waited for when a batch ends.
            self.end_batch()

    def _advance(self, ordinals: Iterable[int], timestamp: int) -> None:
        whole(timestamp, "A watermark")
        with self._running():
            for ordinal in ordinals:
                self._inlets[ordinal].watermark(timestamp)
        if isinstance(self._operator.spec, AsyncWaitSpec):
            self.end_batch()

    def process_watermark(self, timestamp: int) -> None:
        """Event time comes to this moment, on every input; timers of event time up to it fire."""
        self._advance(range(len(self._inlets)), timestamp)

    def set_processing_time(self, milliseconds: int) -> None:
        """The clock shows this moment; timers of processing time up to it fire. It starts at 0 and never goes back."""
        clock = self._operator.clock
        if whole(milliseconds, "A moment of processing time") < clock.processing_time:
            raise ProgramError(f"Processing time does not go back: it is {clock.processing_time}, not {milliseconds}.")
        with self._running():
            clock.processing_time = milliseconds
            self._operator.on_processing_time(milliseconds)

    def advance_processing_time(self, milliseconds: int) -> None:
        """The clock goes on by so many milliseconds."""
        self.set_processing_time(self.processing_time + whole(milliseconds, "A span of processing time"))

    def end_input(self) -> None:
        """The input is over: event time comes to its end, all timers of event time fire, the function is closed.

        In BATCH mode this is when a keyed function sees its records, key by key.
        """
        self.process_watermark(MAX_WATERMARK)
        self._write(last=True)
        self.close()

    # State

    def end_batch(self) -> None:
        """A micro-batch ends and the next one starts: the function is asked for a snapshot, changes are stored."""
        self._write(last=False)
        self._operator.store_unchanged = True
        self._begin(self.processing_time)

    def _write(self, last: bool) -> None:
        """The steps at the end of a batch, in the order of a task."""
        operator = self._operator
        with self._running():
            operator.finish(last)
            operator.snapshot()
            self._store.write(operator.changes())
        header = StoreHeader(uuid.uuid4().bytes, {operator.node.uid: self._header})
        self._store.write([(HEADER, encode_header(header))])

    def snapshot(self) -> Snapshot:
        """Ends the batch and gives a copy of all that was kept. The harness can go on afterwards."""
        self.end_batch()
        node, options = self._operator.node, self._plan.options
        return Snapshot(
            operator=node.name,
            uid=node.uid,
            backend=options.backend,
            parallelism=options.parallelism,
            subtask=options.subtask,
            processing_time=self.processing_time,
            cells=dict(self._store.content),
        )

    def restore(self: H, snapshot: Snapshot) -> H:
        """A new harness, as after a failure: a fresh copy of the function, the state of the snapshot."""
        harness = type(self).__new__(type(self))
        harness._set_up(self._plan, snapshot, self._attempt + 1)
        return harness

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """A state of the function as it is for a key, until the next element comes."""
        backend = self._operator.backend
        if backend is None:
            raise ProgramError(f"{self._operator.node.name!r} has no keyed state: pass a key_selector to the harness.")
        with self._running():
            backend.prepare([key])
            backend.key = key
            return backend.state(descriptor)

    @property
    def num_keyed_state_entries(self) -> int:
        """How many keys have something in a state, summed over the function's states. Expired entries that were not
        cleaned up yet count too."""
        backend = self._operator.backend
        if backend is None:
            return 0
        return sum(len(keys) for name in self._header.tables.states for keys in backend.table(name).every_key())

    @property
    def event_time_timers(self) -> list[tuple[int, Any]]:
        """The timers of event time that are set: (time, key), in order of time."""
        return self._timers(TimeDomain.EVENT_TIME)

    @property
    def processing_time_timers(self) -> list[tuple[int, Any]]:
        """The timers of processing time that are set: (time, key), in order of time."""
        return self._timers(TimeDomain.PROCESSING_TIME)

    @property
    def num_event_time_timers(self) -> int:
        """How many timers of event time are set."""
        return len(self.event_time_timers)

    @property
    def num_processing_time_timers(self) -> int:
        """How many timers of processing time are set."""
        return len(self.processing_time_timers)

    def _timers(self, domain: TimeDomain) -> list[tuple[int, Any]]:
        queue = self._operator.timer_queues().get(domain)
        return [] if queue is None else queue.pending()

    # Time

    @property
    def processing_time(self) -> int:
        """What the clock shows."""
        return self._operator.clock.processing_time

    @property
    def watermark(self) -> int:
        """The operator's event time; -2^63 before the first watermark."""
        return self._operator.clock.watermark
