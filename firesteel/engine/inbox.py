"""The driver's side of a batch: what the tasks sent is logged for sinks, printed, collected and counted.

Called once per batch, when all of its tasks are done and before the batch is logged as complete. After a crash in
between the batch comes again, so everything here is safe to repeat: what sinks prepared is replaced by what they
prepare then (see :mod:`firesteel.engine.commits`), and what was already collected or printed of a batch in this run is
not taken twice.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from firesteel.engine.coordinator import CoordinatorFeedback
from firesteel.engine.progress import beside_progress
from firesteel.engine.rates import Counts, Rates
from firesteel.errors import FailureKind, JobExecutionError
from firesteel.graph.specs import CollectSpec
from firesteel.runtime.driver_results import is_elsewhere, kind_of, open_result
from firesteel.runtime.frames import FrameSpool, decode, header_of
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.report import OperatorReport, TaskBatchReport

__all__ = ["Inbox", "Progress"]

_END = object()

LARGE_WAITING = 4
"""Behind so many lists of records a list of large ones waits until somebody has read one."""


@dataclass
class SubtaskProgress:
    """What one subtask of an operator has done."""

    records_out: int = 0
    watermark: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    """The user's metrics, by identifier."""
    labels: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    """Of those in groups with values the name without these, and the variables."""
    records_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    frames_in: int = 0
    frames_out: int = 0
    busy: float = 0.0
    """In seconds."""
    state_size: int = 0
    state_entries: int = 0

    def add(self, report: OperatorReport) -> None:
        self.records_in += report.records_in
        self.bytes_in += report.bytes_in
        self.frames_in += report.frames_in
        self.bytes_out += report.bytes_out
        self.frames_out += report.frames_out
        self.busy += report.busy
        self.state_entries = report.state_entries

    @property
    def counts(self) -> tuple[float, ...]:
        """What rates are taken of, in the order of :class:`~firesteel.engine.facade.answers.PerSecond`."""
        busy_ms = self.busy * 1000
        return self.records_in, self.records_out, self.bytes_in, self.bytes_out, self.frames_out, busy_ms


@dataclass
class TaskProgress:
    """What one task has done."""

    records_in: int = 0
    bytes_out: int = 0
    busy: float = 0.0
    """In seconds."""


@dataclass
class Progress:
    """What is known of a running job."""

    batches: int = 0
    records: int = 0
    batch_records: int = 0
    batch_bytes: int = 0
    """What the stage that sent most in the last batch has sent."""
    batch_bytes_all: int = 0
    """What all stages have sent in the last batch."""
    started: float = field(default_factory=time.monotonic)
    batch_at: float = field(default_factory=time.monotonic)
    batch_seconds: float = 0.0
    watermark: int | None = None
    batch_time: int = 0
    wake_at: int | None = None
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What operators of stage 0 that make event time must remember, by "operator/subtask"."""
    state_sizes: dict[str, int] = field(default_factory=dict)
    """About how many bytes of keyed state each operator has in the store."""
    union_lists: bool = False
    """Whether an operator has union list state."""
    emitted: dict[int, int] = field(default_factory=dict)
    """Records that each operator has put out."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """The users' metrics, by operator and identifier."""
    subtasks: dict[tuple[int, int], SubtaskProgress] = field(default_factory=dict)
    """By operator and subtask."""
    tasks: dict[tuple[int, int], TaskProgress] = field(default_factory=dict)
    """By stage and subtask."""
    pending: dict[int, int] = field(default_factory=dict)
    """By source how many records waited behind the last batch."""
    rates: Rates = field(default_factory=Rates)

    def counts(self) -> Counts:
        """By operator and subtask what rates are taken of."""
        return {place: one.counts for place, one in list(self.subtasks.items())}


