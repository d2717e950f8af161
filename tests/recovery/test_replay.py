"""A batch that comes again gives the same, and results are exactly once.

Processes are killed elsewhere: the driver in ``test_signals`` and ``test_commit_protocol``, workers, whose tasks Spark
repeats, in ``test_postgres_recovery`` and ``test_kafka_recovery``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import (
    CommitSink,
    commit_calls,
    committed,
    eventually,
    notes,
    spark_env,
)

from firesteel.common import JobStatus, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError
from firesteel.testing import CommitCrashes, CrashPoint

NONE = WatermarkStrategy.no_watermarks()


class Count(KeyedProcessFunction):
    """Numbers the records of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count, value


def build(env: Any, folder: Path, fail_in_call: int | None) -> None:
    """Two keyed stages, with every way of shipping that has a choice to make in between."""
    numbers = env.from_source(NumberSequenceSource(0, 149), NONE, "numbers")
    counted = numbers.shuffle().map(lambda n: n).rebalance().key_by(lambda n: n % 7).process(Count())
    again = counted.key_by(lambda r: r[0] % 3).process(Count())
    again.map(lambda r: [r[0], r[1], list(r[2])]).sink_to(CommitSink(folder, fail_in_call))


def test_a_batch_that_was_not_logged_comes_again_identical(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    config = {"firesteel.batch.max-records": 50, "firesteel.checkpoint.dir": tmp_path / "checkpoint"}
    with CommitCrashes({CrashPoint.LOGGED: ["pass", "error"]}) as crashes:
        env = spark_env(3, {**config, **crashes.config})
        build(env, folder, None)
        with pytest.raises(JobExecutionError, match=r"failed on purpose: logged \(2\)"):
            env.execute("first run")
    assert len(commit_calls(folder)) == 1
    (aborted,) = notes(folder, "aborted")
    assert aborted, "what batch 2 had prepared is gone"

    env = spark_env(3, config)
    build(env, folder, None)
    env.execute("second run")
    calls = commit_calls(folder)
    assert len(calls) == 3, "batch 1, then 2 and 3"
    assert calls[1] == aborted, "the replay must prepare the same"
    assert calls[0] != calls[1] != calls[2]
    check_exactly_once(committed(folder), 150)


def check_exactly_once(records: list[Any], total: int) -> None:
    """Every number once, and no key's count with a gap or a repetition in either stage."""
    assert sorted(inner[2] for _, _, inner in records) == list(range(total))
    expected = [[key, n + 1] for key in range(7) for n in range(len(range(key, total, 7)))]
    assert sorted([inner[0], inner[1]] for _, _, inner in records) == expected
    for group in range(3):
        counts = sorted(count for key, count, _ in records if key == group)
        assert counts == list(range(1, len(counts) + 1))


def test_a_job_that_had_finished_finishes_again_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    config = {"firesteel.batch.max-records": 100, "firesteel.checkpoint.dir": tmp_path / "checkpoint"}
    for run in ("first", "second"):
        env = spark_env(2, config)
        build(env, folder, None)
        client = env.execute_async(f"{run} run")
        ended = eventually(lambda client=client: client.get_job_status().result() is not JobStatus.RUNNING)
        client.cancel().result()
        assert ended, f"the {run} run should end by itself"
        client.get_job_execution_result().result()
        check_exactly_once(committed(folder), 150)
    assert len(commit_calls(folder)) == 2, "nothing is left for the second run"
