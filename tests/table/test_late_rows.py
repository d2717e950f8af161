"""Rows that come later than the watermark: what PyFlink 2.3 makes of them (``tools/record_queries.py``), where a
watermark is asked for after every row. Without that, rows of a batch are never late to each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import environment
from recordedkit import final
from test_joins_of_pyflink import run

from firesteel.runtime.columns.rowtime import rowtime_strategy
from firesteel.runtime.watermarks import CuttingAssigner

CONTENT = json.loads((Path(__file__).parent / "late_rows_by_pyflink.json").read_text())
PROGRAMS = {program["name"]: program for program in CONTENT["programs"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_late_rows_are_flinks(name: str) -> None:
    env = environment(**CONTENT["settings"])
    for statement in CONTENT["setup"]:
        env.execute_sql(statement)
    columns, rows = run(env, PROGRAMS[name]["sql"])
    assert columns == PROGRAMS[name]["columns"]
    assert final(rows) == final(PROGRAMS[name]["rows"])


def test_rows_of_a_batch_are_not_late_to_each_other_by_default() -> None:
    env = environment()
    for statement in CONTENT["setup"]:
        env.execute_sql(statement)
    windows = "TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '4' SECOND))"
    counted = f"SELECT COUNT(*) FROM {windows} GROUP BY window_start, window_end"
    assert sum(count for _, count in run(env, counted)[1]) == 14


class _Column:
    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return batch.column(0)


@pytest.mark.parametrize(
    ("times", "pieces"),
    [
        ([1, 2, 3], [[1], [2], [3]]),
        ([1, 5, 3, 3, 6, 6], [[1], [5], [3, 3, 6], [6]]),
        ([None, 2, None, 1], [[None, 2], [None, 1]]),
        ([None, None], [[None, None]]),
        ([], []),
    ],
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("ms"), pa.timestamp("ns", "UTC")])
def test_a_batch_is_cut_behind_each_row_that_moves_time_on(
    times: list[Any], pieces: list[Any], kind: pa.DataType
) -> None:
    scale = 1_000_000 if kind == pa.timestamp("ns", "UTC") else 1

    def batch(values: list[Any]) -> pa.Array:
        return pa.array([None if value is None else value * scale for value in values], pa.int64()).cast(kind)

    assigner = rowtime_strategy(_Column()).timestamp_assigner
    assert isinstance(assigner, CuttingAssigner)
    found = assigner.cut(pa.RecordBatch.from_arrays([batch(times)], ["at"]))
    assert [each.column(0) for each in found] == [batch(piece) for piece in pieces]
