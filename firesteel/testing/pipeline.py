"""Whole programs under test: run in this process, results as lists."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.engine import submit
from firesteel.engine.job import EngineJob
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import CollectSpec
from firesteel.testing.job_of_function import memory_environment

__all__ = ["collect", "run_pipeline"]


def run_pipeline(
    build: Callable[[StreamExecutionEnvironment], Any],
    *,
    parallelism: int = 1,
    mode: RuntimeExecutionMode | None = None,
    config: Mapping[str, str] | None = None,
    restarts: int = 0,
) -> Any:
    """Runs a program without Spark, from the sources that ``build`` reads to the streams that it returns.

    One stream gives a list of its records; several in a tuple or a dict give as many lists, from one run. A program
    that ends in sinks of its own may return nothing. ``restarts`` says how often the job is started again after a
    failure: with the state of the last complete batch, and new copies of all functions.

    >>> def build(env):
    ...     words = env.from_collection(["to be", "or not to be"]).flat_map(str.split)
    ...     return words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    >>> run_pipeline(build)
    [('to', 1), ('be', 1), ('or', 1), ('not', 1), ('to', 2), ('be', 2)]
    >>> sorted(run_pipeline(build, parallelism=3, mode=RuntimeExecutionMode.BATCH))
    [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
    """
    env = memory_environment(parallelism, mode, config)
    match build(env):
        case DataStream() as stream:
            return collect(stream, restarts=restarts)
        case tuple() as streams if all(isinstance(stream, DataStream) for stream in streams):
            return tuple(_collect(env, list(streams), restarts))
        case dict() as streams if all(isinstance(stream, DataStream) for stream in streams.values()):
            return dict(zip(streams, _collect(env, list(streams.values()), restarts), strict=True))
        case None:
            _collect(env, [], restarts)
            return None
        case other:
            raise ProgramError(
                "The program that run_pipeline() builds returns a stream, a tuple or dict of streams, or None; got "
                f"{short_repr(other, 80)}."
            )


def collect(stream: DataStream, *, restarts: int = 0) -> list[Any]:
    """Runs the program that a stream belongs to and returns all records of the stream.

    >>> env = memory_environment()
    >>> collect(env.from_collection([1, 2, 3]).filter(lambda n: n > 1))
    [2, 3]
    """
    return _collect(stream.get_execution_environment(), [stream], restarts)[0]


def _collect(env: StreamExecutionEnvironment, streams: Sequence[DataStream], restarts: int) -> list[list[Any]]:
    channels = [uuid.uuid4().hex for _ in streams]
    for stream, channel in zip(streams, channels, strict=True):
        stream._sink("Collect", CollectSpec(channel))
    job = _start(env, restarts)
    try:
        # All at once: a channel that nobody reads would hold up the job.
        with ThreadPoolExecutor(max(1, len(channels))) as readers:
            found = list(readers.map(lambda channel: list(job.collect(channel)), channels))
        job.get_job_execution_result().result()
        return found
    finally:
        job.stop_collecting()


def _start(env: StreamExecutionEnvironment, restarts: int) -> EngineJob:
    submission = env._submission("test")
    env.program.forget_sinks()
    if restarts:
        strategy = {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": str(restarts),
            "restart-strategy.fixed-delay.delay": "0 ms",
        }
        configuration = Configuration(submission.configuration).add_all(Configuration.from_dict(strategy))
        submission = replace(submission, configuration=configuration)
    return submit(submission)
