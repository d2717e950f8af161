"""Connected streams that fail, and programs with them that cannot work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from connectedkit import LEFT, MODES, RIGHT, Alarm, Label, Numbered, Sides, connected, timed
from kit import first

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
)
from firesteel.errors import JobExecutionError, ProgramError


def boom(value: Any) -> Any:
    raise ValueError(f"cannot take {value}")  # the line that raises


RAISED = f"{__file__}:{boom.__code__.co_firstlineno + 1} in boom: raise ValueError"


class FailingMap(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return boom(value) if value == ("b", 9) else value


class FailingFlatMap(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return [value]

    def flat_map2(self, value: Any) -> Any:
        yield boom(value) if value == ("b", 9) else value


class FailingProcess(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield value

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield boom(value) if value == ("b", 9) else value


class TestMistakes:
    @MODES
    @pytest.mark.parametrize("keyed", [False, True], ids=["without keys", "with keys"])
    @pytest.mark.parametrize(
        ("method", "function"),
        [("map", FailingMap()), ("flat_map", FailingFlatMap()), ("process", FailingProcess())],
        ids=["map", "flat_map", "process"],
    )
    def test_a_failure_names_operator_line_and_element(
        self, make_env: Any, method: str, function: Any, keyed: bool, mode: Any
    ) -> None:
        env = make_env(2, mode=mode)
        both = connected(env) if keyed else env.from_collection(LEFT).connect(env.from_collection(RIGHT))
        getattr(both, method)(function).name("merge").print()
        with pytest.raises(JobExecutionError) as caught:
            env.execute()
        lines = str(caught.value).splitlines()
        assert lines[0].startswith("Operator 'merge' failed in subtask")
        assert lines[1].startswith(f"  operator  merge, built at {__file__}:")
        assert lines[2].startswith(f"  raised    at {RAISED}")
        assert lines[3:] == ["  element   ('b', 9)", "  ValueError: cannot take ('b', 9)"]

    def test_a_failure_of_a_timer_names_it(self, run: Any) -> None:
        class Failing(Alarm):
            def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
                yield boom(timestamp)

        with pytest.raises(JobExecutionError, match="element   timer 50 of key 'a'"):
            run(lambda env: timed(env, [("a", 1, 50)], [("a", 1, 7)]).process(Failing()))

    def test_timers_without_keys_are_refused(self, run: Any) -> None:
        class Setting(Sides):
            def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
                ctx.timer_service().register_event_time_timer(1)
                yield value

        with pytest.raises(JobExecutionError, match=r"Timers belong to a key.*Call key_by\(\) first"):
            run(lambda env: env.from_collection([1]).connect(env.from_collection([2])).process(Setting()))

    def test_functions_of_the_wrong_kind_are_refused(self, make_env: Any) -> None:
        class Plain(MapFunction):
            def map(self, value: Any) -> Any:
                return value

        env = make_env()
        both = env.from_collection([1]).connect(env.from_collection([2]))
        with pytest.raises(
            ProgramError, match=r"^map\(\) of connected streams takes an instance of CoMapFunction, got"
        ):
            both.map(Plain())  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"^flat_map\(\) .* an instance of CoFlatMapFunction, got function"):
            both.flat_map(lambda value: [value])  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"CoProcessFunction or KeyedCoProcessFunction, got int 7"):
            both.process(7)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=r"got the class Label itself. Pass an instance: Label\(\)"):
            both.map(Label)  # type: ignore[arg-type]

    @pytest.mark.parametrize("keyed", [0, 1])
    def test_a_keyed_function_needs_two_keyed_streams(self, make_env: Any, keyed: int) -> None:
        env = make_env()
        streams = [env.from_collection([("a", 1)]), env.from_collection([("a", 2)])]
        streams[keyed] = streams[keyed].key_by(first)
        with pytest.raises(ProgramError, match="A KeyedCoProcessFunction needs two keyed streams"):
            streams[0].connect(streams[1]).process(Numbered())

    def test_keys_of_different_types_are_refused(self, make_env: Any) -> None:
        env = make_env()
        left = env.from_collection([1]).key_by(lambda n: n, Types.INT())
        right = env.from_collection([1]).key_by(str, Types.STRING())
        with pytest.raises(ProgramError, match="must be of one type, these are INT and STRING"):
            left.connect(right).process(Numbered())

    def test_what_cannot_be_connected(self, make_env: Any) -> None:
        stream = make_env().from_collection([1])
        with pytest.raises(ProgramError, match="Streams of different environments"):
            stream.connect(make_env().from_collection([1]))
        with pytest.raises(ProgramError, match=r"connect\(\) takes another DataStream, got list \[1\]"):
            stream.connect([1])
