"""Views of SQL are resolved where they are used: what they say when their tables have changed."""

from __future__ import annotations

import pytest

from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError
from firesteel.table.udf import udf


def shown(env: TableEnvironment, view: str) -> str:
    with env.execute_sql(f"SHOW CREATE VIEW {view}").collect() as found:
        (row,) = found
    return str(row[0])


def refused(env: TableEnvironment, statement: str) -> str:
    with pytest.raises(SqlError) as caught:
        env.execute_sql(statement)
    return str(caught.value)


def test_a_view_keeps_its_query_in_full(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW one AS SELECT 1 AS k, 'x' AS note")
    env.execute_sql("CREATE VIEW v AS SELECT *, l.* -- all of it\nFROM t AS l JOIN one USING (k)")
    assert shown(env, "v") == (
        "CREATE VIEW `default_catalog`.`default_database`.`v` (\n"
        "  `k`,\n  `s`,\n  `v`,\n  `note`,\n  `k0`,\n  `s0`,\n  `v0`\n)\n"
        "AS SELECT `k`, `l`.`s`, `l`.`v`, `one`.`note`, `l`.`k`, `l`.`s`, `l`.`v` -- all of it\n"
        "FROM `default_catalog`.`default_database`.`t` AS l JOIN `default_catalog`.`default_database`.`one` USING (k)\n"
    )
    env.execute_sql("ALTER VIEW one AS SELECT 'more' AS more, 2 AS k, 'y' AS note")
    with env.execute_sql("SELECT k, note FROM v").collect() as rows:
        assert [tuple(row) for row in rows] == [(2, "y")]


def test_a_star_whose_columns_cannot_be_told_apart_stays(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW v AS SELECT * FROM (SELECT 1 AS a), (SELECT 2 AS a)")
    assert "AS SELECT * FROM" in shown(env, "v")
    with env.execute_sql("SELECT a, a0 FROM v").collect() as rows:
        assert [tuple(row) for row in rows] == [(1, 2)]


def test_errors_name_the_view_and_show_its_query(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW one AS SELECT 1 AS a")
    env.execute_sql("CREATE VIEW two AS SELECT a + 1 AS b FROM one")
    env.execute_sql("ALTER VIEW one AS SELECT 1 AS aa")
    assert refused(env, "SELECT *\nFROM two") == (
        "In the view default_catalog.default_database.two: There is no column a. Did you mean aa? "
        "The columns are aa. (line 1, column 8)\n"
        "  SELECT a + 1 AS b FROM `default_catalog`.`default_database`.`one`\n"
        "         ^"
    )
    env.execute_sql("DROP VIEW one")
    assert "In the view default_catalog.default_database.two: There is no table" in refused(env, "SELECT * FROM two")


def test_a_view_that_reads_itself_is_told(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW one AS SELECT 1 AS a")
    env.execute_sql("CREATE VIEW two AS SELECT a FROM one")
    env.execute_sql("ALTER VIEW one AS SELECT a FROM two")
    message = refused(env, "SELECT * FROM two")
    path = "default_catalog.default_database"
    assert f"A view cannot read itself: {path}.two reads {path}.one reads {path}.two." in message
    assert message.endswith("  SELECT * FROM two\n                ^^^")


def test_a_table_keeps_what_it_was_made_of(env: TableEnvironment) -> None:
    """As in PyFlink: a Table is of the tables that were there when it was made."""
    env.execute_sql("CREATE VIEW one AS SELECT 1 AS a")
    table = env.sql_query("SELECT a FROM one")
    env.create_temporary_view("made", table)
    env.execute_sql("ALTER VIEW one AS SELECT 2 AS a")
    assert table.to_pandas()["a"].tolist() == env.from_path("made").to_pandas()["a"].tolist() == [1]
    assert env.from_path("one").to_pandas()["a"].tolist() == [2]


def test_functions_of_a_view_are_those_of_its_catalog(env: TableEnvironment) -> None:
    env.create_temporary_function("shout", udf(lambda text: text.upper() + "!", result_type="STRING"))
    env.create_temporary_system_function("whisper", udf(lambda text: text.lower(), result_type="STRING"))
    env.execute_sql("CREATE VIEW v AS SELECT shout(s) AS loud, whisper(s) AS soft FROM t WHERE k = 2")
    assert "SELECT `default_catalog`.`default_database`.`shout`(s) AS loud, whisper(s) AS soft" in shown(env, "v")
    env.execute_sql("CREATE DATABASE d")
    env.use_database("d")
    with env.execute_sql("SELECT * FROM default_database.v").collect() as rows:
        assert [tuple(row) for row in rows] == [("B!", "b")]
