"""A worker killed while answers of Spark's state server are outstanding: when its task begins, and when it is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkkit import CommitSink, committed, spark_env

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor

RECORDS, BATCH, KEYS, ARMED = 150, 50, 7, 60
AT_THE_END, AT_THE_BEGINNING = "remove_implicit_key", "get_map_state"
"""The calls that are outstanding when a task is done, and when it begins."""


class CountUntilKilled(KeyedProcessFunction):
    """Counts. With one record of the second batch it makes its process end by SIGKILL: the first time when the task
    would read the last answers, the second time when the next batch's task would read the first ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == ARMED:
            left = [call for call in (AT_THE_END, AT_THE_BEGINNING) if not self._killed(call).exists()]
            if left:
                kill_when_outstanding(left[0], self._killed(left[0]))
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield [ctx.get_current_key(), count]

    def _killed(self, call: str) -> Path:
        return Path(self.folder) / f"killed-at-{call}"


def kill_when_outstanding(call: str, note: Path) -> None:
    """From now on in this process. The task that runs has its client already, so it is the class that changes."""
    from firesteel.engine.spark.state_calls import _Answers

    def settle(answers: Any) -> None:
        if call in answers._owed:
            note.write_text(" ".join(answers._owed))
            os.kill(os.getpid(), 9)
        usual(answers)

    usual = _Answers.settle
    _Answers.settle = settle  # type: ignore[assignment, method-assign]


def test_every_record_counts_once_whenever_a_worker_dies_with_answers_outstanding(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    config = {
        "firesteel.checkpoint.dir": tmp_path / "checkpoint",
        "firesteel.batch.max-records": BATCH,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 2,
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    env = spark_env(2, config)
    numbers = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % KEYS).process(CountUntilKilled(tmp_path)).sink_to(CommitSink(out))
    env.execute("answers outstanding")
    # Both happened, with the state of the batch written before the first one, and not read before the second.
    outstanding = {path.name: path.read_text().split() for path in tmp_path.glob("killed-at-*")}
    assert outstanding == {
        f"killed-at-{AT_THE_END}": ["set_handle_state", "set_handle_state", AT_THE_END, "set_handle_state"],
        f"killed-at-{AT_THE_BEGINNING}": [AT_THE_BEGINNING, "set_handle_state", "set_implicit_key"],
    }
    expected = {(n % KEYS, n // KEYS + 1) for n in range(RECORDS)}
    assert sorted(tuple(record) for record in committed(out)) == sorted(expected)
