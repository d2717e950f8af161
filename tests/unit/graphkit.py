"""Programs, and the graphs that are made of them."""

from __future__ import annotations

from typing import Any

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import CoMapFunction, ProcessFunction, StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph, build_job_graph
from firesteel.graph.stream_graph import build_stream_graph

NONE = WatermarkStrategy.no_watermarks()


def environment(parallelism: int | None = 2, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    if parallelism is not None:
        env.set_parallelism(parallelism)
    return env


def graph_of(env: StreamExecutionEnvironment) -> JobGraph:
    longest = env.get_max_parallelism()
    stream_graph = build_stream_graph(env.program, env.get_parallelism(), longest if longest > 0 else None)
    return build_job_graph(stream_graph)


def stages_of(graph: JobGraph) -> list[list[str]]:
    return [[graph.graph.nodes[node_id].name for node_id in stage.nodes] for stage in graph.stages]


def exchanges_of(graph: JobGraph) -> list[tuple[str, str, str, int, int]]:
    nodes = graph.graph.nodes
    return [
        (nodes[e.edge.source].name, e.edge.partitioning.ship.name, nodes[e.edge.target].name, e.from_stage, e.to_stage)
        for e in graph.exchanges
    ]


def named(stream: Any, name: str) -> Any:
    return stream.name(name)


class _Nothing(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
        return None


class Either(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value
