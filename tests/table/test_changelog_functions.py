"""TO_CHANGELOG and FROM_CHANGELOG: the messages for mistakes. Results are compared with PyFlink's in the sessions."""

from __future__ import annotations

import pytest

from firesteel.errors import FiresteelError
from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("TO_CHANGELOG(1)", r"TO_CHANGELOG\(TABLE t\) takes a table"),
        ("TO_CHANGELOG()", r"TO_CHANGELOG\(TABLE t\) takes a table"),
        ("TO_CHANGELOG(TABLE t, nme => 1)", "takes input, op, op_mapping, uid, each once"),
        ("TO_CHANGELOG(TABLE t, input => TABLE t)", "takes input, op, op_mapping, uid, each once"),
        ("TO_CHANGELOG(TABLE t PARTITION BY k)", "takes no PARTITION BY"),
        ("TO_CHANGELOG(TABLE t, op => 'x')", r"DESCRIPTOR\(name\) names one column"),
        ("TO_CHANGELOG(TABLE t, op => DESCRIPTOR(s))", "The table has a column s"),
        ("TO_CHANGELOG(TABLE t, op_mapping => 'x')", "takes a map of constant texts"),
        ("TO_CHANGELOG(TABLE t, op_mapping => MAP['INSERT', 1])", "op_mapping takes constant texts"),
        ("TO_CHANGELOG(TABLE t, op_mapping => MAP['INSRT', 'x'])", r"no kind of rows 'INSRT'. Did you mean INSERT\?"),
        ("TO_CHANGELOG(TABLE t, op_mapping => MAP['INSERT', 'a', 'INSERT', 'b'])", "op_mapping has 'INSERT' twice"),
        ("FROM_CHANGELOG(TABLE t)", "The table has no column op, which would tell the kind"),
        ("FROM_CHANGELOG(TABLE t, op => DESCRIPTOR(k))", "k tells the kind, so it is a text, and not INT"),
        (
            "FROM_CHANGELOG(TABLE t, op => DESCRIPTOR(s), op_mapping => MAP['a', 'UPDATE_AFTER'])",
            "op_mapping has UPDATE_AFTER, so it needs UPDATE_BEFORE, too",
        ),
        (
            "FROM_CHANGELOG((SELECT s, COUNT(*) AS n FROM t GROUP BY s), op => DESCRIPTOR(s))",
            "FROM_CHANGELOG takes no updates",
        ),
    ],
)
def test_mistakes_are_told(env: TableEnvironment, call: str, told: str) -> None:
    with pytest.raises(SqlError, match=told):
        env.execute_sql(f"SELECT * FROM {call}")


def test_a_text_that_is_no_kind_ends_the_job(env: TableEnvironment) -> None:
    result = env.execute_sql("SELECT * FROM FROM_CHANGELOG(TABLE t, op => DESCRIPTOR(s))")
    with pytest.raises(FiresteelError, match=r"no kind of rows is called 'a'. The kinds are INSERT, UPDATE_BEFORE"):
        list(result.collect())


def test_there_and_back(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW counts AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    query = "SELECT * FROM FROM_CHANGELOG((SELECT * FROM TO_CHANGELOG(TABLE counts)))"
    there = [(row.get_row_kind(), *row) for row in env.execute_sql("SELECT * FROM counts").collect()]
    assert [(row.get_row_kind(), *row) for row in env.execute_sql(query).collect()] == there


def test_columns_that_nobody_asks_for_do_not_change_kinds(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW counts AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    with env.execute_sql("SELECT op FROM TO_CHANGELOG(TABLE counts)").collect() as rows:
        assert [row[0] for row in rows] == ["INSERT", "INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "INSERT"]
