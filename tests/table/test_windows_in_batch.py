"""Windows of batch mode over columns without a watermark: the rows of PyFlink 2.3, which has no sessions there."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from conftest import environment

from firesteel.table import DataTypes, TableEnvironment
from firesteel.table.expressions import col, lit
from firesteel.table.sql import SqlValidationError
from firesteel.table.window import Session, Slide, Tumble

NAMES = ("ts", "k", "v")
KINDS = (DataTypes.TIMESTAMP(3), DataTypes.STRING(), DataTypes.INT())
W = col("w")


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1, 0, 0, 0) + datetime.timedelta(seconds=second)


def filled(mode: str) -> TableEnvironment:
    env = environment(**{"execution.runtime-mode": mode})
    rows = [(at(1), "a", 1), (at(2), "a", 2), (at(11), "a", 4), (at(3), "b", 8), (None, "a", 16)]
    kinds = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in zip(NAMES, KINDS, strict=True)])
    env.create_temporary_view("t", env.from_elements(rows, kinds))
    return env


TUMBLES = [("a", at(0), at(5), 3), ("a", at(10), at(15), 4), ("b", at(0), at(5), 8)]
SLIDES = [
    ("a", at(-5), at(5), 3),
    ("a", at(0), at(10), 3),
    ("a", at(5), at(15), 4),
    ("a", at(10), at(20), 4),
    ("b", at(-5), at(5), 8),
    ("b", at(0), at(10), 8),
]
SESSIONS = [("a", at(1), at(5), 3), ("a", at(11), at(14), 4), ("b", at(3), at(6), 8)]


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        (Tumble.over(lit(5).seconds), TUMBLES),
        (Slide.over(lit(10).seconds).every(lit(5).seconds), SLIDES),
        (Session.with_gap(lit(3).seconds), SESSIONS),
    ],
)
def test_windows_of_the_table_api(window: Any, rows: list[Any]) -> None:
    windows = filled("batch").from_path("t").window(window.on(col("ts")).alias("w"))
    summed = windows.group_by(W, col("k")).select(col("k"), W.start, W.end, col("v").sum)
    with summed.execute().collect() as found:
        assert sorted(map(tuple, found)) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k, TUMBLE_START({0}), TUMBLE_END({0}), SUM(v) FROM t GROUP BY k, TUMBLE({0})", TUMBLES),
        ("SELECT k, HOP_START({1}), HOP_END({1}), SUM(v) FROM t GROUP BY k, HOP({1})", SLIDES),
        (
            "SELECT k, window_start, window_end, SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
            "INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end",
            TUMBLES,
        ),
        (
            "SELECT k, window_start, window_end, SUM(v) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), "
            "INTERVAL '3' SECOND)) GROUP BY k, window_start, window_end",
            SESSIONS,
        ),
        (
            "SELECT k, window_start, window_end, v FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
            "WHERE k = 'b'",
            TUMBLES[2:],
        ),
    ],
)
def test_windows_of_sql(query: str, rows: list[Any]) -> None:
    text = query.format("ts, INTERVAL '5' SECOND", "ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND")
    with filled("batch").sql_query(text).execute().collect() as found:
        assert sorted(map(tuple, found)) == rows


def test_streams_need_a_watermark() -> None:
    windows = filled("streaming").from_path("t").window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w"))
    with pytest.raises(SqlValidationError, match="A window is of a time attribute"):
        windows.group_by(W).select(col("v").sum)
    other = filled("batch").from_path("t").window(Tumble.over(lit(5).seconds).on(col("k")).alias("w"))
    with pytest.raises(SqlValidationError, match=r"Windows need a TIMESTAMP\(3\), got STRING"):
        other.group_by(W).select(col("v").sum)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (lambda: (col("v").sum + 1, col("k"), col("v").max), ["_c0", "k", "EXPR$1"]),
        (lambda: (col("k"), col("v").sum + col("v").max, col("v").min), ["k", "_c1", "EXPR$2"]),
        (lambda: (col("k"), col("v").sum + 1, col("v").sum), ["k", "_c1", "EXPR$0"]),
        (lambda: (col("v").sum.alias("x"), col("v").max), ["x", "EXPR$1"]),
        (lambda: (W.start, col("v").sum + 1, col("v").max, W.end), ["EXPR$0", "_c1", "EXPR$2", "EXPR$3"]),
    ],
)
def test_names_of_what_has_none(fields: Any, names: list[str]) -> None:
    windows = filled("batch").from_path("t").window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w"))
    assert windows.group_by(W, col("k")).select(*fields()).get_schema().get_field_names() == names
