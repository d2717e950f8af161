"""Batch mode: OVER with all its functions and frames, and queries inside conditions, as PyFlink 2.3 gives them
(``tools/record_queries.py``)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sparkkit import spark_env
from test_joins_of_pyflink import shown

from firesteel.common import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment

CONTENT = json.loads((Path(__file__).parent / "batch_by_pyflink.json").read_text())
PROGRAMS = {program["name"]: program for program in CONTENT["programs"]}
GIVEN = [name for name, program in PROGRAMS.items() if "rows" in program]


def filled(**settings: str) -> TableEnvironment:
    config = Configuration.from_dict({"table.local-time-zone": "UTC", **settings})
    builder = EnvironmentSettings.new_instance().with_configuration(config)
    env = TableEnvironment.create(builder.in_batch_mode().build())
    for statement in CONTENT["setup"]:
        env.execute_sql(statement)
    return env


@pytest.fixture(scope="module")
def memory() -> TableEnvironment:
    return filled(**{"firesteel.master": "memory", "parallelism.default": "1"})


def compared(env: TableEnvironment, program: dict[str, Any]) -> None:
    result = env.execute_sql(program["sql"])
    schema = result.get_resolved_schema()
    assert schema.get_column_names() == program["columns"]
    assert [str(kind) for kind in schema.get_column_data_types()] == program["types"]
    with result.collect() as rows:
        found = Counter(repr([shown(value) for value in row]) for row in rows)
    assert found == Counter(repr(row[1:]) for row in program["rows"])


@pytest.mark.parametrize("name", GIVEN)
def test_results_are_flinks(name: str, memory: TableEnvironment) -> None:
    compared(memory, PROGRAMS[name])


ON_SPARK = [
    "ranks",
    "row number",
    "ntile",
    "lag and lead",
    "first and last",
    "rows",
    "range of numbers",
    "range of days",
    "range unbounded",
    "listagg",
    "groups",
    "top n by rank",
    "scalar inside ON of a left join",
    "greater than all",
]
"""Each with its own way to Spark: its functions, ours in its workers, and both in one query."""


def test_results_on_spark_are_flinks() -> None:
    spark_env()
    env = filled(**{"firesteel.master": "local", "spark.sql.shuffle.partitions": "1"})
    for name in ON_SPARK:
        compared(env, PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in GIVEN])
def test_what_flink_refuses_is_refused(name: str, memory: TableEnvironment) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        memory.execute_sql(PROGRAMS[name]["sql"])
    assert type(caught.value).__module__.startswith("firesteel.")
