"""From a program to stages: parallelism, unions, chaining, and the plan."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from graphkit import NONE, Either, _Nothing, environment, exchanges_of, graph_of, named, stages_of

from firesteel.datastream import OutputTag, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ConfigurationError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.transformations import Ship


class TestStages:
    def test_a_linear_chain_is_one_stage_per_exchange(self) -> None:
        env = environment()
        numbers = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "source")
        numbers.map(str).name("map").key_by(len).reduce(max).name("reduce").map(str).name("after").print().name("p")
        graph = graph_of(env)
        assert stages_of(graph) == [["source", "map"], ["reduce", "after", "p"]]
        assert exchanges_of(graph) == [("map", "HASH", "reduce", 0, 1)]
        assert [stage.parallelism for stage in graph.stages] == [2, 2]

    def test_a_diamond_keyed_two_ways_and_merged(self) -> None:
        env = environment()
        source = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "source")
        left = source.key_by(lambda n: n % 2).reduce(max).name("left")
        right = source.key_by(lambda n: n % 3).reduce(max).name("right")
        left.union(right).map(str).name("merged").key_by(len).reduce(max).name("last").print().name("p")
        graph = graph_of(env)
        # Both sides share one physical stage; the merge follows in the same tasks.
        assert stages_of(graph) == [["source"], ["left", "right", "merged"], ["last", "p"]]
        assert exchanges_of(graph) == [
            ("source", "HASH", "left", 0, 1),
            ("source", "HASH", "right", 0, 1),
            ("merged", "HASH", "last", 1, 2),
        ]

    def test_a_union_is_no_operator(self) -> None:
        env = environment()
        streams = [named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), f"s{n}") for n in range(3)]
        streams[0].union(streams[1].union(streams[2])).rebalance().map(str).name("map").print().name("p")
        graph = graph_of(env)
        assert stages_of(graph) == [["s0", "s1", "s2"], ["map", "p"]]
        assert exchanges_of(graph) == [(f"s{n}", "REBALANCE", "map", 0, 1) for n in range(3)]

    def test_a_union_ships_each_input_as_it_asked_where_the_reader_asks_nothing(self) -> None:
        env = environment()
        one = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "one")
        two = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "two")
        one.union(two.broadcast()).map(str).name("map").print().name("p")
        assert exchanges_of(graph_of(env)) == [("one", "FORWARD", "map", 0, 1), ("two", "BROADCAST", "map", 0, 1)]

    def test_an_input_that_skips_stages_is_one_exchange(self) -> None:
        env = environment()
        source = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "source")
        deep = source.key_by(str).reduce(max).name("one").key_by(str).reduce(max).name("two")
        deep.union(source).map(str).name("map").print().name("p")
        graph = graph_of(env)
        assert stages_of(graph) == [["source"], ["one"], ["two", "map", "p"]]
        assert ("source", "FORWARD", "map", 0, 2) in exchanges_of(graph)

    def test_a_side_output_is_an_edge_with_a_tag(self) -> None:
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        process = source.process(_Nothing()).name("process")
        process.get_side_output(OutputTag("late")).map(str).name("side").print().name("p")
        graph = graph_of(env)
        (edge,) = [e for e in graph.graph.edges if graph.graph.nodes[e.target].name == "side"]
        assert edge.tag == "late"
        assert edge.partitioning.ship is Ship.FORWARD
        assert len(graph.stages) == 1

    def test_what_no_sink_needs_is_left_out(self) -> None:
        env = environment()
        source = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "source")
        source.map(str).name("unused")
        source.print().name("p")
        assert stages_of(graph_of(env)) == [["source", "p"]]

    def test_stages_have_the_width_of_their_widest_operator(self) -> None:
        env = environment(3)
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n").set_parallelism(2)
        source.map(str).set_parallelism(4).print().set_parallelism(1)
        graph = graph_of(env)
        assert [stage.parallelism for stage in graph.stages] == [2, 4, 1]
        assert graph.parallelism == 4
        assert [e[1] for e in exchanges_of(graph)] == ["REBALANCE", "REBALANCE"]

    def test_a_graph_pickles_with_its_exchanges_edges_as_the_same_objects(self) -> None:
        """Tasks find an edge's exchange by identity: a.union(a) has two equal edges."""
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        source.union(source).rebalance().print()
        graph: JobGraph = pickle.loads(pickle.dumps(graph_of(env)))
        assert [e.edge is edge for e, edge in zip(graph.exchanges, graph.graph.edges, strict=True)] == [True, True]


