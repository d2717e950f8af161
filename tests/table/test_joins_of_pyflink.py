"""Queries inside expressions, set operations, joins in time and patterns: what PyFlink 2.3 gave for the same programs
(``tools/record_queries.py``). Of one input every change of a key counts, of two the table that is left in the end:
Flink leaves open which side comes first."""

import json
import warnings
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import environment
from recordedkit import final

from firesteel.table import TableEnvironment

CONTENT = json.loads((Path(__file__).parent / "joins_by_pyflink.json").read_text())
PROGRAMS = {program["name"]: program for program in CONTENT["programs"]}


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = environment(**{"table.local-time-zone": "UTC"})
    for statement in CONTENT["setup"]:
        made.execute_sql(statement)
    return made


def shown(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def run(env: TableEnvironment, sql: str) -> tuple[list[str], list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = env.execute_sql(sql)
    with result.collect() as rows:
        return result.get_resolved_schema().get_column_names(), [
            [str(row.get_row_kind()), *map(shown, row)] for row in rows
        ]


def by_key(changes: list[Any]) -> dict[Any, list[Any]]:
    """What happens to each key, which is the first column, in its order."""
    keys: dict[Any, list[Any]] = {}
    for change in changes:
        keys.setdefault(change[1], []).append(change)
    return keys


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if "rows" in program])
def test_results_are_flinks(name: str, tables: TableEnvironment) -> None:
    program = PROGRAMS[name]
    columns, rows = run(tables, program["sql"])
    assert columns == program["columns"]
    if program["compare"] == "changelog":
        assert rows == program["rows"]
    elif program["compare"] == "by key":
        assert by_key(rows) == by_key(program["rows"])
    else:
        assert final(rows) == final(program["rows"])


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if "refused" in program])
def test_what_flink_refuses_is_refused(name: str, tables: TableEnvironment) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run(tables, PROGRAMS[name]["sql"])
    assert type(caught.value).__module__.startswith("firesteel.")
