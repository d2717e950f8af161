"""What is checked when a graph is made: uids, and programs that cannot work."""

from __future__ import annotations

from typing import Any

import pytest
from graphkit import NONE, Either, environment, graph_of

from firesteel.common import Types
from firesteel.datastream import ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import ProgramError


class TestUids:
    @staticmethod
    def program(extra: bool = False) -> StreamExecutionEnvironment:
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        if extra:
            source = source.map(str)
        source.key_by(lambda n: n % 2).reduce(max).key_by(str).reduce(min).print()
        source.print()
        return env

    @staticmethod
    def uids(env: StreamExecutionEnvironment) -> list[str]:
        return [node.uid for node in graph_of(env).graph.nodes.values()]

    def test_an_unchanged_program_has_the_same_uids_in_every_build(self) -> None:
        first, second = self.uids(self.program()), self.uids(self.program())
        assert first == second
        assert len(set(first)) == len(first)
        assert first != self.uids(self.program(extra=True))

    def test_streams_that_no_sink_needs_do_not_matter(self) -> None:
        env = environment()
        env.from_collection([1]).map(str)
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        source.map(str).map(str)
        source.key_by(lambda n: n % 2).reduce(max).key_by(str).reduce(min).print()
        source.print()
        assert self.uids(env) == self.uids(self.program())

    def test_the_uids_of_programs_with_one_input_stay_as_they_always_were(self) -> None:
        env = environment()
        env.from_collection([1]).union(env.from_collection([2])).key_by(lambda n: n).reduce(max).print()
        assert self.uids(env) == [
            "27da2c82989ea2b964fbe764652b243d",
            "f440f0da07691f04ef05b62bdcdb6808",
            "5a9fed9e1aad4e94135da55416137057",
            "cffcdf4c1736bdbc855f5cf4180c7412",
        ]

    def test_swapped_inputs_are_another_operator(self) -> None:
        def uid(swapped: bool) -> str:
            env = environment()
            left, right = env.from_collection([1]), env.from_collection([2])
            (right.connect(left) if swapped else left.connect(right)).map(Either()).print()
            return self.uids(env)[2]

        assert uid(False) == uid(False) != uid(True)

    def test_a_given_uid_is_kept(self) -> None:
        env = environment()
        env.from_collection([1]).map(str).uid("mine").print().uid("end")
        assert self.uids(env)[1:] == ["mine", "end"]

    def test_a_uid_given_twice_is_refused(self) -> None:
        env = environment()
        env.from_collection([1]).map(str).uid("mine").map(str).uid("mine").print()
        with pytest.raises(
            ProgramError, match=r"Two operators have the uid 'mine': 'Map' at .*test_graph_checks\.py:\d+ and"
        ):
            graph_of(env)