class TestTwoInputs:
    @staticmethod
    def inputs(graph: JobGraph, name: str) -> list[tuple[str, str, int]]:
        node = next(node.id for node in graph.graph.nodes.values() if node.name == name)
        return [
            (graph.graph.nodes[e.source].name, e.partitioning.ship.name, e.ordinal) for e in graph.graph.inputs(node)
        ]

    def test_an_edge_keeps_its_input_through_unions(self) -> None:
        env = environment(1)
        streams = [named(env.from_collection([n]), f"s{n}") for n in range(5)]
        nested = streams[2].union(streams[3]).union(streams[4])
        streams[0].union(streams[1]).connect(nested).key_by(str, str).map(Either()).name("co").print()
        graph = graph_of(env)
        assert self.inputs(graph, "co") == [
            ("s0", "HASH", 0),
            ("s1", "HASH", 0),
            ("s2", "HASH", 1),
            ("s3", "HASH", 1),
            ("s4", "HASH", 1),
        ]
        assert [exchange.edge.ordinal for exchange in graph.exchanges] == [0, 0, 1, 1, 1]

    def test_two_keyed_inputs_meet_in_one_stage(self) -> None:
        env = environment()
        left, right = (named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), name) for name in "lr")
        left.connect(right).key_by(str, str).map(Either()).name("co").print().name("p")
        assert stages_of(graph_of(env)) == [["l", "r"], ["co", "p"]]

    def test_inputs_of_different_depth_meet_behind_the_deeper_one(self) -> None:
        env = environment()
        left, right = (named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), name) for name in "lr")
        left.key_by(str).reduce(max).name("max").connect(right).map(Either()).name("co").print().name("p")
        graph = graph_of(env)
        assert stages_of(graph) == [["l", "r"], ["max", "co", "p"]]
        assert exchanges_of(graph) == [("l", "HASH", "max", 0, 1), ("r", "FORWARD", "co", 0, 1)]

    def test_a_stream_connected_with_itself_has_two_edges(self) -> None:
        env = environment()
        stream = named(env.from_source(NumberSequenceSource(1, 9), NONE, "n"), "s")
        stream.connect(stream).map(Either()).name("co").print()
        graph = graph_of(env)
        assert self.inputs(graph, "co") == [("s", "FORWARD", 0), ("s", "FORWARD", 1)]
        assert pickle.loads(pickle.dumps(graph)).graph.edges == graph.graph.edges


class TestSources:
    def test_a_source_of_one_subtask_is_read_by_as_many_as_follow(self) -> None:
        env = environment(3)
        named(env.from_collection([1]), "source").map(str).name("map").print().name("p")
        graph = graph_of(env)
        assert stages_of(graph) == [["source", "map", "p"]]
        assert list(graph.source_parallelism.values()) == [3]
        assert graph.exchanges == ()
        # What the plan shows stays Flink's.
        assert [node.parallelism for node in graph.graph.nodes.values()] == [1, 3, 3]

    def test_readers_of_one_width_share_the_wide_source(self) -> None:
        env = environment(3)
        source = env.from_collection([1])
        source.map(str).print()
        source.filter(bool).print()
        graph = graph_of(env)
        assert list(graph.source_parallelism.values()) == [3]
        assert graph.exchanges == ()

    def test_a_reader_that_asked_for_a_partitioning_keeps_the_source_as_it_is(self) -> None:
        env = environment(3)
        source = env.from_collection([1])
        source.map(str).print()
        source.key_by(str).reduce(max).print()
        assert list(graph_of(env).source_parallelism.values()) == [1]

    def test_readers_of_different_width_do_not(self) -> None:
        env = environment(3)
        source = env.from_collection([1])
        source.map(str).print()
        source.map(str).set_parallelism(2).print()
        assert list(graph_of(env).source_parallelism.values()) == [1]

    def test_an_explicit_rebalance_is_done_record_by_record(self) -> None:
        env = environment(3)
        named(env.from_collection([1]), "source").rebalance().map(str).name("map").print().name("p")
        graph = graph_of(env)
        assert list(graph.source_parallelism.values()) == [1]
        assert exchanges_of(graph) == [("source", "REBALANCE", "map", 0, 1)]

    def test_a_parallel_source_keeps_its_parallelism(self) -> None:
        env = environment(3)
        env.from_source(NumberSequenceSource(1, 9), NONE, "n").set_parallelism(1).map(str).print()
        env.from_source(NumberSequenceSource(1, 9), NONE, "n").map(str).print()
        assert list(graph_of(env).source_parallelism.values()) == [3, 3]


