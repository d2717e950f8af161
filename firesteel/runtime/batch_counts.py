"""What a task counts during a batch, and the report about the batch that comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add
from typing import Any

from firesteel.runtime.operators import Operator
from firesteel.runtime.outputs import Sender
from firesteel.runtime.report import OperatorReport, TaskBatchReport
from firesteel.runtime.stopwatch import OUTSIDE

__all__ = ["BatchCounts"]


class BatchCounts:
    """The counts of one task, for one batch after the other."""

    def __init__(self, stage: int, subtask: int, operators: Mapping[int, Operator]) -> None:
        """``operators``: those of the task; it may still add to them."""
        self._stage = stage
        self._subtask = subtask
        self._operators = operators
        self._chained: dict[int, list[tuple[Operator, str | None]]] = {}
        """By operator those of this task that feed it directly, and with which side output."""
        self._targets: dict[int, int] = {}
        """By exchange the operator that it feeds."""
        self.received: dict[int, list[int]] = {}
        """By exchange the records, bytes and frames of this batch."""
        self.read: dict[int, int] = {}
        """By source the records of this batch."""
        self.pending: dict[int, int] = {}
        """By source the records that wait for a later batch."""

    def chain(self, feeder: Operator, tag: str | None, target: int) -> None:
        """An operator of the task feeds another one directly."""
        self._chained.setdefault(target, []).append((feeder, tag))

    def exchange(self, exchange: int, target: int) -> None:
        """An operator of the task is fed by another stage."""
        self._targets[exchange] = target

    def begin(self) -> None:
        self.received = {exchange: [0, 0, 0] for exchange in self._targets}
        self.read = {}

    @property
    def records(self) -> int:
        """All that the task got in this batch, from its sources or from other stages."""
        return sum(self.read.values()) + sum(counts[0] for counts in self.received.values())

    def report(
        self,
        last: bool,
        kept: dict[int, dict[str, Any]],
        times: list[float],
        places: Mapping[int, int],
        senders: Mapping[Sender, Operator],
        driver_bytes: int,
    ) -> TaskBatchReport:
        """``times``: those of the stopwatch, ``places``: of operators on it; ``driver_bytes``: sent as results."""
        operators = self._operators
        watermarks = {node_id: operator.clock.watermark for node_id, operator in operators.items()}
        timers = [operator.next_processing_timer() for operator in operators.values()]
        return TaskBatchReport(
            stage=self._stage,
            subtask=self._subtask,
            records_in=self.records,
            records_out={node_id: operator.out.all_records for node_id, operator in operators.items()},
            watermark=min(watermarks.values(), default=None),
            watermarks=watermarks,
            next_timer=None if last else min((t for t in timers if t is not None), default=None),
            metrics={n: o.context.metrics.take() for n, o in operators.items()},
            last=last,
            state_sizes={n: o.state_size() for n, o in operators.items() if o.backend is not None},
            union_lists=any(
                o.operator_state is not None and o.operator_state.has_union_lists for o in operators.values()
            ),
            kept=kept,
            bytes_out=sum(sender.sent for sender in senders) + driver_bytes,
            operators=self._operator_reports(times, places, senders.items()),
            busy=sum(times) - times[OUTSIDE],
            pending=self.pending,
            labels={n: found for n, o in operators.items() if (found := o.context.metrics.labels())},
        )

    def _operator_reports(
        self, times: list[float], places: Mapping[int, int], senders: Iterable[tuple[Sender, Operator]]
    ) -> dict[int, OperatorReport]:
        """What each operator did. What it got from the operator before it is what that one put out."""
        received = {node_id: [0, 0, 0] for node_id in self._operators}
        for exchange, counts in self.received.items():
            total = received[self._targets[exchange]]
            total[:] = map(add, total, counts)
        for node_id, feeders in self._chained.items():
            for feeder, tag in feeders:
                received[node_id][0] += feeder.out.records if tag is None else feeder.out.side_records.get(tag, 0)
        for node_id, records in self.read.items():
            received[node_id][0] += records
        sent = {node_id: [0, 0] for node_id in self._operators}
        for sender, operator in senders:
            sent[operator.node.id][0] += sender.sent
            sent[operator.node.id][1] += sender.frames
        reports = {}
        for node_id, operator in self._operators.items():
            records_in, bytes_in, frames_in = received[node_id]
            bytes_out, frames_out = sent[node_id]
            busy = times[places[node_id]]
            reports[node_id] = OperatorReport(
                records_in, bytes_in, frames_in, bytes_out, frames_out, busy, operator.state_entries()
            )
        return reports
