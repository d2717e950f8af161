"""From a function to a job of one operator, built, checked and pickled as every job is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.engine.job_context import job_spec
from firesteel.engine.payload import JobPayload
from firesteel.engine.pickling import pickle_job
from firesteel.errors import ProgramError
from firesteel.graph.specs import CollectSpec, SourceSpec

__all__ = ["Options", "Plan", "memory_environment", "plan"]


def memory_environment(
    parallelism: int = 1,
    mode: RuntimeExecutionMode | None = None,
    config: Mapping[str, str] | None = None,
) -> StreamExecutionEnvironment:
    """An environment whose jobs run in this process, without Spark.

    >>> env = memory_environment(parallelism=2)
    >>> with env.from_collection([1, 2, 3]).map(lambda n: n * n).execute_and_collect() as squares:
    ...     sorted(squares)
    [1, 4, 9]
    """
    settings = Configuration.from_dict({**(config or {}), "firesteel.master": "memory"})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(parallelism)
    if mode is not None:
        env.set_runtime_mode(mode)
    return env


@dataclass(frozen=True)
class Options:
    """How the operator under test is placed."""

    backend: str = "hashmap"
    parallelism: int = 1
    subtask: int = 0
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    config: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.subtask < self.parallelism:
            raise ProgramError(
                f"There is no subtask {self.subtask} at parallelism {self.parallelism}: subtasks count from 0."
            )


@dataclass(frozen=True)
class Plan:
    """A job of one operator, ready to be loaded as often as needed: each time with functions of its own."""

    payload: JobPayload
    node: int
    options: Options


def plan(build: Callable[[StreamExecutionEnvironment], Any], options: Options) -> Plan:
    """Builds the program and takes its only operator."""
    config = {"state.backend.type": options.backend, **(options.config or {})}
    env = memory_environment(options.parallelism, options.mode, config)
    built = build(env)
    if isinstance(built, DataStream):
        built._sink("Collect", CollectSpec("harness"))
    spec = job_spec(env._submission("harness"))
    nodes = spec.graph.graph.nodes.values()
    operators = [node for node in nodes if not isinstance(node.spec, SourceSpec | CollectSpec)]
    if len(operators) != 1:
        names = ", ".join(repr(node.name) for node in operators) or "none"
        raise ProgramError(
            f"A harness runs one operator, but the program has {len(operators)}: {names}. "
            "Use run_pipeline() for whole programs."
        )
    return Plan(pickle_job(spec), operators[0].id, options)
