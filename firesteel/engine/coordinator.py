"""The coordinator decides what each batch reads: positions of all sources, its size, its time, and whether it is last.

It runs beside the driver, once per job. All it decides is an *offset*, a small JSON object that Spark logs before the
batch runs; from two offsets every task's share follows, so a replayed batch reads the same and sees the same time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from firesteel.connectors.source import SplitSource
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec, TimestampsSpec
from firesteel.runtime.task import SourceShare

__all__ = ["BatchSizer", "Coordinator", "Word"]

Offset = dict[str, Any]

FIRST_BATCH = 4096
LARGEST_BATCH = 4_000_000
IDLE_WAIT = 0.02


@dataclass(frozen=True)
class Word:
    """What the driver tells between batches."""

    wake_at: int | None = None
    """When the next processing-time timer is due."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """How far event time is where it is made in stage 0, which keeps no state: by "operator/subtask"."""


class BatchSizer:
    """Admission control: sizes batches so that one takes about the target duration.

    >>> sizer = BatchSizer(target_ms=1000)
    >>> first = sizer.limit
    >>> sizer.observe(first, 500)
    >>> sizer.limit > first
    True
    """

    def __init__(self, target_ms: int, fixed: int = 0) -> None:
        self._target = target_ms
        self._fixed = fixed
        self.limit = fixed or FIRST_BATCH

    def observe(self, records: int, duration_ms: float) -> None:
        if self._fixed or records < self.limit // 2:
            # A batch that was not full says nothing about what a full one would take.
            return
        wanted = records * self._target / max(duration_ms, 1)
        # One slow batch must not make the next one tiny, and the first ones carry start-up costs.
        self.limit = int(min(max(wanted, self.limit / 4, FIRST_BATCH), self.limit * 16, LARGEST_BATCH))


class Coordinator:
    """Plans the batches of one job."""

    def __init__(
        self,
        graph: JobGraph,
        settings: Settings,
        directory: str,
        word: Callable[[], Word] = lambda: Word(),
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._directory = directory
        self._word = word
        self._clock = clock
        self._sources: dict[str, SplitSource] = {}
        for node in graph.graph.nodes.values():
            if isinstance(node.spec, SourceSpec):
                self._sources[str(node.id)] = node.spec.source
        self._uids = {str(node.id): node.uid for node in graph.graph.nodes.values()}
        self._bounded = graph.graph.bounded
        target = settings.target_ms or (4000 if self._bounded else 1000)
        self._sizer = BatchSizer(target, settings.max_records)
        self._idle_tick = self._shortest_idleness()
        self._aligned = _aligned(graph)
        self._started: tuple[int, float] | None = None
        self._ended = 0.0
        self._fresh = True
        self._running = False

    def _shortest_idleness(self) -> int | None:
        strategies = [n.spec.strategy for n in self._graph.graph.nodes.values() if isinstance(n.spec, TimestampsSpec)]
        timeouts = [s.idle_timeout_ms for s in strategies if s.idle_timeout_ms is not None]
        return min(timeouts) if timeouts else None

    def start(self) -> None:
        if not self._running:
            self._running = True
            for node_id, source in self._sources.items():
                source.start(os.path.join(self._directory, self._uids[node_id]))

    def stop(self) -> None:
        for source in self._sources.values():
            source.stop()

    def initial(self) -> Offset:
        positions = {node_id: source.initial() for node_id, source in self._sources.items()}
        return {"batch": 0, "time": 0, "last": False, "positions": positions}

    def next(self, start: Offset) -> Offset:
        """The offset after the next batch; ``start`` itself where there is nothing to do yet."""
        self.start()
        if start["last"] and not self._fresh:
            # A job that had finished before it was started again gets one more, empty batch: its tasks and its
            # driver learn of the end from it.
            return start
        self._measure()
        if not self._due():
            time.sleep(IDLE_WAIT)
            return start
        word = self._word()
        # What the driver does not know yet after a restart, the last batch's offset does.
        watermarks = {**start.get("watermarks", {}), **word.watermarks}
        positions, records, full = self._positions(start, self._paused(watermarks))
        last = all(source.ended(positions[node_id]) for node_id, source in self._sources.items())
        now = max(self._now(positions), start["time"])
        if not (full or last or self._checkpoint_due()):
            time.sleep(IDLE_WAIT)
            return start
        if not (records or last or positions != start["positions"] or self._must_tick(start, now, word.wake_at)):
            time.sleep(IDLE_WAIT)
            return start
        self._fresh = False
        self._started = (records, time.monotonic())
        return {
            "batch": start["batch"] + 1,
            "time": now,
            "last": last,
            "positions": positions,
            "watermarks": watermarks,
        }

    def _paused(self, watermarks: dict[str, int]) -> set[str]:
        """Sources that are too far ahead of the slowest one of their alignment group."""
        levels: dict[str, dict[int, int]] = {}
        for place, level in watermarks.items():
            node_id = int(place.split("/")[0])
            if node_id in self._aligned:
                group = levels.setdefault(self._aligned[node_id].group, {})
                group[node_id] = min(level, group.get(node_id, level))
        paused: set[str] = set()
        for node_id, member in self._aligned.items():
            group = levels.get(member.group, {})
            # One that has not said anything yet has just begun, and the others wait for it.
            known = all(other in group for other, one in self._aligned.items() if one.group == member.group)
            if node_id in group and (not known or group[node_id] > min(group.values()) + member.drift):
                paused.update(member.sources)
        return paused

    def _now(self, positions: dict[str, Any]) -> int:
        told = [source.processing_time(positions[node_id]) for node_id, source in self._sources.items()]
        moments = [moment for moment in told if moment is not None]
        return max(moments) if moments else self._clock()

    def _due(self) -> bool:
        return self._started is None or time.monotonic() - self._started[1] >= self._settings.interval_ms / 1000

    def _checkpoint_due(self) -> bool:
        """Whether it is time for a checkpoint. An interval makes batches fewer where records trickle; it leaves no
        backlog lying. So input that ends, a full batch and the last one do not wait."""
        if self._started is None or self._bounded:
            return True
        now = time.monotonic()
        return (
            now - self._started[1] >= self._settings.checkpoint_interval_ms / 1000
            and now - self._ended >= self._settings.checkpoint_pause_ms / 1000
        )

    def _measure(self) -> None:
        """Spark asks for the next offset when the last batch is done: that is how long it took."""
        if self._started is not None and self._started[0] >= 0:
            records, began = self._started
            self._ended = time.monotonic()
            self._sizer.observe(records, (self._ended - began) * 1000)
            self._started = (-1, began)

    def _positions(self, start: Offset, paused: set[str]) -> tuple[dict[str, Any], int, bool]:
        """How far the next batch reads, how many records that are, and whether some source has more of them."""
        positions, records, full = {}, 0, False
        share = max(1, self._sizer.limit // max(1, len(self._sources)))
        for node_id, source in self._sources.items():
            known = start["positions"].get(node_id)
            if known is None:
                known = source.initial()
            positions[node_id] = known if node_id in paused else source.latest(known, share)
            count = source.count(known, positions[node_id])
            records += count
            full = full or count >= share
        return positions, records, full

    def _must_tick(self, start: Offset, now: int, wake_at: int | None) -> bool:
        """Whether a batch without data is needed: a timer is due, a source falls idle, or the job just restarted
        and nobody knows which timers it has."""
        if self._fresh and start["batch"] > 0:
            return True
        if wake_at is not None and wake_at <= now:
            return True
        return self._idle_tick is not None and now - start["time"] >= max(self._idle_tick // 2, 100)

    def plan(self, start: Offset, end: Offset) -> list[SourceShare]:
        """What each task of stage 0 reads between two offsets."""
        self.start()
        if start["batch"] == end["batch"]:
            return []
        if end["last"]:
            self._fresh = False
        width = self._graph.stages[0].parallelism
        shares: list[dict[int, Any]] = [{} for _ in range(width)]
        ended = set()
        for node_id, source in self._sources.items():
            here, there = start["positions"].get(node_id), end["positions"][node_id]
            if here is None:
                here = source.initial()
            if source.ended(there):
                ended.add(int(node_id))
            if here == there:
                continue
            parts = source.plan(here, there, self._graph.source_parallelism[int(node_id)])
            for subtask, part in enumerate(parts):
                shares[subtask][int(node_id)] = part
        watermarks: list[dict[int, int]] = [{} for _ in range(width)]
        for place, level in end.get("watermarks", {}).items():
            node, subtask = map(int, place.split("/"))
            if subtask < width:
                watermarks[subtask][node] = level
        return [
            SourceShare(subtask, end["time"], end["last"], shares[subtask], frozenset(ended), watermarks[subtask])
            for subtask in range(width)
        ]

    def everything(self) -> list[SourceShare]:
        """The shares of one batch with all there is, for BATCH mode."""
        start = self.initial()
        self.start()
        positions = {n: self._end(s, start["positions"][n]) for n, s in self._sources.items()}
        return self.plan(start, {"batch": 1, "time": self._now(positions), "last": True, "positions": positions})

    @staticmethod
    def _end(source: SplitSource, position: Any) -> Any:
        """A source may not offer all it has at once: one that is limited in speed, or one that is a script."""
        while not source.ended(position):
            reached = source.latest(position, 1 << 62)
            if reached == position:
                time.sleep(IDLE_WAIT)
            position = reached
        return position

    def committed(self, offset: Offset) -> None:
        for node_id, source in self._sources.items():
            if node_id in offset["positions"]:
                source.committed(offset["positions"][node_id])


@dataclass(frozen=True)
class _Aligned:
    """An operator whose watermarks are aligned with others', and the sources it gets its records from."""

    group: str
    drift: int
    sources: frozenset[str]


def _aligned(graph: JobGraph) -> dict[int, _Aligned]:
    found = {}
    for node in graph.graph.nodes.values():
        if isinstance(node.spec, TimestampsSpec) and node.spec.strategy.alignment_group is not None:
            sources, waiting = set(), [node.id]
            while waiting:
                here = waiting.pop()
                if isinstance(graph.graph.nodes[here].spec, SourceSpec):
                    sources.add(str(here))
                waiting.extend(edge.source for edge in graph.graph.inputs(here))
            strategy = node.spec.strategy
            found[node.id] = _Aligned(strategy.alignment_group or "", strategy.max_drift_ms or 0, frozenset(sources))
    return found
