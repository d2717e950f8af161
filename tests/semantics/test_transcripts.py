"""The same transcripts on the harness, in memory and on Spark: three ways to run a function, one behaviour."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts import KEY, TRANSCRIPTS

from firesteel.common import WatermarkStrategy
from firesteel.testing import ListSource, OneInputHarness

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
NAMES = pytest.mark.parametrize("name", TRANSCRIPTS)


@NAMES
@BACKENDS
@pytest.mark.parametrize("between", ["goes on", "ends a batch", "restarts"])
def test_on_the_harness(name: str, backend: str, between: str) -> None:
    transcript = TRANSCRIPTS[name]
    harness = OneInputHarness(transcript.function(), KEY, backend=backend)
    for step, expected in transcript.lines:
        assert harness.play([step]) == expected, step
        if between == "ends a batch":
            harness.end_batch()
        if between == "restarts":
            harness = harness.restore(harness.snapshot())
    before = len(harness.output)
    harness.end_input()
    assert harness.output[before:] == transcript.end


@pytest.mark.both_engines
@pytest.mark.spark_sample(name="timers of event time", parallelism=3, backend="hashmap")
@pytest.mark.spark_sample(name="time to live from writing", parallelism=1, backend="rocksdb")
@NAMES
@BACKENDS
@pytest.mark.parametrize("parallelism", [1, 3])
def test_on_an_engine(run: Any, name: str, backend: str, parallelism: int) -> None:
    transcript = TRANSCRIPTS[name]

    def build(env: Any) -> Any:
        steps = env.from_source(ListSource(transcript.steps), WatermarkStrategy.no_watermarks(), "steps")
        # One subtask tells what comes, or a watermark would be told only when all had told it.
        steps.set_parallelism(1)
        return steps.key_by(KEY).process(transcript.function())

    came, expected = run(build, parallelism, {"state.backend.type": backend}), transcript.results
    if parallelism > 1:
        # Keys are in different subtasks.
        came, expected = sorted(came, key=repr), sorted(expected, key=repr)
    assert came == expected