class Inbox:
    """Receives the cells of one job's batches."""

    def __init__(self, job: JobSpec, prepared: Callable[[int, dict[int, list[Any]]], None]) -> None:
        """``prepared`` takes a batch's number and what the writers of its sinks have prepared, by operator."""
        self._prepared = prepared
        self.progress = Progress()
        self.finished = threading.Event()
        """Set when the batch that ends the job's input was taken."""
        self._taken = -1
        self._channels: dict[str, queue.Queue[Any]] = {}
        self._channel_of: dict[int, str] = {}
        for node in job.graph.graph.nodes.values():
            if isinstance(node.spec, CollectSpec):
                self._channel_of[node.id] = node.spec.channel
                # Bounded, so that a slow reader slows the job and not fills the driver's memory.
                self._channels[node.spec.channel] = queue.Queue(maxsize=256)
        self.cancelled = threading.Event()
        self._unread = threading.Event()
        nodes = job.graph.graph.nodes.values()
        shared = {name for name, count in Counter(node.name for node in nodes).items() if count > 1}
        self.names = {node.id: f"{node.name}-{node.id}" if node.name in shared else node.name for node in nodes}
        """What metrics call an operator: its name, with its number where several have the same."""
        self._over = threading.Event()
        self._error: BaseException | None = None

    def restart(self) -> None:
        """The job goes on after a failure. What was shown of its batches stays known, so that it is not shown twice."""
        self.finished.clear()

    def take(self, batch: int, cells: Iterable[bytes]) -> None:
        """All cells that a batch sent to the driver."""
        spool = FrameSpool(limit=sys.maxsize)
        for cell in cells:
            spool.add(cell)
        messages, time_of_batch = [], 0
        for cell in spool.in_order():
            time_of_batch = max(time_of_batch, header_of(cell)[5])
            message = decode(cell)
            # What people see stays in its file until it is shown.
            messages.append(open_result(message) if kind_of(message) in ("report", "commit") else message)
        reports: list[TaskBatchReport] = [payload for kind, _, payload in messages if kind == "report"]
        # 1. Sinks first: what they prepared must be known before the batch is logged.
        self._prepared(batch, self._by_sink(messages))
        # 2. Then what people see, once per batch and run.
        if batch > self._taken:
            self._taken = batch
            self._show(messages)
            self._count(reports)
            self.progress.batch_time = time_of_batch
        if any(report.last for report in reports):
            self.finished.set()

    @staticmethod
    def _by_sink(messages: list[list[Any]]) -> dict[int, list[Any]]:
        by_sink: dict[int, list[Any]] = {}
        for kind, node_id, payload in messages:
            if kind == "commit":
                by_sink.setdefault(node_id, []).extend(payload)
        return by_sink

    def _show(self, messages: list[list[Any]]) -> None:
        out: list[str] = []
        err: list[str] = []
        for message in messages:
            large = is_elsewhere(message)
            if large:
                self._print(out, err)
            kind, node_id, payload = open_result(message)
            if kind == "stdout":
                out.append(payload)
            elif kind == "stderr":
                err.append(payload)
            elif kind == "collect":
                self._put(self._channels[self._channel_of[node_id]], payload, LARGE_WAITING if large else None)
        self._print(out, err)

    @staticmethod
    def _print(out: list[str], err: list[str]) -> None:
        if out or err:
            with _translate_broken_pipe(), beside_progress():
                sys.stderr.write("".join(err))
                sys.stderr.flush()
                sys.stdout.write("".join(out))
                sys.stdout.flush()
        out.clear()
        err.clear()

    def discard(self) -> None:
        """Nobody reads what is collected any longer."""
        self._unread.set()

    def _put(self, channel: queue.Queue[Any], item: Any, most: int | None = None) -> None:
        """Waits until there is room, or until no more than ``most`` others are in front."""
        while not self.cancelled.is_set() and not self._unread.is_set():
            if most is not None and channel.qsize() > most:
                time.sleep(0.01)
                continue
            try:
                channel.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def _count(self, reports: list[TaskBatchReport]) -> None:
        progress = self.progress
        progress.batches += 1
        progress.batch_records = sum(report.records_in for report in reports if report.stage == 0)
        progress.records += progress.batch_records
        sent: Counter[int] = Counter()
        for report in reports:
            sent[report.stage] += report.bytes_out
        progress.batch_bytes = max(sent.values(), default=0)
        progress.batch_bytes_all = sum(sent.values())
        now = time.monotonic()
        progress.batch_seconds = now - progress.batch_at
        progress.batch_at = now
        last_stage = max((report.stage for report in reports), default=0)
        marks = [r.watermark for r in reports if r.stage == last_stage and r.watermark is not None]
        progress.watermark = min(marks, default=None)
        timers = [report.next_timer for report in reports if report.next_timer is not None]
        progress.wake_at = min(timers, default=None)
        sizes: Counter[str] = Counter()
        for report in reports:
            sizes.update({self.names[node_id]: size for node_id, size in report.state_sizes.items()})
        progress.state_sizes = dict(sizes)
        progress.union_lists = progress.union_lists or any(report.union_lists for report in reports)
        for report in reports:
            self._count_task(report)
            for node_id, lasting in report.kept.items():
                progress.kept[f"{node_id}/{report.subtask}"] = lasting
            for node_id, count in report.records_out.items():
                progress.emitted[node_id] = progress.emitted.get(node_id, 0) + count
            for node_id, values in report.metrics.items():
                name = self.names[node_id]
                for identifier, (kind, value) in values.items():
                    full = f"{name}.{report.subtask}.{identifier}"
                    known = progress.metrics.get(full)
                    total = value if known is None else kind.merged(known, value)
                    progress.metrics[full] = self._subtask(node_id, report.subtask).values[identifier] = total
        progress.pending = {node_id: count for report in reports for node_id, count in report.pending.items()}
        progress.rates.note(progress.counts)

    def _count_task(self, report: TaskBatchReport) -> None:
        task = self.progress.tasks.setdefault((report.stage, report.subtask), TaskProgress())
        task.records_in += report.records_in
        task.bytes_out += report.bytes_out
        task.busy += report.busy
        for node_id, count in report.records_out.items():
            subtask = self._subtask(node_id, report.subtask)
            subtask.records_out += count
            subtask.watermark = report.watermarks.get(node_id)
            subtask.state_size = report.state_sizes.get(node_id, 0)
        for node_id, one in report.operators.items():
            self._subtask(node_id, report.subtask).add(one)
        for node_id, found in report.labels.items():
            self._subtask(node_id, report.subtask).labels = found

    def _subtask(self, node_id: int, subtask: int) -> SubtaskProgress:
        return self.progress.subtasks.setdefault((node_id, subtask), SubtaskProgress())

    def of_checkpoint(self) -> dict[str, Any]:
        """What the last batch's tasks reported that belongs to its checkpoint."""
        return {"records": self.progress.batch_records, "operator_state_sizes": self.progress.state_sizes}

    def of_batch(self) -> dict[str, Any]:
        """What the last batch's tasks reported that belongs to the log of batches."""
        progress = self.progress
        return {
            "records": progress.batch_records,
            "bytes": progress.batch_bytes_all,
            "watermark": progress.watermark,
            "pending": sum(progress.pending.values()) if progress.pending else None,
        }

    def feedback(self) -> CoordinatorFeedback:
        """What the coordinator must know of the batches so far."""
        progress = self.progress
        return CoordinatorFeedback(
            progress.wake_at, dict(progress.kept), progress.batch_time, bytes=progress.batch_bytes
        )

    def collect(self, channel: str) -> Iterator[Any]:
        """The records of an ``execute_and_collect``, as batches bring them."""
        source = self._channels[channel]
        while True:
            try:
                item = source.get(timeout=0.1)
            except queue.Empty:
                # Looked at once nothing is left, so that all records come before the end.
                if self._over.is_set() and source.empty():
                    item = _END
                else:
                    continue
            if item is _END:
                if self._error is not None:
                    raise self._error
                return
            yield from item

    def end(self, error: BaseException | None) -> None:
        """The job is over: whoever iterates learns it."""
        self._error = error
        self._over.set()
        for channel in self._channels.values():
            # Spares a reader that waits the time until it looks; a full queue has none that waits.
            with contextlib.suppress(queue.Full):
                channel.put_nowait(_END)


@contextlib.contextmanager
def _translate_broken_pipe() -> Iterator[None]:
    """Around what is printed. ``| head`` may have gone, and does not come back."""
    try:
        yield
    except BrokenPipeError as error:
        raise JobExecutionError(
            "Nobody reads the program's output any longer (broken pipe).", kind=FailureKind.PERMANENT
        ) from error
