"""A subtask has one process: what a function holds in its attributes lasts from batch to batch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sparkkit import alive, eventually, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobExecutionError


class Numbered(MapFunction):
    """(subtask, process, how often this object was called, how often it was opened)"""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.calls = 0
        self.opened += 1

    def map(self, value: Any) -> Any:
        self.calls += 1
        return "map", self.subtask, os.getpid(), self.calls, self.opened


class NumberedByKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.calls = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.calls += 1
        yield "process", self.subtask, os.getpid(), self.calls, 1


def test_a_subtask_keeps_its_process_and_its_function_object_through_many_batches() -> None:
    env = spark_env(3, {"firesteel.batch.max-records": "50"})
    numbers = env.from_source(NumberSequenceSource(0, 299), WatermarkStrategy.no_watermarks(), "numbers")
    keyed = numbers.key_by(lambda n: n % 20).process(NumberedByKey())
    with numbers.map(Numbered()).union(keyed).execute_and_collect() as records:
        seen = list(records)
    assert len(seen) == 600
    for kind in ("map", "process"):
        for subtask in range(3):
            mine = [record for record in seen if record[:2] == (kind, subtask)]
            assert len({record[2] for record in mine}) == 1, "one process"
            assert [record[3] for record in mine] == list(range(1, len(mine) + 1)), "one object, in order"
            assert {record[4] for record in mine} == {1}, "opened once"


def test_a_killed_process_fails_the_batch_and_its_successor_serves_the_next_job(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "killed"

    def kill_once(number: int) -> int:
        if number == 30 and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), 9)
        return number

    def run() -> list[int]:
        env = spark_env(2)
        numbers = env.from_source(NumberSequenceSource(0, 59), WatermarkStrategy.no_watermarks(), "numbers")
        with numbers.map(kill_once).key_by(lambda n: n % 4).process(Echo()).execute_and_collect() as records:
            return sorted(records)

    # Not only that it failed: what Spark knows of the reason.
    with pytest.raises(JobExecutionError, match=r"The job failed inside Spark: (?s:.*)worker exited unexpectedly"):
        run()
    assert eventually(lambda: not alive(int(marker.read_text())))
    # And a line that names the process, and what it was doing.
    written: list[str] = []

    def named() -> bool:
        written.append(capsys.readouterr().err)
        what = rf"process {marker.read_text()} of subtask 1 \(job '.*', operators .*Map.*\) was killed by SIGKILL"
        return re.search(what, "".join(written)) is not None

    assert eventually(named), written
    assert run() == list(range(60))


class Echo(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value