class TestRefusals:
    def test_a_program_without_sinks(self) -> None:
        env = environment()
        env.from_collection([1]).map(str)
        with pytest.raises(ProgramError, match=r"The program has no sinks.*print\(\), add_sink\(\), sink_to\(\)"):
            env.execute()
        with pytest.raises(ProgramError, match="The program has no sinks"):
            environment().execute()

    def test_forward_between_different_widths(self) -> None:
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n").set_parallelism(3)
        source.forward().map(str).set_parallelism(2).print()
        with pytest.raises(
            ProgramError, match=r"forward\(\) from 'Source: n' \(parallelism 3\) to 'Map' \(parallelism"
        ):
            graph_of(env)

    def test_more_subtasks_than_key_groups(self) -> None:
        env = environment(4)
        env.set_max_parallelism(3)
        env.from_source(NumberSequenceSource(1, 9), NONE, "n").print()
        with pytest.raises(ProgramError, match="has parallelism 4, more than its maximum parallelism of 3"):
            graph_of(env)

    def test_more_subtasks_than_an_operators_own_key_groups(self) -> None:
        env = environment(4)
        env.from_source(NumberSequenceSource(1, 9), NONE, "n").map(str).set_max_parallelism(2).print()
        with pytest.raises(ProgramError, match=r"'Map' \(built at .*\) has parallelism 4, more than its maximum"):
            graph_of(env)

    @pytest.mark.parametrize("number", [0, -1, 32769, 1.5])
    def test_a_maximum_that_is_none(self, number: Any) -> None:
        stream = environment().from_collection([1])
        with pytest.raises(ProgramError, match="Maximum parallelism must be from 1 to 32768"):
            stream.set_max_parallelism(number)

    @pytest.mark.parametrize("number", [0, -1, "2", 1.5])
    def test_a_parallelism_that_is_none(self, number: Any) -> None:
        with pytest.raises(ProgramError, match="Parallelism must be an int of at least 1"):
            environment().from_collection([1]).map(str).set_parallelism(number)

    def test_a_source_that_has_one_subtask_only(self) -> None:
        env = environment()
        env.from_collection([1]).set_parallelism(2).print()
        with pytest.raises(ProgramError, match=r"'Source: Collection Source' \(built at .*cannot have parallelism 2"):
            graph_of(env)

    def test_settings_of_a_keyed_stream(self) -> None:
        keyed = environment().from_collection([1]).key_by(str)
        with pytest.raises(ProgramError, match="name cannot be set on a keyed stream"):
            keyed.name("x")
        with pytest.raises(ProgramError, match="parallelism cannot be set on a keyed stream"):
            keyed.set_parallelism(2)
        with pytest.raises(ProgramError, match="buffer timeout cannot be set on a keyed stream"):
            keyed.set_buffer_timeout(5)
        with pytest.raises(ProgramError, match=r"^parallelism cannot be set on a keyed stream"):
            keyed.force_non_parallel()
        with pytest.raises(ProgramError, match=r"cache\(\) of a keyed stream is not supported"):
            keyed.cache()
        with pytest.raises(ProgramError, match="A keyed stream has no name"):
            keyed.get_name()

    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("rebalance", ()),
            ("rescale", ()),
            ("shuffle", ()),
            ("forward", ()),
            ("global_", ()),
            ("broadcast", ()),
            ("broadcast", (MapStateDescriptor("rules", Types.STRING(), Types.INT()),)),
            ("partition_custom", (lambda key, width: 0, abs)),
        ],
    )
    def test_a_keyed_stream_is_not_partitioned_otherwise(self, method: str, arguments: tuple[Any, ...]) -> None:
        keyed = environment().from_collection([1]).key_by(str)
        with pytest.raises(ProgramError, match=rf"{method}\(\) would undo key_by\(\)"):
            getattr(keyed, method)(*arguments)

    def test_a_function_without_keys_on_a_keyed_stream(self) -> None:
        class Plain(ProcessFunction):
            def process_element(self, value: Any, ctx: Any) -> None:
                return None

        keyed = environment().from_collection([1]).key_by(str)
        with pytest.raises(ProgramError, match="a keyed stream takes an instance of KeyedProcessFunction, got Plain "):
            keyed.process(Plain())
        with pytest.raises(ProgramError, match="takes an instance of KeyedProcessFunction, got int 3"):
            keyed.process(3)

    def test_a_keyed_function_without_keys_and_what_is_no_function(self) -> None:
        from firesteel.datastream import KeyedProcessFunction

        class Keyed(KeyedProcessFunction):
            def process_element(self, value: Any, ctx: Any) -> None:
                return None

        stream = environment().from_collection([1])
        with pytest.raises(ProgramError, match="A KeyedProcessFunction needs a keyed stream"):
            stream.process(Keyed())
        with pytest.raises(ProgramError, match=r"process\(\) takes an instance of ProcessFunction, got 5"):
            stream.process(5)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="output_type must be one of Types, got <class 'int'>"):
            stream.map(str, output_type=int)  # type: ignore[arg-type]
