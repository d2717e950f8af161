"""Windows beyond transcripts: BATCH mode, metrics, what is refused, and functions that change what they get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, ascending, first
from vocabulary import ms, text
from windowkit import Stage, case_of, play

from firesteel.common import Configuration
from firesteel.datastream import ProcessWindowFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.durable.cells import HEADER
from firesteel.engine.backends import table_factory
from firesteel.engine.coordinator import Coordinator
from firesteel.engine.pickling import pickle_job
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.operators.windows import WindowOperator
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.task import StageTask

RECORDS = [("a", 1, 25), ("b", 2, 3), ("a", 4, 3), ("a", 8, 5), ("b", 16, 41), ("a", 32, 12)]
"""Key, value, time."""

TUMBLING = TumblingEventTimeWindows.of(ms(10))
SLIDING = SlidingEventTimeWindows.of(ms(20), ms(10))
SESSIONS = EventTimeSessionWindows.with_gap(ms(10))


def keyed(env: StreamExecutionEnvironment, records: Iterable[Any] = RECORDS) -> Any:
    return env.from_collection(list(records)).assign_timestamps_and_watermarks(ascending(2)).key_by(first)


# BATCH mode


@pytest.mark.both_engines
@pytest.mark.spark_sample(windows="sessions", parallelism=3, backend="rocksdb", mode="batch")
@pytest.mark.parametrize("mode", [BATCH, STREAMING], ids=["batch", "streaming"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (
            TUMBLING,
            ["a[0,10): 4 8", "a[10,20): 32", "a[20,30): 1", "b[0,10): 2", "b[40,50): 16"],
        ),
        (
            SLIDING,
            [
                *("a[-10,10): 4 8", "a[0,20): 4 8 32", "a[10,30): 1 32", "a[20,40): 1"),
                *("b[-10,10): 2", "b[0,20): 2", "b[30,50): 16", "b[40,60): 16"),
            ],
        ),
        (SESSIONS, ["a[25,35): 1", "a[3,22): 4 8 32", "b[3,13): 2", "b[41,51): 16"]),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_batch_gives_what_streaming_gives(
    run: Any, parallelism: int, windows: Any, expected: list[str], backend: str, mode: RuntimeExecutionMode
) -> None:
    class Sorted(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[str]:
            yield f"{key}{text(context.window(), *sorted(element[1] for element in elements))}"

    config = {"state.backend.type": backend}
    came = run(lambda env: keyed(env).window(windows).process(Sorted()), parallelism, config, mode)
    assert sorted(came) == sorted(expected)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_batch_brings_a_windows_elements_in_the_order_of_time(run: Any, backend: str) -> None:
    config = {"state.backend.type": backend}
    came = run(lambda env: keyed(env).window(SESSIONS).process(Show3()), config=config, mode=BATCH)
    assert sorted(came) == ["a[25,35): 1", "a[3,22): 4 8 32", "b[3,13): 2", "b[41,51): 16"]


class Show3(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        yield f"{key}{text(context.window(), *(element[1] for element in elements))}"


def test_nothing_is_late_in_batch(run: Any) -> None:
    late = [*RECORDS, ("a", 64, 0)]
    totals = run(lambda env: keyed(env, late).window(TUMBLING).reduce(add, Show3()), mode=BATCH)
    assert "a[0,10): 76" in totals


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1], one[2]


def test_windows_of_processing_time_fire_in_batch(run: Any, parallelism: int) -> None:
    windows = TumblingProcessingTimeWindows.of(ms(3_600_000 * 24 * 10_000))
    totals = run(lambda env: keyed(env).window(windows).reduce(add), parallelism, mode=BATCH)
    assert sorted(total[:2] for total in totals) == [("a", 45), ("b", 18)]


def test_they_are_dropped_at_the_end_of_a_bounded_stream(run: Any, parallelism: int) -> None:
    windows = TumblingProcessingTimeWindows.of(ms(3_600_000 * 24 * 10_000))
    assert run(lambda env: keyed(env).window(windows).reduce(add), parallelism) == []


def test_batch_ignores_timers_that_a_triggers_timer_sets(run: Any) -> None:
    """As in Flink. So a continuous trigger fires at its first interval and at the end."""
    trigger = ContinuousEventTimeTrigger.of(ms(3))
    one = [("a", 1, 1), ("a", 2, 8)]
    came = run(lambda env: keyed(env, one).window(TUMBLING).trigger(trigger).reduce(add, Show3()), mode=BATCH)
    assert came == ["a[0,10): 3", "a[0,10): 3"]


@pytest.mark.parametrize("trigger", [ContinuousEventTimeTrigger.of(ms(3)), ContinuousProcessingTimeTrigger.of(ms(3))])
def test_a_continuous_trigger_on_a_window_without_end_ends(run: Any, trigger: Any) -> None:
    came = run(lambda env: keyed(env).window(GlobalWindows.create()).trigger(trigger).reduce(add), mode=BATCH)
    assert {record[:2] for record in came} == {("a", 45), ("b", 18)}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_batch_keeps_nothing_of_keys_that_are_done(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the memory of a job would grow with its keys and windows."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    records = [("k" + str(n), n, n * 7 % 100) for n in range(50)]
    keyed(env, records).window(SLIDING).trigger(CountTrigger.of(100)).process(Show3()).print()
    graph = build_job_graph(build_stream_graph(env.program, 1))
    tables = table_factory(Configuration.from_dict({"state.backend.type": backend}), None, graph)
    job = pickle_job(JobSpec("id", "job", graph, batch_mode=True, tables=tables)).load()
    (share,) = Coordinator(graph, Settings(), "").everything()
    frames = [frame.to_bytes() for frame in StageTask(job, 0, 0).run_source(share) if frame.stage == 1]

    kept: list[int] = []
    end_group = WindowOperator.end_group

    def measured(operator: WindowOperator, key: Any) -> None:
        end_group(operator, key)
        kept.extend(len(table.live) + len(table.dirty) for table in operator.windows._tables.values())

    monkeypatch.setattr(WindowOperator, "end_group", measured)
    list(StageTask(job, 1, 0).run(frames, MemoryStore()))
    assert len(kept) >= 50
    assert set(kept) == {0}


# Metrics


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_dropped_records_are_counted_for_the_jobs_result(make_env: Any) -> None:
    env = make_env(2, {"firesteel.batch.max-records": "1"})
    records = [("a", 1, 5), ("a", 2, 100), ("a", 4, 5), ("b", 8, 6), ("a", 16, 101)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(ascending(2)).set_parallelism(1)
    stream.key_by(first).window(TUMBLING).reduce(add).name("hourly").print()
    metrics = env.execute().get_all_accumulator_results()
    dropped = {name: value for name, value in metrics.items() if name.endswith("numLateRecordsDropped")}
    assert sum(dropped.values()) == 2
    assert set(dropped) <= {"hourly.0.numLateRecordsDropped", "hourly.1.numLateRecordsDropped"}


# Functions that change what they get


class Mutating:
    """Folds into its first argument."""

    def __call__(self, one: list[Any], other: list[Any]) -> list[Any]:
        one[1] += other[1]
        return one


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("trigger", [EventTimeTrigger(), CountTrigger.of(3)], ids=["short way", "general"])
def test_a_reduce_function_may_change_its_first_argument(run: Any, backend: str, trigger: Any) -> None:
    """Also where the record it came from is in several windows."""
    records = [["a", 1, 15], ["a", 2, 15], ["a", 4, 25]]

    def build(env: StreamExecutionEnvironment) -> Any:
        return keyed(env, records).window(SLIDING).trigger(trigger).reduce(Mutating(), Show3())

    came = run(build, config={"state.backend.type": backend})
    whole = ["a[0,20): 3", "a[10,30): 7", "a[20,40): 4"]
    assert sorted(came) == (whole if isinstance(trigger, EventTimeTrigger) else ["a[10,30): 7"])


class Keeping(ProcessWindowFunction[Any, Any, Any, Any]):
    """Yields an object that it then changes: what was yielded must not change with it."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        totals: dict[str, int] = {}
        for _, value, _ in elements:
            totals["sum"] = totals.get("sum", 0) + value
            yield totals