class TestParallelism:
    """Operator over environment over submission over configuration file."""

    @pytest.fixture(autouse=True)
    def _from_outside(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "config.yaml").write_text("parallelism.default: 5\npipeline.max-parallelism: 50\n")
        self.folder, self.patch = str(tmp_path), monkeypatch

    def widths(self, env: StreamExecutionEnvironment, **operator: int) -> int:
        stream = env.from_source(NumberSequenceSource(1, 9), NONE, "n").map(str)
        if operator:
            stream.set_parallelism(operator["parallelism"])
        stream.name("the map").print()
        return next(n.parallelism for n in graph_of(env).graph.nodes.values() if n.name == "the map")

    def test_the_file_over_the_number_of_cores(self) -> None:
        self.patch.setenv("FIRESTEEL_CONF_DIR", self.folder)
        assert self.widths(environment(None)) == 5
        assert environment(None).get_max_parallelism() == 50

    def test_the_submission_over_the_file(self) -> None:
        self.patch.setenv("FIRESTEEL_CONF_DIR", self.folder)
        self.patch.setenv("FIRESTEEL_SETTINGS", "parallelism.default=4\x1fpipeline.operator-chaining.enabled=false")
        env = environment(None)
        assert self.widths(env) == 4
        assert not env.is_chaining_enabled()
        assert env.get_max_parallelism() == 50

    def test_the_environment_over_the_submission(self) -> None:
        self.patch.setenv("FIRESTEEL_SETTINGS", "parallelism.default=4")
        assert self.widths(environment(3)) == 3
        assert self.widths(environment(None, parallelism_default="2")) == 2

    def test_the_operator_over_all(self) -> None:
        self.patch.setenv("FIRESTEEL_SETTINGS", "parallelism.default=4")
        assert self.widths(environment(3), parallelism=2) == 2

    def test_the_number_of_cores_where_nobody_says_anything(self) -> None:
        env = environment(None)
        env.set_default_local_parallelism(7)
        assert self.widths(env) == 7

    def test_a_folder_without_a_configuration_file_is_refused(self, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        self.patch.setenv("FIRESTEEL_CONF_DIR", str(empty))
        with pytest.raises(ConfigurationError, match=r"No config\.yaml and no flink-conf\.yaml"):
            environment(None)

    def test_a_runtime_mode_that_does_not_exist_is_refused(self) -> None:
        self.patch.setenv("FIRESTEEL_SETTINGS", "execution.runtime-mode=fast")
        with pytest.raises(ConfigurationError, match="must be STREAMING, BATCH or AUTOMATIC, got 'fast'"):
            environment(None)


class TestPlan:
    @staticmethod
    def plan(env: StreamExecutionEnvironment) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(env.get_execution_plan())
        return found

    def test_what_it_says(self) -> None:
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        source.map(str).set_description("numbers as text").key_by(len).reduce(max).uid("largest").print()
        plan = self.plan(env)
        assert plan["stages"] == 2
        source_, map_, reduce_, sink = plan["nodes"]
        assert source_["type"] == "Source: n"
        assert source_["pact"] == "Data Source"
        assert "predecessors" not in source_
        assert map_["contents"] == "numbers as text"
        assert map_["predecessors"] == [{"id": source_["id"], "ship_strategy": "FORWARD", "side": "second"}]
        assert reduce_["predecessors"][0]["ship_strategy"] == "HASH"
        assert (reduce_["uid"], reduce_["stage"], reduce_["parallelism"]) == ("largest", 1, 2)
        assert sink["pact"] == "Data Sink"
        assert [chain["name"] for chain in plan["chains"]] == ["Source: n -> Map", "Reduce -> Sink: Print to Std. Out"]

    def test_a_plan_does_not_use_the_program_up(self) -> None:
        env = environment()
        env.from_collection([1]).print()
        assert self.plan(env) == self.plan(env)

    def chains(self, change: Any) -> list[str]:
        env = environment()
        source = env.from_source(NumberSequenceSource(1, 9), NONE, "n")
        one = source.map(str).name("one")
        two = one.map(str).name("two")
        change(env, one, two)
        two.print().name("p")
        return [chain["name"] for chain in self.plan(env)["chains"]]

    def test_chains(self) -> None:
        assert self.chains(lambda env, one, two: None) == ["Source: n -> one -> two -> p"]
        assert self.chains(lambda env, one, two: two.start_new_chain()) == ["Source: n -> one", "two -> p"]
        assert self.chains(lambda env, one, two: one.disable_chaining()) == ["Source: n", "one", "two -> p"]
        assert self.chains(lambda env, one, two: two.slot_sharing_group("g")) == ["Source: n -> one", "two", "p"]
        off = self.chains(lambda env, one, two: env.disable_operator_chaining())
        assert off == ["Source: n", "one", "two", "p"]
