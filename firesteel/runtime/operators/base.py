"""What every operator shares: an output, a valve for watermarks, a lifecycle, and failures that name it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.connectors.base import SinkIdentity
from firesteel.datastream.functions import CheckpointedFunction, DistributedCache
from firesteel.datastream.time_domain import TimeDomain
from firesteel.durable.headers import KeysHeader, OperatorHeader
from firesteel.errors import CheckpointError, FailureKind, ProgramError
from firesteel.filesystems import StorageOptions
from firesteel.graph.specs import OperatorSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.calls import call_for_each
from firesteel.runtime.clock import Clock
from firesteel.runtime.context import InitializationContext, NoFiles, OperatorContext, SnapshotContext
from firesteel.runtime.crash_points import CrashPoints
from firesteel.runtime.failures import NO_ELEMENT, describe
from firesteel.runtime.outputs import Output
from firesteel.runtime.results import explained, suspicion
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.operator import OperatorState
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import TableFactory
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MIN_TIMESTAMP, WatermarkValve

logger = logging.getLogger("firesteel")

__all__ = ["Operator", "Placement", "Port", "create_operator", "handles"]


@dataclass(frozen=True)
class Placement:
    """Where an operator stands in its task."""

    node: StreamNode
    subtask: int
    attempt: int
    job_parameters: dict[str, str]
    channels: tuple[tuple[int, int, int], ...]
    """The input channels whose watermarks are combined; empty in stage 0, where origins pass through."""
    origins: frozenset[int]
    """The operators whose watermarks arrive."""
    batch_mode: bool
    to_driver: Callable[[str, int, Any], None]
    """Sends (kind, node id, payload) to the driver."""
    tables: TableFactory
    """The state backend."""
    key_type: TypeInformation | None = None
    """What the program declared of the keys."""
    identity: SinkIdentity = field(default_factory=SinkIdentity)
    """What a sink is known by outside."""
    crash_points: CrashPoints = field(default_factory=CrashPoints)
    storage: StorageOptions = field(default_factory=StorageOptions)
    """How to get into object stores."""
    files: DistributedCache = field(default_factory=NoFiles)
    """What the job brings for its functions."""


class Port(Protocol):
    """One input of an operator. Whoever feeds it looks it up once and calls it chunk by chunk."""

    @property
    def process(self) -> Callable[[list[Any], list[int] | None], None]:
        """Takes values and their timestamps."""

    @property
    def process_keyed(self) -> Callable[[list[Any], list[Any], list[int] | None], None]:
        """Takes keys, values and their timestamps."""


_HANDLERS: dict[type[OperatorSpec], type[Operator]] = {}

OperatorClass = TypeVar("OperatorClass", bound="type[Operator]")


def handles(*specs: type[OperatorSpec]) -> Callable[[OperatorClass], OperatorClass]:
    """Registers an operator class for the specs it runs."""

    def register(cls: OperatorClass) -> OperatorClass:
        for spec in specs:
            _HANDLERS[spec] = cls
        return cls

    return register


_MISTAKES = (NameError, AttributeError, TypeError, ImportError, NotImplementedError, SyntaxError)
"""What a function raises in ``open``, where it has seen no record yet, because of how it is written: it would do so
again. What depends on a database or a file (OSError, ValueError, …) may pass."""


def create_operator(placement: Placement) -> Operator:
    return _HANDLERS[type(placement.node.spec)](placement)


class Operator:
    """One operator in one subtask. It outlives batches: ``open`` comes once, ``begin`` and ``changes`` per batch."""

    keyed = False
    layout = "plain"
    """How the state is built. The store's header and savepoints keep it, and state of another layout is converted
    (see ``takes_over``) or refused."""
    timers_of = "key"
    """Whose timers are: of a key, of a (key, window), or of a tuple that begins with the key ("place")."""

    def __init__(self, placement: Placement) -> None:
        self.node = placement.node
        self.subtask = placement.subtask
        self.placement = placement
        self.spec: Any = placement.node.spec
        self.function: Any = getattr(self.spec, "function", None)
        self.out = Output(placement.node, placement.subtask)
        self.clock = Clock()
        self.backend = (
            KeyedStateBackend(placement.node.uid, placement.tables, self.clock)
            if placement.node.spec.stateful
            else None
        )
        self.operator_state = OperatorState(placement.node.uid) if placement.node.spec.checkpointed else None
        self.context = OperatorContext(
            placement.node,
            placement.subtask,
            placement.attempt,
            placement.job_parameters,
            self.backend,
            files=placement.files,
        )
        self.store_unchanged = False
        """Set before ``begin``: whether the store is as this operator's last batch left it."""
        self.found_layout = self.layout
        """Set by ``begin``: how the state that this batch has found is built."""
        self.valve: WatermarkValve | None = None
        self.origin_levels: dict[int, int] = {}
        self._warned = False

    # Lifecycle

    def open(self) -> None:
        """Opens the user's function, once per subtask."""
        function = self.function
        if function is not None:
            try:
                if isinstance(function, CheckpointedFunction):
                    assert self.operator_state is not None
                    function.initialize_state(InitializationContext(self.operator_state, self.context))
                function.open(self.context)
            except _MISTAKES as error:
                raise self.failure(error, kind=FailureKind.PERMANENT) from error
            except Exception as error:
                raise self.failure(error) from error

    def close(self) -> None:
        function = self.function
        if function is not None:
            try:
                function.close()
            except Exception as error:
                raise self.failure(error) from error

    def begin(self, store: StateStore, header: OperatorHeader, now: int) -> None:
        """A batch starts: ``header`` is what the operator kept of the last one."""
        self.out.begin()
        self.clock.processing_time = now
        if self.placement.channels:
            self.valve = WatermarkValve(self.placement.channels, header.valve)
            self.clock.watermark = self.valve.watermark
        else:
            self.origin_levels = {}
            self.clock.watermark = MIN_TIMESTAMP
        if self.operator_state is not None:
            self.operator_state.begin(store, header.lists)
        if self.backend is not None:
            former = self.layout if header.keys is None else header.keys.layout
            self.found_layout, header.restored_layout = header.restored_layout or former, None
            if self.found_layout != self.layout and not self.takes_over(self.found_layout, header):
                raise self.failure(
                    CheckpointError(
                        f"The state of this operator was saved as {self.found_layout!r}, but the operator keeps "
                        f"{self.layout!r} now and cannot take it over. Go back to the windows and functions it had, "
                        "or give the operator another uid, and allow non-restored state to leave the old one behind."
                    )
                )
            header.keys = KeysHeader(self.placement.key_type, self.layout, self.timers_of)
            self.backend.begin(store, header.tables, self.store_unchanged)

    def takes_over(self, saved: str, header: OperatorHeader) -> bool:
        """Whether state of another layout can be used. An operator that can converts it at the end of ``begin``."""
        return False

    def snapshot(self) -> None:
        """Asks the function for what must survive, when all records of the batch were processed."""
        function = self.function
        if isinstance(function, CheckpointedFunction):
            assert self.operator_state is not None
            try:
                function.snapshot_state(SnapshotContext(self.operator_state, self.clock))
            except Exception as error:
                raise self.failure(error) from error

    def finish(self, last: bool) -> None:
        """All input of the batch was seen, so it is known whether any came."""
        if self.valve is not None and self.valve.idle(self.clock.processing_time):
            self.out.idle(self.node.id, 0)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """What the batch changed in the store."""
        return chain(
            self.backend.changes() if self.backend is not None else (),
            self.operator_state.changes() if self.operator_state is not None else (),
        )

    def state_size(self) -> int:
        """About how many bytes of keyed state it has in the store."""
        return 0 if self.backend is None else self.backend.size

    def state_entries(self) -> int:
        """About how many entries of keyed state it has."""
        return 0 if self.backend is None else self.backend.entries

    # Data

    def port(self, ordinal: int) -> Port:
        """An input by its number. An operator with one input is its own port."""
        return self

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        raise NotImplementedError(type(self).__name__)  # pragma: no cover - every operator overrides one of the two

    def process_keyed(self, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        """Records with their keys. Operators that keep no keyed state do not look at them."""
        self.process(values, timestamps)

    # Time

    def receive_watermark(self, channel: tuple[int, int, int], value: int | None) -> None:
        """A channel's watermark: combined with the others, or passed on under its origin's name in stage 0."""
        if self.valve is None:
            if value is not None:
                origin = channel[2]
                self.origin_levels[origin] = max(value, self.origin_levels.get(origin, value))
                if self.placement.origins <= self.origin_levels.keys():
                    self.clock.watermark = min(self.origin_levels.values())
                self.send_watermark(origin, value)
            return
        self._moved(self.valve.advance(channel, value))

    def receive_watermarks(self, levels: list[tuple[tuple[int, int, int], int]]) -> None:
        """The watermarks of several channels after a step of the batch."""
        assert self.valve is not None, "steps are received by later stages only"
        self._moved(self.valve.advance_all(levels, self.clock.processing_time))

    def receive_activity(self, channel: tuple[int, int, int], idle_timeout: int | None) -> None:
        """Whether a channel had records in this batch."""
        if self.valve is None:
            if idle_timeout is not None:
                self.out.idle(channel[2], idle_timeout)
            return
        self._moved(self.valve.activity(channel, idle_timeout, self.clock.processing_time))

    def _moved(self, watermark: int | None) -> None:
        if watermark is not None:
            self.clock.watermark = watermark
            self.on_watermark(watermark)
            self.send_watermark(self.node.id, watermark)

    def send_watermark(self, origin: int, watermark: int) -> None:
        """Passes a watermark on, behind all results of the records before it."""
        self.out.watermark(origin, watermark)

    def on_watermark(self, watermark: int) -> None:
        """Event time advanced."""

    def on_processing_time(self, now: int) -> None:
        """Processing time advanced: called before and after the batch's records."""

    def next_processing_timer(self) -> int | None:
        """When this operator must be woken although no data may come."""
        return None

    def timer_queues(self) -> dict[TimeDomain, TimerQueue]:
        """The timers of this batch, for those who look at an operator from outside."""
        return {}

    # Failures

    def failure(self, error: BaseException, element: Any = NO_ELEMENT, kind: FailureKind | None = None) -> Exception:
        return describe(explained(error), self.node.name, self.node.built_at, self.subtask, element, kind)

    def look_at(self, produced: Any, value: Any) -> None:
        """What a function returned for the last value of a chunk, if it is of a kind that is returned by mistake."""
        try:
            odd = suspicion(produced)
        except ProgramError as error:
            raise self.failure(error, value) from None
        if odd is not None and not self._warned:
            self._warned = True
            logger.warning("operator %r (built at %s) returned %s", self.node.name, self.node.built_at, odd)

    def apply_to_all(self, function: Callable[..., Any], values: list[Any], *others: list[Any]) -> list[Any]:
        """The function's result for each value, in a C loop; a failure names the element."""
        return call_for_each(function, values, *others, failed=self.failure)
