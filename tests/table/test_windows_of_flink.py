"""Queries over windows: what PyFlink 2.3 gave for the same programs and rows, change by change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from window_programs import EXPRESSIONS, PROGRAMS, REFUSED, changes, environment, evaluated, zone_of

from firesteel.table.sql import SqlError

RECORDED = json.loads((Path(__file__).parent / "windows_by_pyflink.json").read_text())
BY_KEY = [name for name in {**PROGRAMS, **EXPRESSIONS} if name in RECORDED["changes"] and "join" not in name]
JOINS = [name for name in PROGRAMS if name in RECORDED["changes"] and "join" in name]


@pytest.fixture(scope="module")
def environments() -> dict[str, Any]:
    return {zone: environment("firesteel", zone) for zone in ("UTC", "Asia/Shanghai")}


def found(environments: dict[str, Any], name: str) -> list[list[Any]]:
    env = environments[zone_of(name)]
    if name in EXPRESSIONS:
        return changes(evaluated("firesteel", env, EXPRESSIONS[name]).execute())
    return changes(env.execute_sql(PROGRAMS[name]))


def by_key(rows: list[list[Any]]) -> dict[str, list[Any]]:
    keys: dict[str, list[Any]] = {}
    for row in rows:
        keys.setdefault(repr(row[1][0]), []).append(row)
    return keys


@pytest.mark.parametrize("name", BY_KEY)
def test_every_key_has_the_changes_of_flink(environments: dict[str, Any], name: str) -> None:
    expected, got = RECORDED["changes"][name], found(environments, name)
    if "rollup" in name or "grouping" in name or "cube" in name:
        # Several groups have the same first column: Flink gives them out in another order when a window ends.
        assert sorted(map(repr, got)) == sorted(map(repr, expected))
    else:
        assert by_key(got) == by_key(expected)


@pytest.mark.parametrize("name", JOINS)
def test_joins_have_the_rows_of_flink(environments: dict[str, Any], name: str) -> None:
    got = found(environments, name)
    assert {kind for kind, _ in got} == {"+I"}
    assert sorted(map(repr, got)) == sorted(map(repr, RECORDED["changes"][name]))


REASONS = {
    "descending": "in ascending order of time",
    "following": "ends at the CURRENT ROW",
    "two following": "ends at the CURRENT ROW",
    "two windows": "share one window",
    "two partitions": "share one window",
    "no order": "has an order",
    "two orders": "in the order of one time attribute alone",
    "lead": "LEAD needs rows that have not come yet",
    "ntile": "NTILE needs rows that have not come yet",
    "percent_rank": "PERCENT_RANK needs rows that have not come yet",
    "row_number and sum": "share one window",
    "updates": "OVER takes no updates",
    "window without a watermark": "ts is not a time attribute: the table needs WATERMARK FOR ts",
    "group window without a watermark": "A window is of a time attribute",
    "lag with a frame": "LAG() has no ROWS or RANGE",
    "partition of tumble": "TUMBLE takes no PARTITION BY",
    "cumulate": "the size is a multiple of the step",
}


@pytest.mark.parametrize("name", REASONS)
def test_what_flink_refuses_is_refused_with_a_reason(environments: dict[str, Any], name: str) -> None:
    assert name in RECORDED["refused"]
    with pytest.raises(SqlError, match=REASONS[name].replace("(", r"\(").replace(")", r"\)")):
        environments["UTC"].execute_sql(REFUSED[name])
