"""Columns that nobody asks for are neither sent nor kept, and results stay what they are."""

from collections import Counter
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.runtime.operators.table import ColumnsToRows
from firesteel.table import TableEnvironment
from firesteel.table.logical.plan import Aggregate, Join, Plan, RowNumber
from firesteel.table.logical.pruning import pruned
from firesteel.table.physical.planner import schema_of

FIRST = "SELECT s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS place FROM t) WHERE place = 1"
QUERIES = {
    "SELECT a.s FROM t AS a JOIN t AS b ON a.k = b.k AND a.v < b.v + 2": ("k", "s", "v", "k", "v"),
    "SELECT a.s FROM t AS a JOIN t AS b ON a.k = b.k": ("k", "s", "k"),
    "SELECT b.v FROM t AS a LEFT JOIN t AS b ON a.k = b.k": ("k", "k", "v"),
    "SELECT s FROM t WHERE k IN (SELECT k FROM t WHERE v > 1)": ("k", "s", "k"),
    "SELECT c FROM (SELECT k, COUNT(*) AS c, MAX(s) AS m, SUM(v) AS x FROM t GROUP BY k)": ("k",),
    "SELECT COUNT(*) FROM t": (),
    FIRST: ("k", "s", "v"),
    "SELECT k FROM t INTERSECT SELECT k FROM t": ("k",),
    "SELECT s FROM (SELECT s, k FROM t UNION ALL SELECT s, k + 1 FROM t)": None,
}


def rows(env: TableEnvironment, plan: Plan, prune: bool) -> Counter[Any]:
    """The rows that are left in the end."""
    planner = env._planner()[1]
    # Without that nothing is left out.
    planner._inside = not prune
    found = planner.stream(plan).transform("Rows", ColumnsToRows(schema_of(plan)))
    table: Counter[Any] = Counter()
    with found.execute_and_collect() as results:
        for row in results:
            table[tuple(row)] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return +table


def kept(plan: Plan) -> list[str]:
    """The columns that the operators with state get."""
    if isinstance(plan, Join | Aggregate | RowNumber):
        return [name for below in plan.inputs for name in below.names]
    return [name for below in plan.inputs for name in kept(below)]


@pytest.mark.parametrize("query", QUERIES)
def test_only_what_is_needed_is_kept(query: str, env: TableEnvironment) -> None:
    plan = env.sql_query(query)._plan
    narrow = pruned(plan)
    assert (narrow.names, narrow.types) == (plan.names, plan.types)
    expected = QUERIES[query]
    if expected is not None:
        assert tuple(kept(narrow)) == expected
    assert rows(env, plan, True) == rows(env, plan, False)