def test_what_was_yielded_does_not_change_any_more(run: Any) -> None:
    came = run(lambda env: keyed(env, [("a", 1, 1), ("a", 2, 2)]).window(TUMBLING).process(Keeping()))
    assert came == [{"sum": 1}, {"sum": 3}]


# Refused


@pytest.mark.parametrize("mode", [BATCH, STREAMING], ids=["batch", "streaming"])
@pytest.mark.parametrize("windows", [TUMBLING, SLIDING, SESSIONS], ids=["tumbling", "sliding", "sessions"])
@pytest.mark.parametrize("fold", [True, False], ids=["fold", "elements"])
def test_records_without_a_timestamp(run: Any, mode: RuntimeExecutionMode, windows: Any, fold: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection([("a", 1, 5)]).assign_timestamps_and_watermarks(ascending(2))
        windowed = timed.union(env.from_collection([("a", 2, 6)])).key_by(first).window(windows)
        return windowed.reduce(add) if fold else windowed.process(Show3())

    with pytest.raises(Exception, match=r"needs records with timestamps, but \('a', 2, 6\) has none"):
        run(build, mode=mode)


class Silent(Trigger[Any, Any]):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        return None

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


def test_a_trigger_that_does_not_answer(run: Any) -> None:
    with pytest.raises(Exception, match=r"Silent\(\) must answer with a TriggerResult, such as .*, it returned None"):
        run(lambda env: keyed(env).window(TUMBLING).trigger(Silent()).reduce(add))


class WindowState(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.window_state()


@pytest.mark.parametrize("fold", [True, False], ids=["fold", "elements"])
def test_windows_that_merge_have_no_state_of_their_own(run: Any, fold: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        sessions = keyed(env).window(SESSIONS)
        return sessions.reduce(add, WindowState()) if fold else sessions.process(WindowState())

    with pytest.raises(Exception, match=r"Windows that merge have no state of their own: use global_state\(\)"):
        run(build)


def test_a_failure_of_a_window_function_names_the_timer_and_the_line(run: Any) -> None:
    class Broken(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            raise ValueError("no result today")

    for fold in (True, False):

        def build(env: StreamExecutionEnvironment, fold: bool = fold) -> Any:
            windows = keyed(env, [("a", 1, 5)]).window(TUMBLING)
            return windows.reduce(add, Broken()) if fold else windows.process(Broken())

        with pytest.raises(Exception, match="no result today") as caught:
            run(build)
        assert "timer 9 of key 'a'" in str(caught.value)
        assert "TumblingEventTimeWindows" in str(caught.value)


# Lateness without end


@pytest.mark.parametrize("call", ["reduce(Add(), Show())", "process(Show())"])
def test_a_lateness_without_end_sets_no_timer(call: str) -> None:
    stage, _ = play(
        case_of(
            {
                "case": "forever",
                "stream": f"keyed.window(TumblingEventTimeWindows.of(ms(10))).allowed_lateness(forever).{call}",
                "script": "a=1 at 3\nwatermark 20 -> a[0,10): 1",
            }
        )
    )
    assert stage.timers() == []


def contents(call: str, records: int, backend: str) -> int:
    """The bytes that stores hold of so many records of one key, in six windows at once."""
    script = "\n".join(f"a=1 at {100 + n % 10}" for n in range(records))
    stream = f"keyed.window(SlidingEventTimeWindows.of(ms(600), ms(100))).{call}"
    stage = Stage(case_of({"case": "size", "stream": stream, "script": script}), 1, backend)
    stage.batch(records)
    return sum(len(cell) for store in stage.stores.values() for key, cell in store.content.items() if key != HEADER)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_fold_keeps_one_value_a_window_however_many_records_came(backend: str) -> None:
    for call in ("reduce(Add())", "aggregate(Sum())", "reduce(Add(), Show())", "trigger(General()).reduce(Add())"):
        assert contents(call, 2000, backend) < contents(call, 20, backend) + 100, call
    assert contents("process(Show())", 2000, backend) > 10 * contents("process(Show())", 20, backend)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("call", ["reduce(Add())", "trigger(General()).reduce(Add())", "process(Show())"])
@pytest.mark.parametrize(
    ("windows", "lateness", "over"),
    [
        ("TumblingEventTimeWindows.of(ms(10))", 0, 9),
        ("TumblingEventTimeWindows.of(ms(10))", 5, 14),
        ("SlidingEventTimeWindows.of(ms(10), ms(5))", 0, 9),
        ("SlidingEventTimeWindows.of(ms(10), ms(5))", 5, 14),
        ("EventTimeSessionWindows.with_gap(ms(7))", 0, 9),
        ("EventTimeSessionWindows.with_gap(ms(7))", 5, 14),
    ],
)
def test_a_window_is_gone_with_the_watermark_that_ends_its_life(
    windows: str, lateness: int, over: int, call: str, backend: str
) -> None:
    script = f"a=1 at 3\nwatermark {over - 1}\nwatermark {over}"
    stream = f"keyed.window({windows}).allowed_lateness({lateness}).{call}"
    stage = Stage(case_of({"case": "life", "stream": stream, "script": script}), 1, backend)
    held = []
    for _ in range(3):
        stage.batch(1)
        held.append((bool(stage.left()), bool(stage.timers())))
    assert held == [(True, True), (True, True), (False, False)]


def test_words_of_transcripts_are_checked() -> None:
    with pytest.raises(AssertionError, match="not a line of a transcript: 'nonsense'"):
        case_of({"case": "x", "stream": "keyed", "script": "nonsense"})
