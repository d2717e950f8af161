"""A failure in user code: its last lines name the operator, where it was built, what raised, and the element."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kit import ascending, first

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import (
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    SinkFunction,
)
from firesteel.datastream.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.errors import FailureKind, JobExecutionError, SerializationError


def boom(value: Any) -> Any:
    raise ValueError(f"cannot take {value}")  # the line that raises


RAISED = f"{__file__}:{boom.__code__.co_firstlineno + 1} in boom: raise ValueError"


def boom_at_2(value: Any) -> Any:
    return boom(value) if value == 2 else value


class FailingProcess(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield boom_at_2(value)


class FailingKeyed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield boom_at_2(value)


class FailingTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(77)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield boom(timestamp)


class FailingOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        boom("anything")

    def map(self, value: Any) -> Any:
        return value


class FailingClose(FailingOpen):
    def open(self, runtime_context: RuntimeContext) -> None:
        pass

    def close(self) -> None:
        boom("closing")


class FailingRichFilter(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(boom_at_2(value))


class FailingSink(SinkFunction):
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        boom_at_2(value)


class FailingWriter(SinkWriter):
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        boom_at_2(value)


class WriterSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FailingWriter()


class FailingAssigner:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return boom_at_2(value)


def failing_strategy() -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FailingAssigner())  # type: ignore[arg-type]


NUMBERS = [1, 2, 3]

CASES: dict[str, tuple[Any, str, str | None]] = {
    "map": (lambda s: s.map(boom_at_2).print(), "Map", "2"),
    "flat_map": (lambda s: s.flat_map(lambda n: [boom_at_2(n)]).print(), "Flat Map", "2"),
    "flat_map generator": (lambda s: s.flat_map(lambda n: (boom_at_2(n) for _ in "x")).print(), "Flat Map", "2"),
    "filter": (lambda s: s.filter(boom_at_2).print(), "Filter", "2"),
    "timed filter": (
        lambda s: (
            s.map(lambda n: (n, n))
            .assign_timestamps_and_watermarks(ascending())
            .filter(lambda pair: boom_at_2(pair[0]))
            .print()
        ),
        "Filter",
        "(2, 2)",
    ),
    "process": (lambda s: s.process(FailingProcess()).print(), "Process", "2"),
    "keyed process": (lambda s: s.key_by(lambda n: 0).process(FailingKeyed()).print(), "Keyed Process", "2"),
    "timed keyed process": (
        lambda s: (
            s.map(lambda n: (n, n))
            .assign_timestamps_and_watermarks(ascending())
            .map(first)
            .key_by(lambda n: 0)
            .process(FailingKeyed())
            .print()
        ),
        "Keyed Process",
        "2",
    ),
    "on_timer": (
        lambda s: s.key_by(lambda n: "k").process(FailingTimer()).print(),
        "Keyed Process",
        "timer 77 of key 'k'",
    ),
    "keyed rich filter": (lambda s: s.key_by(lambda n: 0).filter(FailingRichFilter()).print(), "Filter", "2"),
    "reduce": (lambda s: s.key_by(lambda n: 0).reduce(lambda a, b: boom_at_2(b)).print(), "Reduce", "2"),
    "open": (lambda s: s.map(FailingOpen()).print(), "Map", None),
    "close": (lambda s: s.map(FailingClose()).print(), "Map", None),
    "sink function": (lambda s: s.add_sink(FailingSink()), "Sink", "2"),
    "sink writer": (lambda s: s.sink_to(WriterSink()), "Sink", "2"),
    "timestamp assigner": (
        lambda s: s.assign_timestamps_and_watermarks(failing_strategy()).print(),
        "Timestamps/Watermarks",
        "2",
    ),
}


@pytest.mark.both_engines
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("case", list(CASES))
def test_the_last_lines_are_the_users(make_env: Any, case: str, parallelism: int) -> None:
    build, operator, element = CASES[case]
    env = make_env(parallelism)
    build(env.from_collection(NUMBERS))
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"Operator '{operator}' failed in subtask ")
    # Built in this file, between the head of CASES and its end.
    built = lines[1]
    assert built.startswith(f"  operator  {operator}, built at {__file__}:")
    assert FIRST_LINE < int(built.rpartition(":")[2]) < LAST_LINE
    assert lines[2].startswith(f"  raised    at {RAISED}")
    if element is not None:
        assert lines[3] == f"  element   {element}"
    assert lines[-1].startswith("  ValueError: cannot take ")
    error = caught.value
    assert (error.operator, error.element) == (operator, element)
    assert error.built_at is not None
    assert error.built_at.file == __file__
    assert "ValueError: cannot take" in (error.cause_text or "")


_SOURCE = inspect.getsource(inspect.getmodule(boom)).splitlines()  # type: ignore[arg-type]
FIRST_LINE = _SOURCE.index("CASES: dict[str, tuple[Any, str, str | None]] = {") + 1
LAST_LINE = _SOURCE.index("}", FIRST_LINE) + 1


def failure_of(make_env: Any, build: Any, parallelism: int = 1) -> JobExecutionError:
    env = make_env(parallelism)
    build(env.from_collection(NUMBERS)).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    return caught.value


@pytest.mark.both_engines
class NoDatabase(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError("no database")

    def map(self, value: Any) -> Any:
        return value


@pytest.mark.both_engines
@pytest.mark.spark_sample(keyed=True)
@pytest.mark.parametrize("keyed", [False, True])
def test_open_before_the_first_record(make_env: Any, keyed: bool) -> None:
    """What fails there is seen at the start of the job, though no record ever comes."""
    env = make_env(2)
    source = DataGeneratorSource(lambda n: n, records_per_second=0.0001)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    (numbers.key_by(lambda n: n) if keyed else numbers).map(NoDatabase()).print()
    with pytest.raises(JobExecutionError, match="in open: raise ConnectionError"):
        env.execute("idle")


def test_a_key_selector(make_env: Any, parallelism: int) -> None:
    error = failure_of(make_env, lambda s: s.key_by(boom_at_2).map(lambda n: n), parallelism)
    assert "key selector between 'Source: Collection Source' and 'Map'" in str(error)
    assert f"built at {__file__}:" in str(error)
    assert RAISED in str(error)
    assert error.element == "2"


def test_a_partitioner(make_env: Any) -> None:
    error = failure_of(make_env, lambda s: s.partition_custom(lambda k, n: boom_at_2(k) and 0, lambda n: n).map(str))
    assert "partition_custom between 'Source: Collection Source' and 'Map'" in str(error)
    assert RAISED in str(error)


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        (lambda n: [n], r"A key of type list cannot be hashed: \[1\]. In the key selector, return tuple\(...\) of it"),
        (lambda n: {n: n}, r"return tuple\(sorted\(d.items\(\)\)\) of it instead"),
        (lambda n: {n}, r"return frozenset\(...\) of it instead"),
        (lambda n: (1, [n]), "A key of type list cannot be hashed"),
        (lambda n: float("nan"), "A NaN cannot be a key: it is not equal to itself"),
        (lambda n: object(), "A key of type object has no hash that is the same in every process"),
    ],
)
def test_a_key_that_cannot_be_one(make_env: Any, key: Any, advice: str) -> None:
    error = failure_of(make_env, lambda s: s.key_by(key).map(lambda n: n))
    assert error.element == "1"
    with pytest.raises(JobExecutionError, match=advice):
        raise error
    assert "UnstableKeyError" in str(error).splitlines()[-1]


@pytest.mark.both_engines
def test_a_result_that_does_not_fit_the_declared_type(make_env: Any) -> None:
    error = failure_of(make_env, lambda s: s.map(lambda n: "two" if n == 2 else n, Types.INT()))
    assert "expected INT, got str 'two' (declared as the output type of 'Map')" in str(error).splitlines()[-1]
    assert error.element == "'two'"
    assert error.operator == "Map"


def test_a_field_that_does_not_fit(make_env: Any) -> None:
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    error = failure_of(make_env, lambda s: s.map(lambda n: (str(n), 2**40), pair))
    assert "INT" in str(error)
    assert str(2**40) in str(error)


class WrongSide(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield OutputTag("side", Types.STRING()), value


def test_a_side_output_that_does_not_fit_its_tag(make_env: Any) -> None:
    error = failure_of(make_env, lambda s: s.process(WrongSide()))
    assert "Side output 'side': expected STRING, got int 1" in str(error)


@pytest.mark.parametrize("ship", ["direct", "exchange"])
def test_a_record_that_cannot_be_pickled(make_env: Any, ship: str) -> None:
    env = make_env()
    stream = env.from_collection(NUMBERS).map(lambda n: threading.Lock() if n == 2 else n).name("locks")
    end = stream if ship == "direct" else stream.rebalance().map(lambda n: n)
    records = end.execute_and_collect()
    with pytest.raises(JobExecutionError, match=r"cannot pickle '_thread\.lock' object") as caught:
        list(records)
    assert caught.value.operator == ("Sink: Collect" if ship == "direct" else "locks")
    assert "lock object" in (caught.value.element or "")
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_stop_iteration_does_not_end_the_stream_quietly(make_env: Any) -> None:
    def first_of(values: list[int]) -> int:
        return next(iter(values))

    for build in (
        lambda s: s.map(lambda n: first_of([])),
        lambda s: s.filter(lambda n: first_of([])),
        lambda s: s.key_by(lambda n: first_of([])).map(lambda n: n),
        lambda s: s.flat_map(lambda n: first_of([])),
    ):
        error = failure_of(make_env, build)
        assert "StopIteration" in str(error)
        assert error.element == "1"


def test_a_timer_on_a_stream_without_keys(make_env: Any) -> None:
    class NoKey(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(1)

    error = failure_of(make_env, lambda s: s.process(NoKey()))
    assert "Timers belong to a key: setting or deleting one needs a keyed stream. Call key_by() first." in str(error)


def test_a_timestamp_that_is_no_number(make_env: Any) -> None:
    class Wrong:
        def extract_timestamp(self, value: Any, record_timestamp: int) -> Any:
            return "yesterday"

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Wrong())  # type: ignore[arg-type]
    error = failure_of(make_env, lambda s: s.assign_timestamps_and_watermarks(strategy))
    assert "A timestamp assigner must return an int (milliseconds), it returned 'yesterday'." in str(error)


def test_a_generator_function(make_env: Any) -> None:
    env = make_env()
    env.from_source(DataGeneratorSource(boom_at_2, count=3), WatermarkStrategy.no_watermarks(), "numbers").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    assert caught.value.operator == "Source: numbers"
    assert RAISED in str(caught.value)


def test_a_file_that_is_gone_when_the_job_runs(make_env: Any, tmp_path: Any) -> None:
    file = tmp_path / "gone.txt"
    file.write_text("x\n")
    env = make_env()
    env.read_text_file(str(file)).print()
    file.unlink()
    with pytest.raises(JobExecutionError, match=r"InputError: The file .*gone\.txt is gone") as caught:
        env.execute()
    assert caught.value.operator == "Source: Text File"
    assert caught.value.kind is FailureKind.PERMANENT


def test_text_that_is_not_in_its_character_set(make_env: Any, tmp_path: Any) -> None:
    (tmp_path / "latin.txt").write_bytes("é\n".encode("latin-1"))
    env = make_env()
    env.read_text_file(str(tmp_path / "latin.txt")).print()
    with pytest.raises(JobExecutionError, match=r"InputError: .*latin\.txt, line 1: byte 0xe9 at place 1 of the line"):
        env.execute()


def test_a_function_that_cannot_be_pickled_is_refused_before_the_job_starts(make_env: Any) -> None:
    lock = threading.Lock()
    env = make_env()
    env.from_collection([1]).map(lambda n: (n, lock)).name("locking").print()
    with pytest.raises(SerializationError, match=r"operator 'locking', built at .*The culprit is 'lock', a lock"):
        env.execute()


def test_the_element_is_shortened(make_env: Any) -> None:
    error = failure_of(make_env, lambda s: s.map(lambda n: "x" * 100_000).map(lambda text: boom("a long text")))
    assert error.element is not None
    assert len(error.element) <= 200
    assert len(str(error)) < 2000


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_an_element_whose_repr_fails(make_env: Any) -> None:
    error = failure_of(make_env, lambda s: s.map(lambda n: BadRepr()).map(boom_now))
    assert error.element == "<BadRepr, whose __repr__ raised RuntimeError>"


def boom_now(value: Any) -> Any:
    return boom("it")
