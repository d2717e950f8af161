"""What people get wrong in their first programs: each is told in one clear line."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Time, Types
from firesteel.common.table_keys import TABLE_KEYS
from firesteel.datastream import (
    CoFlatMapFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.engine.known_keys import KNOWN
from firesteel.engine.spark.masters import check_name
from firesteel.errors import ConfigurationError, FailureKind, JobExecutionError, ProgramError, SetupError
from firesteel.table.table_settings import WITHOUT_EFFECT

LATE = OutputTag("late", Types.INT())


class ReturnsAnInt(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return value


class KeyedReturnsAnInt(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return value


class TimerReturnsAnInt(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        return 7


class ReturnsATag(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return LATE, value


class CoReturnsAnInt(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return value

    def flat_map2(self, value: Any) -> Any:
        return value


NOT_ITERABLE = {
    "flat_map": lambda s: s.flat_map(lambda n: n),
    "process": lambda s: s.process(ReturnsAnInt()),
    "keyed process": lambda s: s.key_by(lambda n: n).process(KeyedReturnsAnInt()),
    "on_timer": lambda s: s.key_by(lambda n: n).process(TimerReturnsAnInt()),
    "co_flat_map": lambda s: s.connect(s).flat_map(CoReturnsAnInt()),
}


@pytest.mark.parametrize("name", NOT_ITERABLE)
def test_a_result_that_cannot_be_gone_through(name: str, make_env: Any) -> None:
    env = make_env(config={"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "3"})
    NOT_ITERABLE[name](env.from_collection([7])).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    assert str(caught.value).endswith(
        "firesteel.errors.ProgramError: The function returned int 7. It must return its results as an iterable, such "
        "as a list, or yield each of them, or return None for no result. Write 'yield x' instead of 'return x', or "
        "'return [x]'."
    )
    assert caught.value.kind is FailureKind.PERMANENT


@pytest.mark.parametrize(
    "flat_map", [lambda n: list(n), lambda n: map(sum, [n, 7])], ids=["in the function", "in what it returned"]
)
def test_a_type_error_of_the_users_own_stays_it(flat_map: Any, make_env: Any) -> None:
    env = make_env()
    env.from_collection([7]).flat_map(flat_map).print()
    with pytest.raises(JobExecutionError, match="TypeError: 'int' object is not iterable") as caught:
        env.execute()
    assert caught.value.kind is FailureKind.PASSING


def test_none_is_no_result_as_in_pyflink(run: Any) -> None:
    assert run(lambda env: env.from_collection([1, 2]).flat_map(lambda n: None)) == []


def test_a_tagged_result_that_is_returned(make_env: Any) -> None:
    env = make_env()
    env.from_collection([7]).process(ReturnsATag()).print()
    with pytest.raises(JobExecutionError, match="write 'yield tag, value' instead of 'return tag, value'"):
        env.execute()


@pytest.mark.parametrize(
    ("function", "records", "text"),
    [
        (lambda n: ("word", n), ["word", 7], "returned the tuple ('word', 7): each of its elements becomes a record"),
        (lambda n: "ab", ["a", "b"], "returned a str: each of its characters becomes a record"),
    ],
)
def test_a_tuple_or_a_text_is_gone_through_as_in_pyflink_with_a_warning(
    function: Any, records: list[Any], text: str, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "firesteel"):
        assert run(lambda env: env.from_collection([7]).flat_map(function)) == records
    (line,) = caplog.messages
    assert line.startswith("operator 'Flat Map' (built at ")
    assert text in line


def test_a_tuple_of_one_kind_is_taken_without_a_word(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "firesteel"):
        assert run(lambda env: env.from_collection(["a b"]).flat_map(lambda line: tuple(line.split()))) == ["a", "b"]
    assert caplog.messages == []


def yields(value: Any) -> Iterator[Any]:
    yield value


async def waits(value: Any) -> Any:
    return value


async def yields_later(value: Any) -> AsyncIterator[Any]:
    yield value


class YieldsInMap(MapFunction):
    def map(self, value: Any) -> Any:
        yield value


class YieldsInFilter(FilterFunction):
    def filter(self, value: Any) -> Any:
        yield value


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda s: s.map(yields),
            "A MapFunction returns one result, but yields has 'yield' in it, so it would",
        ),
        (lambda s: s.map(YieldsInMap()), r"YieldsInMap\.map has 'yield' in it.*use flat_map\(\) or process\(\)"),
        (lambda s: s.filter(YieldsInFilter()), "A FilterFunction returns one result"),
        (lambda s: s.key_by(yields), "A KeySelector returns one result"),
        (lambda s: s.key_by(lambda n: n).reduce(lambda a, b: (yield a)), "A ReduceFunction returns one result"),
        (lambda s: s.map(waits), "waits is 'async', so it would return a coroutine.*use AsyncDataStream"),
        (lambda s: s.map(yields_later), "yields_later has 'yield' in it"),
    ],
)
def test_yield_where_one_result_is_expected(build: Any, text: str, make_env: Any) -> None:
    with pytest.raises(ProgramError, match=text):
        build(make_env().from_collection([1]))


def test_a_side_output_by_its_name(make_env: Any) -> None:
    with pytest.raises(ProgramError, match=r"takes the OutputTag that the function yields with, got 'late'\. Write"):
        make_env().from_collection([1]).get_side_output("late")  # type: ignore[arg-type]


def test_what_needs_a_keyed_stream(make_env: Any) -> None:
    stream = make_env().from_collection([1])
    with pytest.raises(AttributeError, match=r"window\(\) needs a keyed stream. Call key_by\(...\) before it, or win"):
        stream.window(TumblingEventTimeWindows.of(Time.seconds(1)))
    with pytest.raises(AttributeError, match=r"reduce\(\) needs a keyed stream. Call key_by\(...\) before it\.$"):
        stream.reduce(max)
    with pytest.raises(AttributeError, match="'DataStream' object has no attribute 'no_such_thing'"):
        _ = stream.no_such_thing
    assert not hasattr(stream, "window")


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        ("memroy", "memory"),
        ("lokal", "local"),
        ("Local", "local"),
        ("local[x]", "local[N]"),
        ("spark:/host:7077", "spark://host:port"),
        ("spakr://host:7077", "spark://host:port"),
    ],
)
def test_a_misspelt_master(master: str, meant: str) -> None:
    with pytest.raises(
        ConfigurationError, match="^" + re.escape(f"There is no master {master!r}. Did you mean {meant!r}? Known are: ")
    ):
        execute_on(master)


def test_an_unknown_master() -> None:
    with pytest.raises(ConfigurationError, match=r"^There is no master 'flink'\. Known are: memory \(one process"):
        execute_on("flink")


def test_a_cluster_manager_that_only_spark_knows() -> None:
    check_name("armada://scheduler.example.com:50051")


def test_yarn_without_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(SetupError, match=r"'yarn' needs the configuration of a Hadoop cluster: set HADOOP_CONF_DIR"):
        execute_on("yarn")


def execute_on(master: str) -> None:
    configuration = Configuration.from_dict({"firesteel.master": master})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1]).print()
    env.execute()


def test_a_misspelt_setting(make_env: Any, caplog: pytest.LogCaptureFixture) -> None:
    env = make_env(config={"firesteel.batch.max-record": "5", "shop.limit": "3", "spark.sql.shuffle.partition": "1"})
    env.from_collection([1]).print()
    with caplog.at_level(logging.WARNING, "firesteel"):
        env.execute()
    assert caplog.messages == [
        "the setting 'firesteel.batch.max-record' is not known and has no effect. Did you mean "
        "'firesteel.batch.max-records'?"
    ]


def test_every_documented_setting_is_known() -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z][a-z0-9.-]+)`", text, re.MULTILINE))
    assert len(documented) > 20
    of_tables = {key for key in documented if key.startswith("table.")}
    assert documented - of_tables - KNOWN == set(), "add them to firesteel/engine/known_keys.py"
    assert of_tables - TABLE_KEYS - set(WITHOUT_EFFECT) == set(), "add them to the keys of tables"
