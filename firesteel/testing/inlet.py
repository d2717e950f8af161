"""One input of an operator under test."""

from __future__ import annotations

from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.graph.stream_graph import StreamEdge
from firesteel.graph.transformations import Ship
from firesteel.runtime.frames import Frame, Mark, decode
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.operators import Operator
from firesteel.runtime.outputs import Sender

__all__ = ["Inlet"]


class Inlet:
    """Feeds an operator as the stage before it would: keys are found, checked and routed by a job's own sender."""

    def __init__(self, job: JobSpec, edge: StreamEdge, operator: Operator) -> None:
        self._operator = operator
        self._port = operator.port(edge.ordinal)
        self.channel = (edge.ordinal, 0, edge.source)
        self._frames: list[Frame] = []
        self._sender: Sender | None = None
        if edge.partitioning.ship is Ship.HASH:
            exchange = next(exchange for exchange in job.graph.exchanges if exchange.edge is edge)
            nodes = job.graph.graph.nodes
            origins = frozenset((edge.source,))
            self._sender = Sender(exchange, 0, origins, self._frames.append, nodes[edge.source], nodes[edge.target])

    def open(self) -> None:
        if self._sender is not None:
            self._sender.open(self._operator.context)

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()

    def feed(self, values: list[Any], timestamps: list[int] | None) -> None:
        if self._sender is None:
            self._port.process(values, timestamps)
            return
        self._sender.begin(self._operator.clock.processing_time)
        self._sender.take(values, timestamps)
        self._sender.finish(False)
        frames, self._frames[:] = list(self._frames), []
        received = [(f.target, element) for f in frames for element in decode(f.to_bytes())]
        records = [(target, element) for target, element in received if not isinstance(element, Mark)]
        for target, (keys, strays, _) in records:
            if target != self._operator.subtask:
                self._refuse(target, keys[0], strays[0])
        for _, (keys, taken, times) in records:
            self._port.process_keyed(keys, taken, times)

    def _refuse(self, target: int, key: Any, value: Any) -> None:
        raise ProgramError(
            f"Key {short_repr(key, 60)} of element {short_repr(value, 60)} belongs to subtask {target}, but the "
            f"harness is subtask {self._operator.subtask}. Give it elements of its own keys, or parallelism 1."
        )

    def watermark(self, timestamp: int) -> None:
        self._operator.receive_watermark(self.channel, timestamp)
