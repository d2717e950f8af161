"""ON CONFLICT, and what is refused without it: what PyFlink 2.3 printed for the same INSERTs, or said
(``tools/record_inserts.py``). There is a watermark after each row, as in Flink's SQL."""

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import environment

from firesteel.errors import FiresteelError
from firesteel.table import TableEnvironment

CONTENT = json.loads((Path(__file__).parent / "conflicts_by_pyflink.json").read_text())
PROGRAMS = {program["name"]: program for program in CONTENT["programs"]}


def tables(program: dict[str, Any]) -> TableEnvironment:
    each_row = {"table.local-time-zone": "UTC", "pipeline.auto-watermark-interval": "1 ms"}
    env = environment(**each_row, **program.get("settings", {}))
    for statement in CONTENT["setup"]:
        env.execute_sql(statement)
    return env


def by_key(lines: list[str]) -> dict[str, list[str]]:
    """What is printed for each key, which is the first column."""
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line[line.index("[") : line.index(",")], []).append(line)
    return found


def left(lines: list[str]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for line in lines:
        rows[line[2:]] += 1 if line[:2] in ("+I", "+U") else -1
    return +rows


TAKEN = {"keys: DISTINCT", "keys: ORDER BY and LIMIT"}
"""Refused by Flink, though no two rows of these meet: it takes DISTINCT for a changing query, and forgets keys where it
sorts."""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in TAKEN])
def test_inserts_are_flinks(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    program = PROGRAMS[name]
    env = tables(program)
    if "refused" in program:
        with pytest.raises(FiresteelError):
            env.execute_sql(program["sql"]).wait()
        return
    env.execute_sql(program["sql"]).wait()
    printed = [line for line in capfd.readouterr().out.splitlines() if line[:1] in "+-"]
    # Of several inputs, and of places in an order, Flink leaves open which changes lead to the result.
    compared = left if name.startswith("keys: ") else by_key
    assert compared(printed) == compared(program["printed"])


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_what_flink_need_not_refuse_runs(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "refused" in PROGRAMS[name]
    tables(PROGRAMS[name]).execute_sql(PROGRAMS[name]["sql"]).wait()
    assert "+I[a, " in capfd.readouterr().out


def message(sql: str, **settings: str) -> str:
    with pytest.raises(FiresteelError) as caught:
        tables({"settings": settings}).execute_sql(sql).wait()
    return str(caught.value)


def test_an_error_says_what_to_write() -> None:
    found = message("INSERT INTO p SELECT MAX(k), n FROM l GROUP BY n")
    assert "has the primary key (k), and the query changes its rows by (v)" in found
    assert "ON CONFLICT DO NOTHING (the first one stays)" in found
    assert "table.exec.sink.require-on-conflict = false" in found
    assert "by no key that is known" in message("INSERT INTO p SELECT UPPER(k), COUNT(*) FROM l GROUP BY k")
    found = message("INSERT INTO p SELECT k, n FROM l ON CONFLICT DO NOTHING")
    assert "default_catalog.default_database.p (connector 'print') gets insertions only from this query" in found
    found = message("INSERT INTO p SELECT k, MAX(n) FROM s GROUP BY k ON CONFLICT DO ERROR")
    assert (
        "ON CONFLICT DO ERROR decides about rows when a watermark comes, and these have none: default_catalog" in found
    )
    found = message("INSERT INTO p SELECT k, n FROM l ON CONFLICT DO NOTHIN")
    assert "Expected ERROR or NOTHING or DEDUPLICATE, got NOTHIN. Did you mean NOTHING? (line 1, column 49)" in found
    found = message("INSERT INTO p VALUES ('a', 1)", **{"table.exec.sink.upsert-materialize": "SOME"})
    assert "table.exec.sink.upsert-materialize is AUTO" in found
    assert found.endswith("got 'SOME'.")


def test_a_conflict_names_both_rows() -> None:
    found = message("INSERT INTO p SELECT MAX(k), n FROM l GROUP BY n ON CONFLICT DO ERROR")
    assert "default_database.p: two rows have the same primary key (k=a): ('a', 0) and ('a', 2). ON" in found


def test_batch_mode_writes_rows_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    env = environment(**{"execution.runtime-mode": "BATCH", "table.exec.sink.upsert-materialize": "FORCE"})
    env.execute_sql(CONTENT["setup"][4])
    rows = "(VALUES ('a', 1), ('a', 2)) AS t (k, v)"
    env.execute_sql(f"INSERT INTO p SELECT MAX(k), v FROM {rows} GROUP BY v ON CONFLICT DO NOTHING").wait()
    assert sorted(capfd.readouterr().out.split("\n"))[1:] == ["+I[a, 1]", "+I[a, 2]"]


DATABASE = """
    CREATE TABLE stored (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (
        'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{file}', 'table-name' = 'stored')
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """With a table stored (k, v), which overwrites by k."""
    with contextlib.closing(sqlite3.connect(tmp_path / "stored.db")) as connection:
        connection.execute("CREATE TABLE stored (k TEXT PRIMARY KEY, v INTEGER)")
        yield connection


@pytest.mark.parametrize(
    ("clause", "setting", "first_stays"),
    [
        ("", "AUTO", False),
        ("DEDUPLICATE", "AUTO", False),
        ("NOTHING", "AUTO", True),
        ("NOTHING", "NONE", False),
        ("", "FORCE", False),
    ],
)
def test_rows_that_are_given_once_meet_in_a_table_that_overwrites(
    database: sqlite3.Connection, tmp_path: Path, clause: str, setting: str, first_stays: bool
) -> None:
    """In PyFlink 2.3 NOTHING and ERROR have the plan of a query that changes its rows: upsertMaterialize=[true]."""
    env = tables({"settings": {"table.exec.sink.upsert-materialize": setting}})
    env.execute_sql(DATABASE.format(file=tmp_path / "stored.db"))
    said = f"ON CONFLICT DO {clause}" if clause else ""
    env.execute_sql(f"INSERT INTO stored SELECT k, n FROM l {said}").wait()
    rows = dict(database.execute("SELECT * FROM stored").fetchall())
    assert rows == ({"a": 0, "b": 1, "c": 3} if first_stays else {"a": 5, "b": 4, "c": 3})


def test_rows_that_are_given_once_may_not_meet(database: sqlite3.Connection, tmp_path: Path) -> None:
    env = tables({})
    env.execute_sql(DATABASE.format(file=tmp_path / "stored.db"))
    with pytest.raises(FiresteelError, match=r"stored: two rows have the same primary key \(k="):
        env.execute_sql("INSERT INTO stored SELECT k, n FROM l ON CONFLICT DO ERROR").wait()
    env.execute_sql("INSERT INTO stored SELECT k, n FROM l WHERE n BETWEEN 1 AND 3 ON CONFLICT DO ERROR").wait()
    assert dict(database.execute("SELECT * FROM stored").fetchall()) == {"a": 2, "b": 1, "c": 3}


def test_a_plan_says_what_becomes_of_conflicts() -> None:
    insert = "INSERT INTO p SELECT MAX(k), n FROM l GROUP BY n ON CONFLICT DO NOTHING"
    env = tables({})
    assert "fields=[k, v], conflictStrategy=[NOTHING])" in env.explain_sql(insert).replace("EXPR$0, n", "k, v")
    together = env.create_statement_set().add_insert_sql(insert).explain()
    assert "conflictStrategy=[NOTHING]" in together


def test_a_plan_is_refused_as_its_insert_is() -> None:
    """The job manager asks for the plan before it starts a job."""
    env = tables({})
    with pytest.raises(FiresteelError, match=r"has the primary key \(k\)"):
        env.explain_sql("INSERT INTO p SELECT MAX(k), n FROM l GROUP BY n")
    with pytest.raises(FiresteelError, match="takes insertions only"):
        env.explain_sql("INSERT INTO fs SELECT k, MAX(n) FROM l GROUP BY k")
