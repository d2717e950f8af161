"""The coordinator decides what each batch reads: positions of all sources, its size, its time, and whether it is last.

It runs beside the driver, once per job. All it decides is an *offset*, a small JSON object that Spark logs before the
batch runs; from two offsets every task's share follows, so a replayed batch reads the same and sees the same time.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.common.path_names import path_name
from firesteel.connectors.source import SplitEnumerator, SplitRange
from firesteel.durable.folder import checked_offset
from firesteel.durable.versions import OFFSET
from firesteel.engine.alignment import aligned, strategy_of, watermark_assigners
from firesteel.engine.batch_sizer import BatchSizer
from firesteel.engine.processing_time import ProcessingClock
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.failures import describe
from firesteel.runtime.job_spec import SourceShare

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore
    from firesteel.runtime.snapshots.saved import StateChunk

__all__ = ["Coordinator", "CoordinatorFeedback"]

Offset = dict[str, Any]
Kept = dict[str, Any]

TARGET_MS, LATENCY_TARGET_MS = 4000, 1000
"""How long a batch should take where throughput counts, and where records should not wait."""
IDLE_WAIT = 0.02
QUIET = 10.0
"""So many seconds after a batch a job is idle."""
WAITS = ((1.0, 0.005), (QUIET, IDLE_WAIT), (60.0, 0.05))
LONGEST_WAIT = 0.1
"""From one look at the sources to the next, in seconds: up to so many seconds after a batch, and later."""
STEPS, LEAST_STEP = 20, 25
"""Event time moves about so often within a batch, and not after fewer records than that."""
INGESTION_TICK = 1000
"""How often ingestion time advances while nothing comes in, in milliseconds."""


@dataclass(frozen=True)
class CoordinatorFeedback:
    """What the driver tells between batches."""

    wake_at: int | None = None
    """When the next processing-time timer is due."""
    kept: dict[str, Kept] = field(default_factory=dict)
    """What operators of stage 0, which has no store, must remember of event time: by "operator/subtask"."""
    time: int = 0
    """The processing time of the last batch that the driver has seen."""
    hold: bool = False
    """Whether no batch is to begin until further notice."""
    bytes: int = 0
    """What the stage that sent most in that batch has sent."""
    drain: bool = False
    """Whether the next batch is to be the last one, as if the input ended here."""
    leave: bool = False
    """Whether the query is about to be stopped: nothing is waited for any more."""


class Coordinator:
    """Plans the batches of one job."""

    def __init__(
        self,
        graph: JobGraph,
        settings: Settings,
        directory: str,
        feedback: Callable[[], CoordinatorFeedback] = lambda: CoordinatorFeedback(),
        clock: ProcessingClock | None = None,
        on_hold: Callable[[], None] = lambda: None,
        restore: Restore | None = None,
        union_lists: Sequence[StateChunk] = (),
        patience: float = 0.0,
    ) -> None:
        """``patience``: how long ``next`` looks for something to do, in seconds, before it says that there is nothing;
        ten times as long in an idle job. Looking here costs less than a round through Spark."""
        self._graph = graph
        self._patience = patience
        self._settings = settings
        self._directory = directory
        self._feedback = feedback
        self._on_hold = on_hold
        self._clock = clock or ProcessingClock()
        self._restore = restore
        self._union_lists = union_lists
        self._sources: dict[str, SplitEnumerator[Any]] = {
            str(node_id): enumerator for node_id, enumerator in graph.graph.enumerators.items()
        }
        self._uids = {str(node.id): node.uid for node in graph.graph.nodes.values()}
        self._bounded = graph.graph.bounded
        backlog = settings.target_ms or _longest(settings)
        timeout = None if settings.target_ms else settings.buffer_timeout_ms
        target = backlog if settings.target_ms or self._bounded or timeout == -1 else LATENCY_TARGET_MS
        longest = 0 if settings.target_ms else TARGET_MS
        latency = None if timeout == -1 else timeout
        self._sizer = BatchSizer(target, settings.max_records, backlog, settings.max_bytes, longest, latency)
        self._idle_tick = self._shortest_idleness()
        self._assigners = watermark_assigners(graph)
        self._aligned = aligned(graph, self._assigners)
        self._has_event_time = any(_moves_event_time(node.spec) for node in graph.graph.nodes.values())
        self._first: int | None = None
        """The first batch that was planned."""
        self._started: tuple[int, float] | None = None
        self._planned_at = time.monotonic()
        """When the last batch was planned."""
        self._fresh = True
        self._running = False
        self._complete = -1
        """The last batch that sources know to be complete."""

    def _shortest_idleness(self) -> int | None:
        strategies = [strategy_of(node.spec) for node in self._graph.graph.nodes.values()]
        timeouts = [s.idle_timeout_ms for s in strategies if s is not None and s.idle_timeout_ms is not None]
        if any(s is not None and s.kind == "ingestion" for s in strategies):
            # Event time is the clock, and goes on where nothing comes in.
            timeouts.append(2 * INGESTION_TICK)
        return min(timeouts) if timeouts else None

    def start(self) -> None:
        if not self._running:
            self._running = True
            if self._restore is not None:
                self._restore.bring_files(self._directory)
            for node_id, source in self._sources.items():
                source.start(self._folder_of(self._uids[node_id]))

    def _folder_of(self, uid: str) -> str:
        """Where a source keeps files of its own."""
        folder = os.path.join(self._directory, path_name(uid))
        # Checkpoints of earlier versions have the uid itself for a name.
        inside = os.path.basename(uid) == uid and uid not in ("", os.curdir, os.pardir)
        former = os.path.join(self._directory, uid)
        if inside and not os.path.exists(folder) and os.path.isdir(former):
            os.rename(former, folder)
        return folder

    def stop(self) -> None:
        for source in self._sources.values():
            source.stop()

    def initial(self) -> Offset:
        positions = {node_id: source.initial() for node_id, source in self._sources.items()}
        start: Offset = {"format": OFFSET.version, "batch": 0, "time": 0, "last": False, "positions": positions}
        if self._restore is not None:
            positions.update(self._restore.positions(self._graph))
            start["time"] = self._restore.manifest.time
            start["kept"] = self._restore.kept(self._graph)
        return start

    def next(self, start: Offset) -> Offset:
        """The offset after the next batch; ``start`` itself where there is nothing to do yet."""
        self.start()
        checked_offset(start)
        # Whoever asks for the next batch has logged this one. Spark says so itself, but later, and not of the last.
        self.committed(start)
        asked = time.monotonic()
        while True:
            feedback = self._feedback()
            # A job that had finished before it was started again gets one more, empty batch: its tasks and its driver
            # learn of the end from it.
            finished = start["last"] and not self._fresh
            if not finished:
                self._measure(feedback.bytes if feedback.time == start["time"] else 0)
                if feedback.drain:
                    return self._last(start, feedback)
            if feedback.hold:
                self._on_hold()
            elif not finished and self._due():
                planned = self._next_batch(start, feedback)
                if planned is not None:
                    self._planned_at = time.monotonic()
                    return planned
            if feedback.leave:
                return start
            now = time.monotonic()
            idle = now - self._planned_at
            wait = next((wait for seconds, wait in WAITS if idle < seconds), LONGEST_WAIT)
            time.sleep(min(wait, self._until_timer(start, feedback.wake_at)))
            if feedback.hold or now - asked >= self._patience * (10 if idle >= QUIET else 1):
                return start

    def _until_timer(self, start: Offset, wake_at: int | None) -> float:
        """In how many seconds the next timer comes due."""
        left = math.inf if wake_at is None else (wake_at - self._clock.read(start["time"])) / 1000
        return left if left > 0 else math.inf

    def _next_batch(self, start: Offset, feedback: CoordinatorFeedback) -> Offset | None:
        """The offset after a batch with all there is to do now; None where there is nothing."""
        kept = self._remembered(start, feedback)
        paused = self._aligned.paused(kept)
        positions, counts = self._positions(start, paused)
        records = sum(counts.values())
        last = all(self._has_ended(node_id, positions[node_id]) for node_id in self._sources)
        now = self._now(positions, start["time"])
        if not (records or last or positions != start["positions"] or self._must_tick(start, now, feedback.wake_at)):
            return None
        # The empty batch that opens functions does not count: the first records do not wait for an interval behind it.
        self._started = (records, time.monotonic()) if records or not self._fresh else None
        self._fresh = False
        offset = {
            "format": OFFSET.version,
            "batch": start["batch"] + 1,
            "time": now,
            "last": last,
            "positions": positions,
            "kept": kept,
        }
        steps = self._steps(counts)
        return {**offset, **({"paused": sorted(paused)} if paused else {}), **({"steps": steps} if steps else {})}

    def _steps(self, counts: dict[str, int]) -> dict[str, int]:
        """After how many records of a subtask event time moves within the batch. It is logged with the batch, so that
        a replay does the same."""
        if not self._has_event_time:
            return {}
        widths = self._graph.source_parallelism
        shares = {node_id: -(-records // widths[int(node_id)]) for node_id, records in counts.items()}
        return {node_id: max(-(-share // STEPS), LEAST_STEP) for node_id, share in shares.items() if share > LEAST_STEP}

    def _last(self, start: Offset, feedback: CoordinatorFeedback) -> Offset:
        """The offset of a batch that ends the job where it is."""
        if start["last"]:
            return start
        kept = self._remembered(start, feedback)
        self._fresh = False
        now = self._now(start["positions"], start["time"])
        return {**start, "format": OFFSET.version, "batch": start["batch"] + 1, "time": now, "last": True, "kept": kept}

    def _remembered(self, start: Offset, feedback: CoordinatorFeedback) -> dict[str, Kept]:
        """What operators of stage 0 know of event time. Of a batch whose driver is gone, its offset knows what there
        was before it, and the feedback that the driver left in the folder what there was after it, if that was the
        last one."""
        known: dict[str, Kept] = start.get("kept", {})
        if not self._fresh or feedback.time == start["time"]:
            known = {**known, **feedback.kept}
        return {place: one for place, one in known.items() if one}

    def _now(self, positions: dict[str, Any], last: int) -> int:
        """The time of the next batch, not before that of the last one."""
        times = [source.processing_time(positions[node_id]) for node_id, source in self._sources.items()]
        moments = [moment for moment in times if moment is not None]
        return max(*moments, last) if moments else self._clock.read(last)

    def _due(self) -> bool:
        return self._started is None or time.monotonic() - self._started[1] >= self._settings.interval_ms / 1000

    def _measure(self, size: int) -> None:
        """Spark asks for the next offset when the last batch is done: that is how long it took."""
        if self._started is not None and self._started[0] >= 0:
            records, began = self._started
            self._sizer.observe(records, (time.monotonic() - began) * 1000)
            self._sizer.weigh(records, size)
            self._started = (-1, began)

    def _positions(self, start: Offset, paused: set[str]) -> tuple[dict[str, Any], dict[str, int]]:
        """How far the next batch reads, and how many records of each source that are."""
        positions, records = {}, {}
        share = max(1, self._sizer.records // max(1, len(self._sources)))
        for node_id, source in self._sources.items():
            known = start["positions"].get(node_id)
            if known is None:
                known = source.initial()
            with self._naming(node_id):
                positions[node_id] = known if node_id in paused else self._reach(source, known, share)
                records[node_id] = source.count(known, positions[node_id])
        return positions, records

    @contextlib.contextmanager
    def _naming(self, node_id: str) -> Iterator[None]:
        """What goes wrong in a source says in which one."""
        try:
            yield
        except Exception as error:
            node = self._graph.graph.nodes[int(node_id)]
            raise describe(error, node.name, node.built_at, 0) from error

    def _has_ended(self, node_id: str, position: Any) -> bool:
        with self._naming(node_id):
            return self._sources[node_id].ended(position)

    def _reach(self, source: SplitEnumerator[Any], position: Any, records: int) -> Any:
        """How far a source is read: so many records at most, and fewer where they are too many bytes."""
        room = max(1, self._settings.max_bytes // max(1, len(self._sources)))
        while True:
            reached = source.latest(position, records)
            size = source.size(position, reached)
            if size is None or size <= room or records == 1:
                return reached
            records = max(1, min(records // 2, records * room // size))

    def _must_tick(self, start: Offset, now: int, wake_at: int | None) -> bool:
        """Whether a batch without data is needed: a timer is due, a source falls idle, or the job just started. Then
        functions are opened, as in Flink: what fails there is seen at once, not when the first record comes. And after
        a restart nobody knows yet which timers there are."""
        if self._fresh:
            return True
        if wake_at is not None and wake_at <= now:
            return True
        return self._idle_tick is not None and now - start["time"] >= max(self._idle_tick // 2, 100)

    def plan(self, start: Offset, end: Offset) -> list[SourceShare]:
        """What each task of stage 0 reads between two offsets."""
        self.start()
        checked_offset(end)
        if start["batch"] == end["batch"]:
            return []
        if end["last"]:
            self._fresh = False
        width = self._graph.stages[0].parallelism
        shares: list[dict[int, list[SplitRange[Any]]]] = [{} for _ in range(width)]
        ended = set()
        for node_id, source in self._sources.items():
            here, there = start["positions"].get(node_id), end["positions"][node_id]
            if here is None:
                here = source.initial()
            if end["last"] or self._has_ended(node_id, there):
                ended.add(int(node_id))
            if here == there:
                continue
            with self._naming(node_id):
                parts = source.plan(here, there, self._graph.source_parallelism[int(node_id)])
            for subtask, ranges in enumerate(parts):
                if ranges:
                    shares[subtask][int(node_id)] = ranges
        restored: list[Any] = [None] * width
        if self._restore is not None and start["batch"] == 0:
            restored = list(self._restore.shares(self._graph, width))
        if self._union_lists and (self._first is None or self._first == end["batch"]):
            # The same batch may be planned twice.
            self._first = end["batch"]
            restored[0] = self._union_lists
        splits = self._splits(start, end, width)
        kept = [_kept_by(subtask, end.get("kept", {}), splits[subtask]) for subtask in range(width)]
        steps = {int(node_id): records for node_id, records in end.get("steps", {}).items()}
        paused = set(end.get("paused", ()))
        paused_assigners = frozenset(assigner for assigner, sources in self._assigners.items() if sources & paused)
        return [
            SourceShare(
                subtask=subtask,
                time=end["time"],
                last=end["last"],
                shares=shares[subtask],
                ended=frozenset(ended),
                kept=kept[subtask],
                splits=splits[subtask],
                paused=paused_assigners,
                steps=steps,
                restored=restored[subtask],
                pending=self._pending(end["positions"]) if subtask == 0 else {},
            )
            for subtask in range(width)
        ]

    def _pending(self, positions: dict[str, Any]) -> dict[int, int]:
        """By source how many records wait behind these positions."""
        found = {int(node_id): source.pending(positions[node_id]) for node_id, source in self._sources.items()}
        return {node_id: count for node_id, count in found.items() if count is not None}

    def _splits(self, start: Offset, end: Offset, width: int) -> list[dict[int, tuple[list[str], list[str]]]]:
        """Per subtask and source with splits: those that had records left when the batch began, and when it ends."""
        found: list[dict[int, tuple[list[str], list[str]]]] = [{} for _ in range(width)]
        for node_id, source in self._sources.items():
            here, there = start["positions"].get(node_id), end["positions"][node_id]
            parallelism = self._graph.source_parallelism[int(node_id)]
            before = source.splits(source.initial() if here is None else here, parallelism)
            after = source.splits(there, parallelism)
            if before is not None and after is not None:
                for subtask, both in enumerate(zip(before, after, strict=True)):
                    found[subtask][int(node_id)] = both
        return found

    def everything(self) -> list[SourceShare]:
        """The shares of one batch with all there is, for BATCH mode."""
        start = self.initial()
        self.start()
        positions = {node_id: self._end(node_id, start["positions"][node_id]) for node_id in self._sources}
        return self.plan(start, {"batch": 1, "time": self._now(positions, 0), "last": True, "positions": positions})

    def _end(self, node_id: str, position: Any) -> Any:
        """A source may not offer all it has at once: one that is limited in speed, or one that is a script."""
        source = self._sources[node_id]
        with self._naming(node_id):
            while not source.ended(position):
                reached = source.latest(position, 1 << 62)
                if reached == position:
                    time.sleep(IDLE_WAIT)
                position = reached
        return position

    def committed(self, offset: Offset) -> None:
        """A batch is complete, and what lies before its end will not be read again."""
        if offset["batch"] <= self._complete:
            return
        self._complete = offset["batch"]
        for node_id, source in self._sources.items():
            if node_id in offset["positions"]:
                source.committed(offset["positions"][node_id])


def _moves_event_time(spec: Any) -> bool:
    """Whether an operator makes watermarks from time to time."""
    strategy = strategy_of(spec)
    return strategy is not None and strategy.kind != "none" and spec.interval > 0


def _longest(settings: Settings) -> int:
    """How long a batch should take, in milliseconds. A batch is a checkpoint, and an interval between those bounds it,
    though not below what a batch for low latency takes, nor where it would be little but overhead."""
    interval = settings.checkpoint_interval_ms
    return min(TARGET_MS, max(interval, LATENCY_TARGET_MS)) if interval else TARGET_MS


def _kept_by(subtask: int, kept: dict[str, Kept], splits: dict[int, tuple[list[str], list[str]]]) -> dict[int, Kept]:
    """What the operators of one subtask remember. A split's time is known to whoever read it last, so it follows the
    split to another subtask."""
    found: dict[int, Kept] = {}
    for place, one in kept.items():
        node, owner = map(int, place.split("/"))
        if owner == subtask:
            found.setdefault(node, {}).update((name, value) for name, value in one.items() if name != "splits")
        mine = splits.get(node, ((), ()))
        for name, (level, since) in one.get("splits", {}).items():
            if name in mine[0] or name in mine[1]:
                known = found.setdefault(node, {}).setdefault("splits", {})
                known[name] = max(known.get(name, [level, since]), [level, since], key=lambda time: time[0])
    return found
