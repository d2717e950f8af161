"""What windows and joins cost where a key, or a batch, has much of something: counted in operations, not in time."""

from __future__ import annotations

import math
import random
from typing import Any, ClassVar

import pytest

from firesteel.common import Configuration, Time
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, TimeWindow
from firesteel.engine.backends import table_factory
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.specs import CollectSpec
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.frames import Frame, Watermark, encode
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import StageTask
from firesteel.runtime.windowing.merging import NOWHERE
from firesteel.runtime.windowing.sessions import SessionSet


class Moment(int):
    """A timestamp that counts how often it is compared."""

    compared: ClassVar[int] = 0

    def __lt__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) > int(other)

    def __ge__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) >= int(other)


class Task:
    """The stage behind the first exchange of a program, fed by hand."""

    def __init__(self, build: Any, settings: dict[str, str]) -> None:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration())
        env.set_parallelism(1)
        build(env)._sink("Collect", CollectSpec("results"))
        graph = build_job_graph(build_stream_graph(env.program, 1))
        tables = table_factory(Configuration.from_dict(settings), None, graph)
        self.task = StageTask(JobSpec("id", "job", graph, tables=tables), 1, 0)
        self.exchanges = [exchange for exchange in graph.exchanges if exchange.to_stage == 1]
        (operator,) = {exchange.edge.target for exchange in self.exchanges}
        self.channels = self.task._operators[operator].placement.channels
        self.store = MemoryStore()

    def batch(self, elements: list[Any]) -> None:
        """Feeds the first input. A number is a watermark, on all inputs."""
        frames = [Frame(1, 0, self.exchanges[0].id, 0, 0, 0, encode([e for e in elements if isinstance(e, tuple)]))]
        marks = [mark for mark in elements if isinstance(mark, int)]
        for edge, _, origin in self.channels:
            frames.append(Frame(1, 0, edge, 0, 1, 0, encode([Watermark(origin, mark) for mark in marks])))
        for _ in self.task.run([frame.to_bytes() for frame in frames], self.store):
            pass


def sessions_of_one_key(lateness: int) -> Any:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_collection([("a", 1)]).key_by(lambda record: record[0])
        windows = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        return windows.allowed_lateness(lateness).reduce(lambda a, b: a)

    return build


@pytest.mark.parametrize("lateness", [0, 7], ids=["the short way", "the general way"])
def test_many_open_sessions_of_one_key_cost_n_log_n(lateness: int) -> None:
    many = 2000
    task = Task(sessions_of_one_key(lateness), {})
    times = [Moment(number * 10) for number in range(many)]
    random.Random(1).shuffle(times)
    Moment.compared = 0
    task.batch([(["a"] * many, [("a", 1)] * many, times), 10 * many])
    # Each is put in its place, and found again for its timers: by bisection, not by looking at all.
    assert many < Moment.compared < 8 * many * math.log2(many)


def test_a_set_of_sessions_is_searched_by_bisection() -> None:
    many = 4000
    sessions = SessionSet([], inline=True)
    starts = list(range(0, many * 10, 10))
    random.Random(2).shuffle(starts)
    Moment.compared = 0
    for start in starts:
        sessions.add(TimeWindow(Moment(start), Moment(start + 5)), lambda *_: None)
    for start in starts:
        assert sessions.place((Moment(start), Moment(start + 5))) is not NOWHERE
        sessions.retire((Moment(start), Moment(start + 5)))
    assert sessions.stored == []
    assert Moment.compared < 5 * many * math.log2(many)


def an_interval_join(env: StreamExecutionEnvironment) -> DataStream:
    from firesteel.datastream import ProcessJoinFunction

    class Nothing(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> None:
            return None

    left, right = (env.from_collection([("a", 1)]).key_by(lambda record: record[0]) for _ in range(2))
    return left.interval_join(right).between(Time.milliseconds(-4), Time.milliseconds(4)).process(Nothing())


@pytest.mark.parametrize("build", [an_interval_join, sessions_of_one_key(0)], ids=["interval join", "sessions"])
def test_state_for_timers_is_read_in_bulk(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many moments timers are due at: where memory is short, every reading may write and drop what is there."""
    task = Task(build, {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1 kb"})
    many = 1000
    keys = [f"key {number}" for number in range(many)]
    task.batch([(keys, [(key, 1) for key in keys], [number * 10 for number in range(many)])])
    prepared: list[int] = []
    whole = KeyedStateBackend.prepare
    monkeypatch.setattr(
        KeyedStateBackend, "prepare", lambda self, keys: (prepared.append(len(keys)), whole(self, keys))[1]
    )
    task.batch([many * 10 + 100])
    assert sum(prepared) >= many
    assert len(prepared) <= 4
