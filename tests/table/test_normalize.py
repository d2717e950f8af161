"""Upserts as a full changelog, beside a dictionary of the last row of each key."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings
from operatorkit import Change, OperatorRun

from firesteel.runtime.operators.table import ChangelogNormalize, ChangelogNormalizeOperator

SCHEMA = pa.schema([("n", pa.int64()), ("key", pa.string()), ("text", pa.string()), ("price", pa.decimal128(10, 2))])
SPEC = ChangelogNormalize((1,), SCHEMA)


def reference(table: dict[Any, Any], rows: list[Change]) -> list[Change]:
    """One row after the other."""
    out: list[Change] = []
    for kind, row in rows:
        before = table.get(row[1])
        if kind == 1:
            continue
        if kind == 3:
            if before is not None:
                out.append((3, table.pop(row[1])))
        elif before is None:
            out.append((0, row))
            table[row[1]] = row
        elif before != row:
            out += [(1, before), (2, row)]
            table[row[1]] = row
    return out


ROWS = st.tuples(
    st.sampled_from([0, 1, 2, 2, 3]),
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([None, "x", "y"]),
        st.sampled_from([None, Decimal("1.50")]),
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(ROWS, max_size=8), st.booleans()), max_size=6))
def test_normalized_is_what_a_dictionary_says(batches: list[tuple[list[Change], bool]]) -> None:
    table: dict[Any, Any] = {}
    got = OperatorRun(ChangelogNormalizeOperator, SPEC)
    for rows, restarts in batches:
        got.take(rows, SCHEMA)
        assert got.taken() == reference(table, rows)
        if restarts:
            got.restart()
        else:
            got.end_batch()
