"""Runs transcripts of windows: a script of what comes in, and after every line what must have come out.

A script has one event a line, and behind ``->`` what it makes the program emit, separated by ``|``::

    a=1 at 3                       a record of key a with the value 1 and the timestamp 3
    b=2                            a record without a timestamp
    watermark 9  -> a[0,10): 1     event time advances
    now 5000                       processing time advances
    end                            the input ends: the last watermark

Events are records of one source. A generator of watermarks turns some of them into watermarks, between the records, so
a script means the same whether each of its lines is a micro-batch or all of them are one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import vocabulary

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkOutput
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import decode_header
from firesteel.engine.backends import table_factory
from firesteel.engine.batch_sizer import BatchSizer
from firesteel.engine.coordinator import Coordinator
from firesteel.engine.pickling import pickle_job
from firesteel.engine.processing_time import ProcessingClock
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.specs import CollectSpec
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.frames import decode
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.operators.windows import LATE_METRIC
from firesteel.runtime.stage_loop import run_stages
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import StageTask

NO_TIME = -(2**63)
RECORD = re.compile(r"(\w+)=(-?\d+)(?: at (-?\d+))?")

Event = tuple[str, Any, Any, int]
"""Kind, key, value and time."""


@dataclasses.dataclass(frozen=True)
class Step:
    event: Event
    out: list[str]


@dataclasses.dataclass(frozen=True)
class Case:
    """One transcript. ``stream`` is the program: an expression over ``keyed`` or ``stream``."""

    name: str
    stream: str
    steps: list[Step]
    dropped: int = 0
    """How many records are counted as dropped for being late."""
    leaves: bool = False
    """Whether something stays in the store after the end: windows that never end."""
    order: str = "fixed"
    """``free``: the results of one step may come in any order."""

    @property
    def by_the_clock(self) -> bool:
        return any(step.event[0] == "now" for step in self.steps)

    def outputs(self) -> list[str]:
        return [line for step in self.steps for line in step.out]

    def build(self, env: StreamExecutionEnvironment) -> DataStream:
        """The program of the case, with all that happens as its source."""
        events = [step.event for step in self.steps]
        stream = env.from_collection(events)
        if any(kind == "watermark" or time != NO_TIME for kind, _, _, time in events):
            strategy = WatermarkStrategy.for_generator(Told).with_timestamp_assigner(Written())
            # One subtask makes the watermarks, whatever the parallelism of those that see them.
            stream = stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        # One subtask up to the exchange by key, or records would overtake each other.
        records = stream.filter(_is_record).set_parallelism(1).map(_as_record).set_parallelism(1)
        names = vars(vocabulary) | {"stream": records, "keyed": records.key_by(_key)}
        result: DataStream = eval(self.stream, names)
        return result


class Told(WatermarkGenerator):
    """Emits the watermarks that the script has, and nothing else."""

    def on_event(self, event: Event, event_timestamp: int, output: WatermarkOutput) -> None:
        if event[0] == "watermark":
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Written(TimestampAssigner):
    def extract_timestamp(self, value: Event, record_timestamp: int) -> int:
        return value[3]


def _is_record(event: Event) -> bool:
    return event[0] == "record"


def _as_record(event: Event) -> tuple[Any, Any]:
    return event[1], event[2]


def _key(record: tuple[Any, Any]) -> Any:
    return record[0]


# Reading


def case_of(entry: dict[str, Any]) -> Case:
    steps = [_step(line) for line in entry["script"].splitlines() if line.strip()]
    if steps[-1].event[0] != "end":
        steps.append(_step("end"))
    options = {key: value for key, value in entry.items() if key not in ("case", "script", "stream")}
    return Case(entry["case"], entry["stream"], steps, **options)


def _step(line: str) -> Step:
    what, _, then = line.partition("->")
    out = [one.strip() for one in then.split("|") if one.strip()]
    return Step(_event(what.strip()), out)


def _event(text: str) -> Event:
    found = RECORD.fullmatch(text)
    if found:
        key, value, time = found.groups()
        return "record", key, int(value), NO_TIME if time is None else int(time)
    kind, *rest = text.split()
    assert kind in ("watermark", "now", "end"), f"not a line of a transcript: {text!r}"
    return kind, None, int(rest[0]) if rest else None, NO_TIME


# Running


class Stage:
    """A job whose batches are cut and run by hand, so that it is known which batch gave what."""

    def __init__(self, case: Case, parallelism: int, backend: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration())
        env.set_parallelism(parallelism)
        case.build(env)._sink("Collect", CollectSpec("results"))
        graph = build_job_graph(build_stream_graph(env.program, parallelism))
        tables = table_factory(Configuration.from_dict({"state.backend.type": backend}), None, graph)
        self.job = JobSpec("id", "job", graph, tables=tables)
        self.payload = pickle_job(self.job)
        self.now = 0
        self.coordinator = Coordinator(graph, Settings(), "", clock=ProcessingClock(lambda: self.now))
        self.position = self.coordinator.initial()
        self.stores: dict[tuple[int, int], MemoryStore] = {}
        self.tasks: dict[tuple[int, int], StageTask] = {}
        self.dropped = 0

    def batch(self, records: int, failing: bool = False) -> list[str]:
        """Runs the next so many events as one micro-batch and returns what it emitted. ``failing``: at the second
        attempt, what the first one did is lost."""
        self.coordinator._sizer = BatchSizer(1000, records)
        end = self.coordinator.next(self.position)
        shares = self.coordinator.plan(self.position, end)
        self.position = end
        if failing:
            before = {place: dict(store.content) for place, store in self.stores.items()}
            self._run(shares)
            self.tasks.clear()
            for place, store in self.stores.items():
                store.content.clear()
                store.content.update(before.get(place, {}))
        return [line for cell in self._run(shares) for line in self._results(cell)]

    def _run(self, shares: list[SourceShare]) -> list[bytes]:
        return run_stages(self.job.graph, shares, self._task, self._store)

    def _store(self, stage: int, subtask: int) -> MemoryStore:
        return self.stores.setdefault((stage, subtask), MemoryStore())

    def _task(self, stage: int, subtask: int) -> StageTask:
        if (stage, subtask) not in self.tasks:
            self.tasks[stage, subtask] = StageTask(self.payload.load(), stage, subtask)
        return self.tasks[stage, subtask]

    def _results(self, cell: bytes) -> Iterator[str]:
        kind, _, payload = decode(cell)
        if kind == "collect":
            yield from map(str, payload)
        elif kind == "report":
            for metrics in payload.metrics.values():
                if LATE_METRIC in metrics:
                    self.dropped += metrics[LATE_METRIC][1]

    def left(self) -> list[bytes]:
        """What the stores still hold, except what says that they hold nothing."""
        return [key for store in self.stores.values() for key in store.content if key != HEADER]

    def timers(self) -> list[Any]:
        """The stretches of time for which the stores hold timers."""
        headers = [decode_header(store.content[HEADER]) for store in self.stores.values()]
        operators = [kept for header in headers for kept in header.operators.values()]
        return [timers for kept in operators for timers in (kept.event_timers, kept.processing_timers) if timers]


def play(
    case: Case, parallelism: int = 1, backend: str = "hashmap", batch: int = 1, failing: bool = False
) -> tuple[Stage, list[list[str]]]:
    """The job after its end, and what each batch emitted."""
    stage = Stage(case, parallelism, backend)
    emitted = []
    for start in range(0, len(case.steps), batch):
        events = [step.event for step in case.steps[start : start + batch]]
        stage.now = max([stage.now, *(value for kind, _, value, _ in events if kind == "now")])
        emitted.append(stage.batch(len(events), failing))
    assert stage.position["last"]
    return stage, emitted
